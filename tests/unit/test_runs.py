"""A run leaves one record, and neither a kill nor threads nor company change a byte of it."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from clustered_fl.cli import main
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.partitions import build_federation
from clustered_fl.engine import checkpoint
from clustered_fl.errors import InputError
from clustered_fl.jobs import train as runs
from clustered_fl.jobs.ending import exit_code
from clustered_fl.models.numerics import NUMERICS
from clustered_fl.records import reading as records
from clustered_fl.records.reading import Origin
from clustered_fl.workflow.kinds import FILES
from clustered_fl.workflow.source import ROOT

# Everything but cost.json, which says how long it took.
SAME = ("record.json", "rounds.parquet", "models.safetensors")
RECORD_FILES = (*FILES["run"], "models.safetensors")
CFL = {"name": "cfl", "auto": True, "eps_1": 2.0, "eps_2": 0.0, "min_rounds": 2, "min_size": 2}
FEDAVG = {"name": "fedavg", "similarities": True, "gradient_every": 2}
PROGRESS = re.compile(
    r"round (\d+)/6  \d+\.\d\d rounds/s  accuracy (0\.\d+|1|0)  \d group\(s\)  \d+\.\d min left"
    r"  \d+ MB"
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Arguments for `execute`: four clients with 20 noisy images each, in two groups."""
    folder = tmp_path_factory.mktemp("inputs")
    random = np.random.default_rng(0)
    y = np.arange(200) % 10
    clean = random.integers(0, 256, (10, 1, 28, 28))[y]
    x = (0.7 * clean + 0.3 * random.integers(0, 256, clean.shape)).astype(np.uint8)
    data = datasets.build("mnist", "builtin", x, y, 150, tuple("0123456789"))
    datasets.save(data, folder / "data.safetensors")
    settings = {"clients": 4, "groups": 2, "samples": 20, "newcomers": 5}
    built = build_federation(data, 0, "label_permutation", **settings)
    federations.save(built, folder / "federation.safetensors", data.digest)
    return {"data": folder / "data.safetensors", "federation": folder / "federation.safetensors"}


def configured(method: dict = CFL, **changes) -> dict:
    config = {
        "run": "tiny",
        "paper": "cfl",
        "scale": "demo",
        "seed": 0,
        "dataset": "mnist",
        "model": {"name": "small_conv_net"},
        "training": {"epochs": 1, "batch_size": 10, "lr": 0.1},
        "method": method,
        "rounds": 6,
        "evaluate_every": 2,
        "keep_every": 0,
    }
    return config | changes


def execute(inputs, folder: Path, config: dict | None = None, **changes) -> list[str]:
    """Compute a run below `folder` and return its lines of progress."""
    lines: list[str] = []
    arguments = {
        "config": config or configured(),
        "out": folder / "record",
        "saved": folder / "checkpoint.safetensors",
        "grouping": None,
        "origin": Origin("0123456789abcdef", "fedcba9876543210"),
        "device": "cpu",
        "path": "compiled",
        "workers": 1,
        "tell": lines.append,
    }
    runs.execute(**(inputs | arguments | changes))
    assert lines.pop(0).startswith("on ")
    return lines


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "record" / name).read_bytes() for name in SAME}


@pytest.fixture(scope="module")
def undisturbed(inputs, tmp_path_factory):
    """Folders of undisturbed runs by name of the method."""
    found = {}
    for method in (CFL, FEDAVG):
        found[method["name"]] = tmp_path_factory.mktemp(method["name"])
        execute(inputs, found[method["name"]], configured(method))
    return found


# ---- What a run leaves --------------------------------------------------------------------------


def test_four_files_and_no_checkpoint(undisturbed):
    folder = undisturbed["cfl"]
    assert sorted(path.name for path in (folder / "record").iterdir()) == sorted(RECORD_FILES)
    assert not (folder / "checkpoint.safetensors").exists()


