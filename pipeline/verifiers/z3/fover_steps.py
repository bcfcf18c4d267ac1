"""Steps in the layout of FoVer: `fact1 & int2 -> int3: ({A} & ¬{B})`. Pure.

The problem gives `$hypothesis$: FORMULA` and, after `$context$:`, `fact1: FORMULA` and so on. A step names its premises, so
only these count: facts, and conclusions of earlier steps as they stand, right or wrong. Its conclusion may be `hypothesis`
or `¬hypothesis`. `The final answer is PROVED`, `DISPROVED` or `UNKNOWN` is about all facts. Assumptions and contradictions
(`assump1`, `#F#`) are not read; FoVer leaves such proofs out, too. Proofs of FLD itself write `hypothesis` where its
negation is proved, which FoVer has corrected: they must be corrected before they are read here. Format: psunlpgroup/FoVer,
src/dataset_creation/base_dataset_specific/fol (prompts, utils/fld_postprocess.py, verifier/verifier.py).
"""

import re
from dataclasses import dataclass, field

from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.reading import NotRead
from pipeline.verifiers.sentences import in_a_line
from pipeline.verifiers.z3 import terms
from pipeline.verifiers.z3.fld import Vocabulary, fld_formula, written_atom
from pipeline.verifiers.z3.terms import Question, Term

MOST_CLAIMS = 20
"""Derivations in one step."""
_CONTEXT, _HYPOTHESIS = "$context$:", "$hypothesis$:"
_NUMBERED = re.compile(r"\bfact(\d{1,4}):")
_DERIVATION = re.compile(
    r"(?P<premises>(?:fact|int)\d{1,4}(?: & (?:fact|int)\d{1,4}){0,99}) -> (?:int(?P<number>\d{1,4}): )?(?P<conclusion>.+)"
)
_LABEL = re.compile(r"(?:The final answer is|\$proof_label\$:) (PROVED|DISPROVED|UNKNOWN)\.?")
_HEADING = "$proof$:"
_TO_HYPOTHESIS = {"hypothesis": False, "¬hypothesis": True}
"""A conclusion -> whether it is the negation of the hypothesis."""


@dataclass(slots=True)
class _Proof:
    """What a problem and the steps so far give. A formula that is not read, or a name that is given twice, is None."""

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    named: dict[str, Term | None] = field(default_factory=dict)
    hypothesis: Term | None = None
    has_more: bool = False

    def give(self, name: str, formula: Term | None) -> None:
        self.named[name] = None if name in self.named else formula

    def read(self, text: str) -> Term | None:
        try:
            return fld_formula(text, self.vocabulary)
        except NotRead:
            return None

    def conclusion(self, text: str) -> Term | None:
        if text not in _TO_HYPOTHESIS:
            return self.read(text)
        if self.hypothesis is None:
            return None
        return _negated(self.hypothesis) if _TO_HYPOTHESIS[text] else self.hypothesis

    def premise(self, name: str) -> Term:
        if name not in self.named:
            raise NotRead(f"{name} is not given")
        formula = self.named[name]
        if formula is None:
            raise NotRead(f"{name} is not read, or given twice")
        return formula


def is_fover(problem: str) -> bool:
    return _CONTEXT in problem and _NUMBERED.search(problem) is not None


def fover_questions(step: StepInContext) -> list[Question]:
    """What a step asks, where its problem is in FoVer's layout. None if the step is no derivation. Raises NotRead."""
    lines = _lines(step.step)
    if not any(_DERIVATION.fullmatch(line) or _LABEL.fullmatch(line) for line in lines):
        return []
    if len(lines) > MOST_CLAIMS:
        raise NotRead(f"more than {MOST_CLAIMS} derivations in a step")
    proof = _proof(step.problem)
    for text in step.earlier:
        for line in _lines(text):
            if derivation := _DERIVATION.fullmatch(line):
                _conclude(proof, derivation)
    questions: list[Question] = []
    for line in lines:
        if derivation := _DERIVATION.fullmatch(line):
            questions.append(_question(proof, derivation))
            _conclude(proof, derivation)
        elif label := _LABEL.fullmatch(line):
            questions.append(_label_question(proof, label[1]))
        else:
            raise NotRead(f"{in_a_line(line, 40)!r} is no derivation")
    return questions


def _lines(text: str) -> list[str]:
    stripped = (line.strip().removesuffix(";").rstrip() for line in text.split("\n"))
    return [line for line in stripped if line and line != _HEADING]


def _proof(problem: str) -> _Proof:
    """The facts and the hypothesis of a problem. Raises NotRead if it may be several problems."""
    if problem.count(_CONTEXT) != 1 or problem.count(_HYPOTHESIS) > 1:
        raise NotRead("the problem has several contexts or hypotheses")
    proof = _Proof()
    before, _, context = problem.partition(_CONTEXT)
    for place in (before, context):
        if _HYPOTHESIS in place:
            proof.hypothesis = proof.read(place.partition(_HYPOTHESIS)[2].lstrip().split("\n")[0].strip())
    starts = list(_NUMBERED.finditer(context))
    proof.has_more = any(line[0] != "$" and not _NUMBERED.match(line) for line in _lines(context))
    for start, end in zip(starts, [*(each.start() for each in starts[1:]), len(context)], strict=True):
        proof.give(f"fact{int(start[1])}", proof.read(context[start.end() : end].split("\n")[0].strip()))
    return proof


def _conclude(proof: _Proof, derivation: re.Match[str]) -> None:
    if derivation["number"]:
        proof.give(f"int{int(derivation['number'])}", proof.conclusion(derivation["conclusion"]))


def _question(proof: _Proof, derivation: re.Match[str]) -> Question:
    names = [_plain_name(name) for name in derivation["premises"].split(" & ")]
    claim = proof.conclusion(derivation["conclusion"])
    if claim is None:
        raise NotRead(f"the conclusion {in_a_line(derivation['conclusion'], 60)} is not read")
    return Question(
        premises=tuple(proof.premise(name) for name in names),
        claim=claim,
        given=in_a_line(" & ".join(names)),
        claimed=in_a_line(derivation["conclusion"]),
        written=written_atom,
    )


def _label_question(proof: _Proof, label: str) -> Question:
    """What it says that the hypothesis is proved, disproved, or neither."""
    if proof.hypothesis is None:
        raise NotRead("the hypothesis is not read")
    if proof.has_more:
        raise NotRead("the context has lines that are not read as facts")
    facts = tuple(proof.premise(name) for name in proof.named if name.startswith("fact"))
    is_negated = label == "DISPROVED"
    return Question(
        premises=facts,
        claim=_negated(proof.hypothesis) if is_negated else proof.hypothesis,
        given="all facts",
        claimed="¬hypothesis" if is_negated else "hypothesis",
        written=written_atom,
        is_independence=label == "UNKNOWN",
    )


def _negated(formula: Term) -> Term:
    return terms.operation("not", [formula])


def _plain_name(name: str) -> str:
    """`fact01` names what `fact1` names."""
    digits = name.lstrip("factin")
    return f"{name[: -len(digits)]}{int(digits)}"
