"""`Run.judge`: a judge of the product and an object of a user's class, their critiques, and what needs the object."""

from pathlib import Path

import pytest

from pipeline import Run, open_run
from pipeline.core.errors import RunConflict, UsageError
from pipeline.core.schemas import CRITIQUES
from pipeline.examples.judge import Numerals, NumeralsConfig

pytestmark = pytest.mark.slow


def test_a_run_has_judges_and_their_critiques(own: Run, capsys: pytest.CaptureFixture[str]) -> None:
    chains = own.labels().height
    counts = own.judge("dry", judge={"kind": "oracle", "votes": 2, "oracle": {"seed": 3}}, progress=False)
    assert (counts.chains, counts.critiques, counts.votes) == (chains, 2 * chains, 2)
    assert own.judges == ["dry"]
    found = own.critiques("dry")
    assert found.columns == CRITIQUES.names
    assert found.height == 2 * chains
    assert set(found["chain_id"]) == set(own.labels()["chain_id"])
    assert own.judge("dry", judge={"kind": "oracle", "votes": 2, "oracle": {"seed": 3}}, progress=False) == counts
    with pytest.raises(RunConflict, match=r"has the critiques of judge.name=dry with other settings"):
        own.judge("dry", judge="oracle", progress=False)
    with pytest.raises(UsageError, match="has no judge dri: choose from dry"):
        own.critiques("dri")


def test_an_object_is_a_judge_and_what_reads_critiques_needs_it(own: Run) -> None:
    counts = own.judge("mine", judge=Numerals(NumeralsConfig(votes=3)), progress=False)
    assert counts.unanimous == counts.chains
    found = own.critiques("mine").unique("chain_id").join(own.labels(), on="chain_id")
    assert found["first_error"].null_count() == found.height, "each step has a numeral"
    report = own.audit()
    assert report.sound, report
    assert {Path(judge.run_dir).name for judge in report.parts["judge"]} == {"mine"}
    without = open_run(own.run_dir).audit()
    assert not without.sound
    (fault,) = [each.fault for judge in without.parts["judge"] for each in judge.findings]
    assert "names a judge that cannot be used here" in fault
    assert open_run(own.run_dir, judge=Numerals).audit().sound
    notes = " ".join(open_run(own.run_dir).regrade().notes)
    assert "judge mine: not read again: judge.kind=numerals is the object" in notes
