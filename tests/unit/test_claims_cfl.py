"""The claims of the CFL paper, on records and tables whose right answer is known beforehand."""

import math
from pathlib import Path

import judging
import numpy as np
import pandas as pd
import pytest
import tiny_records as tiny
import tiny_studies

from clustered_fl.claims.evidence import Evidence, RunEvidence
from clustered_fl.claims.judging import error_of
from clustered_fl.files import write_json
from clustered_fl.ledger.reading import load_ledger

LEDGER = load_ledger(Path(__file__).parents[2] / "config" / "papers" / "cfl.yaml")


def result(claim: str, evidence: Evidence) -> tuple[dict[str, float], bool]:
    """What a claim measures and whether it holds."""
    return judging.result(LEDGER, claim, evidence)


def exactly(**measured: float):
    """Measured numbers with spaces for underscores, up to rounding."""
    return pytest.approx({name.replace("_", " "): value for name, value in measured.items()})


@pytest.fixture
def runs(tmp_path):
    """Evidence from run of the ledger -> member of its sweep -> (record, measurements)."""

    def runs(**entries: dict[str, tuple[dict, list[tuple]]]) -> Evidence:
        folders = {
            entry: {name: tiny.write(tmp_path / name, *content) for name, content in of.items()}
            for entry, of in entries.items()
        }
        return judging.evidence(LEDGER, runs=folders)

    return runs


@pytest.fixture
def study(tmp_path):
    """Evidence from the tables of one study."""

    def study(name: str, **tables: list[dict]) -> Evidence:
        for table, rows in tables.items():
            pd.DataFrame(rows).to_parquet(tmp_path / f"{table}.parquet")
        write_json(tmp_path / "record.json", {"tables": sorted(tables)})
        return judging.evidence(LEDGER, studies={name: tmp_path})

    return study


# ---- Figs 6 and 7: separation gap ---------------------------------------------------------------


def gap_record(samples: int) -> dict:
    return tiny.record(config={"federation": {"samples": samples}})


def gap_rows(update: dict[int, float], gradient: dict[int, float]) -> list[tuple]:
    """Gaps after rounds; bipartitions are correct where they are above -0.5."""
    gaps = {"update": update, "gradient": gradient}
    correct = {n: {at: float(g > -0.5) for at, g in each.items()} for n, each in gaps.items()}
    named = {f"gap_{name}": each for name, each in gaps.items()}
    return tiny.rows(**named, **{f"correct_{name}": each for name, each in correct.items()})


def by_samples(update: dict[int, float], gradient: dict[int, float], dataset: str) -> dict:
    """Runs of one data set; the largest number of samples comes from the run over rounds."""
    *swept, last = [
        (
            samples,
            gap_rows({0: -9.0, 50: update[samples], 51: 9.0}, {50: gradient[samples]}),
        )
        for samples in sorted(update)
    ]
    members = {f"{dataset}_samples_{n}": (gap_record(n), rows) for n, rows in swept}
    rounds = {f"{dataset}_rounds": (gap_record(last[0]), last[1])}
    return {f"cfl_{dataset}_samples": members, f"cfl_{dataset}_rounds": rounds}


MNIST = {"update": {10: -0.5, 20: 0.2, 100: 0.5}, "gradient": {10: -0.6, 20: -0.05, 100: 0.4}}
CIFAR = {"update": {100: -0.3, 500: 0.1, 1500: 0.6}, "gradient": {100: -0.4, 500: -0.2, 1500: 0.3}}


@pytest.fixture
def by_data(runs):
    def by_data(mnist: dict = MNIST, cifar: dict = CIFAR) -> Evidence:
        return runs(**by_samples(**mnist, dataset="mnist"), **by_samples(**cifar, dataset="cifar"))

    return by_data


@pytest.mark.parametrize(
    ("gap", "correct", "positive"), [(0.2, 1.0, True), (-0.2, 1.0, False), (-0.6, 0.0, False)]
)
def test_f6a_and_f6g_ask_for_the_gap_and_for_the_bipartition(by_data, gap, correct, positive):
    evidence = by_data(MNIST | {"update": MNIST["update"] | {20: gap}})
    measured = exactly(gap_at_20_samples=gap, correct_bipartition_at_20_samples=correct)
    assert result("CFL-F6-a", evidence) == (measured, positive)
    assert result("CFL-F6-g", evidence) == (measured, correct == 1)


def test_f6a_without_a_run_at_20_samples_is_not_measured(by_data):
    mnist = {"update": {10: 0.1, 30: 0.2}, "gradient": {10: 0.0, 30: 0.1}}
    measured, _ = result("CFL-F6-a", by_data(mnist))
    assert math.isnan(measured["gap at 20 samples"])


@pytest.mark.parametrize(
    ("at_300", "at_500", "holds"), [(-0.3, 0.1, True), (0.1, 0.2, False), (-0.3, -0.1, False)]
)
def test_f6b_500_samples_are_needed_and_suffice(by_data, at_300, at_500, holds):
    cifar = {"update": {300: at_300, 500: at_500, 1500: 0.6}}
    cifar |= {"gradient": {300: -0.4, 500: -0.2, 1500: 0.3}}
    measured, found = result("CFL-F6-b", by_data(cifar=cifar))
    assert (measured["gap at 300 samples"], measured["gap at 500 samples"], found) == (
        at_300,
        at_500,
        holds,
    )


@pytest.mark.parametrize(
    ("at_300", "at_500", "holds"), [(0.0, 1.0, True), (1.0, 1.0, False), (0.0, 0.0, False)]
)
def test_f6h_asks_for_bipartitions(by_data, at_300, at_500, holds):
    """A gap of -0.2 still has the correct bipartition here, one of -0.6 does not."""
    gaps = {0.0: -0.6, 1.0: -0.2}
    cifar = {"update": {300: gaps[at_300], 500: gaps[at_500], 1500: 0.6}}
    cifar |= {"gradient": {300: -0.4, 500: -0.2, 1500: 0.3}}
    measured, found = result("CFL-F6-h", by_data(cifar=cifar))
    correct = [measured[f"correct bipartition at {n} samples"] for n in (300, 500)]
    assert (correct, found) == ([at_300, at_500], holds)


@pytest.mark.parametrize("data", ["mnist", "cifar"])
def test_f6c_growth_is_a_rank_correlation_over_both_curves(by_data, data):
    claim = f"CFL-F6-c-{data}"
    assert result(claim, by_data()) == (exactly(smallest_rank_correlation=1.0), True)


def test_f6c_one_falling_curve_refutes(by_data):
    cifar = CIFAR | {"gradient": {100: 0.3, 500: 0.2, 1500: 0.1}}
    expected = exactly(smallest_rank_correlation=-1.0), False
    assert result("CFL-F6-c-cifar", by_data(cifar=cifar)) == expected


@pytest.mark.parametrize(("gradient", "holds"), [(0.1, True), (0.3, False), (0.2, False)])
def test_f6i_the_gap_of_updates_leads_with_few_samples(by_data, gradient, holds):
    mnist = MNIST | {"gradient": MNIST["gradient"] | {20: gradient}}
    expected = {"lead in gap": 0.2 - gradient, "weight updates": 0.2, "full gradients": gradient}
    evidence = by_data(mnist)
    assert result("CFL-F6-i-mnist", evidence) == (pytest.approx(expected), holds)
    measured, _ = result("CFL-F6-i-cifar", evidence)
    assert measured["lead in gap"] == pytest.approx(0.3)


