"""The verifier z3: verdicts on generated steps against those of cvc5, on hostile steps, and time for each step."""

from typing import NamedTuple

from pipeline.verifiers.base import StepInContext, StepVerdict
from pipeline.verifiers.registry import verifier_named
from tests.bench.verdicts import (
    MOST_SHOWN,
    Timed,
    print_bars,
    print_kinds,
    print_reasons,
    print_verdictless,
    quantile,
    spent,
    timed,
)
from tests.verifiers.z3_hostile import TRICKY, hostile, loops
from tests.verifiers.z3_problems import FormalStep, Truth, generated, truth

GENERATED = 600
SEED = 20_261_127
"""Not the seed of the tests."""
MOST_MS = 50.0


class _Judged(NamedTuple):
    """What was said of a step, and what cvc5 says."""

    problem: FormalStep
    said: Timed
    truth: Truth

    @property
    def is_wrong(self) -> bool | None:
        """None of a step without a verdict, and where cvc5 does not decide."""
        verdict = self.said.found.verdict
        return None if verdict is StepVerdict.UNKNOWN else self.truth.is_wrong(verdict)


def verify_z3(steps: int = GENERATED) -> None:
    verifier = verifier_named("z3")
    timed(verifier, StepInContext(problem="", earlier=(), step="(assert true)"))
    problems = [*generated(steps, SEED), *TRICKY]
    judged = [_Judged(each, timed(verifier, each.step), truth(each)) for each in problems]
    print(f"\nverify-z3: {len(judged):,} steps, {len(TRICKY)} of them tricky, that cvc5 decides, too")
    families = ["tricky" if each.problem in TRICKY else each.problem.family for each in judged]
    for family in dict.fromkeys(families):
        of = [each for at, each in zip(families, judged, strict=True) if at == family]
        confirmed = f"   by cvc5 {sum(each.is_wrong is False for each in of)}"
        print_kinds(family, [each.said.kind for each in of], confirmed)
    print_reasons(each.said.found for each in judged)
    wrong = [each for each in judged if each.is_wrong]
    for each in wrong[:MOST_SHOWN]:
        print(f"  WRONG {each.said.found.verdict}: {each.problem.step!r}: {each.said.found.evidence}")
    decided = print_verdictless({name: verifier.verify(step) for name, step in hostile().items()})
    print(f"\nverify-z3: {len(loops())} steps that may take solvers long")
    for name, (step, follows) in loops().items():
        said = timed(verifier, step)
        known = "follows" if follows else "does not follow"
        print(f"  {name:<36} {said.found.verdict:<8}{said.processor_ms / 1000:>6.1f} s   {known}")
    times = [each.said.processor_ms for each in judged]
    print_bars(
        (not wrong, f"wrong verdicts: {len(wrong)}"),
        (not decided, f"hostile steps with a verdict: {decided}"),
        (
            quantile(times, 0.95) <= MOST_MS,
            f"of a processor {spent(times)} (asked: p95 at most {MOST_MS:g} ms); by the clock "
            f"{spent([each.said.ms for each in judged])}",
        ),
    )
