"""The configuration: what is not allowed is refused, what is not said has a default."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from refusals import told

from clustered_fl import groupings, methods
from clustered_fl.data.partitions import partition_settings
from clustered_fl.encoders.training import TrainingSettings
from clustered_fl.engine.workload import LocalSettings
from clustered_fl.errors import InputError
from clustered_fl.ledger import schema, tables
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.ledger.schema import SCALES
from clustered_fl.ledger.settings import Settings, read_settings
from clustered_fl.ledger.written import Written
from clustered_fl.methods.state import RoundSettings
from clustered_fl.models import MODELS
from clustered_fl.models.autoencoder import AUTOENCODERS
from clustered_fl.options import fields_of, modules_of

CONFIG = Path(__file__).parents[2] / "config"


def test_committed_configuration_is_allowed_and_offline():
    settings = read_settings(yaml.safe_load((CONFIG / "config.yaml").read_text()))
    assert (settings.scale, settings.data_source, settings.seeds) == ("demo", "builtin", None)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            {"scael": "demo"},
            "the configuration has no key 'scael'; "
            "allowed are scale, papers, source, mirror, device, path, seeds, archive",
        ),
        ({"scale": "huge"}, "scale = 'huge' is not allowed: input should be 'demo', 'desktop' or"),
        ({"papers": "cfl"}, "papers = 'cfl' is not allowed; give a list, such as papers=[cfl]"),
        ({"papers": []}, "papers = [] is not allowed; give a list, such as papers=[cfl]"),
        ({"source": "web"}, "source = 'web' is not allowed: input should be 'builtin', 'mirror'"),
        ({"device": "tpu"}, "device = 'tpu' is not allowed: input should be 'auto', 'cpu' or"),
        ({"seeds": 0}, "seeds = 0 is not allowed: input should be greater than or equal to 1"),
        ({"seeds": "all"}, "seeds = 'all' is not allowed: input should be a valid integer"),
        ({"archive": "old"}, "archive = 'old' is not allowed: input should be a valid boolean"),
        ({"finished": []}, "finished = [] is not allowed: input should be a valid boolean"),
        ({"source": "mirror"}, "source=mirror needs mirror=<folder>"),
    ],
)
def test_what_is_not_allowed_is_one_sentence(content, sentence):
    line = told(read_settings, content)
    assert line.removeprefix("the configuration: ").startswith(sentence)


@pytest.mark.parametrize(
    ("content", "source"),
    [
        ({}, "builtin"),
        ({"mirror": "FOLDER"}, "builtin"),
        ({"scale": "desktop"}, "download"),
        ({"scale": "paper"}, "download"),
        ({"scale": "desktop", "mirror": "FOLDER"}, "mirror"),
        ({"source": "mirror", "mirror": "FOLDER"}, "mirror"),
        ({"scale": "paper", "source": "builtin"}, "builtin"),
        ({"scale": "desktop", "mirror": "FOLDER", "source": "download"}, "download"),
    ],
)
def test_where_data_come_from_when_nothing_is_said(content, source, tmp_path):
    content = {key: str(tmp_path) if value == "FOLDER" else value for key, value in content.items()}
    assert read_settings(content).data_source == source


@pytest.mark.parametrize("scale", SCALES)
def test_settings_survive_the_way_to_another_process(scale, tmp_path):
    settings = read_settings({"scale": scale, "mirror": str(tmp_path), "seeds": 2})
    sent = settings.model_dump_json(exclude_none=True)
    assert read_settings(yaml.safe_load(sent)) == settings


# ---- The reference, config/README.md -------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> str:
    """What `python config/reference.py` prints now."""
    return subprocess.run(
        [sys.executable, CONFIG / "reference.py"],
        env={"PYTHONPATH": str(CONFIG.parent / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_reference_is_that_of_the_code(reference):
    assert (CONFIG / "README.md").read_text() == reference, (
        "config/README.md is out of date: python config/reference.py > config/README.md"
    )


def sections(text: str) -> dict[str, set[str]]:
    """Heading -> keys that the table below it explains."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if row := re.match(r"\| `(\w+)` \|", line):
            found.setdefault(heading, set()).add(row[1])
    return found