def test_f6i_without_these_samples_is_not_measured(by_data):
    mnist = {"update": {10: 0.1, 30: 0.2}, "gradient": {10: 0.0, 30: 0.1}}
    measured, _ = result("CFL-F6-i-mnist", by_data(mnist))
    assert math.isnan(measured["lead in gap"])


@pytest.mark.parametrize(
    ("update", "gradient", "later"),
    [
        ({100: -0.3, 500: 0.2}, {100: -0.4, 500: 0.15}, 0.0),
        ({100: -0.9, 500: 0.2}, {100: -0.4, 500: 0.5}, 0.0),
        ({100: -0.01, 500: 0.2}, {100: 0.05, 500: 0.3}, 400.0),
        ({100: -0.5, 500: -0.2}, {100: -0.5, 500: 0.2}, math.inf),
    ],
    ids=["as many", "a wider gap does not count", "later by 400", "never"],
)
def test_f6d_counts_samples_until_the_gap_is_positive(by_data, update, gradient, later):
    evidence = by_data(cifar={"update": update, "gradient": gradient})
    assert result("CFL-F6-d-cifar", evidence) == (exactly(delay_in_samples=later), later <= 0)


def curve(*values: float) -> dict[int, float]:
    """A gap after rounds 0, 1, 2, ...; before the first round it means nothing."""
    return dict(enumerate([9.0, *values]))


@pytest.fixture
def by_round(runs):
    def by_round(mnist: tuple, cifar: tuple) -> Evidence:
        entries = {
            f"cfl_{dataset}_rounds": {
                f"{dataset}_rounds": (
                    gap_record(100),
                    gap_rows(curve(*update), curve(*gradient)),
                )
            }
            for dataset, (update, gradient) in (("mnist", mnist), ("cifar", cifar))
        }
        return runs(**entries)

    return by_round


RISING = np.linspace(-0.5, 0.5, 12)


@pytest.mark.parametrize(
    ("correct", "positive", "mnist"),
    [("CFL-F7-a", "CFL-F7-g", True), ("CFL-F7-b", "CFL-F7-f", False)],
)
def test_f7_shares_of_the_rounds_from_round_10_on(by_round, correct, positive, mnist):
    """Of rounds 10 to 13 three have a positive gap, and all a correct bipartition."""
    fine, judged = (RISING, RISING), (np.r_[RISING[:9], 0.3, -0.1, 0.4, 0.4], RISING)
    evidence = by_round(*((judged, fine) if mnist else (fine, judged)))
    measured = exactly(rounds_with_a_positive_gap=0.75, rounds_with_a_correct_bipartition=1.0)
    assert result(correct, evidence) == (measured, True)
    assert result(positive, evidence) == (measured, False)


def test_f7c_growth_over_rounds(by_round):
    """Round 0 stands far above all others: were it counted, the correlation would be lower."""
    evidence = by_round((RISING, RISING), (RISING, -RISING))
    expected = exactly(smallest_rank_correlation=1.0), True
    assert result("CFL-F7-c-mnist", evidence) == expected


def test_f7c_one_falling_curve_refutes(by_round):
    expected = exactly(smallest_rank_correlation=-1.0), False
    assert result("CFL-F7-c-cifar", by_round((RISING, RISING), (RISING, -RISING))) == expected


@pytest.mark.parametrize(
    ("update", "gradient", "later"),
    [
        ([-1, -1, 1, 1], [-1, -1, 1, 1], 0.0),
        ([-1, 1, 1, 1], [-1, -1, -1, 1], -2.0),
        ([-1, -1, -1, 1], [-1, 1, 1, 1], 2.0),
        ([-1, -1, -1, -1], [-1, 1, 1, 1], math.inf),
        ([-1, -1, -1, -1], [-1, -1, -1, -1], 0.0),
    ],
)
def test_f7d_delay_of_the_first_positive_gap(by_round, update, gradient, later):
    evidence = by_round(([-1, 1, 1, 1], [-1, 1, 1, 1]), (update, gradient))
    assert result("CFL-F7-d-cifar", evidence) == (exactly(delay_in_rounds=later), later <= 0)
    assert result("CFL-F7-d-mnist", evidence) == (exactly(delay_in_rounds=0.0), True)


@pytest.mark.parametrize(("claim", "mnist"), [("CFL-F7-h", True), ("CFL-F7-i", False)])
@pytest.mark.parametrize("ahead", [0.2, -0.1])
def test_f7h_f7i_lead_of_updates_over_gradients(by_round, claim, mnist, ahead):
    """Rounds before 10 do not count."""
    update = np.r_[np.full(9, 9.0), RISING[:4] + ahead]
    other, judged = (RISING, RISING), (update, np.r_[np.zeros(9), RISING[:4]])
    measured, holds = result(claim, by_round(*((judged, other) if mnist else (other, judged))))
    means = {"weight updates": update[9:].mean(), "full gradients": RISING[:4].mean()}
    assert measured == pytest.approx({"lead in gap": ahead} | means)
    assert holds is (ahead > 0)


def test_f7i_lead_in_the_first_rounds(by_round):
    """Rounds from 10 on do not count."""
    update, gradient = (np.r_[np.full(9, value), RISING[:4]] for value in (0.3, 0.1))
    evidence = by_round((RISING, RISING), (update, gradient))
    measured, holds = judging.result(LEDGER, "CFL-F7-i", evidence, "rounds = 1 to 9")
    assert (measured["lead in gap"], holds) == (pytest.approx(0.2), True)


def test_the_settings_that_the_paper_leaves_open_are_read_from_runs_of_their_own(runs):
    members = {
        f"cfl_mnist_batch_10_{n}": (gap_record(n), gap_rows({9: -1, 10: gap, 11: gap}, {10: 0.0}))
        for n, gap in ((20, -0.2), (100, 0.3))
    }
    evidence = runs(cfl_mnist_batch_10=members)
    assert judging.result(LEDGER, "CFL-F6-a", evidence, "batch size = 10") == (
        exactly(gap_at_20_samples=-0.2, correct_bipartition_at_20_samples=1.0),
        False,
    )
    assert judging.result(LEDGER, "CFL-F7-g", evidence, "batch size = 10") == (
        exactly(rounds_with_a_positive_gap=1.0, rounds_with_a_correct_bipartition=1.0),
        True,
    )


# ---- Fig. 8: norms ------------------------------------------------------------------------------

ROUNDS = np.arange(100)
FALLING = np.exp(-ROUNDS / 10)


def norm_rows(mean, largest, average=None) -> list[tuple]:
    average = largest if average is None else average
    columns = {"mean": mean, "max": largest, "average": average}
    return tiny.rows(
        **{f"{name}_update_norm": dict(enumerate(map(float, c))) for name, c in columns.items()}
    )


