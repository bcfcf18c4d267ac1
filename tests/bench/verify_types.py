"""The verifier types: verdicts on generated, legal and hostile programs with known truth, on HumanEval where it is installed,
whether the order of checks matters, and time."""

import random

from pipeline.verifiers.base import StepInContext, StepVerdict
from pipeline.verifiers.registry import verifier_named
from tests.bench.verify_code import print_bar, print_kinds, print_time, timed
from tests.verifiers.programs.generated import fenced
from tests.verifiers.programs.human_eval import human_problems
from tests.verifiers.programs.typed import FAMILIES, hostile_types, legal_steps, typed_steps

GENERATED = 240
SEED = 20_261_129
"""Not the seed of the tests."""


def verify_types() -> None:
    verifier = verifier_named("types")
    first = timed(verifier, StepInContext(problem="", earlier=(), step=fenced("x: int = 1")))
    generated = [(known, timed(verifier, known.step)) for known in typed_steps(GENERATED, SEED)]
    print(f"\nverify-types: {len(generated)} generated steps, right and wrong ones in turn")
    for family in FAMILIES:
        for wrong in (False, True):
            kinds = [said.kind for known, said in generated if (known.family, known.is_wrong) == (family, wrong)]
            print_kinds(f"{family}, {'wrong' if wrong else 'right'}", kinds)
    legal = {name: timed(verifier, step) for name, step in legal_steps().items()}
    print(f"\nverify-types: {len(legal)} legal steps that look like errors")
    print_kinds("legal", [said.kind for said in legal.values()])
    hostile = {name: timed(verifier, step) for name, step in hostile_types().items()}
    print(f"\nverify-types: {len(hostile)} hostile steps, each with an error of types")
    print_kinds("hostile", [said.kind for said in hostile.values()])
    solutions = [timed(verifier, problem.step(problem.program)) for problem in human_problems()]
    if solutions:
        print(f"\nverify-types: {len(solutions)} solutions of HumanEval, by people")
        print_kinds("solutions", [said.kind for said in solutions])
        for said in solutions:
            if said.kind == "refuted":
                print(f"    refuted: {said.found.evidence}")
    order = list(range(len(generated)))
    random.Random(SEED).shuffle(order)
    again = [verifier.verify(generated[at][0].step) == generated[at][1].found for at in order]
    held = sum(said.found.verdict is StepVerdict.HOLDS and known.is_wrong for known, said in generated)
    held += sum(said.found.verdict is StepVerdict.HOLDS for said in hostile.values())
    refuted = sum(said.kind == "refuted" and not known.is_wrong for known, said in generated)
    refuted += sum(said.kind == "refuted" for said in legal.values())
    print("\nverify-types: bars")
    print_bar(held == 0, f"wrong `holds`: {held}")
    print_bar(refuted == 0, f"wrong `refuted`: {refuted}")
    print_bar(all(again), f"other findings in another order: {again.count(False)} of {len(again)}")
    print_time([said.ms for _, said in generated])
    print(
        f"  the first step took {first.ms:.0f} ms, the slowest hostile one {max(said.ms for said in hostile.values()):.0f} ms"
    )
