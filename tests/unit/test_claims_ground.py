"""The benchmark's claims, on records whose right answer is known beforehand."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import judging
import numpy as np
import pytest
import tiny_groupings
import tiny_records as tiny

from clustered_fl.claims.binding import bind
from clustered_fl.claims.verdicts import measure_of
from clustered_fl.ledger.reading import load_ledger

LEDGER = load_ledger(Path(__file__).parents[2] / "config" / "papers" / "ground.yaml")
CELLS = {f"{cell.column}.{cell.row}": cell for cell in LEDGER.cells}
TRUTH, MIXED = [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]
PARAMETERS = 100
CLUSTERINGS = [
    row
    for row, told in LEDGER.tables["matrix"].rows.items()
    if told.finds and not told.hidden and row not in ("oracle", "random_groups")
]

Result = tuple[dict[str, float], bool]


@pytest.fixture
def judged(tmp_path) -> Callable[..., Result]:
    """What a claim measures and whether it holds.

    All that it needs is there: runs at 50% that found the true groups, and groupings that did, but
    for the cells that a test describes.
    """
    numbers = count()

    def judged(claim: str, runs: dict | None = None, groupings: dict | None = None) -> Result:
        about, place = LEDGER.claims[claim], tmp_path / str(next(numbers))
        needs = bind(about.measure, measure_of(about), LEDGER).needs
        content = {name: {} for name in needs["runs"]}
        content |= {CELLS[cell].run: told for cell, told in (runs or {}).items()}
        found = dict.fromkeys(needs["groupings"], TRUTH)
        found |= {CELLS[cell].grouping: groups for cell, groups in (groupings or {}).items()}
        known = judging.evidence(
            LEDGER,
            {name: {name: _run(place / name, **told)} for name, told in content.items()},
            {name: _grouping(place / name, groups) for name, groups in found.items()},
        )
        return judging.result(LEDGER, claim, known)

    return judged


def _run(
    folder: Path,
    percents: list[float] | None = None,
    groups: list[int] | None = None,
    rounds: dict[int, float] | None = None,
    parameters: int = PARAMETERS,
) -> str:
    """Percents of all clients at the end, or round -> percent; six take part in three rounds."""
    by_round = {round_: [percent] * 6 for round_, percent in (rounds or {0: 0.0}).items()}
    by_round |= {} if rounds else {10: percents or [50.0] * 6}
    shares = {round_: [value / 100 for value in values] for round_, values in by_round.items()}
    about = tiny.record(true_groups=TRUTH, groups=groups or TRUTH, rounds=max(by_round))
    part = [(r, "client", c, "loss", 1.0) for r in range(3) for c in range(6)]
    return tiny.write(folder, about | {"parameters": parameters}, tiny.scores(shares) + part)


def _grouping(folder: Path, groups: list[int]) -> Path:
    return tiny_groupings.write(folder, TRUTH, tiny_groupings.blocks(groups))


@pytest.mark.parametrize("claim", LEDGER.claims)
def test_a_claim_finds_its_numbers_in_what_it_needs(judged, claim):
    measured, _ = judged(claim)
    assert measured
    assert not any(np.isnan(value) for value in measured.values())


# ---- Which method sees what ----------------------------------------------------------------------

LABEL_FREE = [f"swap.{row}" for row in ("pca", "flt", "repa", "repa_encoder", "pacfl")]


def test_swapped_labels_are_unseen_only_if_no_method_sees_them(judged):
    blind = dict.fromkeys(LABEL_FREE, MIXED)
    measured, holds = judged("GR-a", groupings=blind)
    assert holds
    assert measured["agreement"] <= 0
    measured, holds = judged("GR-a", groupings=blind | {"swap.repa": TRUTH})
    assert not holds
    assert (measured["agreement"], measured["REPA"]) == (1, 1)


@pytest.mark.parametrize(("groups", "expected"), [(TRUTH, True), (MIXED, False)])
def test_cfl_sees_swapped_labels(judged, groups, expected):
    assert judged("GR-b", {"swap.cfl": {"groups": groups}})[1] == expected


@pytest.mark.parametrize(("groups", "expected"), [(TRUTH, True), (MIXED, False)])
def test_repa_sees_turned_images(judged, groups, expected):
    assert judged("GR-c", groupings={"rotation.repa": groups})[1] == expected


@pytest.mark.parametrize("sees", [None, "cfl", "fedsem", "wd"])
def test_weights_do_not_see_turned_images(judged, sees):
    groups = {name: TRUTH if name == sees else MIXED for name in ("cfl", "fedsem", "wd")}
    runs = {f"rotation.{name}": {"groups": groups[name]} for name in ("cfl", "fedsem")}
    measured, holds = judged("GR-d", runs, {"rotation.wd": groups["wd"]})
    assert holds == (sees is None)
    assert (measured["agreement"] == 1) == (sees is not None)


@pytest.mark.parametrize(("groups", "expected"), [(TRUTH, True), (MIXED, False)])
def test_ifca_must_find_the_groups_everywhere(judged, groups, expected):
    measured, holds = judged("GR-e", {"rotation.ifca": {"groups": groups}})
    assert holds == expected
    assert measured["agreement"] == measured["rotated"]


@pytest.mark.parametrize(
    ("groups", "surplus"),
    [([0, 1, 2, 0, 1, 2], 0), ([0, 0, 0, 1, 1, 1], 1), ([0, 1, 2, 3, 0, 1], 1)],
)
def test_cfl_must_find_the_number_everywhere(judged, groups, surplus):
    measured, holds = judged("GR-f", {"ring.cfl": {"groups": groups}})
    assert measured["miscounted groups"] == surplus
    assert holds == (surplus == 0)


@pytest.mark.parametrize(("groups", "surplus"), [(TRUTH, 0), ([0] * 6, 2), (range(6), 3)])
def test_flt_must_find_the_number_on_its_clients(judged, groups, surplus):
    measured, holds = judged("GR-g", groupings={"ring.flt": list(groups)})
    assert measured["miscounted groups"] == surplus
    assert holds == (surplus == 0)


# ---- What it brings ------------------------------------------------------------------------------


@pytest.mark.parametrize(("other", "expected"), [(50.9, True), (51.1, False)])
def test_nothing_may_beat_the_true_groups_by_more_than_a_point(judged, other, expected):
    runs = {"swap.flt": {"percents": [other] * 6}, "swap.local": {"percents": [10.0] * 6}}
    measured, holds = judged("GR-h", runs)
    assert holds == expected
    assert measured["label-swapped"] == pytest.approx(other - 50)
    assert "writers" not in measured


@pytest.mark.parametrize(
    ("claim", "side"), [("GR-i", "of"), ("GR-o", "of"), ("GR-q", "over"), ("GR-r", "of")]
)
def test_every_clustering_is_compared(claim, side):
    about = LEDGER.claims[claim]
    compared = set(bind(about.measure, measure_of(about), LEDGER).arguments[side])
    columns = {cell.column for cell in LEDGER.cells if cell.run in compared}
    cells = [cell for cell in LEDGER.cells if cell.column in columns and cell.row in CLUSTERINGS]
    assert compared == {cell.run for cell in cells}


@pytest.mark.parametrize(("best", "expected"), [(50.9, True), (51.0001, False)])
def test_on_writers_nothing_is_a_point_ahead(judged, best, expected):
    measured, holds = judged("GR-i", {"writers.ifca": {"percents": [best] * 6}})
    assert holds == expected
    assert measured["largest lead"] == measured["IFCA"] == pytest.approx(best - 50)


@pytest.mark.parametrize(("local", "expected"), [(49.0, True), (51.0, False)])
def test_sharing_must_beat_training_alone_everywhere(judged, local, expected):
    alone = [name for name, cell in CELLS.items() if cell.row == "local" and cell.column != "ring"]
    runs = {name: {"percents": [10.0] * 6} for name in alone}
    measured, holds = judged("GR-j", runs | {"ring.local": {"percents": [local] * 6}})
    assert holds == expected
    assert measured["least lead"] == pytest.approx(50 - local)


@pytest.mark.parametrize(
    ("oracle", "expected"), [([60.0] * 6, True), ([20.0, 80, 80, 80, 80, 80], False)]
)
def test_the_worst_must_gain_most(judged, oracle, expected):
    fedavg = [20.0, 60, 60, 60, 60, 60]
    runs = {name: {"percents": fedavg} for name, cell in CELLS.items() if cell.row == "fedavg"}
    runs |= {name: {"percents": [60.0] * 6} for name, cell in CELLS.items() if cell.row == "oracle"}
    measured, holds = judged("GR-k", runs | {"swap.oracle": {"percents": oracle}})
    assert holds == expected
    of_mean = sum(oracle) / 6 - sum(fedavg) / 6
    found = measured["label-swapped"]
    assert found == pytest.approx(oracle[0] - 20 - of_mean)
    gains = []
    for client in range(6):  # left out
        own, other = (np.delete(each, client) for each in (oracle, fedavg))
        gains.append(own.min() - other.min() - own.mean() + other.mean())
    assert found.error == pytest.approx(np.sqrt(5 * np.var(gains)))


@pytest.mark.parametrize(("last", "mean"), [(60.0, 54.0), (30.0, 48.0)])
def test_a_lead_is_that_of_the_last_five_tests(judged, last, mean):
    tests = {0: 0.0, 5: 90.0, 10: 50.0, 15: 55.0, 20: 50.0, 25: 55.0, 30: last}
    measured, _ = judged("GR-p", {"rotation.random_groups": {"rounds": tests}})
    assert measured["largest lead"] == pytest.approx(mean - 50)


@pytest.mark.parametrize(("percent", "expected"), [(50.0, True), (50.5, False)])
def test_random_groups_must_not_beat_fedavg(judged, percent, expected):
    runs = {"rotation.random_groups": {"percents": [percent] * 6}}
    assert judged("GR-p", runs)[1] == expected


@pytest.mark.parametrize(("best", "expected"), [(50.0, True), (50.5, False)])
def test_no_clustering_may_beat_fine_tuning_on_two_labels(judged, best, expected):
    measured, holds = judged("GR-q", {"pairs.fl_hc": {"percents": [best] * 6}})
    assert holds == expected
    assert measured["least lead"] == pytest.approx(50 - best)


@pytest.mark.parametrize("column", ["dirichlet_01", "dirichlet_05"])
@pytest.mark.parametrize(("best", "expected"), [(51.0, True), (51.5, False)])
def test_under_dirichlet_skew_no_clustering_is_a_point_ahead(judged, column, best, expected):
    measured, holds = judged("GR-r", {f"{column}.repa_encoder": {"percents": [best] * 6}})
    assert holds == expected
    assert measured["largest lead"] == pytest.approx(best - 50)


@pytest.mark.parametrize("rival", ["pairs.local", "writers.fedavg", "dirichlet_05.local"])
def test_ditto_must_not_lose_to_either_extreme(judged, rival):
    assert judged("GR-s")[1]
    measured, holds = judged("GR-s", {rival: {"percents": [52.0] * 6}})
    assert not holds
    assert measured["least lead"] == pytest.approx(-2)


@pytest.mark.parametrize(("groups", "expected"), [(TRUTH, True), (MIXED, False)])
def test_comparing_updates_must_find_concept_shift(judged, groups, expected):
    assert judged("GR-t", groupings={"permute.fl_hc": groups})[1] == expected


# ---- After how many rounds -----------------------------------------------------------------------


def curve(early: float, end: float) -> dict:
    """Five equal tests until round 60, and until the end."""
    tests = dict.fromkeys(range(44, 61, 4), early) | dict.fromkeys(range(104, 121, 4), end)
    return {"rounds": {0: 0.0} | tests}


@pytest.mark.parametrize(("end", "expected"), [(59.0, True), (61.0, False)])
def test_gains_must_shrink_in_the_mean(judged, end, expected):
    """The others gain nothing, early or late; one setting gains ten points at first."""
    runs = {"ring.oracle": curve(60.0, end), "ring.fedavg": curve(50.0, 50.0)}
    measured, holds = judged("GR-n", runs)
    assert holds == expected
    assert measured["overlapping groups"] == pytest.approx(end - 60)
    assert measured["mean change"] == pytest.approx((end - 60) / 7)
    ring = measured["overlapping groups"].error
    expected = np.sqrt((60 * 40 + end * (100 - end) + 2 * 50 * 50) / 600)
    assert ring == pytest.approx(expected)
    assert measured["mean change"].error == pytest.approx(
        np.sqrt(ring**2 + 6 * 4 * 50 * 50 / 600) / 7
    )


@pytest.mark.parametrize(("winner", "expected"), [(70.5, True), (71.5, False)])
def test_the_early_winner_must_be_near_the_best_at_the_end(judged, winner, expected):
    runs = {f"swap.{row}": curve(50.0, 60.0) for row in CLUSTERINGS}
    runs |= {"swap.flt": curve(65.0, 70.0), "swap.fl_hc": curve(55.0, winner)}
    measured, holds = judged("GR-o", runs)
    assert holds == expected
    assert measured["label-swapped"] == measured["largest regret"] == pytest.approx(winner - 70)
    error = np.sqrt((winner * (100 - winner) + 70 * 30) / 600)
    assert measured["largest regret"].error == pytest.approx(error)


# ---- What it costs -------------------------------------------------------------------------------


@pytest.mark.parametrize(("column", "clusters"), [("swap", 4), ("writers", 3)])
def test_everything_that_a_one_shot_clustering_sends_counts(judged, column, clusters):
    """With three clusters the share is a half without what comes before the rounds."""
    measured, holds = judged("GR-l", {f"{column}.warm_up": {"parameters": 4}})
    each_round, signature = 3 * 6 * 4, 3
    base = each_round * (clusters + 1) * PARAMETERS
    own = each_round * 2 * PARAMETERS
    network = each_round * 2 * 4 + 6 * 4 * 4
    title = LEDGER.tables["matrix"].columns[column].title
    assert measured[f"PCA+kM+HC, {title}"] == pytest.approx((own + 6 * 4 * signature) / base)
    expected = (own + network + 6 * 4 * signature) / base
    assert measured[f"REPA, {title}"] == pytest.approx(expected)
    assert not holds


@pytest.mark.parametrize(("flt", "expected"), [(20, True), (25, False)])
def test_one_shot_must_be_at_its_end_in_half_the_rounds(judged, flt, expected):
    ends = range(40, 65, 5)  # five tests
    late = {"rounds": {0: 0.0, 10: 40.0, 20: 70.0} | dict.fromkeys(ends, 80.0)}
    runs = {"disjoint.cfl": late, "rotation.cfl": late}
    runs["rotation.repa"] = {"rounds": {0: 0.0, 10: 79.5} | dict.fromkeys(ends, 80.0)}
    early = {0: 0.0, flt - 5: 20.0, flt: 60.0}
    runs["disjoint.flt"] = {"rounds": early | dict.fromkeys(ends, 60.0)}
    measured, holds = judged("GR-m", runs)
    assert measured["REPA, rotated"] == 10 / 40
    error = np.hypot(30, 20 * 10 / 40) / np.sqrt(12) / 40  # longest gaps between tests: 30 and 20
    assert measured["REPA, rotated"].error == pytest.approx(error)
    assert measured["FLT, pathological by group"] == flt / 40
    assert holds == expected


def test_a_lead_has_the_binomial_errors_of_both_runs(judged):
    measured, _ = judged("GR-p", {"rotation.random_groups": {"percents": [60.0] * 6}})
    error = measured["largest lead"].error
    assert error == pytest.approx(np.sqrt((60 * 40 + 50 * 50) / 600))