@pytest.fixture
def fig8(runs):
    def fig8(congruent: list[tuple], incongruent: list[tuple]) -> Evidence:
        return runs(
            cfl_fig8_congruent={"congruent": (tiny.record(), congruent)},
            cfl_fig8_incongruent={"incongruent": (tiny.record(), incongruent)},
        )

    return fig8


GROWING = 0.5 + ROUNDS / 100
VANISHING = norm_rows(FALLING, FALLING)
STAGNATING = norm_rows(FALLING, GROWING)


def test_f8a_both_mean_updates_vanish(fig8):
    measured, holds = result("CFL-F8-a", fig8(VANISHING, STAGNATING))
    assert measured["mean update, end over start, congruent"] == pytest.approx(
        FALLING[-5:].mean() / FALLING[1:6].mean()
    )
    assert holds


def test_f8a_one_that_stays_refutes(fig8):
    stays = norm_rows(0.2 + 0.8 * FALLING, FALLING)
    measured, holds = result("CFL-F8-a", fig8(VANISHING, stays))
    early = (0.2 + 0.8 * FALLING)[1:6].mean()
    assert measured["mean update, end over start, incongruent"] == pytest.approx(
        0.2 / early, abs=1e-3
    )
    assert not holds


def test_f8a_the_way_from_the_random_model_is_no_yardstick(fig8):
    """The first update is a hundred times as long; were it counted, every curve would vanish."""
    first = np.where(ROUNDS == 0, 100.0, 1.0)
    measured, holds = result("CFL-F8-a", fig8(VANISHING, norm_rows(first, FALLING)))
    assert (measured["mean update, end over start, incongruent"], holds) == (1.0, False)


@pytest.mark.parametrize(("start", "holds"), [("round 1", True), ("the largest norm", False)])
def test_f8a_other_starts(fig8, start, holds):
    """The incongruent mean is 10 at first, rises to 9 again and ends at 1."""
    norms = np.where(ROUNDS == 0, 10.5 if holds else 1.0, np.where(ROUNDS < 95, 9.0, 1.0))
    evidence = fig8(VANISHING, norm_rows(norms, norms))
    measured, found = judging.result(LEDGER, "CFL-F8-a", evidence, f"start = {start}")
    at = norms[0] if start == "round 1" else norms.max()
    assert measured["mean update, end over start, incongruent"] == pytest.approx(1 / at)
    assert found is holds


@pytest.mark.parametrize(("rest", "holds"), [(0.05, True), (0.3, False)])
def test_f8b_largest_congruent_update_vanishes(fig8, rest, holds):
    congruent = norm_rows(FALLING, rest + (1 - rest) * FALLING, FALLING)
    measured, found = result("CFL-F8-b", fig8(congruent, STAGNATING))
    early = (rest + (1 - rest) * FALLING)[1:6].mean()
    assert measured["max update, end over start, congruent"] == pytest.approx(
        rest / early, abs=1e-3
    )
    assert measured["average update, end over start, congruent"] == pytest.approx(0, abs=1e-3)
    assert found is holds


def test_norms_have_the_error_of_their_rounds(fig8):
    noise = np.random.default_rng(0).normal(0, 0.1, len(ROUNDS))
    evidence = fig8(VANISHING, norm_rows(FALLING, 1 + noise))
    found, _ = result("CFL-F8-c", evidence)
    late, early = 1 + noise[90:], 1 + noise[5:15]
    # Ten rounds are three batches of four, three and three.
    batches = [[x[:4].mean(), x[4:7].mean(), x[7:].mean()] for x in (late, early)]
    spread = [
        np.std(b, ddof=1) / 3**0.5 / x.mean() for b, x in zip(batches, (late, early), strict=True)
    ]
    ratio = late.mean() / early.mean()
    error = error_of(found["max update, end over early"])
    assert error == pytest.approx(ratio * np.hypot(*spread))


@pytest.mark.parametrize(
    ("largest", "holds"), [(GROWING, True), (1 - 0.05 * (ROUNDS >= 90), True), (FALLING, False)]
)
def test_f8c_end_over_early_compares_the_windows_it_names(fig8, largest, holds):
    evidence = fig8(VANISHING, norm_rows(FALLING, largest))
    measured, found = result("CFL-F8-c", evidence)
    assert result("CFL-F8-f", evidence) == (measured, largest is GROWING)
    assert measured == pytest.approx(
        {"max update, end over early": largest[90:].mean() / largest[5:15].mean()}
    )
    assert found is holds


def test_f8d_share_of_thresholds_that_tell_the_conditions_apart(fig8):
    """Mean norms fall from 1, so eps_1 is 0.1. At the end the largest norms are 0.25 and 0.55.

    Thresholds from 2.5 eps_1 on spare the congruent clients, below 5.5 eps_1 split the others.
    """
    congruent = norm_rows(FALLING, 0.25 + 0 * ROUNDS)
    incongruent = norm_rows(FALLING, 0.55 + 0 * ROUNDS)
    evidence = fig8(congruent, incongruent)
    measured, holds = result("CFL-F8-d", evidence)
    good = [m for m in np.arange(1, 10.25, 0.25) if 2.5 <= m < 5.5]
    assert measured == pytest.approx({"share of values of eps_2": len(good) / 37})
    assert not holds
    assert result("CFL-F8-e", evidence) == ({"share of values of eps_2": 1.0}, True)


def test_f8d_most_thresholds_must_tell_them_apart(fig8):
    congruent, incongruent = norm_rows(FALLING, 0.1 + 0 * ROUNDS), norm_rows(FALLING, GROWING)
    measured, holds = result("CFL-F8-d", fig8(congruent, incongruent))
    assert measured["share of values of eps_2"] > 0.9
    assert holds


def test_f8d_congruent_clients_that_would_be_split_too_refute(fig8):
    both = norm_rows(FALLING, GROWING)
    evidence, expected = fig8(both, both), ({"share of values of eps_2": 0.0}, False)
    assert result("CFL-F8-d", evidence) == expected
    assert result("CFL-F8-e", evidence) == expected


def test_f8d_a_mean_that_never_falls_asks_for_no_split(fig8):
    stays = norm_rows(np.ones(100), GROWING)
    expected = {"share of values of eps_2": 0.0}, False
    assert result("CFL-F8-d", fig8(VANISHING, stays)) == expected


# ---- Figs 5 and 9, Algorithms 3 to 5 ------------------------------------------------------------

GAPS = tiny.rows(gap_update={0: -0.2, 4: 0.3}) + [
    (round_, "group", group, "gap_update", value)
    for round_, group, value in [(5, 1, 0.1), (6, 1, 0.2), (7, 3, -0.1), (7, 4, -0.3), (8, 2, -0.2)]
]


@pytest.fixture
def fig9(runs):
    """The hand-made run of CFL beside federated averaging of the same clients."""

    def fig9(scores: dict, record: dict | None = None, rows=GAPS, base: float = 0.2) -> Evidence:
        content = (record or tiny.record(), [*tiny.scores(scores), *rows])
        fedavg = (tiny.record(), tiny.scores({0: [0.1] * 6, 10: [base] * 6}))
        return runs(
            cfl_fig9={"cfl_fig9": content},
            cfl_fig9_auto={"cfl_fig9_auto": content},
            cfl_permuted_auto={"cfl_permuted_auto": content},
            cfl_permuted_code={"cfl_permuted_code": content},
            cfl_fig10={"cfl_fig10": content},
            cfl_fig9_fedavg={"cfl_fig9_fedavg": fedavg},
        )

    return fig9