def test_record_says_what_was_computed_from_what(undisturbed, inputs):
    record = records.load_record(undisturbed["cfl"] / "record")
    data = datasets.load(inputs["data"])
    assert record["config"] == json.loads(json.dumps(configured()))
    assert (record["code"], record["identity"]) == ("0123456789abcdef", "fedcba9876543210")
    assert record["numerics"] == NUMERICS
    assert record["data"]["digest"] == data.digest
    assert (record["data"]["source"], record["data"]["rows"]) == ("builtin", 200)
    assert record["federation_digest"] == federations.load(inputs["federation"])[1]
    assert record["versions"].keys() == {"python", "torch", "numpy", "numba"}
    assert record["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert (record["metric"], record["rounds"]) == ("accuracy", 6)
    assert record["true_groups"] == [0, 0, 1, 1]
    assert record["cost"]["seconds"] > 0
    assert record["cost"]["cpu_seconds"] > 0
    assert record["cost"]["peak_memory_mb"] > 10
    assert record["cost"]["threads"] == 1


def test_tree_groups_and_models_fit_together(undisturbed):
    folder = undisturbed["cfl"] / "record"
    record, models = records.load_record(folder), records.load_models(folder)
    tree = record["tree"]
    assert {node["split_round"] for node in tree if node["children"]} == {2, 4}
    leaves = {node["id"]: node["clients"] for node in tree if not node["children"]}
    assert record["groups"] == [
        next(leaf for leaf, clients in leaves.items() if client in clients) for client in range(4)
    ]
    expected = {f"node{node['id']}.model" for node in tree}
    expected |= {f"node{node['id']}.updates" for node in tree if node["parent"] is not None}
    expected |= {f"node{node['id']}.similarity" for node in tree if node["children"]}
    assert models.keys() == expected
    for node in tree:
        assert models[f"node{node['id']}.model"].shape == (record["parameters"],)
    for node in tree[1:]:
        shape = (node["updates"], record["parameters"])
        assert models[f"node{node['id']}.updates"].shape == shape
        assert node["updates"] == len(node["clients"])
    assert [node["similarity"] is None for node in tree] == [not node["children"] for node in tree]
    assert [new["client"] for new in record["newcomers"]] == [4, 5]
    assert all(new["leaf"] in leaves for new in record["newcomers"])


def test_scores_are_taken_when_due_and_at_the_end(undisturbed):
    rounds = records.load_rounds(undisturbed["fedavg"] / "record")
    scores = rounds[rounds["metric"] == "accuracy"]
    assert sorted(scores["round"].unique()) == [0, 2, 4, 6]
    assert [sorted(each["member"]) for _, each in scores.groupby("round")] == [[0, 1, 2, 3]] * 4
    updates = rounds[rounds["metric"] == "gap_update"]
    assert updates["round"].tolist() == [0, 1, 2, 3, 4, 5]
    gradients = rounds[rounds["metric"] == "gap_gradient"]
    assert gradients["round"].tolist() == [2, 4]


def test_training_learns(undisturbed):
    rounds = records.load_rounds(undisturbed["fedavg"] / "record")
    losses = rounds[rounds["metric"] == "loss"].groupby("round")["value"].mean()
    assert losses.iloc[-1] < losses.iloc[0]


# ---- The same bytes -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", [CFL, FEDAVG], ids=lambda method: method["name"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_run_leaves_the_same_bytes_with_one_and_two_threads(
    inputs, undisturbed, tmp_path, method, workers
):
    execute(inputs, tmp_path, configured(method), workers=workers)
    assert contents(tmp_path) == contents(undisturbed[method["name"]])


def test_what_happened_before_in_the_process_changes_nothing(inputs, undisturbed, tmp_path):
    torch.manual_seed(123)
    torch.rand(7)
    np.random.default_rng(5).random()
    execute(inputs, tmp_path)
    assert contents(tmp_path) == contents(undisturbed["cfl"])


def test_another_seed_is_another_run(inputs, undisturbed, tmp_path):
    execute(inputs, tmp_path, configured(seed=1))
    other = contents(tmp_path)
    assert all(other[name] != contents(undisturbed["cfl"])[name] for name in SAME)


