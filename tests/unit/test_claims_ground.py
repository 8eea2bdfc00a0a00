"""Every predicate on the same ground, on records whose right answer is known."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest
import tiny_groupings
import tiny_records as tiny

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.ground import prices, scores
from clustered_fl.claims.papers import predicates_of
from clustered_fl.claims.verdicts import check_complete, titled
from clustered_fl.ledger import load_ledger

PREDICATES = predicates_of("ground")
LEDGER = load_ledger(Path(__file__).parents[2] / "config" / "papers" / "ground.yaml")
TRUTH = [0, 0, 1, 1, 2, 2]
PARAMETERS = 100


def result(claim: str, evidence: Evidence) -> tuple[dict[str, float], bool]:
    """What a claim measures and whether it holds; numbers are plain floats, ready for a table."""
    measured = PREDICATES[claim].measure(evidence)
    assert all(isinstance(value, float) for value in measured.values())
    return measured, bool(PREDICATES[claim].holds(measured))


def test_numbers_are_called_as_the_figures_call_them():
    measured = {"largest share": 0.5, "pca, swap": 0.4, "repa_encoder": 1.0}
    expected = {"largest share": 0.5, "PCA+kM+HC, labels swapped": 0.4, "REPA, FLT's encoder": 1.0}
    assert titled(measured, LEDGER) == expected


@pytest.fixture
def evidence(tmp_path):
    """Evidence of runs ("swap_cfl": what they did) and of groupings (same name: groups found)."""
    numbers = count()

    def evidence(runs: dict | None = None, groupings: dict | None = None) -> Evidence:
        folders, new = {}, tmp_path / str(next(numbers))
        for name, content in (runs or {}).items():
            folders[f"ground_{name}"] = Path(_run(new / "runs" / name, **content))
        for name, groups in (groupings or {}).items():
            place = new / "groupings" / name
            related = tiny_groupings.blocks(groups)
            folders[f"ground_groups_{name}"] = tiny_groupings.write(place, TRUTH, related)
        return Evidence({name: {name: folder} for name, folder in folders.items()}, {})

    return evidence


def _run(folder, percents=None, groups=None, rounds=None, clusters=4, parameters=PARAMETERS) -> str:
    """Percents of all clients at the end, or round -> percent; six take part in three rounds."""
    by_round = rounds or {0: 0.0, 10: percents or [50.0] * 6}
    shares = {
        round_: [value / 100 for value in (values if isinstance(values, list) else [values] * 6)]
        for round_, values in by_round.items()
    }
    about = tiny.record(true_groups=TRUTH, groups=groups or [0] * 6, rounds=max(by_round))
    about["config"] = about["config"] | {"method": {"name": "x", "clusters": clusters}}
    part = [(r, "client", c, "loss", 1.0) for r in range(3) for c in range(6)]
    return tiny.write(folder, about | {"parameters": parameters}, tiny.scores(shares) + part)


MIXED = [0, 1, 0, 1, 0, 1]


# ---- The ledger ----------------------------------------------------------------------------------


def test_every_claim_has_its_predicate_tested_here():
    check_complete(LEDGER, PREDICATES)
    text = Path(__file__).read_text()
    assert [claim for claim in PREDICATES if f'"{claim}"' not in text] == []


@pytest.mark.parametrize("claim", LEDGER.claims)
def test_the_ledger_names_what_a_predicate_reads(claim, evidence):
    """With nothing but what the ledger names for it, every predicate finds its numbers."""
    about = LEDGER.claims[claim]
    runs = {name.removeprefix("ground_"): {} for name in about.runs}
    groupings = {name.removeprefix("ground_groups_"): TRUTH for name in about.groupings}
    measured, _ = result(claim, evidence(runs, groupings))
    assert not any(np.isnan(value) for value in measured.values())


def test_contenders_are_found_by_the_names_of_their_runs(evidence):
    runs = dict.fromkeys(("swap_cfl", "swap_repa_encoder", "swap_warm_up", "ring_cfl"))
    found = evidence({name: {} for name in runs}, {"swap_flt": TRUTH})
    assert scores.contenders(found) == {"swap": ["cfl", "repa_encoder"], "ring": ["cfl"]}
    assert scores.grounds_of(found, "cfl") == ["swap", "ring"]
    assert scores.grounds_of(found, "repa_encoder") == ["swap"]


# ---- Who sees what -------------------------------------------------------------------------------

LABEL_FREE = [f"swap_{name}" for name in ("pca", "flt", "repa", "repa_encoder", "pacfl")]


def test_swapped_labels_are_unseen_only_if_nobody_sees_them(evidence):
    blind = dict.fromkeys(LABEL_FREE, MIXED)
    measured, holds = result("GR-a", evidence(groupings=blind))
    assert holds
    assert measured["highest"] <= 0
    measured, holds = result("GR-a", evidence(groupings=blind | {"swap_repa": TRUTH}))
    assert not holds
    assert (measured["highest"], measured["REPA"]) == (1, 1)


@pytest.mark.parametrize(("groups", "expected"), [(TRUTH, True), (MIXED, False)])
def test_cfl_sees_swapped_labels(evidence, groups, expected):
    assert result("GR-b", evidence({"swap_cfl": {"groups": groups}}))[1] == expected


@pytest.mark.parametrize(("groups", "expected"), [(TRUTH, True), (MIXED, False)])
def test_repa_sees_turned_images(evidence, groups, expected):
    assert result("GR-c", evidence(groupings={"rotation_repa": groups}))[1] == expected


@pytest.mark.parametrize("sees", [None, "cfl", "fedsem", "wd"])
def test_weights_do_not_see_turned_images(evidence, sees):
    groups = {name: TRUTH if name == sees else MIXED for name in ("cfl", "fedsem", "wd")}
    runs = {f"rotation_{name}": {"groups": groups[name]} for name in ("cfl", "fedsem")}
    measured, holds = result("GR-d", evidence(runs, {"rotation_wd": groups["wd"]}))
    assert holds == (sees is None)
    assert (measured["highest"] == 1) == (sees is not None)


def of_grounds(contender: str, groups: dict[str, list[int]]) -> dict:
    """A run of a contender on each ground, and the oracle's, which tells that there are groups."""
    runs = {f"{ground}_{contender}": {"groups": found} for ground, found in groups.items()}
    return runs | {f"{ground}_oracle": {} for ground in groups}


