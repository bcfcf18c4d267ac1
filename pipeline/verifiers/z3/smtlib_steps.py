"""Steps in SMT-LIB: what a problem asserts is given, and what a step asserts is claimed to follow from all before it. Pure.

A chain is one script, so a step goes on with what was declared and defined before. The claims and definitions of earlier
steps are premises.
"""

import re

from pipeline.verifiers import reading
from pipeline.verifiers.base import Covers, StepInContext
from pipeline.verifiers.reading import FormalPart, NotRead
from pipeline.verifiers.sentences import in_a_line
from pipeline.verifiers.z3 import terms
from pipeline.verifiers.z3.smtlib import Script, written
from pipeline.verifiers.z3.terms import Question, Term

_LANGUAGES = frozenset({"smt2", "smt", "smtlib", "smtlib2", "smt-lib", "smt-lib2"})
_COMMENT = re.compile(r";.*[^\s;]")
"""A comment that may claim something, which is not looked at. No name or number that is read has a semicolon."""


def smtlib_questions(step: StepInContext, *, ignore_words: bool) -> list[Question]:
    """What a step in SMT-LIB asks; none if it is not in SMT-LIB. Raises NotRead.

    `ignore_words`: words before the step state nothing that its blocks do not state."""
    own = _formal_part(step.step)
    if own is None:
        return []
    texts = (step.problem, *step.earlier)
    before = [_formal_part(text) for text in texts]
    script = Script()
    given = [script.read(part.commands) for part in before if part is not None]
    premises = [formula for each in given for formula in each.formulas]
    asserted = script.read(own.commands)
    if asserted.declares:
        raise NotRead("the step declares something new, of which nothing can follow")
    if not asserted.formulas:
        raise NotRead("the step asserts nothing")
    has_words = own.has_words or _COMMENT.search(own.commands) is not None
    doubt = ""
    if has_words:
        doubt = "the step has words around its formulas"
    elif not ignore_words and any(map(reading.has_words, before, texts)):
        doubt = "words before the step may state more than the formulas there"
    return [
        Question(
            premises=tuple(premises),
            claim=terms.conjunction(asserted.formulas),
            given=_counted(len(premises) + sum(each.defines for each in given)),
            claimed=in_a_line(" ".join(written(each) for each in asserted.expressions)),
            written=written_term,
            doubt=doubt,
            # A definition is true of itself, and a name that is bound again is not the one that was given.
            covers=Covers.PART if has_words or asserted.defines or asserted.rebinds else Covers.WHOLE,
        )
    ]


def written_term(term: Term) -> str:
    """A term as SMT-LIB writes it, and a fraction as `1/3`."""
    if term.operator == terms.NUMBER:
        return str(term.value)
    name = term.operator if term.symbol is None else term.symbol.name
    return f"({name} {' '.join(map(written_term, term.arguments))})" if term.arguments else name


def _counted(premises: int) -> str:
    return "logic alone" if premises == 0 else f"{premises} premise{'s' if premises > 1 else ''}"


def _formal_part(text: str) -> FormalPart | None:
    """The SMT-LIB of a text: blocks between fences that say so, or the whole text. Raises NotRead if a block does not end."""
    return reading.formal_part(text, _LANGUAGES, _is_script)


def _is_script(text: str) -> bool:
    return text.lstrip().startswith(("(", ";")) and "(" in text