SCORES = {0: [0.1] * 6, 4: [0.2] * 6, 8: [0.2, 0.2, 0.5, 0.5, 0.3, 0.3], 10: [0.6] * 6}


def tree_with(**changes: list[int]) -> list[dict]:
    """The hand-made tree with other clients in some nodes: node<id>=[...]."""
    return [
        node | {"clients": changes.get(f"node{node['id']}", node["clients"])} for node in tiny.TREE
    ]


def test_f5a_a_hierarchy_of_true_clusters(fig9):
    assert result("CFL-F5-a", fig9(SCORES)) == (exactly(impure_leaves=0.0, broken_nodes=0.0), True)


@pytest.mark.parametrize(
    ("changes", "impure", "broken"),
    [
        ({"node3": [0, 4], "node4": [1, 5]}, 2.0, 0.0),
        ({"node3": [0]}, 0.0, 1.0),
        ({"node3": [0, 1, 4]}, 1.0, 1.0),
        ({"node1": [0, 1, 5]}, 0.0, 2.0),
    ],
    ids=["mixed leaves", "lost client", "client in both halves", "lost at a node"],
)
def test_f5a_a_doctored_tree_is_seen(fig9, changes, impure, broken):
    evidence = fig9(SCORES, tiny.record(tree=tree_with(**changes)))
    measured, holds = result("CFL-F5-a", evidence)
    assert (measured, holds) == (exactly(impure_leaves=impure, broken_nodes=broken), not broken)


LATE = [
    node | {"split_round": node["split_round"] and node["split_round"] + 30} for node in tiny.TREE
]


@pytest.mark.parametrize(
    ("accuracy", "holds"), [(0.2, True), (0.15, True), (0.1, False), (0.26, False)]
)
def test_f9j_accuracy_and_its_gain_beside_the_ceiling(fig9, accuracy, holds):
    """Per class at most two of the three groups agree, so a single model is right at most 5/9.

    The first split is in round 34; the last tests not after rounds 34 and 14 count.
    """
    before = accuracy - 0.01
    scores = {0: [0.0] * 6, 14: [before] * 6, 16: [0.9] * 6, 33: [accuracy] * 6, 35: [0.9] * 6}
    room = 100 * (5 / 9 - accuracy)
    assert result("CFL-F9-j", fig9(scores, tiny.record(tree=LATE))) == (
        pytest.approx(
            {"accuracy": 100 * accuracy, "gain in 20 rounds": 1, "room below ceiling": room}
        ),
        holds,
    )


def test_f9a_a_run_that_never_splits_is_read_at_a_given_round(runs):
    """At round 50, as if it split there; the gain is since round 30."""
    scores = tiny.scores({0: [0.0] * 6, 30: [0.17] * 6, 50: [0.2] * 6, 60: [0.9] * 6})
    rate = {"cfl_fig9_auto_003": {"cfl_fig9_auto_003": (tiny.record(tree=[]), scores)}}
    measured, _ = judging.result(LEDGER, "CFL-F9-a", runs(**rate), "learning rate = 0.03")
    assert measured["accuracy"] == pytest.approx(20)
    assert measured["gain in 20 rounds"] == pytest.approx(3)


def test_f9a_a_rising_accuracy_does_not_stagnate(fig9):
    scores = {0: [0.0] * 6, 14: [0.17] * 6, 34: [0.2] * 6}
    measured, holds = result("CFL-F9-a", fig9(scores, tiny.record(tree=LATE)))
    assert measured["gain in 20 rounds"] == pytest.approx(3)
    assert not holds


@pytest.mark.parametrize(
    ("gap", "correct", "holds"), [(0.3, 1.0, True), (0.3, 0.0, False), (-0.1, 1.0, False)]
)
def test_f9b_gap_and_correctness_after_fifty_rounds(fig9, gap, correct, holds):
    after = {"gap_update": {49: -gap, 50: gap}, "correct_update": {49: 1 - correct, 50: correct}}
    measured, found = result("CFL-F9-b", fig9(SCORES, rows=tiny.rows(**after)))
    assert (measured["gap"], measured["correct bipartition"]) == (gap, correct)
    assert found is holds


@pytest.mark.parametrize(("largest", "holds"), [(0.3, True), (0.5, True), (0.7, False)])
def test_f9k_the_gap_is_compared_with_its_largest_until_then(fig9, largest, holds):
    after = {"gap_update": {5: largest, 49: 0.2, 50: 0.3, 51: 9.0}}
    after["correct_update"] = dict.fromkeys(after["gap_update"], 1.0)
    measured, found = result("CFL-F9-k", fig9(SCORES, rows=tiny.rows(**after)))
    assert measured["gap over its largest so far"] == pytest.approx(0.3 / largest)
    assert found is holds


def test_f9b_the_error_of_a_gap_is_that_of_one_round_without_the_trend(fig9):
    """Gaps that rise by 0.1 a round, with 0.02 added in every other round."""
    gaps = {number: 0.1 * number + 0.02 * (number % 2) for number in range(30, 51)}
    after = {"gap_update": gaps, "correct_update": dict.fromkeys(gaps, 1.0)}
    found, _ = result("CFL-F9-b", fig9(SCORES, rows=tiny.rows(**after)))
    steps = [0.12, 0.08] * 4 + [0.08]
    assert found["gap"].error == pytest.approx(math.sqrt(np.mean(np.square(steps)) / 2))


def test_f9b_there_is_no_gap_of_all_clients_after_a_split(fig9):
    after = {"gap_update": {48: 0.3}, "correct_update": {48: 1.0}}
    found, holds = result("CFL-F9-b", fig9(SCORES, rows=tiny.rows(**after)))
    assert math.isnan(found["gap"])
    assert not holds


def test_f9c_gain_of_the_first_pure_cluster_within_five_rounds(fig9):
    """Clients 2 and 3 are set free after round 4 at 0.2; at round 8 they have 0.5, at 10 0.6."""
    measured, holds = result("CFL-F9-c", fig9(SCORES))
    expected = {"gain": 30, "lowest gain of a client": 30, "after round": 4.0}
    assert measured == pytest.approx(expected)
    assert holds


def test_f9c_every_client_must_gain(fig9):
    scores = {0: [0.1] * 6, 4: [0.2] * 6, 9: [0.2, 0.2, 0.4, 0.8, 0.2, 0.2]}
    measured, holds = result("CFL-F9-c", fig9(scores))
    assert measured["gain"] == pytest.approx(40)
    assert measured["lowest gain of a client"] == pytest.approx(20)
    assert not holds


def test_f9c_a_gain_after_more_than_five_rounds_is_not_immediate(fig9):
    scores = {0: [0.1] * 6, 4: [0.2] * 6, 9: [0.3] * 6, 10: [0.9] * 6}
    measured, holds = result("CFL-F9-c", fig9(scores))
    assert measured == pytest.approx(
        {"gain": 10, "lowest gain of a client": 10, "after round": 4.0}
    )
    assert not holds


