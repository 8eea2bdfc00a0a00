"""The fingerprint changes with the meaning of code and with nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from clustered_fl.errors import InputError
from clustered_fl.fingerprint import SOURCE, fingerprint, imported_by

# train -> (inside a function) loop -> maths; other stands alone; model is reached by its package.
MODULES = {
    "__init__": '"""The package."""\n',
    "train": (
        '"""Train."""\n\nfrom clustered_fl.parts import model\n\n\n'
        "def train():\n    from clustered_fl.loop import run\n\n    return run(model.SIZE)\n"
    ),
    "loop": "import clustered_fl.maths\n\n\ndef run(n):\n    return clustered_fl.maths.half(n)\n",
    "maths": 'def half(n):\n    """Half of n."""\n    return n / 2\n',
    "other": "VALUE = 1\n",
    "parts/__init__": "",
    "parts/model": "from .. import constants\n\nSIZE = constants.SIZE\n",
    "constants": "SIZE = 4\n",
}


@pytest.fixture
def source(tmp_path):
    for name, text in MODULES.items():
        path = tmp_path / "clustered_fl" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def edit(source: Path, module: str, text: str) -> None:
    (source / "clustered_fl" / f"{module}.py").write_text(text)


def of_train(source: Path) -> str:
    return fingerprint("clustered_fl.train", source=source)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("maths", '# why\ndef half(n):\n    """One half of n."""\n    return n / 2  # exact\n'),
        ("maths", "def half(n):\n    return n / 2\n"),
        ("maths", "def half(\n    n,\n):\n\n    return (n /\n            2)\n"),
        ("other", "VALUE = 2\n"),
        ("__init__", '"""The same package, described at length."""\n'),
        ("parts/__init__", '"""Parts."""\n\npass\n'),
        ("constants", "SIZE = 0x4\n"),
    ],
    ids=["comment", "no docstring", "format", "unrelated", "package", "inert package", "notation"],
)
def test_what_does_not_matter_does_not_change_it(source, module, text):
    before = of_train(source)
    edit(source, module, text)
    assert of_train(source) == before


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("maths", 'def half(n):\n    """Half of n."""\n    return n // 2\n'),
        ("constants", "SIZE = 4.0\n"),
        ("parts/model", "from ..constants import SIZE\n\nSIZE = SIZE\n"),
        ("parts/__init__", "import torch\n"),
        ("__init__", "FLAG = True\n"),
        ("maths", "def half(n):\n    return n / 2\n    'unreachable'\n    return None\n"),
    ],
    ids=[
        "logic",
        "type of a number",
        "relative import",
        "package",
        "root package",
        "new statement",
    ],
)
def test_a_change_of_meaning_anywhere_below_changes_it(source, module, text):
    before = of_train(source)
    edit(source, module, text)
    assert of_train(source) != before


def test_from_import_of_a_module_reaches_it_but_of_a_value_needs_no_module(source):
    edit(source, "train", "from clustered_fl.maths import half\nfrom clustered_fl import other\n")
    before = of_train(source)
    edit(source, "other", "VALUE = 2\n")
    assert of_train(source) != before


def test_relative_import_is_the_same_module_as_the_absolute_one(source):
    edit(source, "parts/model", "from ..maths import half\n")
    before = fingerprint("clustered_fl.parts.model", source=source)
    edit(source, "maths", "def half(n):\n    return n * 0.5\n")
    assert fingerprint("clustered_fl.parts.model", source=source) != before


def test_several_modules_in_any_order(source):
    pair = fingerprint("clustered_fl.train", "clustered_fl.other", source=source)
    assert pair == fingerprint("clustered_fl.other", "clustered_fl.train", source=source)
    assert pair != of_train(source)


def test_importing_in_a_circle_ends(source):
    edit(source, "maths", "import clustered_fl.train\n")
    assert len(of_train(source)) == 16


@pytest.mark.parametrize("module", ["clustered_fl.absent", "numpy", "clustered_fl_other", ""])
def test_unknown_module_is_refused_by_name(source, module):
    with pytest.raises(InputError, match=f"names the module {module}, which does not exist"):
        fingerprint(module, source=source)


def test_import_of_an_absent_module_names_the_importer(source):
    edit(source, "maths", "from clustered_fl.absent import thing\n")
    with pytest.raises(InputError, match="clustered_fl.maths names the module clustered_fl.absent"):
        of_train(source)


def test_is_taken_without_importing_anything(source):
    edit(source, "train", "import a_package_that_is_not_installed\nraise SystemExit\n")
    assert len(of_train(source)) == 16


def every_module() -> list[str]:
    files = [path.relative_to(SOURCE) for path in (SOURCE / "clustered_fl").rglob("*.py")]
    return [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]


def test_every_module_of_the_package_has_one():
    """Also shows that each first-party import in the package leads to a file."""
    assert all(len(fingerprint(module)) == 16 for module in every_module())


def test_does_not_depend_on_the_process():
    module = "clustered_fl.fingerprint"
    program = f"from {module} import fingerprint; print(fingerprint('{module}'))"
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=SOURCE, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == fingerprint(module)


def test_what_a_notebook_imports_is_found(tmp_path):
    package = tmp_path / "clustered_fl"
    package.mkdir()
    for name in ("__init__", "figures", "records"):
        (package / f"{name}.py").write_text("")
    text = "import json\nfrom clustered_fl import figures\nfrom clustered_fl.records import load"
    assert imported_by(text, tmp_path) == [
        "clustered_fl",
        "clustered_fl.figures",
        "clustered_fl.records",
    ]
