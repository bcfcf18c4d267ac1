"""The verifier `z3`: a step that is given formally holds if its premises entail it, and is refuted if they do not.

Premises that contradict each other entail everything: such a step is unknown, and its evidence says so.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec

from pipeline.core.errors import UsageError
from pipeline.verifiers.base import UNKNOWN, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.reading import NotRead
from pipeline.verifiers.sentences import finding, in_a_line, unknown
from pipeline.verifiers.settings import Z3Config
from pipeline.verifiers.z3 import terms
from pipeline.verifiers.z3.fover_steps import fover_questions, is_fover
from pipeline.verifiers.z3.smtlib import smtlib_questions
from pipeline.verifiers.z3.terms import Question, Term

MOST_CONTEXT = 200_000
"""Characters of a problem with its steps. With more a step is unknown."""
_REMEDY = "needs the package z3-solver: pip install 'stepvalue[formal]', or '.[formal]' in a checkout"


class Z3(Verifier):
    """Steps in SMT-LIB 2 or in FoVer's first-order layout: whether what was given before entails them."""

    Config = Z3Config
    proves = True
    settings: Z3Config

    def __init__(self, settings: Z3Config) -> None:
        """Raises UsageError without the package z3-solver."""
        super().__init__(settings)
        try:
            from pipeline.verifiers.z3 import solver
        except ImportError as error:
            raise UsageError(f"verifier z3 {_REMEDY} ({error})") from error
        self._solver = solver

    @classmethod
    def missing(cls, settings: Z3Config) -> str:
        return "" if find_spec("z3") is not None else _REMEDY

    def verify(self, step: StepInContext) -> Finding:
        if len(step.step) > self.settings.most_characters or not step.step.strip():
            return UNKNOWN
        try:
            questions = self._questions(step)
        except NotRead as reason:
            return unknown(f"not read: {reason}")
        findings: list[Finding] = []
        for question in questions:
            findings.append(self._finding(question))
            if findings[-1].verdict is StepVerdict.REFUTED:
                return findings[-1]
        return _together(findings)

    def _questions(self, step: StepInContext) -> list[Question]:
        if len(step.problem) + sum(map(len, step.earlier)) > MOST_CONTEXT:
            return []
        if is_fover(step.problem):
            return fover_questions(step)
        return smtlib_questions(step, ignore_words=self.settings.ignore_words)

    def _finding(self, question: Question) -> Finding:
        if question.is_independence:
            return self._independence(question)
        return self._entailment(question, question.claim, question.claimed)

    def _entailment(self, question: Question, claim: Term, claimed: str) -> Finding:
        outcome = self._solver.Outcome
        answer = self._solver.answer(question.premises, claim, self.settings)
        match answer.outcome:
            case outcome.ENTAILED:
                return _about(StepVerdict.HOLDS, question, f"{claimed} follows from {question.given}")
            case outcome.NOT_ENTAILED:
                shown = _counter_model(answer.values, question.written)
                said = f"{claimed} does not follow from {question.given}{shown}"
                if question.doubt:
                    return unknown(f"{said}; but {question.doubt}")
                return _about(StepVerdict.REFUTED, question, said)
            case outcome.INCONSISTENT:
                return unknown(
                    f"the premises contradict each other ({question.given}), so everything follows from them"
                )
            case outcome.ONLY_BY_ZERO:
                return unknown(f"{claimed} may fail only where something is divided by 0")
        return unknown(f"Z3 does not decide it: {answer.reason}")

    def _independence(self, question: Question) -> Finding:
        """Neither the claim nor its negation follows."""
        sides = ((question.claim, question.claimed), (terms.operation("not", [question.claim]), f"¬{question.claimed}"))
        for claim, claimed in sides:
            found = self._entailment(question, claim, claimed)
            if found.verdict is StepVerdict.HOLDS:
                return _about(StepVerdict.REFUTED, question, found.evidence)
            if found.verdict is StepVerdict.UNKNOWN:
                return found
        return _about(
            StepVerdict.HOLDS, question, f"neither {sides[0][1]} nor {sides[1][1]} follows from {question.given}"
        )


def _together(findings: Sequence[Finding]) -> Finding:
    """The finding on a step of several claims, none of which is refuted: all must hold."""
    for found in findings:
        if found.verdict is StepVerdict.UNKNOWN:
            return found
    if not findings:
        return UNKNOWN
    return finding(StepVerdict.HOLDS, "; ".join(found.evidence for found in findings), findings[0].covers)


def _counter_model(values: Sequence[tuple[Term, str]], written: Callable[[Term], str]) -> str:
    if not values:
        return ""
    shown = ", ".join(f"{in_a_line(written(term), 80)} = {in_a_line(value.lower(), 40)}" for term, value in values)
    return f": it is false where {shown}"


def _about(verdict: StepVerdict, question: Question, evidence: str) -> Finding:
    return finding(verdict, evidence, question.covers)