def test_f9c_no_pure_cluster_is_no_gain(fig9):
    mixed = tree_with(node1=[0, 1, 2, 5], node2=[3, 4], node3=[0, 2], node4=[1, 5])
    measured, holds = result("CFL-F9-c", fig9(SCORES, tiny.record(tree=mixed)))
    assert math.isnan(measured["gain"])
    assert not holds


def test_f9c_waits_for_the_split_that_sets_a_pure_cluster_free(fig9):
    """The first split divides clusters; the second, after round 6, leaves clients 4 and 5."""
    late = tree_with(node1=[0, 2, 4, 5], node2=[1, 3], node3=[0, 2])
    scores = {0: [0.1] * 6, 6: [0.2] * 6, 8: [0.2, 0.2, 0.9, 0.2, 0.5, 0.5]}
    evidence = fig9(scores, tiny.record(tree=late))
    measured, holds = result("CFL-F9-c", evidence)
    assert measured == pytest.approx(
        {"gain": 30, "lowest gain of a client": 30, "after round": 6.0}
    )
    assert holds


RECOVERED = ("CFL-F9-d", "CFL-F9-g", "CFL-A3-a", "CFL-F10-b", "CFL-CL-b")


@pytest.mark.parametrize("claim", RECOVERED)
@pytest.mark.parametrize(
    ("truth", "groups", "agreement", "number", "holds"),
    [
        ([0, 0, 1, 1, 2, 3], [7, 7, 4, 4, 5, 6], 1.0, 4.0, True),
        ([0, 0, 1, 1, 2, 2], [7, 7, 4, 4, 5, 5], 1.0, 3.0, False),
        ([0, 0, 1, 1, 2, 3], [7, 4, 7, 4, 5, 6], None, 4.0, False),
        ([0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], 1.0, 1.0, False),
    ],
    ids=["found", "three groups", "mixed", "one group"],
)
def test_grouping_is_the_truth_up_to_names(fig9, claim, truth, groups, agreement, number, holds):
    """Names of groups are node numbers and mean nothing; four groups are part of the claim."""
    evidence = fig9(SCORES, tiny.record(true_groups=truth, groups=groups))
    measured, found = result(claim, evidence)
    assert measured["groups"] == number
    assert found is holds
    expected = adjusted_rand(truth, groups) if agreement is None else agreement
    assert measured["agreement"] == pytest.approx(expected)


def adjusted_rand(truth: list[int], groups: list[int]) -> float:
    """By counting pairs (Hubert and Arabie 1985)."""
    pairs = [(i, j) for i in range(len(truth)) for j in range(i)]
    same = [(truth[i] == truth[j], groups[i] == groups[j]) for i, j in pairs]
    both = sum(a and b for a, b in same)
    first, second = (sum(column) for column in zip(*same, strict=True))
    expected, most = first * second / len(pairs), (first + second) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


@pytest.mark.parametrize(("first", "holds"), [(0.41, True), (0.39, False)])
def test_f9e_every_client_must_double(fig9, first, holds):
    evidence = fig9(SCORES | {10: [first, *[0.62] * 5]}, base=0.2)
    expected = {"lowest ratio of a client": first / 0.2, "median": 3.1}
    assert result("CFL-F9-e", evidence) == (pytest.approx(expected), holds)


@pytest.mark.parametrize(
    ("name", "lowest", "median"), [("CFL-F9-e", 1.2, 2.4), ("CFL-F9-l", 1.5, 2.5)]
)
def test_f9e_compares_with_the_mean_and_f9l_with_the_client_itself(runs, name, lowest, median):
    """The second client gains least, although the first ends lowest; the mean of FedAvg is 0.25."""
    ours, theirs = [0.3, 0.6, 0.6, 0.6, 0.9, 0.9], [0.1, 0.4, 0.3, 0.3, 0.2, 0.2]
    evidence = runs(
        cfl_fig9={"cfl_fig9": (tiny.record(), tiny.scores({10: ours}))},
        cfl_fig9_fedavg={
            "cfl_fig9_fedavg": (tiny.record(), tiny.scores({50: theirs, 60: [0.9] * 6}))
        },
    )
    setting = "federated averaging = after 50 rounds"
    measured, _ = judging.result(LEDGER, name, evidence, setting)
    assert measured == pytest.approx({"lowest ratio of a client": lowest, "median": median})


@pytest.mark.parametrize(("final", "holds"), [(0.56, True), (0.54, False), (0.66, False)])
def test_f9i_close_to_60_percent(fig9, final, holds):
    evidence = fig9(SCORES | {10: [final] * 6}, base=0.2)
    expected = {"CFL": 100 * final, "FedAvg": 20.0}
    assert result("CFL-F9-i", evidence) == (pytest.approx(expected), holds)


@pytest.mark.parametrize(("worst", "holds"), [(0.3, True), (0.195, True), (0.18, False)])
def test_f9h_no_client_loses_a_point(fig9, worst, holds):
    evidence = fig9(SCORES | {10: [0.6] * 5 + [worst]}, base=0.2)
    expected = {"largest loss": 20 - 100 * worst, "share with a loss": float(worst < 0.2) / 6}
    assert result("CFL-F9-h", evidence) == (pytest.approx(expected), holds)


def test_accuracies_of_fig9_have_the_binomial_error_of_their_test_images(fig9):
    evidence = fig9(SCORES | {10: [0.6] * 6}, base=0.2)
    error = {share: 100 * math.sqrt(share * (1 - share) / 600) for share in (0.2, 0.5, 0.6)}
    found = {name: result(f"CFL-F9-{name}", evidence)[0] for name in "aceh"}
    assert error_of(found["a"]["accuracy"]) == pytest.approx(error[0.2])
    assert error_of(found["c"]["gain"]) == pytest.approx(math.hypot(error[0.5], error[0.2]))
    assert error_of(found["h"]["largest loss"]) == pytest.approx(math.hypot(error[0.6], error[0.2]))
    assert error_of(found["e"]["lowest ratio of a client"]) == pytest.approx(
        3 * math.hypot(error[0.6] / 60, error[0.2] / 20)
    )


def test_a_perplexity_has_no_known_error(tmp_path):
    record = tiny.record(metric="perplexity")
    tiny.write(tmp_path / "run", record, tiny.scores({0: [40.0] * 6}))
    assert error_of(RunEvidence(tmp_path / "run").tested(40.0)) == 0


def test_f9f_largest_gap_after_the_last_split(fig9):
    """The positive gap in the round of the last split itself belongs to the undivided group."""
    assert result("CFL-F9-f", fig9(SCORES)) == (exactly(largest_gap=-0.1), True)


def test_f9f_one_positive_gap_refutes(fig9):
    rows = [*GAPS, (9, "group", 4, "gap_update", 0.05)]
    assert result("CFL-F9-f", fig9(SCORES, rows=rows)) == (exactly(largest_gap=0.05), False)


