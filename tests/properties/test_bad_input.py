"""Bad input ends in one clear sentence, never in a traceback and never silently accepted."""

import os
import re

import bad_input
import pytest

COUNT = int(os.environ.get("BAD_INPUT_CASES", "400"))


@pytest.mark.filterwarnings("ignore")
def test_bad_input_is_refused_in_one_sentence(tmp_path):
    figures, bad = bad_input.run(COUNT, seed=1, folder=tmp_path)
    assert bad == []
    refused = sum(counts["refused"] for counts in figures.values())
    assert refused > 0.8 * COUNT


def test_the_outcomes_can_be_told_apart():
    """A check that could not fail would be worse than none."""

    def fail():
        raise KeyError("a\nb")

    def case(attempt, may_be=False):
        return bad_input.Case("kind", "what", attempt, lambda _: may_be)

    assert bad_input.outcome(case(fail))[0] == "traceback"
    assert bad_input.outcome(case(lambda: 1))[0] == "silent"
    assert bad_input.outcome(case(lambda: 1, may_be=True))[0] == "accepted"


def test_the_words_of_the_workflow_are_the_names_of_its_rules(repository):
    from clustered_fl.ledger.schema import RESERVED

    workflow = repository / "workflow"
    files = [repository / "Snakefile", workflow / "Snakefile", *workflow.glob("rules/*.smk")]
    text = "\n".join(path.read_text() for path in files)
    rules = re.findall(r"^rule (\w+):", text, re.MULTILINE) + re.findall(r" as (\w+) with:", text)
    restored = {f"restore_{kind}" for kind in ("encoder", "grouping", "run")}
    assert {*rules, *restored, "none"} == {*RESERVED}
