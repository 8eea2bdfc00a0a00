"""The plan: which files belong to what, and which changes make which jobs run again."""

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from clustered_fl.errors import InputError
from clustered_fl.fingerprint import SOURCE, fingerprint
from clustered_fl.methods import method_module
from clustered_fl.models import model_module
from clustered_fl.plan import FORMATS, RECORD_FILES, Plan
from clustered_fl.schema import SCALES
from clustered_fl.settings import Settings

PAPERS = Path(__file__).parents[2] / "config" / "papers"


@pytest.fixture(scope="module", params=SCALES)
def plan(request):
    return Plan(Settings(papers=["cfl"], scale=request.param), PAPERS)


@pytest.fixture(scope="module")
def demo():
    return Plan(Settings(papers=["cfl"]), PAPERS)


def of_run(run: str, seed: int = 0) -> SimpleNamespace:
    return SimpleNamespace(name=run, seed=str(seed))


def of_artefact(artefact: str) -> SimpleNamespace:
    return SimpleNamespace(artefact=artefact)


def test_an_absent_ledger_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot read .*cfl.yaml: .*No such file"):
        Plan(Settings(papers=["cfl"]), tmp_path)


def test_an_unknown_run_is_named_with_those_that_there_are(demo):
    with pytest.raises(InputError, match="unknown run 'cfl_fig99'; the ledger has .*cfl_fig9,"):
        demo.run_config(of_run("cfl_fig99"))


@pytest.mark.parametrize(
    ("part", "value", "sentence"),
    [
        ("method", {"name": "magic"}, "unknown method 'magic'; allowed are cfl, fedavg, fedsem,"),
        ("model", {"name": "big"}, "unknown model 'big'; allowed are le_net, leaf_cnn, mlp,"),
        ("method", {}, "the method of the run cfl_fig9 needs a name"),
        ("model", {"names": "le_net"}, "the model of the run cfl_fig9 needs a name"),
    ],
)
def test_a_run_without_method_or_network_is_refused_before_anything_runs(
    tmp_path, part, value, sentence
):
    ledger = yaml.safe_load((PAPERS / "cfl.yaml").read_text())
    ledger["runs"]["cfl_fig9"][part] = value
    ledger["runs"]["cfl_fig9"]["scales"] = {}
    (tmp_path / "cfl.yaml").write_text(json.dumps(ledger))
    with pytest.raises(InputError, match=sentence):
        Plan(Settings(papers=["cfl"]), tmp_path)


def test_an_absent_notebook_is_refused_before_anything_runs(tmp_path):
    ledger = yaml.safe_load((PAPERS / "cfl.yaml").read_text())
    ledger["artefacts"]["cfl_fig4"]["notebook"] = "cfl/absent.ipynb"
    (tmp_path / "cfl.yaml").write_text(json.dumps(ledger))
    sentence = "cfl_fig4 names the notebook notebooks/cfl/absent.ipynb, which is not there"
    plan = Plan(Settings(papers=["cfl"]), tmp_path)
    with pytest.raises(InputError, match=sentence):
        plan.require_notebooks()


def test_scales_and_sources_have_their_own_folders():
    desktop = Plan(Settings(papers=["cfl"], scale="desktop", mirror="somewhere"), PAPERS)
    assert (desktop.results, desktop.data) == ("results/desktop", "data/mirror")
    assert desktop.dataset_of(of_run("cfl_fig9")) == "data/mirror/cifar10.safetensors"
    demo = Plan(Settings(papers=["cfl"]), PAPERS)
    assert (demo.results, demo.data) == ("results/demo", "data/builtin")


def test_a_configured_number_of_seeds_takes_the_first_ones():
    every, two = (
        Plan(Settings(papers=["cfl"], scale="paper", seeds=seeds), PAPERS) for seeds in (None, 2)
    )
    for run in every.runs:
        assert two.seeds(run) == every.seeds(run)[:2]
    assert any(len(every.seeds(run)) > 2 for run in every.runs)