def test_a4a_newcomers_in_their_leaf_and_served_like_its_members(runs):
    home = {"client": 6, "true_group": 1, "leaf": 2, "clients": [2, 3], "accuracy": 0.59}
    scores = tiny.scores({0: [0.1] * 6, 10: [0.6] * 6})
    served = tiny.record(newcomers=[home]), scores
    evidence = runs(cfl_fig9={"cfl_fig9": served}, cfl_permuted={"cfl_permuted": served})
    expected = {"share in the right leaf": 1.0, "behind members": 1}
    assert result("CFL-A4-a", evidence) == (pytest.approx(expected), True)


@pytest.mark.parametrize(
    ("newcomers", "right", "behind"),
    [
        ([{"true_group": 0, "accuracy": 0.6}], 0.5, 0.0),
        ([{"true_group": 1, "accuracy": 0.5}], 1.0, 0.1),
        ([{"true_group": 1, "accuracy": 0.7}, {"true_group": 2, "accuracy": 0.3}], 2 / 3, 0.1),
    ],
    ids=["wrong leaf", "badly served", "one of two lost"],
)
def test_a4a_lost_or_badly_served_newcomers_refute(runs, newcomers, right, behind):
    at_leaf = {"client": 6, "leaf": 2, "clients": [2, 3]}
    scores = tiny.scores({0: [0.1] * 6, 10: [0.6] * 6})
    home = at_leaf | {"true_group": 1, "accuracy": 0.6}
    evidence = runs(
        cfl_fig9={"cfl_fig9": (tiny.record(newcomers=[home]), scores)},
        cfl_permuted={
            "cfl_permuted": (tiny.record(newcomers=[at_leaf | new for new in newcomers]), scores)
        },
    )
    expected = {"share in the right leaf": right, "behind members": 100 * behind}
    assert result("CFL-A4-a", evidence) == (pytest.approx(expected), False)


@pytest.mark.parametrize(
    ("groups", "last", "agreement", "difference", "holds"),
    [
        ([9, 9, 7, 7, 8, 8], [0.6] * 6, 1.0, 0.0, True),
        ([9, 9, 7, 7, 8, 8], [0.6, 0.595, 0.6, 0.6, 0.6, 0.6], 1.0, 0.005, True),
        ([9, 9, 7, 7, 8, 8], [0.6, 0.6, 0.6, 0.62, 0.6, 0.6], 1.0, 0.02, False),
        ([9, 7, 9, 7, 8, 8], [0.6] * 6, None, 0.0, False),
    ],
    ids=["same", "within 1%", "one client differs", "other groups"],
)
def test_a5a_hidden_updates_give_the_same_groups_and_scores(
    runs, groups, last, agreement, difference, holds
):
    plain = (tiny.record(), tiny.scores({0: [0.9] * 6, 10: [0.6] * 6}))
    hidden = (tiny.record(groups=groups), tiny.scores({0: [0.1] * 6, 10: last}))
    evidence = runs(cfl_permuted={"plain": plain}, cfl_permuted_hidden={"hidden": hidden})
    measured, found = result("CFL-A5-a", evidence)
    expected = adjusted_rand([3, 3, 2, 2, 4, 4], groups) if agreement is None else agreement
    assert measured == exactly(agreement=expected, accuracy_difference=100 * difference)
    assert found is holds


# ---- Fig. 10: perplexity, where less is better --------------------------------------------------


@pytest.fixture
def fig10(runs):
    def fig10(cfl: dict, fedavg: dict) -> Evidence:
        record = tiny.record(metric="perplexity")
        return runs(
            cfl_fig10={"cfl_fig10": (record, tiny.scores(cfl, "perplexity"))},
            cfl_fig10_fedavg={"cfl_fig10_fedavg": (record, tiny.scores(fedavg, "perplexity"))},
        )

    return fig10


@pytest.mark.parametrize(("end", "holds"), [(42.0, True), (38.0, False), (50.0, True)])
def test_f10a_improvement_counts_from_the_first_split(fig10, end, holds):
    fedavg = {0: [400.0] * 6, 3: [40.0] * 6, 5: [39.0] * 6, 10: [end] * 6}
    measured, found = result("CFL-F10-a", fig10({10: [36.0] * 6}, fedavg))
    assert measured == pytest.approx(
        {
            "early perplexity": 40.0,
            "final perplexity": end,
            "improvement": 1 - end / 40,
        }
    )
    assert found is holds


@pytest.mark.parametrize(("cfl", "holds"), [(30.0, True), (31.0, False)])
def test_f10c_worst_perplexity_over_the_mean_of_fedavg(fig10, cfl, holds):
    evidence = fig10({0: [400.0] * 6, 10: [cfl - 6, cfl + 6] * 3}, {0: [400.0] * 6, 10: [42.0] * 6})
    expected = {"CFL": cfl, "FedAvg": 42.0, "ratio": cfl / 42}
    expected |= {"highest ratio of a client": (cfl + 6) / 42}
    assert result("CFL-F10-c", evidence) == (pytest.approx(expected), holds)


@pytest.mark.parametrize("perplexity", [41.9, 42.0])
def test_f10d_an_equal_client_is_not_worse_off(fig10, perplexity):
    fedavg = {10: [42.0] * 6}
    assert result("CFL-F10-d", fig10({10: [perplexity] * 6}, fedavg))[1]


def test_f10d_one_client_worse_off_refutes(fig10):
    evidence = fig10({10: [36.0] * 5 + [43.0]}, {10: [42.0] * 6})
    expected = {"share of clients not worse off": 5 / 6}
    assert result("CFL-F10-d", evidence) == (pytest.approx(expected), False)


# ---- Figs 1 to 3: problems in the plane ---------------------------------------------------------


def accuracies(panel: str, joint: float, own: float) -> list[dict]:
    rows = [
        ("best joint", "all", joint),
        ("joint", "all", 0.5),
        ("own", "0", 1.0),
        ("own", "1", own),
    ]
    return [
        {"panel": panel, "model": model, "group": group, "accuracy": accuracy}
        for model, group, accuracy in rows
    ]


PANELS = {
    "CFL-F1-a": ("congruent", [(0.995, 0.995, True), (0.98, 1.0, False)]),
    "CFL-F1-b": ("xor", [(0.75, 0.995, True), (0.81, 1.0, False), (0.75, 0.98, False)]),
    "CFL-F1-c": ("diverging conditionals", [(0.52, 0.995, True), (0.6, 1.0, False)]),
}


@pytest.mark.parametrize(
    ("claim", "joint", "own", "holds"),
    [(claim, *case) for claim, (_, cases) in PANELS.items() for case in cases],
)
def test_f1abc_the_best_line_of_the_right_panel(study, claim, joint, own, holds):
    judged = PANELS[claim][0]
    others = [panel for panel, _ in PANELS.values() if panel != judged]
    rows = accuracies(judged, joint, own) + [r for p in others for r in accuracies(p, 0.9, 0.1)]
    assert result(claim, study("cfl_violations", accuracies=rows)) == (
        exactly(accuracy_of_one_model=joint, least_accuracy_of_own_models=own),
        holds,
    )


