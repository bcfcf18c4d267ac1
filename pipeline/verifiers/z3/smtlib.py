"""Steps in SMT-LIB 2: declarations, definitions and assertions over Core, Ints, Reals and sorts of one's own. Pure.

A command that is not listed in `Script` is not read, and neither is the text around it: options, files, `push`, `reset`,
`check-sat` and recursive definitions have no place in a premise or a claim. A definition is expanded where it is used.
Names of the language cannot be declared again. Strings, keywords, binary numbers and names in bars with
blanks are not read: no formula that is read here needs them. Format:
https://smt-lib.org/papers/smt-lib-reference-v2.6-r2021-05-12.pdf

A chain is one script: what a problem asserts is given, and what a step asserts is claimed to follow from all before it. The
claims and definitions of earlier steps are premises.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from pipeline.verifiers import reading
from pipeline.verifiers.base import Covers, StepInContext
from pipeline.verifiers.reading import FormalPart, NotRead
from pipeline.verifiers.sentences import in_a_line
from pipeline.verifiers.z3 import terms
from pipeline.verifiers.z3.terms import BOOL, INT, OPERATORS, REAL, Question, Symbol, Term

MOST_ATOMS = 20_000
MOST_LEVELS = 100

SExpression = str | tuple["SExpression", ...]
"""An atom, or a list."""
_NAME = r"[A-Za-z~!@$%^&*_+=<>.?/\-][0-9A-Za-z~!@$%^&*_+=<>.?/\-]*"
_TOKEN = re.compile(
    rf"(?P<skipped>[ \t\r\n]+|;[^\n]*)|(?P<bracket>[()])|(?P<atom>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|{_NAME}|\|{_NAME}\|)"
)
_AFTER_ATOM = frozenset(" \t\r\n();")


def expressions(text: str) -> list[SExpression]:
    """The expressions of a text. Raises NotRead if the text is anything else, or too large."""
    done: list[SExpression] = []
    open_lists: list[list[SExpression]] = []
    at = atoms = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotRead(f"{text[at : at + 10]!r} is not read")
        at = token.end()
        match token.lastgroup:
            case "atom":
                atoms += 1
                if atoms > MOST_ATOMS:
                    raise NotRead(f"more than {MOST_ATOMS} atoms")
                if at < len(text) and text[at] not in _AFTER_ATOM:
                    raise NotRead(f"{text[token.start() : at + 1]!r} is not read")
                (open_lists[-1] if open_lists else done).append(token["atom"].strip("|"))
            case "bracket" if token["bracket"] == "(":
                if len(open_lists) >= MOST_LEVELS:
                    raise NotRead(f"more than {MOST_LEVELS} levels")
                open_lists.append([])
            case "bracket":
                if not open_lists:
                    raise NotRead("a bracket closes that was not opened")
                closed = tuple(open_lists.pop())
                (open_lists[-1] if open_lists else done).append(closed)
            case _:
                pass
    if open_lists:
        raise NotRead("a bracket is not closed")
    return done


def written(expression: SExpression) -> str:
    """The text of an expression, in one line."""
    return expression if isinstance(expression, str) else f"({' '.join(map(written, expression))})"


MOST_NODES = 50_000
"""Parts of formulas that are read in one chain, those of definitions again at each use."""
MOST_NESTED = 150
"""Levels of a formula with those of the definitions that it uses."""
SORTS = (BOOL, INT, REAL)
_QUANTIFIERS = (terms.FORALL, terms.EXISTS)
_WORDS = frozenset({*OPERATORS, *SORTS, *_QUANTIFIERS, "true", "false", "let", "match", "as", "par", "is", "_", "!"})
_RESERVED_FOR_SOLVERS = (".", "@")


@dataclass(frozen=True, slots=True)
class _Definition:
    """What `define-fun` defines. It is expanded in a scope of its parameters alone: no variable around a use gets into it."""

    parameters: tuple[tuple[str, str], ...]
    sort: str
    body: SExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Asserted:
    """What a text asserts. `declares`: whether it declares something new, of which nothing can follow from before. `defines`:
    how many names it gives a meaning. `rebinds`: whether a name that is known stands for something else in it."""

    formulas: tuple[Term, ...]
    expressions: tuple[SExpression, ...]
    declares: bool
    defines: int
    rebinds: bool


Scope = Mapping[str, Term]


@dataclass(slots=True)
class Script:
    """What has been declared and defined so far in a chain."""

    _sorts: set[str] = field(default_factory=lambda: set(SORTS))
    _symbols: dict[str, Symbol] = field(default_factory=dict)
    _definitions: dict[str, _Definition] = field(default_factory=dict)
    _rebinds: bool = False
    _nodes: int = 0

    def read(self, text: str) -> Asserted:
        """Reads commands after those before. Raises NotRead if any of them is not read; then this object is of no more use."""
        formulas: list[Term] = []
        asserted: list[SExpression] = []
        declares = self._rebinds = False
        defined = len(self._definitions)
        for command in expressions(text):
            match command:
                case ("set-logic", str()):
                    pass
                case ("assert", formula):
                    formulas.append(terms.fitting(self._term(formula, {}, 0), BOOL))
                    asserted.append(formula)
                case ("declare-sort", str(name), "0"):
                    self._sorts.add(self._new(name))
                    declares = True
                case ("declare-const", str(name), sort):
                    self._declare(name, (), sort)
                    declares = True
                case ("declare-fun", str(name), tuple(parameters), sort):
                    self._declare(name, parameters, sort)
                    declares = True
                case ("define-fun", str(name), tuple(parameters), sort, body):
                    self._define(name, parameters, sort, body)
                case (str(name), *_):
                    raise NotRead(f"the command {name} is not read in this form")
                case _:
                    raise NotRead("a command is a list that begins with a name")
        return Asserted(
            formulas=tuple(formulas),
            expressions=tuple(asserted),
            declares=declares,
            defines=len(self._definitions) - defined,
            rebinds=self._rebinds,
        )

    def _declare(self, name: str, parameters: tuple[SExpression, ...], sort: SExpression) -> None:
        sorts = tuple(self._sort(each) for each in parameters)
        self._symbols[self._new(name)] = Symbol(name, sorts, self._sort(sort))

    def _define(self, name: str, parameters: tuple[SExpression, ...], sort: SExpression, body: SExpression) -> None:
        variables = self._variables(parameters)
        definition = _Definition(tuple((each.name, each.sort) for each in variables), self._sort(sort), body)
        terms.fitting(self._term(body, {each.name: terms.applied(each) for each in variables}, 0), definition.sort)
        self._definitions[self._new(name)] = definition

    def _new(self, name: str) -> str:
        """The name, if it can be declared. Raises NotRead."""
        if (
            self._is_known(name)
            or name in self._sorts
            or name in _WORDS
            or name.startswith(_RESERVED_FOR_SOLVERS)
            or name[0].isdigit()
        ):
            raise NotRead(f"{name} cannot be declared, or not again")
        return name

    def _is_known(self, name: str) -> bool:
        return name in self._symbols or name in self._definitions

    def _sort(self, expression: SExpression) -> str:
        if isinstance(expression, str) and expression in self._sorts:
            return expression
        raise NotRead(f"{written(expression):.40} is no sort that is read")

    def _variables(self, pairs: SExpression) -> list[Symbol]:
        """The variables that a quantifier or definition binds: `((x Int) (y Real))`."""
        found: list[Symbol] = []
        for pair in pairs:
            match pair:
                case (str(name), sort) if name not in _WORDS and not name[0].isdigit():
                    found.append(Symbol(name, (), self._sort(sort)))
                    self._rebinds |= self._is_known(name)
                case _:
                    raise NotRead("a variable is a name with its sort")
        if len({each.name for each in found}) < len(found):
            raise NotRead("two variables have one name")
        return found

    def _term(self, expression: SExpression, scope: Scope, level: int) -> Term:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise NotRead(f"more than {MOST_NODES} parts of formulas")
        if level > MOST_NESTED:
            raise NotRead(f"more than {MOST_NESTED} levels")
        match expression:
            case str(atom):
                return self._atom(atom, scope, level)
            case ("let", tuple(pairs), body):
                return self._let(pairs, body, scope, level)
            case (str(word), tuple(pairs), body) if word in _QUANTIFIERS:
                variables = self._variables(pairs)
                inner = {**scope, **{each.name: terms.applied(each) for each in variables}}
                return terms.quantified(word, variables, self._term(body, inner, level + 1))
            case (str(name), _, *_):
                arguments = [self._term(each, scope, level + 1) for each in expression[1:]]
                if name in OPERATORS:
                    return terms.operation(name, arguments)
                if name in self._definitions and name not in scope:
                    return self._expanded(self._definitions[name], arguments, level)
                if name in self._symbols and name not in scope:
                    return terms.applied(self._symbols[name], arguments)
        raise NotRead(f"{written(expression):.40} is no formula that is read")

    def _atom(self, atom: str, scope: Scope, level: int) -> Term:
        if atom[0].isdigit():
            return _number(atom)
        if atom in ("true", "false"):
            return terms.TRUE if atom == "true" else terms.FALSE
        if atom in scope:
            return scope[atom]
        if atom in self._definitions:
            return self._expanded(self._definitions[atom], [], level)
        if atom in self._symbols:
            return terms.applied(self._symbols[atom])
        raise NotRead(f"{atom:.40} is not declared")

    def _let(self, pairs: tuple[SExpression, ...], body: SExpression, scope: Scope, level: int) -> Term:
        bound: dict[str, Term] = {}
        for pair in pairs:
            match pair:
                case (str(name), value) if name not in _WORDS and name not in bound and not name[0].isdigit():
                    bound[name] = self._term(value, scope, level + 1)
                    self._rebinds |= self._is_known(name)
                case _:
                    raise NotRead("let binds a name to a value, and each name once")
        return self._term(body, {**scope, **bound}, level + 1)

    def _expanded(self, definition: _Definition, arguments: list[Term], level: int) -> Term:
        if len(arguments) != len(definition.parameters):
            raise NotRead(f"a definition has {len(definition.parameters)} parameters, not {len(arguments)}")
        scope = {
            name: terms.fitting(argument, sort)
            for (name, sort), argument in zip(definition.parameters, arguments, strict=True)
        }
        return terms.fitting(self._term(definition.body, scope, level + 1), definition.sort)


def _number(digits: str) -> Term:
    """`12` is an integer, `12.0` a real number."""
    if len(digits) > terms.MOST_BITS:
        raise NotRead("a number is too long")
    return terms.number(Fraction(digits), REAL if "." in digits else INT)


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
    given = [script.read(part.commands if part is not None else "") for part in before]
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
            # A definition by a step is true of itself, and a name that is bound again is not the one that was given.
            covers=Covers.PART
            if has_words or asserted.rebinds or any(each.defines or each.declares for each in (*given[1:], asserted))
            else Covers.WHOLE,
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