def test_a_family_stands_for_one_run_per_value_of_its_sweep(demo):
    members = demo.members("cfl_mnist_samples")
    assert members == ["cfl_mnist_samples_10", "cfl_mnist_samples_30", "cfl_mnist_samples_200"]
    assert demo.members("cfl_fig9") == ["cfl_fig9"]
    assert list(demo.folders(["cfl_mnist_samples", "cfl_fig9"])) == [*members, "cfl_fig9"]


def test_records_are_the_files_that_a_run_leaves(demo):
    files = demo.records(["cfl_fig9"])
    assert files == [f"results/demo/runs/cfl_fig9/seed0/{name}" for name in RECORD_FILES]


def test_the_same_family_asked_twice_is_named_once(plan):
    files = plan.records([run["family"] for run in plan.runs.values()])
    assert len(files) == len(set(files))
    assert len(files) == len(RECORD_FILES) * sum(len(plan.seeds(run)) for run in plan.runs)


def test_configuration_of_a_run_is_json_in_a_fixed_order_with_its_seed(plan):
    for run in plan.runs:
        text = plan.run_config(of_run(run, 3))
        config = json.loads(text)
        assert text == json.dumps(config, sort_keys=True)
        assert config == plan.runs[run]["config"] | {"seed": 3}
        assert json.loads(plan.federation_settings(of_run(run))) == config["federation"]


def test_parameters_do_not_depend_on_the_process():
    """Else every start of the workflow would run everything again."""
    program = (
        "from pathlib import Path; from types import SimpleNamespace as N\n"
        "from clustered_fl.plan import Plan; from clustered_fl.settings import Settings\n"
        f"plan = Plan(Settings(papers=['cfl']), Path({str(PAPERS)!r}))\n"
        "run = N(name='cfl_fig9', seed='0')\n"
        "artefact, study = N(artefact='cfl_fig9'), N(study='cfl_paths')\n"
        "print(plan.run_config(run), plan.run_code(run), plan.federation_settings(run))\n"
        "print(plan.artefact_parameters(artefact), plan.study_settings(study))\n"
        "print(plan.study_code(study), plan.settings_json(), plan.claim_modules())\n"
    )

    def answer(hash_seed: str) -> str:
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(SOURCE)}
        command = [sys.executable, "-c", program]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert answer("1") == answer("2")


@pytest.fixture
def copy(tmp_path):
    """The package's source, to be edited."""
    shutil.copytree(SOURCE / "clustered_fl", tmp_path / "clustered_fl")
    return tmp_path


@pytest.fixture
def codes(copy, demo, monkeypatch):
    """Code of one run for every method and network that the ledger puts together."""
    monkeypatch.setattr("clustered_fl.plan.fingerprint", partial(fingerprint, source=copy))
    named = {parts(run["config"]): run for run in demo.runs.values()}

    def codes() -> dict[tuple[str, str], str]:
        return {pair: demo.run_code(of_run(run["config"]["run"])) for pair, run in named.items()}

    return codes


def parts(config: dict) -> tuple[str, str]:
    return config["method"]["name"], config["model"]["name"]


