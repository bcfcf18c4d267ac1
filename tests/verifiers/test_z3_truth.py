"""No wrong `holds` and no wrong `refuted`, on steps that cvc5 decides and on hostile ones."""

from pathlib import Path

import pytest

from pipeline.verifiers.base import Covers, StepVerdict
from pipeline.verifiers.registry import verifier_for, verifier_named
from pipeline.verifiers.settings import Z3Config
from tests.deadlines import bounded
from tests.verifiers.z3_hostile import TRICKY, forgeries, hostile, loops
from tests.verifiers.z3_problems import FormalStep, generated, truth

pytestmark = pytest.mark.slow
pytest.importorskip("cvc5")
SEED = 20_261_126
LEAST_DECIDED = 0.98


@pytest.mark.parametrize("count", [50, pytest.param(150, marks=pytest.mark.nightly)])
def test_generated_steps_are_judged_as_cvc5_judges_them(count: int) -> None:
    verifier = verifier_named("z3")
    judged = decided = confirmed = 0
    verdicts: dict[StepVerdict, int] = dict.fromkeys(StepVerdict, 0)
    for problem in generated(count, SEED):
        found = verifier.verify(problem.step)
        verdicts[found.verdict] += 1
        judged += 1
        if found.verdict is StepVerdict.UNKNOWN:
            decided += "contradict" in found.evidence and truth(problem).consistent is False
            continue
        decided += 1
        is_wrong = truth(problem).is_wrong(found.verdict)
        assert is_wrong is not True, (problem, found)
        confirmed += is_wrong is False
    assert decided >= LEAST_DECIDED * judged
    assert confirmed >= 0.85 * count - verdicts[StepVerdict.UNKNOWN]
    assert min(verdicts[StepVerdict.HOLDS], verdicts[StepVerdict.REFUTED]) >= count // 4


@pytest.mark.parametrize("problem", TRICKY, ids=lambda problem: problem.family)
def test_tricky_steps_are_judged_as_cvc5_judges_them(problem: FormalStep) -> None:
    found = verifier_named("z3").verify(problem.step)
    assert found.verdict is not StepVerdict.UNKNOWN
    assert truth(problem).is_wrong(found.verdict) is not True


def test_a_hostile_step_is_unknown_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verifier = verifier_named("z3")
    steps = hostile()
    assert len(steps) >= 100
    for name, step in steps.items():
        with bounded():
            found = verifier.verify(step)
        assert found.verdict is StepVerdict.UNKNOWN, (name, found)
    assert not list(tmp_path.iterdir())


def test_a_forged_proof_does_not_hold() -> None:
    verifier = verifier_named("z3")
    found = [verifier.verify(step) for step in forgeries()]
    assert len(found) >= 250
    assert not [each for each in found if each.verdict is StepVerdict.HOLDS and each.covers is Covers.WHOLE]


@pytest.mark.parametrize("name", loops())
def test_what_takes_long_ends(name: str) -> None:
    step, follows = loops()[name]
    settings = Z3Config(resource_limit=500_000, time_limit_ms=2_000)
    with bounded(60.0):
        found = verifier_for(settings).verify(step)
    assert found.verdict is not (StepVerdict.REFUTED if follows else StepVerdict.HOLDS)
