"""Definitions found by the names in a ledger."""

import sys

import pytest

from clustered_fl.options import definition


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a module that is whole and one that imports what is not installed."""
    (tmp_path / "made_up").mkdir()
    (tmp_path / "made_up/whole.py").write_text("score = 3\n")
    (tmp_path / "made_up/broken.py").write_text("import made_up_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "made_up"
    for name in [each for each in sys.modules if each.startswith("made_up")]:
        del sys.modules[name]


def test_what_a_module_defines(package):
    assert definition(f"{package}.whole", "score") == 3


@pytest.mark.parametrize(
    "module", ["made_up.whole", "made_up.other", "made_up.deep.other", "unmade.whole", "made_up."]
)
def test_what_nothing_defines_is_none(package, module):
    assert definition(module, "scores") is None


def test_a_module_that_cannot_be_imported_is_not_missing(package):
    with pytest.raises(ModuleNotFoundError, match="made_up_library"):
        definition(f"{package}.broken", "score")
