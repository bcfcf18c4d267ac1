"""Whether what goes wrong in a run refutes a step, or may have another cause."""

import ast
import re
from collections.abc import Set

from pipeline.graders.code.composition import names_in
from pipeline.verifiers.code.names import definitions, reached
from pipeline.verifiers.code.sandboxed import Outcome
from pipeline.verifiers.programs import Program

_DOUBTFUL = frozenset(
    {
        "ImportError", "OSError", "EOFError", "MemoryError", "RecursionError", "NotImplementedError", "SystemExit",
        "KeyboardInterrupt", "GeneratorExit", "Warning", "StopAsyncIteration", "SyntaxError",
    }
)  # fmt: skip
"""Exceptions that depend on the machine, or that leave something open on purpose or for a later step."""
_MEANT = re.compile(
    r"\b(?:(?<!squared )(?<!absolute )\w*error|\w*exception|raises?(?! [\w ]{1,20} to the)|fail\w*|wrong\w*|incorrect\w*"
    r"|bug\w*|mistake\w*|crash\w*|invalid|traceback|is false|oops|breaks?(?! (?:ties|out of|the loop))|violat\w*|reject\w*"
    r"|counter-?examples?|reproduc\w*|demonstrat\w*|bad|is off|fix\w*|roughly|approx\w*|(?:original|previous|existing"
    r"|user's) (?:code|version|function|implementation|program|solution)|fall[aos]n?|fals[oa]|falsch|faux|todo|fixme|skeleton"
    r"|stubs?|placeholder\w*|dummy|for now|incomplete|unfinished|partial(?:ly)?(?! (?:sum|product))|drafts?|continued?"
    r"|next step|(?<!we )later|first (?:attempt|version)|simple version|simplified|naive|fill in|improve\w*"
    r"|rest of(?! the (?:list|string|word|digits))|base case|to be (?:completed|done|continued)|(?:i|we|let'?s|let us"
    r"|to) (?:will |first )?(?:start|begin|set up))\b|(?:\bnot|n't) (?:true|hold|pass|work|match|equal|correct|right|yet"
    r"|implemented|complete|finished)|doctest:|^\s*(?:\.\.\.|…)|[?≈✗✘✖❌]|[^\W\d_\x00-\x7f]",
    re.IGNORECASE | re.MULTILINE,
)
"""Words after which code may go wrong on purpose, or is not finished. Words in other letters than English ones may say so."""
_DENIED = re.compile(
    r"\b(?:not(?! (?:empty|sorted|needed|negative))|never(?! (?:needs|uses|takes|changes)\b)|cannot|without(?! (?:extra"
    r"|using|changing)\b)|(?<!\w )instead|instead(?! of an? \w)|rather|suppos\w+|assum\w+|ignor\w+|if (?:we|you|one|i|someone"
    r"|they)|would|could|might|unlike|alternativ\w+|(?:the|my|your|an) old (?!value)|before:|claims?|thinks?"
    r"|says?(?! whether)|contradict\w*|is (?:this|it)|try:|refus\w+|complain\w*|(?<!the )missing|immutable|illegal|allowed"
    r"|unsupported|forbid\w*)\b|n't\b",
    re.IGNORECASE,
)
"""Words around a block that may deny or suppose what is in it."""
_SHOWN = re.compile(
    r"(?i)\b(?:show|demonstrat|reproduc|illustrat|expos|reveal)\w*|purpose|intention|deliberate|to fail|should fail"
)
"""Words of a message that says that a test shows a mistake of others."""
_GAP = re.compile(r"(?:[\[({\"'=,]|return)\s*\.\.\.\s*(?:[\])}\"']|$)", re.MULTILINE)
_CODE = re.compile(r"(?:```|~~~)[^`~]*^(?:>>>)?[ \t]*[\w.\[\]'\"]+[ \t]*(?:[-+*/|&]?=(?!=)|\()", re.MULTILINE)
"""A statement in a block that is not read as Python."""
_OF_PYTHON = re.compile(
    r"Exceeds the limit|recursion|too (?:large|deep)|memory|^module '|'is_integer'|keyword argument for|takes no keyword"
    r"|needs an argument",
    re.IGNORECASE,
)
"""What a limit or the version of Python decides, or what shows how a function of it is called."""
OTHER_ANSWERS = re.compile(
    r"\bany (?:\w+ )?order\b|\b(?:return|print|output|give|find) any\b|\bany (?:valid|correct)\b"
    r"|\bmultiple (?:\w+ )?(?:answers|solutions)\b",
    re.IGNORECASE,
)
"""Words of a problem after which results other than those of its tests may be right."""
_REPAIRS = re.compile(r"\b(?:bugs?|buggy|fix|debug|broken|repair)\b", re.IGNORECASE)
"""Words of a problem whose own code may be wrong."""
_OF_SIGNATURE = re.compile(r"[\w.]+\(\) (?:takes|missing|got an)")


