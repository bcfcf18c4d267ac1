"""The verifier code: verdicts on generated and hostile programs with known truth, on HumanEval where installed, and time."""

import random
from collections.abc import Iterable, Sequence

from pipeline.core.records import Verdict
from pipeline.graders.code.checker import CodeChecker
from pipeline.verifiers.base import StepInContext, StepVerdict, Verifier
from pipeline.verifiers.registry import verifier_named
from tests.bench.verdicts import MOST_SHOWN, Timed, print_bars, print_kinds, spent, timed
from tests.settings import grader_settings
from tests.verifiers.programs.generated import known_steps
from tests.verifiers.programs.hostile import after_sabotage, hostile_steps
from tests.verifiers.programs.human_eval import HumanProblem, human_problems
from tests.verifiers.programs.mutants import mutants

GENERATED = 280
SEED = 20_261_128
"""Not the seed of the tests."""
MUTANTS = 3
"""Mutants of each problem of HumanEval."""


def verify_code(steps: int = GENERATED) -> None:
    verifier = verifier_named("code")
    timed(verifier, StepInContext(problem="", earlier=(), step="import math"))
    generated = [(known, timed(verifier, known.step)) for known in known_steps(steps, SEED)]
    print(f"\nverify-code: {len(generated)} generated steps, right and wrong ones in turn")
    for right in (True, False):
        for family in dict.fromkeys(known.family for known, _ in generated):
            kinds = [said.kind for known, said in generated if (known.family, known.passes) == (family, right)]
            print_kinds(f"{family}, {'passes' if right else 'fails'}", kinds)
    lucky = sum(known.passes and not known.right for known, _ in generated)
    print(f"  wrong functions that pass the tests that they are judged by: {lucky}")
    hostile = [timed(verifier, step) for step in hostile_steps().values()]
    print_kinds("hostile steps, none of them right", [said.kind for said in hostile])
    after = [timed(verifier, step) for step in after_sabotage().values()]
    print_kinds("right steps after hostile ones", [said.kind for said in after])
    _human(verifier)
    wholes = sum(said.kind == "holds whole" and not known.proved for known, said in generated)
    held = sum(said.found.verdict is StepVerdict.HOLDS and not known.passes for known, said in generated)
    refuted = sum(said.kind == "refuted" and known.passes for known, said in generated)
    tricked = sum(said.kind == "holds whole" for said in hostile)
    blamed = sum(said.kind == "refuted" for said in after)
    print_bars(
        (wholes + held == 0, f"generated steps: wrong `holds` {held}, `whole` where it is a part {wholes}"),
        (refuted == 0, f"generated steps: wrong `refuted` {refuted}"),
        (tricked == 0, f"hostile steps that hold as a whole: {tricked}"),
        (blamed == 0, f"right steps after hostile ones that are refuted: {blamed}"),
    )
    print(f"  {spent([said.ms for _, said in generated])} by the clock")
    for known, said in [each for each in generated if each[1].kind == "unknown"][:MOST_SHOWN]:
        print(f"  unknown: {known.family}: {said.found.evidence}")


def _human(verifier: Verifier) -> None:
    problems = list(human_problems())
    if not problems:
        print("\nverify-code: HumanEval is left out, because the package human-eval is not installed")
        return
    solutions = [timed(verifier, problem.step(problem.program)) for problem in problems]
    print(f"\nverify-code: {len(problems)} problems of HumanEval")
    print_kinds("solutions by people", [said.kind for said in solutions])
    for problem, said in zip(problems, solutions, strict=True):
        if said.kind == "refuted":
            print(f"    refuted: {problem.prompt.split('(')[0].split()[-1]}: {said.found.evidence}")
    of: dict[Verdict, list[Timed]] = {Verdict.INCORRECT: [], Verdict.CORRECT: []}
    with CodeChecker(grader_settings("code", cpu_seconds=4.0, deadline_seconds=12.0)) as checker:
        for problem, program in _mutants(problems):
            verdict = checker.grade_answer((problem.gold,), program).verdict
            if verdict in of:
                of[verdict].append(timed(verifier, problem.step(program)))
    print_kinds("mutants that fail hidden tests", [said.kind for said in of[Verdict.INCORRECT]])
    print_kinds("mutants that pass hidden tests", [said.kind for said in of[Verdict.CORRECT]])
    print(f"  {spent([said.ms for said in solutions])} by the clock")


def _mutants(problems: Sequence[HumanProblem]) -> Iterable[tuple[HumanProblem, str]]:
    draw = random.Random(SEED)
    for problem in problems:
        programs = list(mutants(problem.program))
        for program in draw.sample(programs, min(MUTANTS, len(programs))):
            yield problem, program
