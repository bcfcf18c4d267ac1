"""Whether what goes wrong in a run refutes a step, or may have another cause."""

import re

from pipeline.graders.code.composition import names_in
from pipeline.verifiers.code.names import definitions, reached, statement_at
from pipeline.verifiers.code.sandboxed import Outcome
from pipeline.verifiers.programs import Program, why_named

DOUBTFUL = frozenset(
    {
        "ImportError", "OSError", "EOFError", "MemoryError", "RecursionError", "NotImplementedError", "SystemExit",
        "KeyboardInterrupt", "GeneratorExit", "Warning", "StopAsyncIteration",
    }
)  # fmt: skip
"""Exceptions that depend on the machine, or that leave something open on purpose."""
_MEANT = re.compile(
    r"\b(?:error|exception|raises?|fail\w*|wrong|incorrect\w*|bugs?|buggy|mistake\w*|crash\w*|invalid|traceback|"
    r"does(?:n't| not) work)\b",
    re.IGNORECASE,
)
"""Words after which code may go wrong on purpose."""
_UNFINISHED = re.compile(
    r"\b(?:todo|fixme|skeleton|stubs?|placeholder\w*|for now|not (?:yet )?(?:implemented|complete|finished)|incomplete|"
    r"unfinished|partial\w*|draft|continued?|next step|later|first attempt|naive|fill in|to be (?:completed|done|continued))\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"name '([^']*)' is not defined")
_LIMIT = re.compile(r"Exceeds the limit|recursion|too (?:large|deep)|memory", re.IGNORECASE)


def is_unfinished(program: Program) -> bool:
    """Whether words say that the cell of a step is not finished."""
    return _UNFINISHED.search(f"{program.cell.words}\n{program.cell.comments}") is not None


def why_doubtful(outcome: Outcome, program: Program) -> str:
    """Why a failure in the cell of a step may have another cause than a mistake in it. Empty: it has none."""
    kind = outcome.text("error")
    if found := outcome.texts("bases") & DOUBTFUL or ({kind} & DOUBTFUL):
        return f"{sorted(found)[0]} may be the machine's, or meant"
    if "bases" in outcome.stated and "Exception" not in outcome.texts("bases"):
        return "it is no error"
    if outcome.has("near"):
        return "the result is nearly right, or is not written out"
    if _LIMIT.search(outcome.text("text")):
        return "it may be a limit of this Python"
    if is_unfinished(program) or _MEANT.search(f"{program.cell.words}\n{program.cell.comments}"):
        return "the step's words may mean it to go wrong"
    if program.given.tree is None:
        return f"the problem's own code is not read: {program.given.mistake}"
    if any(each.is_stub for each in definitions(program.trees).values()):
        return "a function has no body yet"
    if name := _NAME.search(outcome.text("text")):
        return why_named(name[1], program)
    return ""


def why_of_another(outcome: Outcome, program: Program, cell: int) -> str:
    """Why an earlier step may be to blame for a failure in a cell, of this number in the run. Empty: it is not.

    A failing test refutes a step only if it needs nothing that an earlier step defines; any other exception, if it is raised in
    the step's own code.
    """
    place = outcome.stated.get("of")
    if isinstance(place, int) and place != cell:
        return "it is raised in the code of an earlier step"
    if "AssertionError" not in outcome.texts("bases") and not outcome.has("test"):
        return ""
    tree = program.cell.tree
    statement = statement_at(tree, outcome.number("line")) if tree is not None else None
    names = {*re.findall(r"\w+", outcome.text("test"))} | (names_in(statement) if statement is not None else set())
    return why_blamed(names, program)


def why_blamed(names: set[str] | frozenset[str], program: Program) -> str:
    """Why an earlier step may be to blame for a test that needs these names. Empty: it is not."""
    others = [
        each for each in reached(names, definitions(program.trees)).values() if 0 < each.step < len(program.steps)
    ]
    return f"step {others[0].step} defines {others[0].name}" if others else ""
