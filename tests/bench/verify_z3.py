"""The verifier z3: verdicts on generated steps against those of cvc5, on hostile steps, and time for each step."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from pipeline.verifiers.base import Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.registry import verifier_named
from tests.bench.grading_time import quantile
from tests.verifiers.z3_hostile import TRICKY, hostile, loops
from tests.verifiers.z3_problems import FormalStep, Truth, generated, truth

GENERATED = 600
SEED = 20_261_127
"""Not the seed of the tests."""
MOST_MS = 50.0
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Spent:
    """Milliseconds of a processor, and by the clock, which other work on the machine delays."""

    processor: float
    clock: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A finding, how long it took, and what cvc5 says."""

    problem: FormalStep
    found: Finding
    spent: "_Spent"
    truth: Truth

    @property
    def is_wrong(self) -> bool:
        match self.found.verdict:
            case StepVerdict.HOLDS:
                return self.truth.entailed is False or self.truth.consistent is False
            case StepVerdict.REFUTED:
                return self.truth.entailed is True
        return False

    @property
    def is_confirmed(self) -> bool:
        return self.truth.entailed is not None and self.truth.consistent is not None and not self.is_wrong


def verify_z3() -> None:
    verifier = verifier_named("z3")
    _timed(verifier, StepInContext(problem="", earlier=(), step="(assert true)"))
    problems = [*generated(GENERATED, SEED), *TRICKY]
    findings = [_timed(verifier, each.step) for each in problems]
    judged = [
        _Judged(problem=each, found=found, spent=spent, truth=truth(each))
        for each, (found, spent) in zip(problems, findings, strict=True)
    ]
    print(
        f"\nverify-z3: {len(judged):,} steps, {GENERATED:,} generated and {len(TRICKY)} tricky ones, that cvc5 decides, too"
    )
    _print_families(judged)
    for each in [each for each in judged if each.is_wrong][:MOST_SHOWN]:
        print(f"  WRONG {each.found.verdict}: {each.problem.step!r}: {each.found.evidence}")
    hostile_steps = {name: _timed(verifier, step) for name, step in hostile().items()}
    decided = {name: found for name, (found, _) in hostile_steps.items() if found.verdict is not StepVerdict.UNKNOWN}
    print(f"\nverify-z3: {len(hostile_steps)} hostile steps, of which none may have a verdict")
    print(f"  unknown {len(hostile_steps) - len(decided)}, refuted or holding {len(decided)}")
    for name, found in list(decided.items())[:MOST_SHOWN]:
        print(f"  WRONG {name}: {found.verdict}: {found.evidence}")
    print(f"\nverify-z3: {len(loops())} steps that may take solvers long")
    for name, (step, follows) in loops().items():
        found, spent = _timed(verifier, step)
        print(
            f"  {name:<36} {found.verdict:<8}{spent.processor / 1000:>6.1f} s   {'follows' if follows else 'does not follow'}"
        )
    _print_bars(judged, len(decided))


def _timed(verifier: Verifier, step: StepInContext) -> tuple[Finding, _Spent]:
    began, clock = time.process_time(), time.perf_counter()
    found = verifier.verify(step)
    return found, _Spent(1000 * (time.process_time() - began), 1000 * (time.perf_counter() - clock))


def _print_families(judged: Sequence[_Judged]) -> None:
    families = ["tricky" if each.problem in TRICKY else each.problem.family for each in judged]
    rows = Counter((family, each.found.verdict) for family, each in zip(families, judged, strict=True))
    print("  family          " + "".join(f"{verdict:>9}" for verdict in StepVerdict) + "   by cvc5")
    for family in dict.fromkeys(families):
        confirmed = sum(
            each.is_confirmed and each.found.verdict is not StepVerdict.UNKNOWN
            for at, each in zip(families, judged, strict=True)
            if at == family
        )
        print(
            f"  {family:<16}" + "".join(f"{rows[family, verdict]:>9}" for verdict in StepVerdict) + f"{confirmed:>10}"
        )
    why = Counter(each.found.evidence.split(" (")[0] for each in judged if each.found.verdict is StepVerdict.UNKNOWN)
    for reason, count in why.most_common(MOST_SHOWN):
        print(f"  unknown: {count} {reason}")


def _print_bars(judged: Sequence[_Judged], decided: int) -> None:
    holds = sum(each.is_wrong for each in judged if each.found.verdict is StepVerdict.HOLDS)
    refuted = sum(each.is_wrong for each in judged if each.found.verdict is StepVerdict.REFUTED)
    spent = [each.spent.processor for each in judged]
    clock = [each.spent.clock for each in judged]
    late = quantile(spent, 0.95)
    print("\nverify-z3: bars")
    for met, said in (
        (holds == 0, f"wrong `holds`: {holds}"),
        (refuted == 0, f"wrong `refuted`: {refuted}"),
        (decided == 0, f"hostile steps with a verdict: {decided}"),
        (
            late <= MOST_MS,
            f"a step takes {mean(spent):.1f} ms of a processor, p95 {late:.1f} ms (asked: at most {MOST_MS:g} ms); "
            f"by the clock {mean(clock):.1f} ms, p95 {quantile(clock, 0.95):.1f} ms",
        ),
    ):
        print(f"  {'met    ' if met else 'NOT MET'}  {said}")
