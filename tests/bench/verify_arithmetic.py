"""The verifier of arithmetic: false refutations of steps that people wrote, planted errors found, and time for each step.

The held-out templates have been looked at since they first measured it, see the README of verifiers."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from pipeline.verifiers.base import StepInContext, StepVerdict, Verifier
from pipeline.verifiers.registry import verifier_named
from tests.bench.grading_time import quantile
from tests.verifiers.planted import development, held_out
from tests.verifiers.planted.errors import KINDS, Template, planted_steps
from tests.verifiers.real_steps import HUMAN, MARKED, Asked, asked, human_steps, marked_steps, refuted

PLANTED = 10_000
SEED = 20_261_126
LEAST_FOUND = 0.95
MOST_FALSE_PER_THOUSAND = 1.0
MOST_MS = 1.0
MOST_MISSES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planted:
    """How many planted errors were found, by kind, and what was said of the same steps without the error."""

    found: dict[str, int]
    steps: dict[str, int]
    false: int
    holding: int
    missed: list[str]

    @property
    def share(self) -> float:
        return sum(self.found.values()) / sum(self.steps.values())


def verify_arithmetic() -> None:
    verifier = verifier_named("arithmetic")
    marks: list[tuple[bool, str]] = []
    if HUMAN.exists() and MARKED.exists():
        marks += _real(verifier)
    else:
        print(f"\nverify-arithmetic: the real steps are not there ({HUMAN.parent})")
    for name, templates in (("development", development.TEMPLATES), ("held-out", held_out.TEMPLATES)):
        result = _planted(verifier, templates)
        _print_planted(name, len(templates), result)
    marks.append(
        (result.share >= LEAST_FOUND, f"held-out planted errors found: {result.share:.4f} (asked {LEAST_FOUND})")
    )
    print("\nverify-arithmetic: bars")
    for met, said in marks:
        print(f"  {'met    ' if met else 'NOT MET'}  {said}")


def _real(verifier: Verifier) -> list[tuple[bool, str]]:
    human = asked(verifier, human_steps())
    wrong = refuted(human)
    print(f"\nverify-arithmetic: {len(human):,} steps of 300 solutions that people wrote")
    _print_verdicts(human)
    for each in wrong:
        print(f"  refuted, {each.step.chain}: {each.found.evidence}")
    print("\nverify-arithmetic: chains of ProcessBench (dev), up to the first error that people marked")
    marked = asked(verifier, marked_steps())
    _print_verdicts(marked)
    errors = sum(each.step.is_error for each in marked)
    said = refuted(marked)
    hits = sum(each.step.is_error for each in said)
    holding = [each for each in marked if each.found.verdict is StepVerdict.HOLDS]
    wrong_share = sum(each.step.is_error for each in holding) / max(1, len(holding))
    print(
        f"  first errors found: {hits} of {errors}, recall {hits / errors:.3f}; precision {hits / max(1, len(said)):.2f}"
    )
    print(f"  steps whose equations hold: {wrong_share:.1%} are errors, of all steps {errors / len(marked):.1%}")
    per_thousand = 1000 * len(wrong) / len(human)
    return [
        (
            per_thousand <= MOST_FALSE_PER_THOUSAND,
            f"steps of people refuted: {per_thousand:.2f} of 1,000 (asked: at most 1)",
        ),
        _time("steps of people", human),
        _time("steps of ProcessBench", marked),
    ]


def _time(name: str, answers: Sequence[Asked]) -> tuple[bool, str]:
    spent = [each.ms for each in answers]
    average, late = mean(spent), quantile(spent, 0.99)
    said = f"{name}: mean {average:.2f} ms, p99 {late:.2f} ms of a processor (asked: at most {MOST_MS:g} ms)"
    return max(average, late) <= MOST_MS, said


def _print_verdicts(answers: Sequence[Asked]) -> None:
    for verdict in StepVerdict:
        count = sum(each.found.verdict is verdict for each in answers)
        print(f"  {verdict:<8}{count:>6}  {count / len(answers):.1%}")


def _planted(verifier: Verifier, templates: Sequence[Template]) -> _Planted:
    found, steps = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    false = holding = 0
    missed = []
    for each in planted_steps(templates, PLANTED, SEED):
        steps[each.kind] += 1
        if _verdict(verifier, each.wrong) is StepVerdict.REFUTED:
            found[each.kind] += 1
        else:
            missed.append(each.wrong)
        right = _verdict(verifier, each.right)
        false += right is StepVerdict.REFUTED
        holding += right is StepVerdict.HOLDS
    return _Planted(found=found, steps=steps, false=false, holding=holding, missed=missed)


def _verdict(verifier: Verifier, step: str) -> StepVerdict:
    return verifier.verify(StepInContext(problem="", earlier=(), step=step)).verdict


def _print_planted(name: str, templates: int, result: _Planted) -> None:
    print(f"\nverify-arithmetic: {PLANTED:,} planted errors, {templates} {name} templates")
    for kind, count in result.steps.items():
        print(f"  {kind:<13}{result.found[kind]:>6} of {count:>6} found  {result.found[kind] / count:.4f}")
    print(f"  {'all':<13}{sum(result.found.values()):>6} of {PLANTED:>6} found  {result.share:.4f}")
    print(f"  without the error: {result.holding:,} hold, {result.false:,} are refuted")
    for each in result.missed[:: max(1, len(result.missed) // MOST_MISSES_SHOWN)][:MOST_MISSES_SHOWN]:
        print(f"  missed: {' '.join(each.split())}")