def test_ifca_must_find_the_groups_everywhere(evidence):
    writers = {"writers_ifca": {"groups": MIXED}}  # no true groups are known, so it does not count
    everywhere = of_grounds("ifca", {"swap": TRUTH, "ring": TRUTH})
    assert result("GR-e", evidence(everywhere | writers))[1]
    once = of_grounds("ifca", {"disjoint": TRUTH, "rotation": MIXED})
    measured, holds = result("GR-e", evidence(once))
    assert not holds
    assert measured["lowest"] == measured["rotation"] < 0.8


@pytest.mark.parametrize(
    ("groups", "surplus"),
    [([0, 1, 2, 0, 1, 2], 0), ([0, 0, 0, 1, 1, 1], -1), ([0, 1, 2, 3] * 2, 1)],
)
def test_cfl_must_find_the_number_everywhere(evidence, groups, surplus):
    runs = of_grounds("cfl", {"swap": TRUTH, "ring": groups[:6]})
    measured, holds = result("GR-f", evidence(runs))
    assert measured["ring"] == surplus
    assert holds == (surplus == 0)


def test_flt_must_find_the_number_on_its_grounds(evidence):
    """Of five clusters each."""
    five = [0, 1, 2, 3, 4, 4]
    assert result("GR-g", evidence(groupings={"disjoint_flt": five, "ring_flt": five}))[1]
    measured, holds = result(
        "GR-g", evidence(groupings={"disjoint_flt": TRUTH, "ring_flt": [0] * 6})
    )
    assert not holds
    assert (measured["disjoint"], measured["ring"], measured["largest"]) == (-2, -4, 4)


# ---- Whom it helps -------------------------------------------------------------------------------


@pytest.mark.parametrize(("other", "expected"), [(80.9, True), (81.1, False)])
def test_nothing_may_beat_the_true_groups_by_more_than_a_point(evidence, other, expected):
    runs = {"swap_oracle": {"percents": [80.0] * 6}, "swap_flt": {"percents": [other] * 6}}
    runs |= {"swap_local": {"percents": [10.0] * 6}, "ring_oracle": {}, "ring_cfl": {}}
    runs |= {"writers_cfl": {"percents": [99.0] * 6}}
    measured, holds = result("GR-h", evidence(runs))
    assert holds == expected
    assert measured["swap"] == pytest.approx(other - 80)
    assert "writers" not in measured


