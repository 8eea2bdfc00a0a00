"""Every claim of REPA, on records whose right answer is known."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny_groupings
import tiny_records as tiny
from judging import evidence as evidence_of
from judging import result as result_of

from clustered_fl.claims import bounds
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.judging import error_of, judge, mean_of
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.metrics.repa.correlation import correlation_error
from clustered_fl.records import reading as records

LEDGER = load_ledger(Path(__file__).parents[2] / "config" / "papers" / "repa.yaml")
CELLS = {(cell.column, cell.row): cell for cell in LEDGER.cells if cell.table == "cifar"}
KINDS = {name: column.title for name, column in LEDGER.tables["cifar"].columns.items()}
ROWS = ("sae", "clf", "ae", "f1", "f2")
CLIENTS, SEED, LAST = 6, 5, 20


def result(claim: str, evidence: Evidence) -> tuple[dict[str, float], bool]:
    return result_of(LEDGER, claim, evidence)


def test_every_claim_is_tested_here():
    text = Path(__file__).read_text()
    whole = {
        claim: re.sub(r"(?<=-numbers-)\w+(-code)?$|(?<=F5-d-)\w+$", "{", claim)
        for claim in LEDGER.claims
    }
    assert {claim for claim, form in whole.items() if form not in text} == set()


# ---- Records -------------------------------------------------------------------------------------


def pairs(measure: str, values: np.ndarray, now: int = 0) -> list[dict]:
    places = zip(*np.triu_indices(len(values), 1), strict=True)
    return [row(measure, i, j, values[i, j], now) for i, j in places]


def row(measure: str, first: int, second: int, value: float, now: int = 0) -> dict:
    found = {"measure": measure, "round": now, "first": int(first), "second": int(second)}
    return found | {"value": float(value)}


def labels(counts: np.ndarray, sizes: np.ndarray | None = None) -> list[dict]:
    """Label counts of clients, and how many images each is tested on."""
    found = [row("labels", *place, value) for place, value in np.ndenumerate(counts)]
    sizes = np.ones(len(counts)) if sizes is None else sizes
    return found + [row("tests", client, -1, size) for client, size in enumerate(sizes)]


def robust(groups: list[int], shares: dict[int, float]) -> list[dict]:
    """Two new clients per cluster, hits in the mean as often as is said."""
    return [
        row("robustness", group, groups.index(group), value)
        for group, share in shares.items()
        for value in (min(1.0, 2 * share), max(0.0, 2 * share - 1))
    ]


@pytest.fixture
def evidence(tmp_path):
    """Evidence of runs, name -> rows of measurements, and of groupings, name -> their content."""

    def evidence(
        runs: dict[str, list] | None = None, groupings: dict[str, dict] | None = None
    ) -> Evidence:
        trained = {
            name: {name: tiny.write(tmp_path / "runs" / name, tiny.record(), rows)}
            for name, rows in (runs or {}).items()
        }
        found = {
            name: _grouping(tmp_path / "groupings" / name, **content)
            for name, content in (groupings or {}).items()
        }
        return evidence_of(LEDGER, trained, found)

    return evidence


def _grouping(
    folder: Path,
    table: list[dict],
    groups: list[int] | None = None,
    truth: list[int] | None = None,
    signatures: np.ndarray | None = None,
) -> Path:
    groups = [0] * CLIENTS if groups is None else groups
    related = tiny_groupings.blocks(groups)
    truth = [0] * len(groups) if truth is None else truth
    sent = None if signatures is None else signatures[:, None].astype(np.float32)
    found = tiny_groupings.write(folder, truth, related, table, groups, sent)
    path = folder / records.RECORD
    method = {"name": "repa"}
    config = {"seed": SEED, "dataset": "cifar10", "federation": {}, "method": method}
    about = {"groups": groups, "config": config}
    path.write_text(json.dumps(json.loads(path.read_text()) | about))
    return found


# ---- Fig. 1 --------------------------------------------------------------------------------------


def symmetric(seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(CLIENTS, CLIENTS))
    return drawn + drawn.T


def related_by(similarity: np.ndarray, wanted: float, seed: int = 1) -> np.ndarray:
    """A symmetric [M, M] whose pairs have this correlation with those of `similarity`."""
    upper = np.triu_indices(CLIENTS, 1)
    x, noise = similarity[upper], symmetric(seed)[upper]
    x = (x - x.mean()) / np.linalg.norm(x - x.mean())
    noise = noise - noise.mean()
    noise = noise - (noise @ x) * x
    found = np.eye(CLIENTS)
    found[upper] = wanted * x + np.sqrt(1 - wanted**2) * noise / np.linalg.norm(noise)
    return found


COUNTS = np.array([[9, 1, 0], [7, 3, 2], [0, 5, 5], [1, 2, 9], [3, 3, 3], [0, 9, 1]])
UNIT = COUNTS / np.linalg.norm(COUNTS, axis=1, keepdims=True)
ALIKE = UNIT @ UNIT.T


UPPER = np.triu_indices(CLIENTS, 1)


def between(judge: np.ndarray, labels_by: float, looks_by: float) -> np.ndarray:
    """A symmetric [M, M] with these correlations with label counts and with an unrelated judge."""
    parts = [(each[UPPER] - each[UPPER].mean()) for each in (ALIKE, judge)]
    axes = [part / np.linalg.norm(part) for part in parts]
    noise = symmetric(1)[UPPER]
    noise = noise - noise.mean() - sum((noise @ axis) * axis for axis in axes)
    left = np.sqrt(1 - labels_by**2 - looks_by**2)
    found = np.eye(CLIENTS)
    found[UPPER] = labels_by * axes[0] + looks_by * axes[1] + left * noise / np.linalg.norm(noise)
    return found


def cosines(similarity: np.ndarray, by_round: dict[int, float]) -> list[dict]:
    return [
        each
        for now, wanted in by_round.items()
        for each in pairs("cosine", related_by(similarity, wanted), now)
    ]


def skew(repa: float, first: float, second: float, kind: str = "skew") -> dict[str, dict]:
    """Groupings under label skew with these best correlations, none of them after the last round.

    A holdout client comes last, which counts in no correlation.
    """
    table = labels(np.vstack([COUNTS, [100, 0, 0]]))
    found = {f"repa_groups_cifar_{kind}_sae": repa}
    found |= {f"wd_groups_cifar_{kind}_f1": first, f"wd_groups_cifar_{kind}_f2": second}
    return {
        name: {"table": [*table, *cosines(ALIKE, {5: best - 0.3, 10: best, 20: best - 0.1})]}
        for name, best in found.items()
    }


@pytest.mark.parametrize(
    ("first", "second", "drifting", "holds"),
    [
        (0.55, 0.2, 0.4, False),
        (0.3, 0.65, 0.4, True),
        (0.3, 0.2, 0.62, True),
    ],
)
def test_f1d_correlation_of_wd_at_its_best(evidence, first, second, drifting, holds):
    """One kind of clients with skewed labels is enough."""
    made = evidence(groupings=skew(0.2, first, second) | skew(0.1, 0.0, drifting, "both"))
    measured, held = result("REPA-F1-d", made)
    expected = {"WD, f = 1, Label skew": first, "WD, f = 2, Label skew": second}
    expected |= {f"WD, f = 1, {KINDS['both']}": 0, f"WD, f = 2, {KINDS['both']}": drifting}
    best = {"largest correlation": max(first, second, drifting)}
    assert measured == pytest.approx(expected | best, abs=1e-9)
    assert held == holds


@pytest.mark.parametrize(
    ("repa", "wd", "holds"), [(0.3, 0.5, True), (0.1, 0.5, False), (0.55, 0.5, False)]
)
@pytest.mark.parametrize(("claim", "kind"), [("REPA-F1-b", "skew"), ("REPA-F1-b-both", "both")])
def test_f1b_repa_has_less_but_some(evidence, claim, kind, repa, wd, holds):
    measured, held = result(claim, evidence(groupings=skew(repa, 0.1, wd, kind)))
    expected = {
        "REPA, SAE": repa,
        "WD, f = 1": 0.1,
        "WD, f = 2": wd,
        "lead in correlation": wd - repa,
    }
    assert measured == pytest.approx(expected)
    assert held == holds


@pytest.mark.parametrize(("claim", "kind"), [("REPA-F1-c", "drift"), ("REPA-F1-c-both", "both")])
@pytest.mark.parametrize(("repa", "holds"), [(0.3, True), (0.5, False), (0.1, False)])
def test_f1c_all_are_held_against_one_judge(evidence, claim, kind, repa, holds):
    judge = symmetric(9)
    names = {f"repa_groups_cifar_{kind}_sae": repa}
    names |= {f"wd_groups_cifar_{kind}_f1": 0.4, f"wd_groups_cifar_{kind}_f2": 0.1}
    made = {name: {"table": cosines(judge, {5: 0.0, 10: best})} for name, best in names.items()}
    # What other groupings say of the pipelines does not count.
    made[f"repa_groups_cifar_{kind}_sae"]["table"] += pairs("similarity", symmetric(3))
    made[f"repa_groups_cifar_{kind}_clf"] = {"table": pairs("similarity", judge)}
    measured, held = result(claim, evidence(groupings=made))
    expected = {
        "lead in correlation": 0.4 - repa,
        "REPA, SAE": repa,
        "WD, f = 1": 0.4,
        "WD, f = 2": 0.1,
    }
    assert measured == pytest.approx(expected)
    assert held == holds


@pytest.mark.parametrize(("drifting", "holds"), [(0.4, True), (0.6, False)])
def test_f1g_wd_is_best_at_labels(evidence, drifting, holds):
    """Label similarity where labels differ, that of pipelines where pipelines differ."""
    made, judge = skew(0.2, 0.5, 0.1), symmetric(9)
    for epochs, best in (1, 0.1), (2, drifting):
        table = labels(COUNTS) + cosines(judge, {5: 0.0, 10: best})
        made[f"wd_groups_cifar_drift_f{epochs}"] = {"table": table}
    made["repa_groups_cifar_drift_clf"] = {"table": pairs("similarity", judge)}
    measured, held = result("REPA-F1-g", evidence(groupings=made))
    expected = {"WD, f = 1, Label skew": 0.5, "WD, f = 2, Label skew": 0.1}
    expected |= {"WD, f = 1, Concept drift": 0.1, "WD, f = 2, Concept drift": drifting}
    assert measured == pytest.approx(expected | {"lead in correlation": 0.5 - drifting})
    assert held == holds


@pytest.mark.parametrize(("sae", "holds"), [(0.5, True), (0.3, False)])
def test_f1h_sae_reflects_pipelines(evidence, sae, holds):
    judge = symmetric(9)
    names = {"repa_groups_cifar_drift_sae": sae, "repa_groups_cifar_drift_clf": 0.4}
    made = {name: {"table": cosines(judge, {5: 0.0, 10: best})} for name, best in names.items()}
    made["repa_groups_cifar_drift_clf"]["table"] += pairs("similarity", judge)
    measured, held = result("REPA-F1-h", evidence(groupings=made))
    expected = {"lead in correlation": sae - 0.4, "REPA, SAE": sae, "REPA, CLF": 0.4}
    assert measured == pytest.approx(expected)
    assert held == holds


def test_the_last_round_alone_can_be_compared(evidence):
    """In the last round, every correlation is 0.1 below its best."""
    made = evidence(groupings=skew(0.2, 0.1, 0.5))
    measured, held = result_of(LEDGER, "REPA-F1-b", made, "round compared = the last")
    expected = {"REPA, SAE": 0.1, "WD, f = 1": 0, "WD, f = 2": 0.4, "lead in correlation": 0.3}
    assert measured == pytest.approx(expected, abs=1e-9)
    assert not held


@pytest.mark.parametrize(
    ("other", "labels_by", "looks_by", "holds"),
    [
        ("mean", 0.2, 0.3, True),
        ("mean", 0.1, 0.5, False),
        ("moments", 0.5, 0.1, False),
        ("components", 0.4, 0.2, False),
    ],
)
def test_f1e_mean_and_quartiles_on_labels_and_pipelines(
    evidence, other, labels_by, looks_by, holds
):
    """Only the last round counts, and gains on labels make up for losses on pipelines."""
    usual, judge = "repa_groups_cifar_both_sae", symmetric(9)
    judge -= np.polyval(np.polyfit(ALIKE[UPPER], judge[UPPER], 1), ALIKE)
    ends = {"mean": "mean", "mean and deviation": "spread", "four moments": "moments"}
    ends |= {"covariance": "covariance", "cross-correlation": "correlation"}
    ends |= {"principal components": "components"}
    follows = dict.fromkeys([usual, *(f"{usual}_{end}" for end in ends.values())], (0.2, 0.3))
    follows[f"{usual}_{other}"] = (labels_by, looks_by)
    made = {
        name: {"table": labels(COUNTS) + pairs("cosine", between(judge, *by), 20)}
        for name, by in follows.items()
    }
    made[usual]["table"] += pairs("cosine", -ALIKE, 10)
    table = labels(COUNTS) + pairs("similarity", judge) + pairs("cosine", ALIKE, 20)
    made["repa_groups_cifar_both_clf"] = {"table": table}
    measured, held = result("REPA-F1-e", evidence(groupings=made))
    lead = 0.25 - (labels_by + looks_by) / 2
    expected = {f"over REPA, {name}": lead * (end == other) for name, end in ends.items()}
    assert measured == pytest.approx(expected | {"REPA, SAE": 0.25}, abs=1e-9)
    assert held == holds


# ---- Fig. 2 --------------------------------------------------------------------------------------

PURE = np.eye(10)[np.repeat(np.arange(10), 4)] * 30
"""Forty clients of ten kinds."""


def two(repa: np.ndarray, wd: np.ndarray, counts: np.ndarray = PURE) -> dict[str, dict]:
    """Groupings with these vectors; k-means on them is the claim's own."""
    about = {"table": labels(counts), "groups": [0] * len(counts)}
    return {
        "repa_groups_mnist_clf_10": about | {"signatures": repa},
        "wd_groups_mnist_f1_10": about | {"signatures": wd},
    }


