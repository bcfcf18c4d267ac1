"""Reads the formulas of FLD: `(x): ({A}x & {B}x) -> ¬{C}x`. Pure.

`{A}` is a predicate, of nothing or of one object; `{a}` is an object, `x` a variable; `&`, `v`, `¬` and `->` are what they
look like, `(x): ` means for all and `(Ex): ` for some. A quantifier reaches to the end of its formula or brackets. FLD has
no precedence of operators, and logic has: a formula that these read in two ways is not read. Format:
hitachi-nlp/FLD-generator, FLD_generator/formula.py and formula_checkers/z3_logic_checkers/intermediates.py.
"""

import re
from dataclasses import dataclass, field

from pipeline.verifiers.reading import NotRead
from pipeline.verifiers.z3 import terms
from pipeline.verifiers.z3.terms import BOOL, Symbol, Term

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