PARTS = {
    "`config.yaml`": Settings,
    "`papers/<paper>.yaml`": Written,
    "An entry of `encoders`": schema.Encoder,
    "An entry of `groupings`": schema.Grouping,
    "An entry of `runs`": schema.Run,
    "The key `sweep` of a run": schema.Sweep,
    "An entry of `tables`": tables.Table,
    "The key `needs` of a row": tables.Needs,
    "The key `traffic` of a row": tables.Traffic,
    "An entry of `studies`": schema.Study,
    "An entry of `artefacts`": schema.Artefact,
    "The key `cells` of an artefact": schema.Selection,
    "An entry of `claims`": schema.Claim,
}


@pytest.mark.parametrize("heading", PARTS)
def test_every_key_of_a_ledger_and_of_the_configuration_is_in_it(reference, heading):
    assert sections(reference)[heading] == PARTS[heading].model_fields.keys()


def test_columns_and_rows_are_explained_beside_the_keys_of_a_run(reference):
    run = tables.Layer.model_fields.keys()
    for kind, model in (("columns", tables.Column), ("rows", tables.Row)):
        own = model.model_fields.keys() - run
        assert sections(reference)[f"An entry of `{kind}` of a table"] == own


def settings_of(package: str, shared: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """Name -> settings of the modules of a package that have a class of them."""
    full = f"clustered_fl.{package}"
    return {
        name: fields_of(import_module(f"{full}.{name}").Settings).keys()
        for name in modules_of(full, shared)
    }


def test_every_setting_of_a_method_is_in_it(reference):
    general = sections(reference)["`method` of a run: settings of all methods"]
    assert general == fields_of(RoundSettings).keys()
    for name, fields in settings_of("methods", methods.SHARED).items():
        own = sections(reference).get(f"`method: {{name: {name}}}`", set())
        assert own == fields - general - set(methods.OF_A_GROUPING)


def test_every_setting_of_a_grouping_is_in_it(reference):
    for name, fields in settings_of("groupings", groupings.SHARED).items():
        assert sections(reference)[f"`method: {{name: {name}}}` of a grouping"] == fields


def test_every_setting_of_a_federation_is_in_it(reference):
    general = sections(reference)["`federation` of any kind"]
    for kind in modules_of("clustered_fl.data.partitions"):
        own = sections(reference).get(f"`federation: {{kind: {kind}}}`", set())
        assert own | general == partition_settings(kind).model_fields.keys()


def test_every_setting_of_a_network_is_in_it(reference):
    of_the_data = {"channels", "side", "classes"}
    networks = {
        f"`model: {{name: {name}}}`": getattr(import_module(module), function)
        for name, (module, function) in MODELS.items()
    }
    networks |= {f"`model: {{name: {n}}}` of an encoder": f for n, f in AUTOENCODERS.items()}
    for heading, function in networks.items():
        own = fields_of(function).keys() - of_the_data
        assert sections(reference).get(heading, set()) == own


def test_every_setting_of_training_is_in_it(reference):
    for whose, kind in (("a run", LocalSettings), ("an encoder", TrainingSettings)):
        assert sections(reference)[f"`training` of {whose}"] == fields_of(kind).keys()


def test_every_measure_of_a_claim_is_in_it(reference):
    headings = re.findall(r"^### `measure: \{name: ([\w.]+)\}`$", reference, re.MULTILINE)
    papers = (load_ledger(path) for path in (CONFIG / "papers").glob("*.yaml"))
    used = {claim.measure["name"] for ledger in papers for claim in ledger.claims.values()}
    assert used - set(headings) == set()


def test_no_key_and_no_setting_is_without_a_meaning(reference):
    rows = [line for line in reference.splitlines() if line.startswith("| `")]
    assert len(rows) > 100
    assert [row for row in rows if re.search(r"\|\s*\|$", row)] == []


@pytest.mark.parametrize(("given", "meant"), [("true", True), ("false", False), (False, False)])
def test_the_command_line_has_texts(given, meant):
    settings = read_settings({"archive": given, "finished": given})
    assert (settings.archive, settings.finished) == (meant, meant)


def test_an_empty_mirror_is_not_a_download():
    with pytest.raises(InputError, match="mirror is empty; give mirror=<folder>, or leave it out"):
        read_settings({"scale": "desktop", "mirror": None})
