"""What the benches of verifiers share: the time of a verdict, and lines about verdicts, times and bars."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from pipeline.verifiers.base import Covers, Finding, StepInContext, StepVerdict, Verifier

KINDS = ("holds whole", "holds", "refuted", "unknown")
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Timed:
    """A finding, its milliseconds by the clock, and those of this process, where other processes do the work."""

    found: Finding
    ms: float
    processor_ms: float

    @property
    def kind(self) -> str:
        """The verdict, and whether it covers the whole step."""
        whole = self.found.verdict is StepVerdict.HOLDS and self.found.covers is Covers.WHOLE
        return "holds whole" if whole else self.found.verdict.value


def timed(verifier: Verifier, step: StepInContext) -> Timed:
    began, worked = time.perf_counter(), time.process_time()
    found = verifier.verify(step)
    return Timed(found, 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - worked))


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that at least this share of the values does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered)) - 1)] if ordered else 0.0


def spent(values: Sequence[float]) -> str:
    middle, late, last = (quantile(values, share) for share in (0.5, 0.95, 0.99))
    return f"mean {mean(values):.2f} ms, p50 {middle:.2f} ms, p95 {late:.2f} ms, p99 {last:.2f} ms"


def print_kinds(name: str, kinds: Iterable[str], more: str = "") -> None:
    """A line with how many verdicts there are of each kind."""
    counts = Counter(kinds)
    print(f"  {name:<36}" + "".join(f"  {kind} {counts[kind]:>5}" for kind in KINDS) + more)


def print_verdictless(found: Mapping[str, Finding]) -> int:
    """Lines about hostile steps, none of which may have a verdict. Returns how many have one."""
    decided = {name: each for name, each in found.items() if each.verdict is not StepVerdict.UNKNOWN}
    print(f"\n{len(found)} hostile steps, of which none may have a verdict: {len(decided)} have one")
    for name, each in list(decided.items())[:MOST_SHOWN]:
        print(f"  WRONG {name}: {each.verdict}: {each.evidence}")
    return len(decided)


def print_reasons(found: Iterable[Finding]) -> None:
    """Why steps have no verdict."""
    why = Counter(each.evidence.split(" (")[0].split(" `")[0] for each in found if each.verdict is StepVerdict.UNKNOWN)
    for reason, count in why.most_common(MOST_SHOWN):
        print(f"  unknown: {count} {reason or 'read as words'}")


def print_bars(*bars: tuple[bool, str]) -> None:
    """Lines that say whether figures are as wanted."""
    print("\nbars")
    for met, said in bars:
        print(f"  {'met    ' if met else 'NOT MET'}  {said}")
