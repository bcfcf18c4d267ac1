"""The verifier of arithmetic: false refutations of steps that people wrote, planted errors found, and time for each step.

The held-out templates have been looked at since they first measured it, see the README of verifiers."""

from collections import Counter
from collections.abc import Sequence
from statistics import mean

from pipeline.verifiers.base import StepInContext, StepVerdict, Verifier
from pipeline.verifiers.registry import verifier_named
from tests.bench.verdicts import MOST_SHOWN, print_bars, print_kinds, quantile, spent
from tests.verifiers.planted import development, held_out
from tests.verifiers.planted.errors import KINDS, Template, planted_steps
from tests.verifiers.real_steps import HUMAN, MARKED, Asked, asked, human_steps, marked_steps, refuted

PLANTED = 10_000
SEED = 20_261_126
LEAST_FOUND = 0.95
MOST_FALSE_PER_THOUSAND = 1.0
MOST_MS = 1.0


def verify_arithmetic(planted: int = PLANTED) -> None:
    verifier = verifier_named("arithmetic")
    bars: list[tuple[bool, str]] = []
    if HUMAN.exists() and MARKED.exists():
        bars += _real(verifier)
    else:
        print(f"\nverify-arithmetic: the real steps are not there ({HUMAN.parent})")
    share = 0.0
    for name, templates in (("development", development.TEMPLATES), ("held-out", held_out.TEMPLATES)):
        share = _planted(verifier, name, templates, planted)
    print_bars(*bars, (share >= LEAST_FOUND, f"held-out planted errors found: {share:.4f} (asked {LEAST_FOUND})"))


def _real(verifier: Verifier) -> list[tuple[bool, str]]:
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
    return [
        (
            per_thousand <= MOST_FALSE_PER_THOUSAND,
            f"steps of people refuted: {per_thousand:.2f} of 1,000 (asked: at most 1)",
        ),
        _time("steps of people", human),
        _time("steps of ProcessBench", marked),
    ]


def _time(name: str, answers: Sequence[Asked]) -> tuple[bool, str]:
    times = [each.ms for each in answers]
    met = max(mean(times), quantile(times, 0.99)) <= MOST_MS
    return met, f"{name}: {spent(times)} of a processor (asked: mean and p99 at most {MOST_MS:g} ms)"


def _planted(verifier: Verifier, name: str, templates: Sequence[Template], count: int) -> float:
    """Prints what was found of planted errors, by kind, and what was said of the same steps without the error."""
    found, steps = Counter[str](), Counter[str]()
    without: list[StepVerdict] = []
    missed = []
    for each in planted_steps(templates, count, SEED):
        steps[each.kind] += 1
        if _verdict(verifier, each.wrong) is StepVerdict.REFUTED:
            found[each.kind] += 1
        else:
            missed.append(each.wrong)
        without.append(_verdict(verifier, each.right))
    share = found.total() / steps.total()
    print(f"\nverify-arithmetic: {found.total():,} of {count:,} planted errors found, {share:.4f}; {name} templates")
    for kind in KINDS:
        print(f"  {kind:<13}{found[kind]:>6} of {steps[kind]:>6} found")
    print_kinds("without the error", without)
    for step in missed[:: max(1, len(missed) // MOST_SHOWN)][:MOST_SHOWN]:
        print(f"  missed: {' '.join(step.split())}")
    return share


def _verdict(verifier: Verifier, step: str) -> StepVerdict:
    return verifier.verify(StepInContext(problem="", earlier=(), step=step)).verdict
