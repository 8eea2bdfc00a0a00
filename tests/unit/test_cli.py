"""Every step of the command line: help, exit codes, and one sentence instead of a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml

from clustered_fl.cli import STEPS, main
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.partitions import build_federation
from clustered_fl.errors import InputError
from clustered_fl.fingerprint import SOURCE
from clustered_fl.studies import execute, load_tables

CONFIG = Path(__file__).parents[2] / "config"
# What a machine that only trains need not have, and what would make every step start slowly.
HEAVY = {"torch", "numpy", "pandas", "scipy", "pydantic", "yaml", "pyarrow", "matplotlib"}
NOT_FOR_TRAINING = {"pandas", "datasets", "torchvision", "matplotlib", "jinja2"}


def arguments(step: str, **options) -> list[str]:
    pairs = ((f"--{name}", str(value)) for name, value in options.items())
    return [step, *(part for pair in pairs for part in pair)]


def refused(capsys, step: str, **options) -> str:
    """The sentence with which a step refuses its input."""
    assert main(arguments(step, **options)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


def in_a_process(*command: str, **environment: str) -> subprocess.CompletedProcess:
    surroundings = {k: v for k, v in os.environ.items() if k not in THREADS}
    return subprocess.run(
        [sys.executable, *command],
        env=surroundings | {"PYTHONPATH": str(SOURCE)} | environment,
        capture_output=True,
        text=True,
    )


# ---- The command itself -------------------------------------------------------------------------


def test_every_step_of_the_design_is_there():
    expected = {"dataset", "partition", "encoder", "grouping", "train", "study", "notebook"}
    assert expected | {"verdicts", "check", "report", "publish"} == STEPS.keys()


@pytest.mark.parametrize("step", [*STEPS, None])
def test_help_says_what_a_step_does(capsys, step):
    with pytest.raises(SystemExit) as ended:
        main([step, "--help"] if step else ["--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    if step:
        assert all(f"--{option}" in text for option in STEPS[step][1])
    else:
        assert all(f"{name} {function.__doc__}" in text for name, (function, _) in STEPS.items())


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ([], "the following arguments are required: step"),
        (["fly"], "invalid choice: 'fly' (choose from"),
        (["check"], "the following arguments are required: --settings, --ledgers"),
        (["check", "--settings", "{", "--ledgers", "x"], "argument --settings: invalid"),
        (arguments("partition", data="d", seed="one", settings="{}", out="o"), "invalid int value"),
        (
            ["check", "--settings", "{}", "--ledgers", "x", "--fast"],
            "unrecognized arguments: --fast",
        ),
    ],
)
def test_a_wrong_command_line_is_told_and_exits_with_2(capsys, command, complaint):
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_as_a_process_bad_input_is_one_line_and_exit_code_2(tmp_path):
    command = arguments("partition", data=tmp_path / "absent", seed=0, settings="{}", out="x")
    done = in_a_process("-m", "clustered_fl", *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {tmp_path}/absent does not exist: run the dataset step, which writes it\n"
    )


def test_a_process_uses_one_thread_per_operation_unless_told_otherwise(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\n"
        f"atexit.register(lambda: print(*(os.environ.get(name) for name in {THREADS})))\n"
    )
    path = os.pathsep.join((str(tmp_path), str(SOURCE)))
    for given, used in (({}, "1 1"), (dict.fromkeys(THREADS, "3"), "3 3")):
        done = in_a_process("-m", "clustered_fl", "--help", PYTHONPATH=path, **given)
        assert done.stdout.splitlines()[-1] == used


@pytest.mark.parametrize(
    ("module", "unwanted"), [("cli", HEAVY), ("runs", NOT_FOR_TRAINING)], ids=["cli", "runs"]
)
def test_a_step_starts_with_what_it_needs(module, unwanted):
    program = f"import sys, clustered_fl.{module}; print(*sys.modules)"
    loaded = in_a_process("-c", program, OMP_NUM_THREADS="1").stdout.split()
    assert f"clustered_fl.{module}" in loaded
    assert unwanted & set(loaded) == set()


def test_a_defect_of_ours_is_not_hidden_behind_a_sentence(monkeypatch):
    def broken(_):
        raise ZeroDivisionError

    monkeypatch.setitem(STEPS, "check", (broken, {}))
    with pytest.raises(ZeroDivisionError):
        main(["check"])


# ---- From data to federations -------------------------------------------------------------------


@pytest.fixture
def preparing(tmp_path):
    return {
        "name": "mnist",
        "source": "builtin",
        "registry": CONFIG / "datasets.yaml",
        "cache": tmp_path / "cache",
        "out": tmp_path / "data" / "file.safetensors",
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A dataset of ten classes with 12 training and 3 test rows each."""
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (150, 1, 28, 28), dtype=np.uint8)
    path = tmp_path_factory.mktemp("data") / "mnist.safetensors"
    classes = tuple("0123456789")
    datasets.save(datasets.build("mnist", "builtin", x, np.arange(150) % 10, 120, classes), path)
    return path