@pytest.mark.parametrize(("best", "expected"), [(70.9, True), (71.0001, False)])
def test_on_writers_nothing_is_a_point_ahead(evidence, best, expected):
    runs = {"writers_fedavg": {"percents": [70.0] * 6}, "writers_local": {"percents": [90.0] * 6}}
    measured, holds = result("GR-i", evidence(runs | {"writers_ifca": {"percents": [best] * 6}}))
    assert holds == expected
    assert list(measured) == ["largest lead", "ifca"]
    assert measured["largest lead"] == measured["ifca"]


@pytest.mark.parametrize(("local", "expected"), [(49.0, True), (51.0, False)])
def test_sharing_must_beat_training_alone_everywhere(evidence, local, expected):
    runs = {"swap_oracle": {}, "swap_local": {"percents": [10.0] * 6}}
    runs |= {"ring_oracle": {}, "ring_local": {"percents": [local] * 6}}
    measured, holds = result("GR-j", evidence(runs))
    assert holds == expected
    assert measured["least lead"] == pytest.approx(50 - local)


@pytest.mark.parametrize(
    ("oracle", "expected"), [([60.0] * 6, True), ([20.0, 80, 80, 80, 80, 80], False)]
)
def test_the_worst_must_gain_most(evidence, oracle, expected):
    fedavg = [20.0, 60, 60, 60, 60, 60]
    runs = {"swap_oracle": {"percents": oracle}, "swap_fedavg": {"percents": fedavg}}
    measured, holds = result("GR-k", evidence(runs))
    assert holds == expected
    of_mean = sum(oracle) / 6 - sum(fedavg) / 6
    assert measured["swap"] == pytest.approx(oracle[0] - 20 - of_mean)


# ---- What it costs -------------------------------------------------------------------------------


@pytest.mark.parametrize(("clusters", "expected"), [(2, False), (4, True)])
def test_one_shot_must_need_half_of_ifca_s_bytes(evidence, clusters, expected):
    runs = {"swap_ifca": {"clusters": clusters}, "swap_pca": {}, "swap_repa": {}}
    runs["swap_warm_up"] = {"parameters": 4}
    groupings = {"swap_pca": TRUTH, "swap_repa": TRUTH}
    measured, holds = result("GR-l", evidence(runs, groupings))
    each_round, signature = 3 * 6 * 4, 3
    base = each_round * (clusters + 1) * PARAMETERS
    own = each_round * 2 * PARAMETERS
    warm_up = each_round * 2 * 4 + 6 * 4 * 4
    assert measured["pca, swap"] == pytest.approx((own + 6 * 4 * signature) / base)
    assert measured["repa, swap"] == pytest.approx((own + warm_up + 6 * 4 * signature) / base)
    assert holds == expected


def test_what_one_shot_methods_send_is_what_the_ledger_says():
    for name, sent in prices.SHOTS.items():
        traffic = LEDGER.contenders[name].traffic
        assert (traffic.down, traffic.up) == (1, 1)
        assert {"before_down": traffic.before_down, "before_up": traffic.before_up} == sent
    ifca = LEDGER.contenders["ifca"].traffic
    assert (ifca.down, ifca.up) == ("{clusters}", 1)


@pytest.mark.parametrize(("flt", "expected"), [(20, True), (25, False)])
def test_one_shot_must_be_at_its_end_in_half_the_rounds(evidence, flt, expected):
    late = {"rounds": {0: 0.0, 10: 40.0, 20: 70.0, 40: 80.0}}
    runs = {"disjoint_cfl": late, "rotation_cfl": late}
    runs["rotation_repa"] = {"rounds": {0: 0.0, 10: 79.5, 40: 80.0}}
    runs["disjoint_flt"] = {"rounds": {0: 0.0, flt - 5: 20.0, flt: 60.0, 40: 60.0}}
    measured, holds = result("GR-m", evidence(runs))
    assert measured["repa, rotation"] == 10 / 40
    assert measured["flt, disjoint"] == flt / 40
    assert holds == expected
