"""The verifier types: verdicts on generated, legal and hostile programs with known truth, on HumanEval where it is installed,
whether the order of checks matters, and time."""

import random

from pipeline.verifiers.base import StepInContext, StepVerdict
from pipeline.verifiers.registry import verifier_named
from tests.bench.verdicts import print_bars, print_kinds, spent, timed
from tests.verifiers.programs.generated import fenced
from tests.verifiers.programs.human_eval import human_problems
from tests.verifiers.programs.typed import FAMILIES, hostile_types, legal_steps, typed_steps

GENERATED = 240
SEED = 20_261_129
"""Not the seed of the tests."""


def verify_types(steps: int = GENERATED) -> None:
    verifier = verifier_named("types")
    first = timed(verifier, StepInContext(problem="", earlier=(), step=fenced("x: int = 1")))
    generated = [(known, timed(verifier, known.step)) for known in typed_steps(steps, SEED)]
    print(f"\nverify-types: {len(generated)} generated steps, right and wrong ones in turn")
    for family in FAMILIES:
        for wrong in (False, True):
            kinds = [said.kind for known, said in generated if (known.family, known.is_wrong) == (family, wrong)]
            print_kinds(f"{family}, {'wrong' if wrong else 'right'}", kinds)
    legal = [timed(verifier, step) for step in legal_steps().values()]
    print_kinds("legal steps that look like errors", [said.kind for said in legal])
    hostile = [timed(verifier, step) for step in hostile_types().values()]
    print_kinds("hostile steps, each with an error", [said.kind for said in hostile])
    solutions = [timed(verifier, problem.step(problem.program)) for problem in human_problems()]
    print_kinds("solutions of HumanEval, by people", [said.kind for said in solutions])
    for said in solutions:
        if said.kind == "refuted":
            print(f"    refuted: {said.found.evidence}")
    order = list(range(len(generated)))
    random.Random(SEED).shuffle(order)
    again = [verifier.verify(generated[at][0].step) == generated[at][1].found for at in order]
    held = sum(said.found.verdict is StepVerdict.HOLDS and known.is_wrong for known, said in generated)
    held += sum(said.found.verdict is StepVerdict.HOLDS for said in hostile)
    refuted = sum(said.kind == "refuted" and not known.is_wrong for known, said in generated)
    refuted += sum(said.kind == "refuted" for said in legal)
    print_bars(
        (held == 0, f"wrong `holds`: {held}"),
        (refuted == 0, f"wrong `refuted`: {refuted}"),
        (all(again), f"other findings in another order: {again.count(False)} of {len(again)}"),
    )
    slowest = max(said.ms for said in hostile)
    print(
        f"  {spent([said.ms for _, said in generated])}; the first {first.ms:.0f} ms, the slowest hostile {slowest:.0f} ms"
    )
