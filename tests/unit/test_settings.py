"""The configuration: what is not allowed is refused, what is not said has a default."""

from pathlib import Path

import pytest
import yaml

from clustered_fl.errors import InputError
from clustered_fl.schema import SCALES
from clustered_fl.settings import Settings, read_settings, readme

CONFIG = Path(__file__).parents[2] / "config"


def test_committed_configuration_is_allowed_and_offline():
    settings = read_settings(yaml.safe_load((CONFIG / "config.yaml").read_text()))
    assert (settings.scale, settings.data_source, settings.seeds) == ("demo", "builtin", None)


def test_every_key_is_explained_where_the_configuration_lies():
    command = "python -c 'from clustered_fl.settings import readme; print(readme())'"
    assert (CONFIG / "README.md").read_text() == f"{readme()}\n", (
        f"config/README.md is out of date; write it anew: {command} > config/README.md"
    )
    for name in Settings.model_fields:
        assert f"| `{name}` |" in readme()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            {"scael": "demo"},
            "unknown configuration key 'scael'; "
            "allowed are scale, papers, source, mirror, device, path, seeds",
        ),
        (
            {"scale": "huge"},
            "configuration key scale: 'huge' is not allowed: Input should be 'demo'",
        ),
        (
            {"papers": ["abc"]},
            "configuration key papers: 'abc' is not allowed: Input should be 'cfl'",
        ),
        (
            {"papers": "cfl"},
            "configuration key papers: 'cfl' is not allowed: Input should be a valid",
        ),
        (
            {"papers": []},
            "configuration key papers: [] is not allowed: List should have at least 1",
        ),
        (
            {"source": "web"},
            "configuration key source: 'web' is not allowed: Input should be 'buil",
        ),
        (
            {"device": "tpu"},
            "configuration key device: 'tpu' is not allowed: Input should be 'auto'",
        ),
        (
            {"seeds": 0},
            "configuration key seeds: 0 is not allowed: Input should be greater than or",
        ),
        (
            {"seeds": "all"},
            "configuration key seeds: 'all' is not allowed: Input should be a valid",
        ),
        ({"source": "mirror"}, "source=mirror needs mirror=<folder>"),
        (
            {"scale": "desktop", "mirror": "/no/such/folder"},
            "the mirror folder /no/such/folder does not exist; give mirror=<folder>",
        ),
    ],
)
def test_what_is_not_allowed_is_one_sentence(content, sentence):
    with pytest.raises(InputError) as caught:
        read_settings(content)
    assert str(caught.value).startswith(sentence)
    assert len(str(caught.value).splitlines()) == 1


def test_a_mirror_that_is_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the mirror folder .*file does not exist"):
        read_settings({"scale": "paper", "mirror": str(tmp_path / "file")})


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