class KilledError(Exception):
    """Stands for the end of the process."""


def kill_after(round_: int, monkeypatch) -> None:
    """Let the process end when so many rounds of a minute are done, and write no record."""
    step, passed = runs.step, [0.0]

    def last(run) -> None:
        if run.completed == round_:
            raise KilledError
        step(run)
        passed[0] += 60

    def no_record(*_) -> None:
        raise KilledError

    clocks = SimpleNamespace(monotonic=lambda: passed[0], process_time=lambda: 0.0)
    monkeypatch.setattr(runs, "time", clocks)
    monkeypatch.setattr(runs, "step", last)
    monkeypatch.setattr(runs, "write", no_record)


@pytest.mark.parametrize("method", [CFL, FEDAVG], ids=lambda method: method["name"])
@pytest.mark.parametrize("round_", range(7))
def test_a_run_that_ended_after_any_round_is_continued_to_the_same_bytes(
    inputs, undisturbed, tmp_path, monkeypatch, method, round_
):
    config = configured(method)
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        kill_after(round_, patch)
        execute(inputs, tmp_path, config)
    assert not (tmp_path / "record").exists()
    lines = execute(inputs, tmp_path, config)
    saved = round_ - round_ % 2  # every two minutes
    assert lines[:1] == [f"continuing after round {saved}"] if saved else PROGRESS.match(lines[0])
    assert contents(tmp_path) == contents(undisturbed[method["name"]])
    assert not (tmp_path / "checkpoint.safetensors").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"config": configured(rounds=5)},
        {"origin": Origin("another", "")},
        {"config": configured(seed=1)},
    ],
    ids=["rounds", "code", "seed"],
)
def test_a_checkpoint_of_another_configuration_or_code_is_not_continued(
    inputs, undisturbed, tmp_path, monkeypatch, changes
):
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        kill_after(4, patch)
        execute(inputs, tmp_path, **changes)
    lines = execute(inputs, tmp_path)
    assert not any("continuing" in line for line in lines)
    assert contents(tmp_path) == contents(undisturbed["cfl"])