def test_a_dataset_becomes_a_federation(capsys, preparing, tmp_path):
    assert main(arguments("dataset", **preparing)) == 0
    line = capsys.readouterr().err
    found = datasets.load(preparing["out"], verify=True)
    assert line.startswith(f"mnist from builtin: 7000 rows, {found.digest}. built-in demo data:")
    settings = json.dumps({"kind": "label_swap", "clients": 4, "groups": 2, "samples": 20})
    out = tmp_path / "federation.safetensors"
    options = {"data": preparing["out"], "seed": 1, "settings": settings, "out": out}
    assert main(arguments("partition", **options)) == 0
    federation, _ = federations.load(out)
    expected = build_federation(found, 1, **json.loads(settings))
    for mine, theirs in zip(federation.train, expected.train, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "imagenet"}, "there is no dataset 'imagenet'; choose from ag_news, cifar10,"),
        ({"source": "cloud"}, "there is no data source 'cloud'; choose from builtin, mirror,"),
        ({"source": "mirror", "mirror": "/absent"}, "/absent/ylecun/mnist does not exist: use the"),
        ({"registry": "/absent.yaml"}, "cannot read the table of datasets /absent.yaml:"),
    ],
)
def test_data_that_there_are_not(capsys, preparing, changes, sentence):
    assert refused(capsys, "dataset", **(preparing | changes)).startswith(sentence)
    assert not preparing["out"].parent.exists()


def test_a_mirror_may_be_left_empty_as_the_workflow_does(capsys, preparing):
    preparing["name"] = "imagenet"
    command = arguments("dataset", **preparing)
    assert main([*command[:1], "--mirror", *command[1:]]) == 2
    assert capsys.readouterr().err.startswith("error: there is no dataset 'imagenet';")


@pytest.mark.parametrize("kept", [0, 100])
def test_a_partial_mirror(capsys, preparing, tmp_path, kept):
    folder = tmp_path / "mirror" / "ylecun" / "mnist"
    folder.mkdir(parents=True)
    if kept:
        (folder / "train-00000-of-00001.parquet").write_bytes(b"PAR1" + bytes(kept))
    sentence = refused(
        capsys, "dataset", **(preparing | {"source": "mirror", "mirror": tmp_path / "mirror"})
    )
    assert str(folder) in sentence
    assert not preparing["out"].parent.exists()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"kind": "by_colour"},
            "unknown partition 'by_colour'; allowed are congruent_pair, d",
        ),
        (
            {"kind": "label_swap", "clients": 3, "groups": 4},
            "4 groups for 3 clients; allowed are 1 to the number of clients",
        ),
        (
            {"kind": "label_swap", "clients": 4, "groups": 2, "samples": 0},
            "0 samples per client asked of 120 rows for 4 clients; allowed are 1 to 30",
        ),
        (
            {"kind": "label_permutation", "clients": 4, "groups": 2, "samples": 31},
            "31 samples per client asked of 120 rows for 4 clients; allowed are 1 to 30",
        ),
        (
            {"kind": "label_permutation", "clients": 200, "groups": 2},
            "0 samples per client asked of 120 rows for 200 clients; allowed are 1 to 0",
        ),
        (
            {"kind": "label_swap", "clients": 8, "groups": 6},
            "label swap of 6 groups needs 12 label",
        ),
    ],
)
def test_federations_that_cannot_be_made(capsys, data, tmp_path, settings, sentence):
    out = tmp_path / "new" / "federation.safetensors"
    options = {"data": data, "seed": 0, "settings": json.dumps(settings), "out": out}
    assert refused(capsys, "partition", **options).startswith(sentence)
    assert not out.parent.exists()


@pytest.mark.parametrize(
    "settings",
    [{"kind": "congruent_pair", "sampels": 3}, {"kind": "label_swap", "clients": 4}, {}],
    ids=["unknown", "missing", "no kind"],
)
def test_an_unknown_or_missing_setting_of_a_federation(capsys, data, tmp_path, settings):
    options = {"data": data, "seed": 0, "settings": json.dumps(settings), "out": tmp_path / "f"}
    refused(capsys, "partition", **options)


# ---- Studies and notebooks ----------------------------------------------------------------------


def test_a_study_leaves_its_tables_and_says_so(tmp_path):
    settings = {"clients_per_group": 2, "points_per_client": 20}
    name = "violations.assumption_violations"
    options = {"function": name, "settings": json.dumps(settings), "code": "abc", "out": tmp_path}
    assert main(arguments("study", **options, seed=3)) == 0
    record = json.loads((tmp_path / "record.json").read_text())
    assert (record["function"], record["settings"], record["seed"]) == (name, settings, 3)
    assert record["tables"] == sorted(path.stem for path in tmp_path.glob("*.parquet"))
    assert load_tables(tmp_path)["accuracies"]["panel"].nunique() == 3


