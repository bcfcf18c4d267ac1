"""The verifier of arithmetic: false refutations of steps that people wrote, first errors found, and time for each step."""

from collections.abc import Sequence
from statistics import mean

from pipeline.verifiers.base import StepVerdict
from pipeline.verifiers.registry import verifier_named
from tests.bench.verdicts import print_bars, print_kinds, quantile, spent
from tests.verifiers.real_steps import HUMAN, MARKED, Asked, asked, human_steps, marked_steps, refuted

MOST_FALSE_PER_THOUSAND = 1.0
MOST_MS = 1.0


def verify_arithmetic() -> None:
    if not (HUMAN.exists() and MARKED.exists()):
        print(f"\nverify-arithmetic: the real steps are not there ({HUMAN.parent})")
        return
    verifier = verifier_named("arithmetic")
    human = asked(verifier, human_steps())
    wrong = refuted(human)
    print_kinds(f"{len(human):,} steps that people wrote", [each.found.verdict for each in human])
    for each in wrong:
        print(f"  refuted, {each.step.chain}: {each.found.evidence}")
    marked = asked(verifier, marked_steps())
    print_kinds("ProcessBench (dev), to the first error", [each.found.verdict for each in marked])
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
    print_bars(
        (
            per_thousand <= MOST_FALSE_PER_THOUSAND,
            f"refuted steps of people: {per_thousand:.2f} of 1,000 (asked: at most 1)",
        ),
        _time("steps of people", human),
        _time("steps of ProcessBench", marked),
    )


def _time(name: str, answers: Sequence[Asked]) -> tuple[bool, str]:
    times = [each.ms for each in answers]
    met = max(mean(times), quantile(times, 0.99)) <= MOST_MS
    return met, f"{name}: {spent(times)} of a processor (asked: mean and p99 at most {MOST_MS:g} ms)"