@pytest.mark.parametrize(
    ("module", "affected"),
    [
        ("methods/cfl.py", lambda method, model: method == "cfl"),
        ("methods/local.py", lambda method, model: method == "local"),
        ("methods/fedavg.py", lambda method, model: method in {"fedavg", "local", "oracle"}),
        ("models/lstm.py", lambda method, model: model == "word_lstm"),
        ("models/cnn.py", lambda method, model: model != "word_lstm"),
        ("methods/state.py", lambda method, model: True),
        ("engine/training.py", lambda method, model: True),
        ("runs.py", lambda method, model: True),
        ("claims/cfl/gap.py", lambda method, model: False),
        ("notebook.py", lambda method, model: False),
        ("theory/bounds.py", lambda method, model: False),
        ("ledger.py", lambda method, model: False),
        ("plan.py", lambda method, model: False),
        ("cli.py", lambda method, model: False),
    ],
)
def test_a_change_of_logic_reruns_exactly_the_runs_that_use_it(copy, codes, module, affected):
    before = codes()
    assert {method for method, _ in before} == {"fedavg", "local", "oracle", "cfl"}
    path = copy / "clustered_fl" / module
    path.write_text(path.read_text() + "\n# A comment changes nothing.\n")
    assert codes() == before
    path.write_text(path.read_text() + "\nNEW = 1\n")
    after = codes()
    changed = {pair for pair in before if after[pair] != before[pair]}
    assert changed == {pair for pair in before if affected(*pair)}


def test_every_run_has_a_code(plan):
    for run, entry in plan.runs.items():
        method, model = (entry["config"][part]["name"] for part in ("method", "model"))
        expected = fingerprint("clustered_fl.runs", method_module(method), model_module(model))
        assert plan.run_code(of_run(run)) == expected


def test_every_study_has_code_and_settings_of_its_scale(plan):
    for name, study in plan.studies.items():
        wildcards = SimpleNamespace(study=name)
        assert len(plan.study_code(wildcards)) == 16
        assert plan.study_function(wildcards) == study.function
        expected = study.settings | study.scales.get(plan.settings.scale, {})
        assert json.loads(plan.study_settings(wildcards)) == expected


def test_an_artefact_reads_what_the_ledger_says_and_nothing_else(plan):
    for name, artefact in plan.artefacts.items():
        files = plan.artefact_inputs(of_artefact(name))
        runs = {run for family in artefact.runs for run in plan.members(family)}
        folders = {Path(file).parts[2:4] for file in files}
        expected = {("runs", run) for run in runs if plan.seeds(run)}
        assert folders == expected | {("studies", study) for study in artefact.studies}
        assert plan.artefact_notebook(of_artefact(name)) == f"notebooks/{artefact.notebook}"


def test_a_notebook_is_told_where_everything_lies(demo):
    parameters = json.loads(demo.artefact_parameters(of_artefact("cfl_fig9")))
    assert parameters["artefact"] == "cfl_fig9"
    assert (parameters["scale"], parameters["source"]) == ("demo", "builtin")
    folders = {"cfl_fig9": {"0": "results/demo/runs/cfl_fig9/seed0"}}
    assert parameters["runs"]["cfl_fig9"] == folders
    assert parameters["treatment"] == "cfl_fig9"
    study = json.loads(demo.artefact_parameters(of_artefact("cfl_fig1")))["studies"]
    assert study == {"cfl_violations": "results/demo/studies/cfl_violations"}


def test_figures_and_tables_are_told_apart_and_all_belong_to_their_paper(plan):
    figures, tables = plan.named("figure"), plan.named("table")
    assert sorted(figures + tables) == sorted(plan.artefacts)
    for name in plan.artefacts:
        folder = f"{plan.results}/artefacts/{name}/{name}"
        kind = "figure" if name in figures else "table"
        expected = {f"{folder}.{suffix}" for suffix in ("html", *FORMATS[kind])}
        assert set(plan.artefact_files(name)) == expected
        assert expected <= set(plan.paper_files("cfl"))


def test_a_caption_says_what_and_where(demo):
    caption = demo.artefact_caption(of_artefact("cfl_fig9"))
    assert caption.startswith("**CFL on CIFAR-10 with permuted labels** (TNNLS Fig. 9;")


def test_every_module_of_claims_decides_verdicts(demo):
    folder = SOURCE / "clustered_fl" / "claims" / "cfl"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "registry"}
    expected = {f"clustered_fl.claims.cfl.{module}" for module in modules}
    assert set(demo.claim_modules()) == expected | {"clustered_fl.claims.verdicts"}
    assert len(fingerprint(*demo.claim_modules())) == 16