@pytest.mark.parametrize(
    ("function", "settings", "sentence"),
    [
        ("nothing.at_all", {}, "there is no study 'nothing.at_all' below clustered_fl.theory"),
        ("violations.nothing", {}, "there is no study 'violations.nothing' below clustered_fl.t"),
        ("violations", {}, "there is no study 'violations' below clustered_fl.theory"),
        (
            "violations.assumption_violations",
            {"clients": 3},
            "study violations.assumption_violations has no setting 'clients'; "
            "allowed are clients_per_group, points_per_client, spread",
        ),
    ],
)
def test_studies_that_there_are_not(capsys, tmp_path, function, settings, sentence):
    options = {"function": function, "settings": json.dumps(settings), "code": "abc"}
    found = refused(capsys, "study", **options, out=tmp_path / "new")
    assert found.startswith(sentence)
    assert not (tmp_path / "new").exists()


def test_a_study_that_was_interrupted_has_no_record(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("clustered_fl.studies.write_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute("violations.assumption_violations", {"points_per_client": 20}, 0, "abc", tmp_path)
    with pytest.raises(InputError, match="cannot read .*record.json"):
        load_tables(tmp_path)


@pytest.fixture
def showing(tmp_path):
    """Options of the notebook step for a notebook of one cell beside the parameters."""
    parameters = nbformat.v4.new_code_cell("word = 0", metadata={"tags": ["parameters"]})
    cells = [parameters, nbformat.v4.new_code_cell("raise RuntimeError(word)")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, tmp_path / "source.ipynb")
    return {
        "notebook": tmp_path / "source.ipynb",
        "parameters": json.dumps({"word": "out of luck"}),
        "executed": tmp_path / "logs" / "executed.ipynb",
        "page": tmp_path / "artefact" / "page.html",
    }


def test_a_failed_notebook_is_kept_and_makes_no_page(showing, capsys):
    assert refused(capsys, "notebook", **showing) == (
        f"{showing['notebook']} failed in cell 3 with RuntimeError: out of luck; "
        f"the executed notebook is {showing['executed']}"
    )
    assert "out of luck" in showing["executed"].read_text()
    assert not showing["page"].parent.exists()


def test_an_absent_or_broken_notebook_is_one_sentence(showing, capsys):
    showing["notebook"].unlink()
    expected = f"cannot execute {showing['notebook']}: "
    assert refused(capsys, "notebook", **showing).startswith(expected)
    showing["notebook"].write_text("{")
    assert refused(capsys, "notebook", **showing).startswith(expected)
    assert not showing["page"].parent.exists()


# ---- Verdicts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["verdicts", "check", "report", "publish"])
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"scael": "demo"}, "unknown configuration key 'scael'; allowed are scale, papers,"),
        ({"scale": "huge"}, "configuration key scale: 'huge' is not allowed"),
        ({"source": "mirror"}, "source=mirror needs mirror=<folder>"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(capsys, tmp_path, step, settings, sentence):
    options = {"settings": json.dumps(settings), "ledgers": CONFIG / "papers"}
    if step != "check":
        options["out"] = tmp_path / "out"
    assert refused(capsys, step, **options).startswith(sentence)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_ledger_is_one_sentence(capsys, tmp_path):
    content = yaml.safe_load((CONFIG / "papers" / "cfl.yaml").read_text())
    content["runs"]["cfl_fig9"]["colour"] = "blue"
    (tmp_path / "cfl.yaml").write_text(yaml.safe_dump(content))
    sentence = refused(capsys, "check", settings="{}", ledgers=tmp_path)
    assert sentence.startswith(f"{tmp_path}/cfl.yaml: unknown key 'runs.cfl_fig9.colour'; allowed")


@pytest.mark.parametrize("step", ["check", "publish"])
def test_results_that_are_not_there_are_one_sentence(capsys, tmp_path, monkeypatch, step):
    monkeypatch.chdir(tmp_path)
    options = {"settings": "{}", "ledgers": CONFIG / "papers"}
    if step != "check":
        options["out"] = tmp_path / "out"
    assert "results/demo/verdicts.csv" in refused(capsys, step, **options)
    assert list(tmp_path.iterdir()) == []


def test_verdicts_without_records_name_the_first_that_is_missing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"settings": "{}", "ledgers": CONFIG / "papers", "out": tmp_path / "verdicts.csv"}
    sentence = refused(capsys, "verdicts", **options)
    assert sentence.startswith("cannot read results/demo/studies/cfl_violations/record.json")
    assert list(tmp_path.iterdir()) == []