@pytest.mark.parametrize(
    ("xor", "disputed", "holds"), [(0.5, 1.5, True), (-0.1, 1.5, False), (0.5, -0.1, False)]
)
def test_f1d_gaps_of_the_incongruent_panels(study, xor, disputed, holds):
    gaps = {"congruent": -1.0, "xor": xor, "diverging conditionals": disputed}
    rows = [{"panel": panel, "gap": gap} for panel, gap in gaps.items()]
    evidence = study("cfl_violations", separation=rows)
    expected = exactly(gap_of_XOR=xor, gap_of_diverging_conditionals=disputed)
    assert result("CFL-F1-d", evidence) == (expected, holds)


@pytest.mark.parametrize(
    ("cross", "intra", "holds"), [(-0.95, 0.9, True), (-0.5, 0.9, False), (-0.95, 0.7, False)]
)
def test_f2a_cosines_of_the_last_round(study, cross, intra, holds):
    last = [(200, "cross", -1.0), (200, "cross", cross), (200, "intra", 1.0), (200, "intra", intra)]
    rows = [
        {"problem": problem, "round": round_, "relation": relation, "cosine": cosine}
        for problem, entries in {
            "four clients": [(0, "cross", 0.9), (0, "intra", 0.1), *last],
            "another": [(200, "cross", 1.0), (200, "intra", -1.0)],
        }.items()
        for round_, relation, cosine in entries
    ]
    evidence = study("cfl_paths", cosines=rows)
    assert result("CFL-F2-a", evidence) == (
        exactly(largest_cosine_across_clusters=cross, smallest_cosine_within_clusters=intra),
        holds,
    )


@pytest.mark.parametrize(
    ("claim", "problem", "mean", "largest", "holds"),
    [
        ("CFL-F2-b", "incongruent", 1e-4, 0.5, True),
        ("CFL-F2-b", "incongruent", 1e-2, 0.5, False),
        ("CFL-F2-b", "incongruent", 1e-4, 5e-4, False),
        ("CFL-F2-c", "congruent", 1e-4, 5e-4, True),
        ("CFL-F2-c", "congruent", 1e-4, 5e-3, False),
    ],
)
def test_f2bc_norms_at_the_end_over_their_start(study, claim, problem, mean, largest, holds):
    rows = [
        {"problem": p, "round": r, "mean_gradient_norm": m, "max_gradient_norm": x}
        for p, r, m, x in [
            (problem, 9, 2 * mean, 4 * largest),
            (problem, 0, 2.0, 4.0),
            ("x", 0, 1, 1),
        ]
    ]
    evidence = study("cfl_paths", norms=rows)
    measured, found = result(claim, evidence)
    assert measured == pytest.approx(
        {
            "mean gradient, end over start": mean,
            "largest gradient, end over start": largest,
            "largest ratio over mean ratio": largest / mean,
        }
    )
    assert found is holds


def cell(**changes) -> dict:
    usual = {
        "noise": "gauss",
        "gamma": 1.0,
        "p_gap_positive": 0.99,
        "p_correct": 1.0,
        "guaranteed": False,
        "theorem_violations": 7,
    }
    return usual | changes


@pytest.mark.parametrize(
    ("lowest", "positive", "holds"), [(0.98, 0.98, True), (0.97, 0.99, False), (0.99, 0.97, False)]
)
def test_f3a_lowest_shares_of_correct_and_positive_above_gamma_1(study, lowest, positive, holds):
    cells = [
        cell(),
        cell(p_correct=lowest, p_gap_positive=positive, gamma=1.1 + 1e-9),
        cell(gamma=1.5, p_correct=0.1, p_gap_positive=0.05),
        cell(noise="fixed", p_correct=0.0),
    ]
    expected = {"probability correct at gamma 1.1": lowest, "probability correct at gamma 1.5": 0.1}
    expected |= {"probability of a positive gap at gamma 1.1": positive}
    expected |= {"probability of a positive gap at gamma 1.5": 0.05}
    assert result("CFL-F3-a", study("cfl_separation", cells=cells)) == (
        pytest.approx(expected),
        holds,
    )


@pytest.mark.parametrize(("violations", "holds"), [(0, True), (1, False)])
def test_f3b_violations_count_inside_the_region_only(study, violations, holds):
    inside = [cell(guaranteed=True, theorem_violations=n) for n in (0, violations)]
    evidence = study("cfl_separation", cells=[cell(), *inside])
    assert result("CFL-F3-b", evidence) == (exactly(violations=violations, cells=2.0), holds)


@pytest.mark.parametrize(
    ("gap", "against", "above", "holds"),
    [(0.9, 0.0, 1.0, True), (1.0, 0.0, 0.0, False), (0.97, 1.0, 0.0, False)],
)
def test_f3c_correct_against_positive_gap(study, gap, against, above, holds):
    correct = 0.95 if against else 1.0
    cells = [cell(p_gap_positive=1.0), cell(p_gap_positive=gap, p_correct=correct)]
    expected = exactly(cells_less_probable=against, cells_more_probable=above)
    assert result("CFL-F3-c", study("cfl_separation", cells=cells)) == (expected, holds)


# ---- Theory -------------------------------------------------------------------------------------


OF_STUDIES = [name for name, claim in LEDGER.claims.items() if "study" in claim.measure]


@pytest.fixture(scope="module")
def computed(tmp_path_factory) -> Evidence:
    folders = {name: tmp_path_factory.mktemp(name) for name in LEDGER.studies}
    for name, study in LEDGER.studies.items():
        tiny_studies.execute(study, folders[name])
    return judging.evidence(LEDGER, studies=folders)


@pytest.mark.parametrize("claim", OF_STUDIES)
def test_a_claim_on_a_study_finds_its_numbers(computed, claim):
    measured, _ = result(claim, computed)
    assert measured
    assert not any(map(math.isnan, measured.values()))


def test_no_two_claims_rest_on_one_check():
    checks = [LEDGER.claims[name].measure.get("checks", []) for name in OF_STUDIES]
    flat = [check for names in checks for check in names]
    assert len(set(flat)) == len(flat)


@pytest.mark.parametrize(("lowest", "holds"), [(0.96, True), (0.9, False)])
def test_cla_complete_linkage_up_to_gamma_1(study, lowest, holds):
    table = [
        {"gamma": 0.5, "p_differ": 0.2, "p_correct_complete": 1.0},
        {"gamma": 1.0, "p_differ": 0.6, "p_correct_complete": lowest},
        {"gamma": 1.5, "p_differ": 1.0, "p_correct_complete": 0.0},
    ]
    evidence = study("cfl_theorems", linkage=table)
    assert result("CFL-CL-a", evidence) == (
        exactly(probability_to_differ=0.4, probability_correct=lowest),
        holds,
    )


@pytest.mark.parametrize(("lost", "holds"), [(3, True), (0, False)])
def test_buga_clients_lost_by_the_last_split(study, lost, holds):
    rows = [
        {"order": order, "split": split, "rule": rule, "lost": n}
        for order, split, rule, n in [
            ("shuffled", 3, "demo", lost + 1),
            ("shuffled", 3, "demo", max(0, lost - 1)),
            ("shuffled", 3, "correct", 0),
            ("shuffled", 1, "demo", 99),
            ("sorted", 3, "demo", 99),
        ]
    ]
    rows = rows if lost else [row | {"lost": 0} for row in rows]
    expected = {"clients lost": float(lost), "clients lost with client ids": 0.0}
    assert result("CFL-BUG-a", study("cfl_index_bug", splits=rows)) == (
        pytest.approx(expected),
        holds,
    )


