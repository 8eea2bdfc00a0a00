"""The terminal shows one line per step with what it found, and nothing that matters is lost."""

import logging
import os
import time

import pytest

from clustered_fl.workflow import console
from clustered_fl.workflow.console import Console


class Terminal(logging.Handler):
    """In place of Snakemake's handler: what would be printed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += record.getMessage().splitlines()


class Run:
    """A run of the workflow as Snakemake tells it, with logs in a folder."""

    def __init__(self, folder, targets=()) -> None:
        self.folder, self.terminal = folder, Terminal()
        self.console = Console(self.terminal, folder / "index.html", targets)
        self.done = 0

    def tell(self, event: str | None = None, level: int = logging.INFO, **fields) -> list[str]:
        """Send one message; the lines that were printed for it."""
        before = len(self.terminal.lines)
        about = {"levelno": level, "event": event, "msg": "", **fields}
        self.console.handle(logging.makeLogRecord(about))
        return self.terminal.lines[before:]

    def begin(self, jobid: int, rule: str, **wildcards: str) -> None:
        log = [str(self.folder / f"{jobid}.log"), str(self.folder / f"{jobid}.ipynb")]
        self.tell("job_info", jobid=jobid, rule_name=rule, wildcards=wildcards, log=log)

    def say(self, jobid: int, text: str) -> None:
        (self.folder / f"{jobid}.log").write_text(text)

    def end(self, jobid: int) -> list[str]:
        self.done += 1
        shown = self.tell("job_finished", job_id=jobid)
        return shown + self.tell("progress", done=self.done, total=9)


@pytest.fixture
def run(tmp_path) -> Run:
    run = Run(tmp_path)
    run.tell("run_info", stats={"train": 3, "study_cfl_paths": 1, "all": 1, "total": 5})
    return run


def test_the_plan_is_one_line(run):
    assert run.terminal.lines == ["4 steps: 3 train, 1 study"]


def test_a_target_that_only_collects_files_is_no_step(tmp_path):
    run = Run(tmp_path, targets={"cfl_fig9"})
    assert run.tell("run_info", stats={"train": 2, "figure": 1, "cfl_fig9": 1, "total": 4}) == [
        "3 steps: 2 train, 1 figure"
    ]


def test_a_finished_step_shows_the_last_line_of_its_log(run):
    run.begin(1, "train", scale="demo", name="cfl_fig9", seed="0")
    run.say(1, "on a machine\nround 3/3\naccuracy 0.5\n")
    assert run.end(1) == ["[1/4] train cfl_fig9, seed 0: accuracy 0.5 (0 s)"]
    run.begin(2, "study_cfl_paths", scale="demo", name="cfl_paths")
    run.say(2, "")
    assert run.end(2) == ["[2/4] study cfl_paths: done (0 s)"]


def test_a_federation_is_named_without_its_digest(run):
    run.begin(1, "partition", scale="demo", clients="label_swap_0123456789abcdef", seed="2")
    run.say(1, "20 clients")
    assert run.end(1)[0].startswith("[1/4] partition label_swap, seed 2: 20 clients")


def test_a_line_of_an_earlier_attempt_is_not_shown(run):
    run.say(1, "round 1/3\n")
    os.utime(run.folder / "1.log", (0, 0))
    run.begin(1, "train", scale="demo", name="cfl_fig9", seed="0")
    assert run.end(1) == ["[1/4] train cfl_fig9, seed 0: done (0 s)"]


def test_time_left_follows_the_kinds_of_steps(run, monkeypatch):
    """Two trainings of 10 minutes are left, and a study that is taken to be like them."""
    now = time.time()
    run.begin(1, "train", scale="demo", name="cfl_fig9", seed="0")
    monkeypatch.setattr(console.time, "time", lambda: now + 600)
    (line,) = run.end(1)
    assert line.startswith("[1/4, about 30 min left] train cfl_fig9, seed 0: ")


@pytest.mark.parametrize("event", ["job_started", "resources_info", "workflow_started"])
def test_what_says_nothing_about_results_is_not_shown(run, event):
    assert run.tell(event, msg="Provided cores: 2") == []
    assert run.tell(msg="Select jobs to execute...") == []


def test_what_is_not_known_is_shown(run):
    assert run.tell(msg="Waiting for the queue") == ["Waiting for the queue"]
    assert run.tell("group_error", logging.ERROR, msg="Error in group x") == ["Error in group x"]
    assert run.tell(level=logging.WARNING, msg="Select jobs") == ["Select jobs"]


def test_a_failed_step_shows_the_end_of_its_log_and_where_everything_is(run):
    assert run.tell(msg="Complete log(s): here") == []
    run.begin(1, "train", scale="demo", name="bad", seed="0")
    run.say(1, "".join(f"line {n}\n" for n in range(100)) + "error: client 0 has\n")
    shown = run.tell("job_error", logging.ERROR, jobid=1)
    log = run.folder / "1.log"
    assert shown[0] == f"FAILED train bad, seed 0. The end of its log, {log}:"
    assert shown[-1] == "    error: client 0 has"
    assert len(shown) == 1 + console.SHOWN_OF_A_FAILURE
    assert run.tell(msg="Complete log(s): here") == ["Complete log(s): here"]


def test_steps_that_fail_alike_show_their_log_once(run):
    for job in (1, 2):
        run.begin(job, "restore_run", scale="demo", record=f"a/seed{job}")
        run.say(job, "one sentence\n" * 3)
    assert len(run.tell("job_error", logging.ERROR, jobid=1)) == 1 + 3
    (line,) = run.tell("job_error", logging.ERROR, jobid=2)
    log = run.folder / "2.log"
    assert line == f"FAILED restore a/seed2. Its log ends as one above: {log}"


def test_the_command_of_a_failed_step_is_not_shown(run):
    about = {"msg": "RuleException:\nCalledProcessError in file", "exception": "RuleException"}
    assert run.tell("error", logging.ERROR, **about) == []


def test_after_an_unknown_target_similar_ones_are_named(tmp_path):
    about = {"msg": "No rule to produce cfl_fig66 (if", "exception": "MissingRuleException"}
    shown = Run(tmp_path, ["cfl_fig6", "flt"]).tell("error", logging.ERROR, **about)
    listed = "snakemake --list-rules lists the targets of this scale and these papers."
    assert shown == ["No rule to produce cfl_fig66 (if", f"{listed} Similar ones: cfl_fig6."]


def test_a_failure_of_a_step_without_log_is_told_by_snakemake(run):
    assert run.tell("job_error", logging.ERROR, jobid=7, msg="Error in rule x") == [
        "Error in rule x"
    ]


def test_when_nothing_is_to_be_done_the_report_is_named(run):
    text = "Nothing to be done (all requested files are present and up to date)."
    assert run.tell(msg=text) == [text]
    (run.folder / "index.html").touch()
    assert run.tell(msg=text) == [text, f"The report: {run.folder / 'index.html'}"]


def test_a_long_step_shows_each_line_of_progress_once(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "HEARTBEAT_SECONDS", 0.01)
    run = Run(tmp_path)
    run.begin(1, "train", scale="demo", name="long", seed="0")
    run.say(1, "round 1/9\n")
    run.tell("run_info", stats={"train": 1, "total": 1})
    for number in (1, 2):
        line = f"... train long, seed 0: round {number}/9"
        run.say(1, f"round {number}/9\n")
        deadline = time.monotonic() + 10
        while line not in run.terminal.lines and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        assert run.terminal.lines.count(line) == 1
    run.end(1)


def test_what_quiet_silences_stays_silent(run):
    run.terminal.addFilter(lambda record: getattr(record, "event", None) != "run_info")
    silenced = Run(run.folder)
    silenced.terminal.filters = run.terminal.filters
    silenced.console = Console(silenced.terminal, run.folder / "index.html")
    assert silenced.tell("run_info", stats={"train": 3}) == []


def test_installed_it_replaces_the_terminal_and_leaves_the_file(monkeypatch, tmp_path):
    logger = logging.getLogger("snakemake.logging")
    terminal, file = Terminal(), Terminal()
    terminal.name, file.name = "DefaultStreamHandler", "DefaultLogFileHandler"
    monkeypatch.setattr(logger, "handlers", [terminal, file])
    console.install(tmp_path / "index.html")
    assert file in logger.handlers
    assert terminal not in logger.handlers
    assert [type(each) for each in logger.handlers if each is not file] == [Console]
