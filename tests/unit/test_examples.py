"""The example notebook and the example of the README run, and show what their texts say."""

import re
from pathlib import Path

import numpy as np
import pytest
from playing import code_cells
from sklearn.datasets import load_digits

ROOT = Path(__file__).parents[2]

# What importing umap says, which Python does not show otherwise.
pytestmark = pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")


@pytest.fixture(scope="module")
def played() -> dict:
    """Variables of the notebook, trained for as many rounds as it says."""
    variables: dict = {}
    for cell in code_cells(ROOT / "notebooks" / "examples" / "own_arrays.ipynb"):
        exec(compile(cell["source"], cell["id"], "exec"), variables)
    return variables


def test_every_method_of_the_notebook_has_a_row(played):
    table = played["table"]
    assert list(table.index) == ["FedAvg", "Local", "CFL", "FLT", "REPA"]
    assert table["accuracy (%)"].between(80, 100).all()
    assert table.loc[["FedAvg", "Local", "FLT", "REPA"], "groups"].tolist() == [1, 12, 2, 2]


def test_clients_with_other_digits_are_told_apart(played):
    """CFL, which is not told the number of groups, and REPA find the two kinds of clients."""
    for method in ("CFL", "REPA"):
        groups = played["trained"][method].groups
        assert groups[::2].nunique() == groups[1::2].nunique() == 1
        assert groups[0] != groups[1]


def test_the_network_of_a_client_is_ready_to_use(played):
    assert not played["network"].training


def test_the_example_of_the_readme_runs_as_it_stands():
    """On few images and for few rounds."""
    page = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"```python\n(import clustered_fl\n.*?)```", page, re.DOTALL)
    assert len(example.splitlines()) <= 15
    digits = load_digits()
    x = np.kron(digits.images[:240] * 15.9, np.ones((1, 4, 4)))[:, 2:-2, 2:-2].astype(np.uint8)
    variables = {"x": x, "y": digits.target[:240], "owners": np.arange(240) % 6}
    variables["my_groups"] = {client: client % 2 for client in range(6)}
    exec(re.sub(r"rounds=\d+", "rounds=2", example), variables)
    assert {"fedavg", "cfl", "flt", "repa"} <= variables.keys()
    assert variables["mine"].groups.to_dict() == variables["my_groups"]
    assert variables["repa"].scores.shape == (3, 6)
