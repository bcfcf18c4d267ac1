"""Steps in the layout of FoVer: `fact1 & int2 -> int3: ({A} & ¬{B})`. Pure.

The problem gives `$hypothesis$: FORMULA` and, after `$context$:`, `fact1: FORMULA` and so on. A step names its premises, so
only these count: facts, and conclusions of earlier steps as they stand, right or wrong. Its conclusion may be `hypothesis`
or `¬hypothesis`. `The final answer is PROVED`, `DISPROVED` or `UNKNOWN` is about all facts. Assumptions and contradictions
(`assump1`, `#F#`) are not read; FoVer leaves such proofs out, too. Proofs of FLD itself write `hypothesis` where its
negation is proved, which FoVer has corrected: they must be corrected before they are read here. Format: psunlpgroup/FoVer,
src/dataset_creation/base_dataset_specific/fol (prompts, utils/fld_postprocess.py, verifier/verifier.py).

In the formulas of FLD `{A}` is a predicate, of nothing or of one object; `{a}` is an object, `x` a variable; `&`, `v`, `¬` and
`->` are what they look like, `(x): ` means for all and `(Ex): ` for some. A quantifier reaches to the end of its formula or
brackets. FLD has no precedence of operators, and logic has: a formula that these read in two ways is not read. Format:
hitachi-nlp/FLD-generator, FLD_generator/formula.py and formula_checkers/z3_logic_checkers/intermediates.py.
"""

import re
from dataclasses import dataclass, field

from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.reading import NotRead
from pipeline.verifiers.sentences import in_a_line
from pipeline.verifiers.z3 import terms
from pipeline.verifiers.z3.terms import BOOL, Question, Symbol, Term

OBJECT = "Object"
"""The sort of all objects. There is at least one."""
MOST_CHARACTERS = 5_000
MOST_LEVELS = 60
_TOKEN = re.compile(
    r"[ \t]*(?:(?P<predicate>\{[A-Z]{1,3}\})|(?P<object>\{[a-z]{1,3}\})|(?P<variable>[xyz])"
    r"|\((?P<some>E?)(?P<bound>[xyz])\):|(?P<sign>->|[()¬&v]))"
)
_OPERATORS = {"&": "and", "v": "or"}


@dataclass(slots=True)
class Vocabulary:
    """The predicates and objects of a problem, so that a name means the same in all its formulas.

    FLD takes `{A}` and `{A}{a}` for formulas of two predicates."""

    _symbols: dict[tuple[str, int], Symbol] = field(default_factory=dict)

    def predicate(self, name: str, places: int) -> Symbol:
        return self._symbols.setdefault((name, places), Symbol(name, (OBJECT,) * places, BOOL))

    def thing(self, name: str) -> Symbol:
        return self._symbols.setdefault((name, 0), Symbol(name, (), OBJECT))


def fld_formula(text: str, vocabulary: Vocabulary) -> Term:
    """The formula that a text is. Raises NotRead if it is none, or may mean several."""
    if len(text) > MOST_CHARACTERS:
        raise NotRead(f"a formula of more than {MOST_CHARACTERS} characters")
    return _Parser(_tokens(text), vocabulary).whole()


def written_atom(term: Term) -> str:
    """A predicate with its object, as FLD writes it."""
    name = term.symbol.name if term.symbol is not None else "..."
    return name + "".join(written_atom(each) for each in term.arguments)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    text = text.rstrip()
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotRead(f"{text[at : at + 10].strip()!r} is not read in a formula")
        at = match.end()
        if match["bound"]:
            found.append(_Token(terms.EXISTS if match["some"] else terms.FORALL, match["bound"]))
        else:
            found.append(_Token(match.lastgroup or "", match[match.lastgroup or 0]))
    return found


@dataclass(slots=True)
class _Parser:
    tokens: list[_Token]
    vocabulary: Vocabulary
    at: int = 0

    def whole(self) -> Term:
        formula = self._formula({}, 0)
        if self.at < len(self.tokens):
            raise NotRead(f"{self.tokens[self.at].text!r} is not expected in a formula")
        return formula

    def _next(self, kind: str, text: str = "") -> str | None:
        """The text of the next token, which is then read, if it is of this kind."""
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind == kind and text in ("", token.text):
                self.at += 1
                return token.text
        return None

    def _formula(self, scope: dict[str, Symbol], level: int) -> Term:
        if level > MOST_LEVELS:
            raise NotRead(f"a formula with more than {MOST_LEVELS} levels")
        for quantifier in (terms.FORALL, terms.EXISTS):
            if name := self._next(quantifier):
                if name in scope:
                    raise NotRead(f"{name} is bound twice")
                variable = Symbol(name, (), OBJECT)
                return terms.quantified(quantifier, [variable], self._formula({**scope, name: variable}, level + 1))
        left = self._chain(scope, level)
        if not self._next("sign", "->"):
            return left
        return terms.operation("=>", [left, self._unit(scope, level)])

    def _chain(self, scope: dict[str, Symbol], level: int) -> Term:
        """Parts joined by one operator, which may be many."""
        joined = [self._unit(scope, level)]
        for sign, operator in _OPERATORS.items():
            while self._next("sign", sign):
                joined.append(self._unit(scope, level))
            if len(joined) > 1:
                return terms.operation(operator, joined)
        return joined[0]

    def _unit(self, scope: dict[str, Symbol], level: int) -> Term:
        if level > MOST_LEVELS:
            raise NotRead(f"a formula with more than {MOST_LEVELS} levels")
        if self._next("sign", "¬"):
            return terms.operation("not", [self._unit(scope, level + 1)])
        if self._next("sign", "("):
            inner = self._formula(scope, level + 1)
            if not self._next("sign", ")"):
                raise NotRead("a bracket is not closed, or its formula has no clear meaning")
            return inner
        name = self._next("predicate")
        if name is None:
            raise NotRead("a formula does not end")
        if thing := self._next("object"):
            return terms.applied(self.vocabulary.predicate(name, 1), [terms.applied(self.vocabulary.thing(thing))])
        if variable := self._next("variable"):
            if variable not in scope:
                raise NotRead(f"{variable} is not bound")
            return terms.applied(self.vocabulary.predicate(name, 1), [terms.applied(scope[variable])])
        return terms.applied(self.vocabulary.predicate(name, 0))


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