DRAWN = {"fig10": "CFL-F11-a", "fig11": "CFL-F12-a", "fig12": "CFL-F13-a"}


@pytest.mark.parametrize("figure", DRAWN)
@pytest.mark.parametrize("violations", [0, 2])
def test_a_drawn_configuration_is_checked_on_its_own_figure(study, figure, violations):
    """The one of the artefact that shows it."""
    claim = DRAWN[figure]
    assert LEDGER.claims[claim].artefact == f"cfl_arxiv_{figure}"
    rows = [{"figure": each, "violations": violations if each == figure else 5} for each in DRAWN]
    evidence = study("cfl_proofs", predicates=rows)
    assert result(claim, evidence) == (exactly(violations=violations), violations == 0)


# ---- The protocol: updates for gradients, Algorithms 2 and 3 -------------------------------------


@pytest.mark.parametrize(
    ("claim", "dataset", "samples"), [("CFL-U-a", "mnist", 100), ("CFL-U-b", "cifar", 1500)]
)
@pytest.mark.parametrize(("off", "holds"), [(0.05, True), (-0.3, False)])
def test_u_distance_of_cosines_from_round_10_on(runs, claim, dataset, samples, off, holds):
    rounds = range(9, 13)
    rows = tiny.rows(
        intra_update={n: 0.5 if n > 9 else 9.0 for n in rounds},
        intra_gradient=dict.fromkeys(rounds, 0.48),
        cut_update=dict.fromkeys(rounds, 0.1 + off),
        cut_gradient=dict.fromkeys(rounds, 0.1),
    )
    made = runs(**{f"cfl_{dataset}_rounds": {"rounds": (gap_record(samples), rows)}})
    expected = exactly(distance_of_cosines=abs(off), within_clusters=0.02, across_the_cut=abs(off))
    assert result(claim, made) == (expected, holds)


@pytest.mark.parametrize(("last", "first", "holds"), [(0.05, 40.0, True), (0.2, math.inf, False)])
def test_a2a_stop_by_the_mean_update(runs, last, first, holds):
    """The largest norm so far counts: a later one above it does not make earlier rounds stop."""
    norms = {0: 1.0, 39: 0.15, 40: last, 41: 3.0}
    evidence = runs(
        cfl_fig9_fedavg={"cfl_fig9_fedavg": (tiny.record(), tiny.rows(mean_update_norm=norms))}
    )
    expected = pytest.approx(
        {"first stationary round": first, "smallest norm over largest": min(0.15, last)}
    )
    assert result("CFL-A2-a", evidence) == (expected, holds)


@pytest.mark.parametrize(
    ("claim", "dataset", "samples"), [("CFL-A3-b", "mnist", 100), ("CFL-A3-c", "cifar", 1500)]
)
@pytest.mark.parametrize("wrong", ["update", "gradient"])
def test_a3_the_bipartition_by_gradients_counts(runs, claim, dataset, samples, wrong):
    gaps = {name: dict.fromkeys(range(10, 14), 0.1) for name in ("update", "gradient")}
    gaps[wrong][12] = -0.9
    made = runs(**{f"cfl_{dataset}_rounds": {"r": (gap_record(samples), gap_rows(**gaps))}})
    measured, holds = result(claim, made)
    assert measured["rounds with a correct bipartition"] == (0.75 if wrong == "gradient" else 1.0)
    assert holds == (wrong == "update")


@pytest.mark.parametrize(("truth", "beyond", "holds"), [(3, 0.0, True), (2, 1.0, False)])
def test_a3d_splits_beyond_the_true_number(runs, truth, beyond, holds):
    """The tiny tree has two splits."""
    record = tiny.record(true_groups=[client % truth for client in range(6)])
    evidence = runs(cfl_permuted_auto={"cfl_permuted_auto": (record, [])})
    expected = pytest.approx({"splits": 2.0, "excess splits": beyond})
    assert result("CFL-A3-d", evidence) == (expected, holds)


@pytest.mark.parametrize(("participants", "holds"), [(6, True), (3, False)])
def test_a3e_updates_and_models_that_are_sent(runs, participants, holds):
    def trained(clients: int) -> list[tuple]:
        return [(n, "client", i, "loss", 1.0) for n in range(10) for i in range(clients)]

    evidence = runs(
        cfl_permuted={"cfl": (tiny.record(), trained(6))},
        cfl_permuted_fedavg={"fedavg": (tiny.record(), trained(participants))},
    )
    expected = pytest.approx({"updates per round": 6 / participants, "models per split": 1.0})
    assert result("CFL-A3-e", evidence) == (expected, holds)


def test_of_runs_of_several_sizes_the_largest_counts(runs):
    """With 20 samples gaps are far below, so that a mean over both would be negative."""
    rounds, members = range(10, 14), {}
    for n, up in ((20, -0.9), (100, 0.1)):
        rows = gap_rows(dict.fromkeys(rounds, up), dict.fromkeys(rounds, 0.0))
        for name, value in (("intra", 0.5 + up), ("cut", 0.1)):
            rows += tiny.rows(**{f"{name}_update": dict.fromkeys(rounds, value)})
            rows += tiny.rows(**{f"{name}_gradient": dict.fromkeys(rounds, 0.5)})
        members[f"cfl_mnist_batch_10_{n}"] = (gap_record(n), rows)
    evidence = runs(cfl_mnist_batch_10=members)
    found = {}
    for claim in ("CFL-F7-g", "CFL-F7-h", "CFL-U-a"):
        found |= judging.result(LEDGER, claim, evidence, "batch size = 10")[0]
    assert found["rounds with a positive gap"] == 1
    assert found["lead in gap"] == pytest.approx(0.1)
    assert found["within clusters"] == pytest.approx(0.1)


def test_norms_at_the_end_have_the_error_of_their_rounds(fig8):
    noise = 1 + np.random.default_rng(0).normal(0, 0.1, len(ROUNDS))
    found, _ = result("CFL-F8-a", fig8(VANISHING, norm_rows(noise, noise)))
    late, early = noise[-5:], noise[1:6]
    batches = [[x[:3].mean(), x[3:].mean()] for x in (late, early)]
    spread = [
        np.std(b, ddof=1) / 2**0.5 / x.mean() for b, x in zip(batches, (late, early), strict=True)
    ]
    expected = late.mean() / early.mean() * np.hypot(*spread)
    assert error_of(found["mean update, end over start, incongruent"]) == pytest.approx(expected)


def test_the_most_updates_of_any_round_count(runs):
    """Half of the clients take part, and in one round all of them."""

    def trained(clients: int, now: range) -> list[tuple]:
        return [(n, "client", i, "loss", 1.0) for n in now for i in range(clients)]

    cfl = [*trained(3, range(9)), *trained(6, range(9, 10))]
    evidence = runs(
        cfl_permuted={"cfl": (tiny.record(), cfl)},
        cfl_permuted_fedavg={"fedavg": (tiny.record(), trained(3, range(10)))},
    )
    assert result("CFL-A3-e", evidence)[0]["updates per round"] == 2