def mixed(seed: int) -> np.ndarray:
    """Vectors that know nothing."""
    return np.random.default_rng(seed).normal(size=PURE.shape)


@pytest.mark.parametrize("knows", [True, False])
def test_f2a_f2d_share_of_what_counts_give(evidence, knows):
    made = evidence(groupings=two(PURE if knows else mixed(0), mixed(1)))
    names = {"REPA-F2-a": "ratio", "REPA-F2-g": "least ratio", "REPA-F2-d": "largest ratio"}
    for claim, name in names.items():
        measured, held = result(claim, made)
        assert held == knows
        assert (measured[name] == pytest.approx(1)) == knows


@pytest.mark.parametrize("knows", [True, False])
def test_f2e_share_of_wd(evidence, knows):
    made = evidence(groupings=two(mixed(1), PURE if knows else mixed(0)))
    for claim in ("REPA-F2-e", "REPA-F2-h"):
        measured, held = result(claim, made)
        assert (measured["ratio"] == pytest.approx(1)) == knows == held


def test_f2d_one_number_of_clusters_is_enough(evidence):
    """Vectors that tell five of the kinds apart by pairs are optimal nowhere; exact ones are."""
    merged = np.eye(10)[np.repeat(np.arange(10) // 2, 4)]
    measured, held = result("REPA-F2-d", evidence(groupings=two(merged, mixed(1))))
    assert not held
    assert measured["ratio"] < 0.99


@pytest.mark.parametrize(
    ("repa", "wd", "holds"),
    [(PURE, mixed(1), True), (mixed(1), PURE, False), (PURE, PURE, True)],
)
def test_f2b_lead_of_wd(evidence, repa, wd, holds):
    measured, held = result("REPA-F2-b", evidence(groupings=two(repa, wd)))
    assert held == holds
    assert (measured["mean lead"] > 0.5) != holds
    assert (measured["mean lead"] == 0) == (repa is wd)


@pytest.mark.parametrize("knows", [True, False])
def test_f2f_more_clusters_are_more_uniform(evidence, knows):
    """No two clients of these have the same labels; one method that knows nothing refutes."""
    counts = np.random.default_rng(2).dirichlet(np.full(10, 0.3), 40) * 100
    made = evidence(groupings=two(counts, counts if knows else mixed(1), counts))
    measured, held = result("REPA-F2-f", made)
    assert (measured["smallest rank correlation"] >= 0.9) == knows == held


def test_f2c_random_is_at_the_mean_cosine(evidence):
    """Mean of 20 draws of forty clients: near, but not nearer than twice its spread."""
    measured, held = result("REPA-F2-c", evidence(groupings=two(PURE, PURE)))
    assert measured["mean cosine"] == pytest.approx(3 / 39)
    assert held == (measured["largest distance"] <= 0.05)
    assert 0 < measured["largest distance"] < 0.2


@pytest.mark.parametrize(("counts", "holds"), [(COUNTS, True), (np.eye(6) * 4, False)])
def test_e7a_ordered_pairs_count_twice(evidence, counts, holds):
    about = {"table": labels(counts), "groups": [0, 0, 0, 1, 1, 2]}
    made = evidence(groupings={"repa_groups_mnist_clf_10": about})
    measured, held = result("REPA-E7-a", made)
    unit = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    cosine = unit @ unit.T
    means = [(cosine[0, 1] + cosine[0, 2] + cosine[1, 2]) / 3, cosine[3, 4]]
    assert measured["with each pair once"] == pytest.approx(np.mean(means))
    assert measured["uniformity as printed"] == pytest.approx(2 * np.mean(means))
    assert held == holds


# ---- Table 1 -------------------------------------------------------------------------------------


def published(row: str, number: str = "robustness") -> tuple[float, float, float]:
    return tuple(CELLS[kind, row].published[number] for kind in KINDS)


def table1(**changes: tuple[float, float, float]) -> dict[str, dict]:
    """Groupings with the published robustness but for the rows in `changes`.

    A small cluster is 0.02 above, a large one below: clusters count alike, their error is 0.02.
    """
    groups = [0, 1, 1, 1, 1, 1]
    found = {}
    for key in ROWS:
        for kind, value in zip(KINDS, changes.get(key, published(key)), strict=True):
            shares = {0: value + 0.02, 1: value - 0.02}
            table = robust(groups, shares)
            found[CELLS[kind, key].grouping] = {"groups": groups, "table": table}
    return found


def in_kinds(both: float, skew: float, drift: float, end: str = "") -> dict[str, float]:
    names = (f"{title}{end}" for title in KINDS.values())
    return dict(zip(names, (both, skew, drift), strict=True))


@pytest.mark.parametrize(
    ("drift", "enough", "above"), [(0.92, True, True), (0.86, True, False), (0.8, False, False)]
)
def test_t1a_t1f_sae_everywhere(evidence, drift, enough, above):
    made = evidence(groupings=table1(sae=(0.93, 0.91, drift)))
    for claim, holds in {"REPA-T1-a": enough, "REPA-T1-f": above}.items():
        measured, held = result(claim, made)
        assert measured == pytest.approx(in_kinds(0.93, 0.91, drift))
        assert held == holds


def test_t1f_what_the_table_prints_is_not_above(evidence):
    measured, held = result("REPA-T1-f", evidence(groupings=table1()))
    assert measured == pytest.approx(in_kinds(0.91, 0.90, 0.92))
    assert not held


@pytest.mark.parametrize(("second", "holds"), [(0.3, True), (0.4, False)])
def test_t1b_wd_under_drift(evidence, second, holds):
    made = evidence(groupings=table1(f2=(0.9, 0.9, second)))
    measured, held = result("REPA-T1-b", made)
    expected = {"WD, f = 1": 0.25, "WD, f = 2": second, "at random": 0.5}
    assert measured == pytest.approx(expected)
    assert held == holds


@pytest.mark.parametrize(
    ("claim", "title", "sae"),
    [
        ("REPA-T1-c-both", KINDS["both"], 0.91),
        ("REPA-T1-c-skew", KINDS["skew"], 0.90),
        ("REPA-T1-c-drift", KINDS["drift"], 0.92),
    ],
)
@pytest.mark.parametrize(("first", "holds"), [(0.75, True), (0.95, False)])
def test_t1c_repa_over_each_wd(evidence, claim, title, sae, first, holds):
    measured, held = result(claim, evidence(groupings=table1(f1=(first,) * 3, f2=(0.5,) * 3)))
    leads = {f"{title}, over WD, f = 1": sae - first, f"{title}, over WD, f = 2": sae - 0.5}
    assert measured == pytest.approx(leads)
    assert held == holds
    assert set(LEDGER.claims[claim].holds_if) == set(measured)


def test_t1c_a_rival_that_leads_in_one_seed_leads_in_no_mean(evidence):
    """In either seed one of WD is ahead of REPA, in their mean none is."""
    made = evidence(groupings=table1(f1=(0.95, 0.5, 0.1), f2=(0.6, 0.5, 0.1)))
    one, held = result("REPA-T1-c-both", made)
    turned, bound = str.maketrans("12", "21"), LEDGER.claims["REPA-T1-c-both"].holds_if
    other = {name.translate(turned): lead for name, lead in one.items()}
    assert not held
    assert not bounds.holds(bound, other)
    assert bounds.holds(bound, mean_of([one, other]))


def unit(**shares: tuple[float, float, float]) -> dict[str, dict]:
    """Groupings by vectors of length 1: row -> robustness under all kinds."""
    return {
        CELLS[kind, f"{key}_unit"].grouping: {"table": robust([0] * CLIENTS, {0: value})}
        for key, values in shares.items()
        for kind, value in zip(KINDS, values, strict=True)
    }


@pytest.mark.parametrize(("drift", "holds"), [(0.3, True), (0.4, False)])
def test_t1b_with_normalised_vectors(evidence, drift, holds):
    made = evidence(groupings=unit(f1=(0.1, 0.1, drift), f2=(0.1, 0.1, 0.2)))
    measured, held = result_of(LEDGER, "REPA-T1-b", made, "vectors = L2-normalised")
    assert {name: measured[name] for name in LEDGER.claims["REPA-T1-b"].holds_if} == (
        pytest.approx({"WD, f = 1": drift, "WD, f = 2": 0.2})
    )
    assert held == holds


@pytest.mark.parametrize(("drift", "holds"), [(0.3, True), (0.9, False)])
def test_t1c_with_normalised_vectors(evidence, drift, holds):
    made = evidence(groupings=unit(sae=(0.7, 0.75, 0.8), f1=(0.5, 0.6, drift), f2=(0.1,) * 3))
    measured, held = result_of(LEDGER, "REPA-T1-c-drift", made, "vectors = L2-normalised")
    leads = {"over WD, f = 1": 0.8 - drift, "over WD, f = 2": 0.7}
    assert measured == pytest.approx({f"Concept drift, {name}": v for name, v in leads.items()})
    assert held == holds


@pytest.mark.parametrize(
    ("ae", "holds", "verdict"),
    [(0.79, True, "INCONCLUSIVE"), (0.99, False, "INCONCLUSIVE"), (1.12, False, "REFUTED")],
)
def test_t1d_sae_over_other_architectures(evidence, ae, holds, verdict):
    """The errors over the two clusters are 0.02 each, and a tie decides nothing."""
    measured, held = result("REPA-T1-d", evidence(groupings=table1(ae=(0.89, 0.79, ae))))
    expected = in_kinds(0.04, 0.0, 0.03, ", over REPA, CLF")
    expected |= in_kinds(0.02, 0.11, 0.92 - ae, ", over REPA, AE")
    assert measured == pytest.approx(expected, abs=1e-9)
    assert set(LEDGER.claims["REPA-T1-d"].holds_if) == set(expected)
    assert held == (holds and measured["Label skew, over REPA, CLF"] >= 0)
    assert error_of(measured["Concept drift, over REPA, AE"]) == pytest.approx(np.hypot(0.02, 0.02))
    assert judge(LEDGER.claims["REPA-T1-d"].holds_if, [measured]) == verdict


@pytest.mark.parametrize(("second", "holds"), [(0.7, True), (0.6, False)])
def test_t1e_two_epochs(evidence, second, holds):
    measured, held = result("REPA-T1-e", evidence(groupings=table1(f2=(0.84, second, 0.1))))
    expected = in_kinds(0.09, second - 0.68, 0.0, ", over WD, f = 1")
    del expected["Concept drift, over WD, f = 1"]
    assert measured == pytest.approx(expected)
    assert held == holds


NUMBERS = {"sae": "sae", "clf": "clf", "ae": "ae", "wd1": "f1", "wd2": "f2"}
"""Part of a claim's name -> row."""


@pytest.mark.parametrize("claim", [*NUMBERS, "sae-code", "wd1-code"])
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    ("part", "holds"), [(0.9, True), (-0.9, True), (1.1, False), (-1.1, False)]
)
def test_t1_numbers(evidence, claim, place, part, holds):
    """REPA-T1-numbers-{sae, clf, ae, wd1, wd2}: no entry of a row may be off by more.

    Allowed are two published standard errors, 0.05 at least.
    """
    key = NUMBERS[claim.removesuffix("-code")]
    found, off = list(published(key)), [0.0] * 3
    off[place] = part * max(0.05, 2 * published(key, "SE")[place])
    found[place] += off[place]
    row = {key: tuple(found)}
    made = evidence(groupings=unit(**row) if claim.endswith("-code") else table1(**row))
    measured, held = result(f"REPA-T1-numbers-{claim}", made)
    assert measured == pytest.approx(in_kinds(*off), abs=1e-9)
    assert held == holds


# ---- Algorithm 1 ---------------------------------------------------------------------------------


def cuts(shares: dict[int, float]) -> dict[str, dict]:
    """Clusterings of forty clients whose labels change little by little, by neighbourhood."""
    angles = np.arange(40) / 28
    counts = np.round(1000 * np.stack([np.cos(angles), np.sin(angles)], 1))
    found = {}
    for k, share in shares.items():
        groups = (np.arange(40) * k // 40).tolist()
        table = [*labels(counts), *robust(groups, dict.fromkeys(range(k), share))]
        table += pairs("cosine", np.eye(40))
        found[CELLS["both", "sae" if k == 10 else f"sae_{k}"].grouping] = {
            "groups": groups,
            "table": table,
        }
    return found


@pytest.mark.parametrize(
    ("one", "ten", "holds"), [(1.0, 0.9, True), (1.0, 1.0, True), (0.8, 0.9, False)]
)
def test_a1a_one_cluster_against_ten(evidence, one, ten, holds):
    made = cuts({1: one, 2: 1.0, 5: 1.0, 10: ten, 20: 1.0})
    measured, held = result("REPA-A1-a", evidence(groupings=made))
    assert measured == pytest.approx(
        {"lead of one cluster": one - ten, "one cluster": one, "ten clusters": ten}
    )
    assert held == holds


# ---- Figs 3 and 4 --------------------------------------------------------------------------------

SIZES = np.array([30, 10, 10, 10, 10, 10, 15, 5])
"""Images that six writers and two holdout writers are tested on."""

WRITERS = {"repa_groups_femnist_sae_10": {"table": labels(np.ones((8, 3)), SIZES)}}


def writers(val: float, ho: float) -> list[tuple]:
    """Accuracies in % that reach these means, weighted by images, over the last three tests.

    The largest client of each set is better than the others, so that their plain mean is lower.
    """
    found = []
    for now, extra in ((0, -50), (5, -20), (10, -2), (15, 2), (20, 0)):
        for client in range(8):
            scope, level = ("client", val) if client < CLIENTS else ("newcomer", ho)
            more = {0: 5.0, 6: 1.0, 7: -3.0}.get(client, -3.0)
            found.append((now, scope, client, "accuracy", (level + extra + more) / 100))
    return found


GAINS = {
    "REPA-F3-a": ("repa10", "fedavg", "REPA"),
    "REPA-F3-d": ("wd10", "fedavg", "WD"),
    "REPA-E3-a": ("repa10_prox_uniform", "repa10_prox", "REPA"),
    "REPA-E8-a": ("fedavg_prox_code", "fedavg_prox", "FedAvg"),
    "REPA-P-a": ("repa10_prox_within", "repa10_prox", "REPA"),
}


def femnist(evidence: Callable, values: dict[str, tuple[float, float]]) -> Evidence:
    runs = {f"repa_femnist_{name}": writers(*pair) for name, pair in values.items()}
    return evidence(runs, WRITERS)


@pytest.mark.parametrize("claim", GAINS)
@pytest.mark.parametrize("gained", [(0.5, 0.4), (0.5, -0.4), (1.5, 0.4), (-0.5, -0.6), (0.5, -1.5)])
def test_gains_of_one_run_over_another(evidence, claim, gained):
    ours, theirs, name = GAINS[claim]
    made = femnist(evidence, {ours: (60 + gained[0], 50 + gained[1]), theirs: (60, 50)})
    measured, held = result(claim, made)
    assert measured == pytest.approx({f"{name}, VAL": gained[0], f"{name}, HO": gained[1]})
    better, same = min(gained) > 0, max(map(abs, gained)) <= 1
    assert held == (better if "F3" in claim else same)


def test_a_lead_has_the_errors_of_both_accuracies(evidence):
    """VAL is of 80 images, HO of 20."""
    made = femnist(evidence, {"repa10": (65, 52), "fedavg": (60, 50)})
    measured, _ = result("REPA-F3-a", made)
    for name, ours, theirs, images in (("VAL", 65, 60, 80), ("HO", 52, 50, 20)):
        both = sum(share * (100 - share) / images for share in (ours, theirs))
        assert error_of(measured[f"REPA, {name}"]) == pytest.approx(np.sqrt(both))
    assert judge(LEDGER.claims["REPA-F3-a"].holds_if, [measured]) == "INCONCLUSIVE"


def test_f3a_is_read_after_several_numbers_of_rounds(evidence):
    """A lead that is there after 50 rounds and gone after 200."""

    def rising(early: float, late: float) -> list[tuple]:
        return [
            (now, scope, client, "accuracy", (early if now <= 50 else late) / 100)
            for now in (0, 40, 45, 50, 190, 195, 200)
            for client, scope in enumerate(["client"] * CLIENTS + ["newcomer"] * 2)
        ]

    runs = {"repa_femnist_repa10": rising(70, 80), "repa_femnist_fedavg": rising(60, 81)}
    made, leads = evidence(runs, WRITERS), {}
    for setting in ("", "rounds = 50", "rounds = 100"):
        leads[setting] = result_of(LEDGER, "REPA-F3-a", made, setting)[0]["REPA, VAL"]
    assert leads == pytest.approx({"": -1, "rounds = 50": 10, "rounds = 100": 10})


@pytest.mark.parametrize(
    ("ours", "theirs", "ahead", "holds"),
    [
        (20, 40, 20.0, True),
        (35, 40, 5.0, False),
        (40, 20, -20.0, False),
        (None, 20, -np.inf, False),
    ],
)
def test_f3e_rounds_until_a_point_below_the_end_of_fedavg(evidence, ours, theirs, ahead, holds):
    def reaching(first: float | None, end: float) -> list[tuple]:
        return [
            (now, "client", i, "accuracy", (end if first and now >= first else 40) / 100)
            for now in range(0, 65, 5)
            for i in range(CLIENTS)
        ]

    runs = {"repa_femnist_repa10": reaching(ours, 70), "repa_femnist_fedavg": reaching(theirs, 71)}
    measured, held = result("REPA-F3-e", evidence(runs, WRITERS))
    assert measured["rounds ahead"] == ahead
    assert measured["rounds ahead"].error == pytest.approx(np.sqrt(50 / 12))  # tests every 5 rounds
    assert measured["FedAvg"] == theirs
    assert held == holds


@pytest.mark.parametrize(("with_prox", "holds"), [(49.5, True), (48.0, False), (60.0, True)])
def test_f3b_holdout_writers_lose_nothing(evidence, with_prox, holds):
    values = {"repa10": (60, 50.5), "wd10": (70, 51), "repa10_prox": (60, with_prox)}
    made = femnist(evidence, values | {"wd10_prox": (70, 50)})
    measured, held = result("REPA-F3-b", made)
    expected = {"without FedProx": 0.5, "with FedProx": 50 - with_prox}
    assert measured == pytest.approx(expected)
    assert held == holds


@pytest.mark.parametrize(("with_prox", "holds"), [(69.5, True), (68.5, False)])
def test_f3f_training_writers_lose_little(evidence, with_prox, holds):
    values = {"repa10": (69.5, 50), "wd10": (70, 60), "repa10_prox": (with_prox, 50)}
    measured, held = result("REPA-F3-f", femnist(evidence, values | {"wd10_prox": (70, 60)}))
    expected = {"without FedProx": 0.5, "with FedProx": 70 - with_prox}
    assert measured == pytest.approx(expected)
    assert held == holds


@pytest.mark.parametrize(("wd", "holds"), [(1.5, True), (0.5, False)])
def test_f3c_prox_helps_all_three(evidence, wd, holds):
    values = dict.fromkeys(("fedavg", "repa10", "wd10"), (60, 50))
    values |= {"fedavg_prox": (61.5, 52), "repa10_prox": (63, 51.5), "wd10_prox": (62, 50 + wd)}
    measured, held = result("REPA-F3-c", femnist(evidence, values))
    expected = {"FedAvg, VAL": 1.5, "FedAvg, HO": 2, "REPA, VAL": 3, "REPA, HO": 1.5}
    assert measured == pytest.approx(expected | {"WD, VAL": 2, "WD, HO": wd})
    assert held == holds


@pytest.mark.parametrize(("two", "holds"), [(55, True), (51.5, False), (49, False)])
def test_f4a_best_number_for_wd(evidence, two, holds):
    held_out = {2: two, 5: 50, 10: 48, 20: 52}
    values = {f"wd{k}_prox": (60, level) for k, level in held_out.items()}
    measured, held = result("REPA-F4-a", femnist(evidence, values))
    leads = {f"2 over {k}": two - held_out[k] for k in (5, 10, 20)}
    shown = {f"accuracy, k = {k}": own for k, own in held_out.items()}
    assert measured == pytest.approx(leads | shown)
    assert held == holds


@pytest.mark.parametrize(("twenty", "holds"), [(50.5, True), (50, False), (49.5, False)])
def test_f4b_more_clusters_for_repa(evidence, twenty, holds):
    values = {f"repa{k}_prox": (60, 50) for k in (2, 5, 10)} | {"repa20_prox": (9, twenty)}
    measured, held = result("REPA-F4-b", femnist(evidence, values))
    assert measured["20 over 2"] == pytest.approx(twenty - 50)
    assert held == holds


# ---- Fig. 5 --------------------------------------------------------------------------------------

TWO = np.array([[5, 5, 0], [5, 5, 0], [0, 5, 5], [0, 5, 5], [5, 0, 5], [5, 0, 5]])
PLAIN = {"repa_groups_mnist_clf_10": {"table": labels(TWO, SIZES[:CLIENTS])}}
ROUNDS = 30


def curve(mean: float, unrest: float = 0.0) -> list[tuple]:
    """Accuracies whose last twenty have this mean in %, weighted, and change so much by turns."""
    found = []
    for now in range(ROUNDS + 1):
        level = mean + (unrest if now % 2 else -unrest) - (40 if now <= ROUNDS - LAST else 0)
        values = [level + 5, *[level - 3] * (CLIENTS - 1)]
        found += [(now, "client", i, "accuracy", value / 100) for i, value in enumerate(values)]
    return found


CLUSTERED = ("REPA-10", "REPA-30", "WD-10", "WD-30")


def mnist(evidence: Callable, curves: dict[str, list[tuple]]) -> Evidence:
    return evidence({f"repa_mnist_{name}": rows for name, rows in curves.items()}, PLAIN)


@pytest.mark.parametrize(("wd", "holds"), [(80.5, True), (82, False)])
def test_f5a_ten_clusters_over_fedavg(evidence, wd, holds):
    curves = {"fedavg_04": curve(80), "repa10_04": curve(70), "wd10_04": curve(wd, 3)}
    thirty = {"repa30_04": curve(83), "wd30_04": curve(84)}
    measured, held = result("REPA-F5-a", mnist(evidence, curves | thirty))
    shown = {"REPA, 30 clusters": 3, "WD, 30 clusters": 4}
    assert measured == pytest.approx({"REPA": -10, "WD": wd - 80} | shown)
    assert held == holds


@pytest.mark.parametrize(("last", "holds"), [(3, True), (0.5, False)])
def test_f5b_unrest_of_every_curve(evidence, last, holds):
    """A step up and one down by twice the unrest: the deviation of 19 changes."""
    changes = {**dict.fromkeys(CLUSTERED, 2.0), "WD-30": last}
    curves = {}
    for name, unrest in changes.items():
        run = name.replace("REPA-", "repa").replace("WD-", "wd")
        curves |= {f"{run}_04": curve(80, unrest), f"{run}_10": curve(90, 1)}
    measured, held = result("REPA-F5-b", mnist(evidence, curves))
    spread = np.std([2 * (-1) ** n for n in range(LAST - 1)], ddof=1)
    assert measured == pytest.approx({name: spread * (u - 1) for name, u in changes.items()})
    assert held == holds


@pytest.mark.parametrize(("last", "holds"), [(89, True), (91, False)])
def test_f5e_accuracy_with_fewer_participants(evidence, last, holds):
    partly = {**dict.fromkeys(CLUSTERED, 80), "WD-30": last}
    curves = {}
    for name, level in partly.items():
        run = name.replace("REPA-", "repa").replace("WD-", "wd")
        curves |= {f"{run}_04": curve(level, 3), f"{run}_10": curve(90)}
    measured, held = result("REPA-F5-e", mnist(evidence, curves))
    assert measured == pytest.approx({name: 90 - level for name, level in partly.items()})
    assert held == holds


@pytest.mark.parametrize(("wd", "holds"), [(79.5, True), (80.5, False)])
def test_f5f_ten_clusters_of_all_clients_over_fedavg(evidence, wd, holds):
    curves = {"fedavg_10": curve(80), "repa10_10": curve(70), "wd10_10": curve(wd, 3)}
    measured, held = result("REPA-F5-f", mnist(evidence, curves))
    assert measured == pytest.approx({"REPA": -10, "WD": wd - 80})
    assert held == holds


LEVELS = {"fedavg_10": 90, "repa10_04": 70, "repa30_04": 75, "wd10_04": 71, "wd30_04": 75}
LEVELS |= {"repa10_10": 80, "repa30_10": 95, "wd10_10": 80, "wd30_10": 92}


@pytest.mark.parametrize(
    ("changes", "holds"),
    [({}, True), ({"wd30_04": 70}, True), ({"fedavg_10": 93}, False), ({"repa10_10": 96}, False)],
)
def test_f5c_thirty_clusters(evidence, changes, holds):
    levels = LEVELS | changes
    curves = {name: curve(mean) for name, mean in levels.items()}
    measured, held = result("REPA-F5-c", mnist(evidence, curves))
    assert measured["REPA, 30 over 10, 40%"] == pytest.approx(5)
    assert measured["WD, 30 over 10, 40%"] == pytest.approx(levels["wd30_04"] - 71)
    assert measured["REPA, 30 over 10, all"] == pytest.approx(95 - levels["repa10_10"])
    assert measured["REPA over FedAvg"] == pytest.approx(95 - levels["fedavg_10"])
    assert held == holds


@pytest.mark.parametrize("method", ["repa", "wd"])
@pytest.mark.parametrize(("lost", "holds"), [(20, True), (-5, False)])
def test_f5d_what_was_not_trained_is_forgotten(evidence, method, lost, holds):
    """REPA-F5-d-{repa, wd}: the leaves of tiny records are clients 0, 1 and 2, 3 and 4, 5.

    The clients of a leaf have the same labels here, except client 1 with label 2 in place of 1.
    After odd rounds only the even clients have trained, so that client 1 misses one of its labels.
    """
    counts = TWO.copy()
    counts[1] = [5, 0, 5]
    rows = []
    for now in range(ROUNDS + 1):
        taking_part = range(0, CLIENTS, 2) if now % 2 else range(CLIENTS)
        rows += [(now, "client", i, "loss", 1.0) for i in taking_part]
        missed = now and (now - 1) % 2
        values = [80.0, 80.0 - (lost if missed else 0), *[70.0] * 4]
        # Before the last rounds it was the other way round.
        values[1] += 2 * lost if missed and now <= ROUNDS - LAST else 0
        rows += [(now, "client", i, "accuracy", value / 100) for i, value in enumerate(values)]
    grouping = {"repa_groups_mnist_clf_10": {"table": labels(counts)}}
    made = evidence({f"repa_mnist_{method}10_04": rows}, grouping)
    measured, held = result(f"REPA-F5-d-{method}", made)
    assert measured["points lost"] == pytest.approx(lost)
    assert measured["after rounds with all labels"] == pytest.approx(80)
    assert held == holds


@pytest.mark.parametrize(("every", "holds"), [(1, True), (3, False)])
def test_f5g_labels_that_a_cluster_does_not_train(evidence, every, holds):
    """Clients 0 and 1 have three labels together; the clusters of the others have two."""
    counts = TWO.copy()
    counts[1] = [5, 0, 5]
    rows = []
    for now in range(ROUNDS + 1):
        taking_part = range(0, CLIENTS, 2) if now % every == 0 else range(CLIENTS)
        rows += [(now, "client", i, "loss", 1.0) for i in taking_part]
        rows += [(now, "client", i, "accuracy", 0.8) for i in range(CLIENTS)]
    made = evidence(
        {"repa_mnist_repa10_04": rows}, {"repa_groups_mnist_clf_10": {"table": labels(counts)}}
    )
    measured, held = result("REPA-F5-g", made)
    assert measured == pytest.approx({"share of rounds": 1 / every})
    assert held == holds


# ---- Concept shift -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repa", "holds"), [([0, 1, 0, 1, 0, 1], True), ([0, 0, 1, 1, 2, 2], False)]
)
def test_xa_repa_is_blind(evidence, repa, holds):
    about = {"table": labels(TWO), "groups": repa, "truth": tiny.TRUTH}
    made = evidence({"repa_shift_cfl": []}, {"repa_groups_shift_sae": about})
    measured, held = result("REPA-X-a", made)
    assert measured["CFL"] == 1
    assert measured["REPA"] < 0 if holds else measured["REPA"] == 1
    assert held == holds
    assert result("REPA-X-c", made) == (measured, True)


@pytest.mark.parametrize(("wd", "holds"), [([0, 0, 1, 1, 2, 2], True), ([0, 0, 0, 1, 1, 1], False)])
def test_xb_wd_is_not(evidence, wd, holds):
    about = {"table": labels(TWO), "groups": wd, "truth": tiny.TRUTH}
    measured, held = result("REPA-X-b", evidence(groupings={"wd_groups_shift_f1": about}))
    assert (measured["WD"] == 1) == holds == held


def test_correlations_have_the_errors_of_drawing_clients(evidence):
    """`correlation_error` is tested against its own twin; here, of which matrices it is."""
    measured, _ = result("REPA-F1-b", evidence(groupings=skew(0.2, 0.1, 0.5)))
    repa, wd = (correlation_error(ALIKE, related_by(ALIKE, best)) for best in (0.2, 0.5))
    found = [error_of(measured[name]) for name in ("REPA, SAE", "WD, f = 2")]
    assert found == pytest.approx([repa, wd])
    assert error_of(measured["lead in correlation"]) == pytest.approx(np.hypot(repa, wd))


def test_unrest_has_the_error_of_a_normal_sample(evidence):
    """Nineteen changes of twenty tests: s / sqrt(2 * 18) for both runs."""
    curves = {
        f"{run}_{part}": curve(80, unrest)
        for run in ("repa10", "repa30", "wd10", "wd30")
        for part, unrest in (("04", 3.0), ("10", 1.0))
    }
    measured, _ = result("REPA-F5-b", mnist(evidence, curves))
    s = np.std([2 * (-1) ** n for n in range(LAST - 1)], ddof=1)
    assert error_of(measured["REPA-10"]) == pytest.approx(s * np.hypot(3, 1) / np.sqrt(2 * 18))


def test_the_end_of_fedavg_is_the_mean_of_three_tests(evidence):
    """Its last test falls by 6 points: the goal is 71 - 2 - 1 = 68, not 64."""

    def reaching(values: dict[int, float]) -> list[tuple]:
        return [
            (now, "client", i, "accuracy", value / 100)
            for now, value in values.items()
            for i in range(CLIENTS)
        ]

    theirs = {0: 40, 20: 65, 40: 71, 60: 71, 65: 71, 70: 65}
    ours = {0: 40, 20: 65, 40: 69}
    runs = {"repa_femnist_repa10": reaching(ours), "repa_femnist_fedavg": reaching(theirs)}
    measured, _ = result("REPA-F3-e", evidence(runs, WRITERS))
    assert [*measured.values()] == [0, 40, 40]