def whose(number: int) -> str:
    """A step, or what the problem gives, in words."""
    return f"step {number}" if number else "the problem's own code"


def why_doubtful(outcome: Outcome, program: Program) -> str:
    """Why a failure in the cell of a step may have another cause than a mistake in it. Empty: it has none."""
    kind, text, cell = outcome.text("error"), outcome.text("text"), program.cell
    if found := (outcome.texts("bases") | {kind}) & _DOUBTFUL:
        return f"{min(found)} may be the machine's, or meant"
    if "bases" in outcome.stated and "Exception" not in outcome.texts("bases"):
        return "it is no error"
    if outcome.has("near"):
        return "the result is nearly right, or is not written out"
    if _OF_PYTHON.search(text):
        return "it may be a limit or the version of this Python"
    said = f"{cell.words}\n{cell.comments}\n{outcome.text('test').replace('_', ' ')}"
    if _MEANT.search(said) or _DENIED.search(cell.words) or (kind == "AssertionError" and _SHOWN.search(text)):
        return "the step's words may mean it to go wrong"
    if program.given.mistake:
        return f"the problem's own code is not read: {program.given.mistake}"
    if any(each.is_stub for each in definitions(program.trees).values()) or _GAP.search(cell.source):
        return "a part has no body yet"
    if _CODE.search(program.words):
        return "a block that is not read as Python may change it"
    if "is not defined" in text:
        return "a later step may define it"
    classes = {node.name for tree in program.trees if tree for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    if named := classes & {*re.findall(r"\w+", text)}:
        return f"a later step may complete {min(named)}"
    return ""


def why_of_another(outcome: Outcome, program: Program) -> str:
    """Why a failure in the cell of a step is no mistake of this cell. Empty: it is one.

    A failing test refutes a step only if it needs nothing that an earlier step defines; any other exception, if it is raised in
    the step's own code, not by a statement that is there to raise it, and needs no function of an earlier step but its
    signature.
    """
    place = outcome.stated.get("of")
    if isinstance(place, int) and place != len(program.steps):
        return "it is raised in the code of an earlier step"
    tree, line, names = program.cell.tree, outcome.number("line"), {*re.findall(r"\w+", outcome.text("test"))}
    if not names:
        for node in ast.walk(tree):
            match node:
                case ast.Raise(lineno=at) | ast.Assert(test=ast.Constant(), lineno=at) if at == line:
                    return "it is raised on purpose"
    if _OF_SIGNATURE.match(outcome.text("text")):
        return ""
    is_test = "AssertionError" in outcome.texts("bases") or bool(names)
    needed = [names_in(node) for node in tree.body if node.lineno <= line <= (node.end_lineno or line)]
    return why_blamed(names.union(*needed), program, data=is_test)


def why_blamed(names: Set[str], program: Program, *, data: bool = True) -> str:
    """Why an earlier step may be to blame for what needs these names. Empty: it is not. `data`: also for values."""
    needed, old = reached(names, definitions(program.trees)), definitions(program.trees[:-1])
    # A step that repeats a definition does not make it its own.
    origins = [old[name] if name in old and old[name].text == each.text else each for name, each in needed.items()]
    first = 0 if _REPAIRS.search(program.problem) else 1
    others = [each for each in origins if first <= each.step < len(program.steps) and (data or each.is_made)]
    return f"{whose(others[0].step)} defines {others[0].name}" if others else ""
