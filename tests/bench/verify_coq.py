"""The verifier coq: verdicts on generated chains against `coqc`, which compiles each as a file; hostile steps; speed."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import UsageError
from pipeline.verifiers.base import Finding, StepVerdict
from pipeline.verifiers.coq import toplevel
from pipeline.verifiers.coq.lexer import sentences
from pipeline.verifiers.coq.verifier import Coq
from pipeline.verifiers.settings import CoqConfig
from tests.bench.grading_time import quantile
from tests.verifiers.coq_hostile import CANARY, hostile
from tests.verifiers.coq_problems import Chain, first_rejected, generated

CHAINS = 200
SEED = 20_261_126
"""Not the seed of the tests."""
LEAST_SENTENCES = 20.0
"""A second."""
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A step of a chain, from 0, its finding, seconds by the clock, and the first step that `coqc` rejects, None for none."""

    chain: Chain
    at: int
    found: Finding
    seconds: float
    rejected: int | None

    @property
    def is_wrong(self) -> bool:
        match self.found.verdict:
            case StepVerdict.HOLDS:
                return self.rejected is not None and self.at >= self.rejected
            case StepVerdict.REFUTED:
                return self.at != self.rejected
        return False


def verify_coq() -> None:
    path = toplevel.program()
    if path is None:
        raise UsageError(f"verify-coq needs {toplevel.PROGRAM}: {toplevel.REMEDY}")
    coq = Coq(CoqConfig())
    chains = generated(CHAINS, SEED)
    judged = [each for chain in chains for each in _judged(coq, chain)]
    print(f"\nverify-coq: {len(chains)} generated chains of {len(judged):,} steps, with Coq {toplevel.version(path)}")
    _print_families(judged)
    steps = hostile()
    verdicts = {name: coq.verify(step) for name, step in steps.items()}
    decided = {name: found for name, found in verdicts.items() if found.verdict is not StepVerdict.UNKNOWN}
    coq.close()
    print(f"\nverify-coq: {len(steps)} hostile steps, of which none may have a verdict: {len(decided)} have one")
    for name, found in list(decided.items())[:MOST_SHOWN]:
        print(f"  WRONG {name}: {found.verdict}: {found.evidence}")
    _print_bars(judged, len(decided))


def _judged(coq: Coq, chain: Chain) -> list[_Judged]:
    rejected = first_rejected(chain)
    judged = []
    for at, step in enumerate(chain.contexts()):
        began = time.perf_counter()
        found = coq.verify(step)
        seconds = time.perf_counter() - began
        judged.append(_Judged(chain=chain, at=at, found=found, seconds=seconds, rejected=rejected))
    return judged


def _print_families(judged: Sequence[_Judged]) -> None:
    rows = Counter((each.chain.family, each.found.verdict) for each in judged)
    first = Counter(each.chain.family for each in judged if each.at == each.rejected)
    print("  family          " + "".join(f"{verdict:>9}" for verdict in StepVerdict) + "   first errors by coqc")
    for family in dict.fromkeys(each.chain.family for each in judged):
        print(
            f"  {family:<16}"
            + "".join(f"{rows[family, verdict]:>9}" for verdict in StepVerdict)
            + f"{first[family]:>10}"
        )
    why = Counter(
        each.found.evidence.split(" `")[0].split(",")[0]
        for each in judged
        if each.found.verdict is StepVerdict.UNKNOWN and (each.rejected is None or each.at <= each.rejected)
    )
    for reason, count in why.most_common(MOST_SHOWN):
        print(f"  unknown before or at the first error: {count} {reason or 'read as words'}")
    for each in [each for each in judged if each.is_wrong][:MOST_SHOWN]:
        print(f"  WRONG {each.found.verdict}: {each.chain!r}, step {each.at + 1}: {each.found.evidence}")


def _print_bars(judged: Sequence[_Judged], decided: int) -> None:
    wrong = Counter(each.found.verdict for each in judged if each.is_wrong)
    verdicts = Counter(each.found.verdict for each in judged)
    errors = sum(each.at == each.rejected for each in judged)
    found = sum(each.at == each.rejected and each.found.verdict is StepVerdict.REFUTED for each in judged)
    own = sum(len(sentences(each.chain.steps[each.at])) for each in judged)
    seconds = [each.seconds for each in judged]
    speed = own / sum(seconds)
    print("\nverify-coq: bars")
    for met, said in (
        (not wrong[StepVerdict.HOLDS], f"wrong `holds`: {wrong[StepVerdict.HOLDS]} of {verdicts[StepVerdict.HOLDS]}"),
        (
            not wrong[StepVerdict.REFUTED],
            f"wrong `refuted`: {wrong[StepVerdict.REFUTED]} of {verdicts[StepVerdict.REFUTED]}",
        ),
        (not decided, f"hostile steps with a verdict: {decided}"),
        (not Path(CANARY).exists(), "no hostile step has written a file"),
        (
            speed >= LEAST_SENTENCES,
            f"{speed:.0f} sentences of steps a second (asked: {LEAST_SENTENCES:g}), libraries included; a step takes "
            f"{1000 * quantile(seconds, 0.5):.1f} ms, p95 {1000 * quantile(seconds, 0.95):.0f} ms by the clock",
        ),
    ):
        print(f"  {'met    ' if met else 'NOT MET'}  {said}")
    print(f"  first errors refuted: {found} of {errors}")