def test_a_checkpoint_of_another_federation_is_not_continued(inputs, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        kill_after(4, patch)
        execute(inputs, tmp_path)
    data = datasets.load(inputs["data"])
    settings = {"clients": 4, "groups": 2, "samples": 20, "newcomers": 5}
    other = build_federation(data, 1, "label_permutation", **settings)
    federations.save(other, tmp_path / "other.safetensors", data.digest)
    lines = execute(inputs, tmp_path, federation=tmp_path / "other.safetensors")
    assert not any("continuing" in line for line in lines)


def test_a_damaged_checkpoint_is_not_continued(inputs, undisturbed, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        kill_after(4, patch)
        execute(inputs, tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    (tmp_path / f".{path.name}.123.part").write_bytes(b"half of one")
    first, *lines = execute(inputs, tmp_path)
    assert first.startswith(f"the checkpoint {path} is damaged (")
    assert first.endswith("); starting at the beginning")
    assert not list(tmp_path.glob(".*.part"))
    assert not any("continuing" in line for line in lines)
    assert contents(tmp_path) == contents(undisturbed["cfl"])


def command(inputs, folder: Path, config: dict, *more: str) -> list[str]:
    """Arguments of the step that trains."""
    options = {
        "config": json.dumps(config),
        "data": inputs["data"],
        "federation": inputs["federation"],
        "checkpoint": folder / "checkpoint.safetensors",
        "code": "0123456789abcdef",
        "identity": "fedcba9876543210",
        "device": "cpu",
        "path": "compiled",
        "out": folder / "record",
    }
    pairs = (("--" + name, str(value)) for name, value in options.items())
    return ["train", *(part for pair in pairs for part in pair), *more]


OFTEN = """import sys
from clustered_fl.cli import main
from clustered_fl.engine import checkpoint
checkpoint.SAVE_SECONDS = 0
sys.exit(main(sys.argv[1:]))"""
"""The command line, with a checkpoint after every round."""


@contextmanager
def another_process(arguments: list[str]):
    """The step in a process of its own, killed at the end whatever happens."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-c", OFTEN, *arguments]
    process = subprocess.Popen(call, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(path: Path, process: subprocess.Popen) -> None:
    until = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.005)


def test_kill_9_and_a_second_process_in_mid_run(inputs, tmp_path, capsys):
    """A process is stopped, defends its run, is killed; the next one finishes what it began."""
    config = configured(rounds=40)
    execute(inputs, tmp_path / "undisturbed", config)
    folder = tmp_path / "killed"
    with another_process(command(inputs, folder, config)) as process:
        wait_for(folder / "checkpoint.safetensors", process)
        process.send_signal(signal.SIGSTOP)
        assert not (folder / "record").exists()
        assert main(command(inputs, folder, config)) == 2
        refusal = f"error: this run is still being computed by process {process.pid} on "
        assert capsys.readouterr().err.splitlines()[-1].startswith(refusal)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert not (folder / "record").exists()
    assert main(command(inputs, folder, config)) == 0
    continued = re.search(r"continuing after round (\d+)\n", capsys.readouterr().err)
    assert 1 <= int(continued[1]) < 40
    assert contents(folder) == contents(tmp_path / "undisturbed")


def ended(process: subprocess.Popen, lock: Path, wait: float, number: int) -> int:
    """Send a signal some time after a process has begun to train, and return its exit code."""
    until = time.monotonic() + 120
    while process.poll() is None and not (
        lock.exists() and lock.read_text().startswith(f"{process.pid} on ")
    ):
        assert time.monotonic() < until, f"{lock} was not taken"
        time.sleep(0.005)
    time.sleep(wait)
    if process.poll() is None:
        process.send_signal(number)
    return process.wait()


def test_kills_and_interruptions_at_random_moments_leave_the_same_bytes(inputs, tmp_path):
    """KILLS=20 does it 20 times; the default is twice."""
    config, folder, random = configured(rounds=200), tmp_path / "killed", np.random.default_rng(0)
    execute(inputs, tmp_path / "undisturbed", config)
    codes = {0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT}
    codes |= {128 + signal.SIGTERM, 128 + signal.SIGINT}
    for _ in range(int(os.environ.get("KILLS", "2"))):
        number = int(random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        with another_process(command(inputs, folder, config)) as process:
            lock, wait = folder / "checkpoint.lock", float(random.uniform(0, 2))
            assert ended(process, lock, wait, number) in codes
        if (folder / "record" / "record.json").exists():
            assert contents(folder) == contents(tmp_path / "undisturbed")
            shutil.rmtree(folder)
    assert main(command(inputs, folder, config)) == 0
    assert contents(folder) == contents(tmp_path / "undisturbed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_ends_with_a_checkpoint(
    inputs, undisturbed, tmp_path, monkeypatch, capsys, number
):
    step, before = runs.step, signal.getsignal(number)

    def interrupted(run) -> None:
        step(run)
        if run.completed == 3:
            os.kill(os.getpid(), number)

    arguments = command(inputs, tmp_path, configured())
    with monkeypatch.context() as patch:
        patch.setattr(runs, "step", interrupted)
        assert main(arguments) == 128 + number
    *_, last = capsys.readouterr().err.splitlines()
    assert last == f"interrupted by signal {number:d}; the same command continues"
    assert signal.getsignal(number) is before
    assert execute(inputs, tmp_path)[0] == "continuing after round 3"
    assert contents(tmp_path) == contents(undisturbed["cfl"])


def test_a_second_signal_leaves_a_round_at_once(inputs, undisturbed, tmp_path, monkeypatch):
    """So does the alarm, where a round takes longer than an interruption may."""
    step = runs.step

    def interrupted(run) -> None:
        if run.completed == 3:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGALRM)
            pytest.fail("the round went on")
        step(run)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "SAVE_SECONDS", 0)
        patch.setattr(runs, "step", interrupted)
        assert main(command(inputs, tmp_path, configured())) == 128 + signal.SIGTERM
    assert execute(inputs, tmp_path)[0] == "continuing after round 3"
    assert contents(tmp_path) == contents(undisturbed["cfl"])


@pytest.mark.parametrize("empty", [np.empty, torch.empty], ids=["numpy", "torch"])
def test_a_run_without_memory_is_one_sentence(inputs, tmp_path, monkeypatch, capsys, empty):
    monkeypatch.setattr(runs, "step", lambda _: empty(2**50))
    assert main(command(inputs, tmp_path, configured())) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert re.match(r"error: out of memory, with \d+ MB in use at most \(.*allocate", line)
    assert line.endswith("or use --set-resources train:mem_mb=<MB>")


def test_a_file_that_finds_no_room_in_memory_is_one_sentence(capsys):
    def mapped() -> None:
        raise RuntimeError("unable to mmap 8 bytes from file <x>: Cannot allocate memory (12)")

    assert exit_code(mapped, print) == 2
    assert capsys.readouterr().out.startswith("error: out of memory, with ")


@pytest.mark.parametrize(
    ("kind", "message", "why"),
    [
        (
            torch.OutOfMemoryError,
            "CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total capacity of 6.00 "
            "GiB of which 11.06 MiB is free. Of the allocated memory 2.93 GiB is allocated by "
            "PyTorch. See documentation for Memory Management",
            "CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total capacity of 6.00 "
            "GiB of which 11.06 MiB is free",
        ),
        (RuntimeError, "CUDA error: out of memory\nmore", "CUDA error: out of memory"),
    ],
    ids=["allocator", "driver"],
)
def test_a_gpu_without_memory_is_one_sentence_of_its_own(capsys, kind, message, why):
    def too_large() -> None:
        raise kind(message)

    assert exit_code(too_large, print) == 2
    advice = "use --config device=cpu or a larger GPU"
    told = f"error: out of memory on the GPU ({why}); {advice}\n"
    assert capsys.readouterr().out == told


# ---- Progress -----------------------------------------------------------------------------------


def test_progress_says_round_rate_score_and_time_left(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "PROGRESS_SECONDS", -1)
    *lines, end = execute(inputs, tmp_path)
    assert [int(PROGRESS.fullmatch(line)[1]) for line in lines] == [1, 2, 3, 4, 5, 6]
    assert " 0.0 min left " in lines[-1]
    assert re.fullmatch(r"\d+ s, peak memory \d+ MB", end)


def test_progress_is_told_at_the_first_round_and_at_the_end(inputs, tmp_path):
    *lines, _ = execute(inputs, tmp_path)
    assert [int(PROGRESS.fullmatch(line)[1]) for line in lines] == [1, 6]


def test_the_path_is_chosen_and_recorded(inputs, tmp_path):
    execute(inputs, tmp_path, path="auto")
    assert records.load_record(tmp_path / "record")["path"] == "compiled"


# ---- What cannot be used ------------------------------------------------------------------------


def test_cuda_without_a_gpu_is_one_sentence(inputs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    arguments = command(inputs, tmp_path, configured())
    arguments[arguments.index("--device") + 1] = "cuda"
    assert main(arguments) == 2
    sentence = "device cuda asked for but no CUDA GPU is visible; use device=cpu or auto"
    assert capsys.readouterr().err == f"error: {sentence}\n"
    assert list(tmp_path.iterdir()) == []


def test_divergence_is_told_with_client_and_round_and_leaves_no_record(inputs, tmp_path, capsys):
    training = {"epochs": 2, "batch_size": 10, "lr": 1e30}
    assert main(command(inputs, tmp_path, configured(training=training))) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"error: client 0 has non-finite parameters after round 1; "
        r"a learning rate below 1e\+30 or a gradient clip may help",
        last,
    )
    assert not (tmp_path / "record").exists()


@contextmanager
def files_of_at_most(size: int):
    """Let every write beyond `size` bytes of a file fail, as on a full disk."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.parametrize("file", ["checkpoint.safetensors", "record/models.safetensors"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(
    inputs, tmp_path, monkeypatch, capsys, file
):
    arguments = command(inputs, tmp_path, configured())
    if file != "checkpoint.safetensors":
        monkeypatch.setattr(checkpoint, "save", lambda *_: None)
    with files_of_at_most(20_000):
        assert main(arguments) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        f"error: cannot write {re.escape(str(tmp_path / file))}: .*File too large.*; "
        "free space or choose another folder",
        last,
    )
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["checkpoint.lock"]
    assert main(arguments) == 0
    assert {path.name for path in (tmp_path / "record").iterdir()} == set(RECORD_FILES)


@pytest.mark.parametrize("name", RECORD_FILES)
def test_a_record_that_cannot_be_finished_is_not_there(
    inputs, undisturbed, tmp_path, monkeypatch, name
):
    """record.json comes last; what was written before is whole, and the next start only writes."""
    (tmp_path / "record" / name).mkdir(parents=True)
    (tmp_path / "record" / name / "in the way").write_text("")
    with pytest.raises(InputError, match=f"cannot write .*{name}"):
        execute(inputs, tmp_path)
    assert not (tmp_path / "record" / "record.json").is_file()
    assert not list(tmp_path.rglob("*.part"))
    (tmp_path / "record" / name / "in the way").unlink()
    (tmp_path / "record" / name).rmdir()
    assert execute(inputs, tmp_path)[0] == "continuing after round 6"
    assert contents(tmp_path) == contents(undisturbed["cfl"])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"method": {"name": "magic"}},
            "unknown method 'magic'; allowed are cfl, ditto, fedavg, fedsem,",
        ),
        ({"model": {"name": "big"}}, "unknown model 'big'; allowed are le_net, leaf_cnn, mlp,"),
        ({"method": CFL | {"fraction": 0.5}}, "CFL compares the updates of all clients: fraction"),
    ],
)
def test_what_there_is_not_is_one_sentence_that_names_what_there_is(
    inputs, tmp_path, changes, sentence
):
    with pytest.raises(InputError) as caught:
        execute(inputs, tmp_path, configured(**changes))
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": CFL | {"scedule": [2]}},
        {"model": {"name": "small_conv_net", "hidden": 3}},
        {"training": {"epochs": 1, "batch_size": 10, "learning_rate": 0.1}},
    ],
    ids=["method", "model", "training"],
)
def test_an_unknown_setting_is_one_sentence(inputs, tmp_path, changes):
    with pytest.raises(InputError):
        execute(inputs, tmp_path, configured(**changes))


@pytest.mark.parametrize("name", ["data", "federation"])
def test_an_absent_or_damaged_input_is_one_sentence(inputs, tmp_path, name):
    path = tmp_path / "input.safetensors"
    with pytest.raises(InputError, match="input.safetensors"):
        execute(inputs, tmp_path, **{name: path})
    path.write_bytes(inputs[name].read_bytes()[:-50])
    with pytest.raises(InputError, match="input.safetensors"):
        execute(inputs, tmp_path, **{name: path})
    assert not (tmp_path / "record").exists()


def test_the_lock_is_respected_within_a_process_too(inputs, tmp_path):
    with (
        checkpoint.sole_owner(tmp_path / "checkpoint.safetensors"),
        pytest.raises(InputError, match=f"still being computed by process {os.getpid()}"),
    ):
        execute(inputs, tmp_path)


def test_the_record_counts_different_test_images(inputs, tmp_path):
    """Neighbours in a ring of four clusters share the five tests of one of eight labels."""
    data = datasets.load(inputs["data"])
    ring = build_federation(data, 0, "shared_label_ring", clients=4, groups=4, samples=5)
    federations.save(ring, tmp_path / "ring", data.digest)
    own = inputs | {"federation": tmp_path / "ring"}
    execute(own, tmp_path, configured({"name": "fedavg"}, rounds=1))
    assert [len(rows) for rows in ring.test_sets] == [15] * 4
    assert records.load_record(tmp_path / "record")["test_rows"] == 8 * 5
