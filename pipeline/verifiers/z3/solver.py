"""Asks Z3 whether premises entail a claim. The only module that loads Z3.

Z3 gets terms that are built here, never a text, because commands in a text can write files. Each question has a context of
its own, so that equal questions get equal answers, and limits that do not depend on the clock; the time limit is for what
these miss. A counter-model counts only if the premises are true in it and the claim is false, evaluated once more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from itertools import pairwise
from typing import Any

import z3

from pipeline.verifiers.settings import Z3Config
from pipeline.verifiers.z3 import terms
from pipeline.verifiers.z3.terms import BOOL, INT, NUMBERS, REAL, Symbol, Term

MOST_VALUES = 8
"""Values of a counter-model that are kept."""
MOST_IRRATIONAL_DEGREE = 8
MOST_DEGREE_EVALUATED = 6
"""Z3 evaluates irrational numbers exactly and without limits: an 11th power of one takes minutes. So a counter-model with such
numbers counts only if their degrees, multiplied, and the degree of the formulas are at most these."""


class Outcome(Enum):
    """Whether premises entail a claim."""

    ENTAILED = auto()
    NOT_ENTAILED = auto()
    INCONSISTENT = auto()
    """The premises contradict each other, so they entail everything."""
    ONLY_BY_ZERO = auto()
    """It fails only where something is divided by 0, or may do so."""
    OPEN = auto()
    """Z3 does not say within its limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An outcome. `values`: of atoms in a counter-model, if there is one. `reason`: why Z3 does not say."""

    outcome: Outcome
    values: tuple[tuple[Term, str], ...] = ()
    reason: str = ""


def answer(premises: Sequence[Term], claim: Term, settings: Z3Config) -> Answer:
    """Whether the premises entail the claim."""
    try:
        return _Question(premises, claim, settings).answer()
    except (z3.Z3Exception, MemoryError) as error:
        return Answer(outcome=Outcome.OPEN, reason=_shown(error))


class _Question:
    """A question with a context of Z3 and the terms in it."""

    def __init__(self, premises: Sequence[Term], claim: Term, settings: Z3Config) -> None:
        self._settings = settings
        self._context = z3.Context()
        self._built = _Built(self._context)
        self._terms = [claim, *premises]
        self._premises = [self._built.term(each) for each in premises]
        self._denied = z3.Not(self._built.term(claim))

    def answer(self) -> Answer:
        against, verdict = self._checked([*self._premises, self._denied])
        if verdict == z3.unsat:
            return self._entailed()
        if verdict != z3.sat:
            return Answer(outcome=Outcome.OPEN, reason=_shown(against.reason_unknown()))
        asserted = [*self._premises, self._denied]
        if divisors := terms.divisors(self._terms):
            bound = terms.bound_in(self._terms)
            if not all(terms.is_closed(each, bound) for each in divisors):
                return Answer(outcome=Outcome.ONLY_BY_ZERO)
            asserted += [self._built.term(each) != 0 for each in divisors]
            against, verdict = self._checked(asserted)
            if verdict != z3.sat:
                return Answer(outcome=Outcome.ONLY_BY_ZERO)
        model = against.model()
        if not self._is_model(model, asserted):
            return Answer(outcome=Outcome.OPEN, reason="the counter-model could not be confirmed")
        return Answer(outcome=Outcome.NOT_ENTAILED, values=tuple(self._values(model)))

    def _entailed(self) -> Answer:
        """The claim follows; whether also from premises that can be true together."""
        if not self._premises:
            return Answer(outcome=Outcome.ENTAILED)
        solver, verdict = self._checked(self._premises)
        if verdict == z3.sat:
            return Answer(outcome=Outcome.ENTAILED)
        if verdict == z3.unsat:
            return Answer(outcome=Outcome.INCONSISTENT)
        reason = f"it follows, but perhaps from a contradiction: {_shown(solver.reason_unknown())}"
        return Answer(outcome=Outcome.OPEN, reason=reason)

    def _checked(self, asserted: Sequence[Any]) -> tuple[Any, Any]:
        solver = z3.Solver(ctx=self._context)
        solver.set("rlimit", self._settings.resource_limit)
        solver.set("timeout", self._settings.time_limit_ms)
        solver.set("max_memory", self._settings.memory_mb)
        solver.add(*asserted)
        return solver, solver.check()

    def _is_model(self, model: Any, asserted: Sequence[Any]) -> bool:
        """Whether all is true in a model. What stays open after evaluation, for its quantifiers, must be true in all models of
        its objects."""
        irrational = _irrational_degree(model)
        if irrational > 1 and (irrational > MOST_IRRATIONAL_DEGREE or self._degree() > MOST_DEGREE_EVALUATED):
            return False
        values = [model.eval(each, model_completion=True) for each in asserted]
        rest = [each for each in values if not z3.is_true(each)]
        if any(z3.is_false(each) for each in rest):
            return False
        if not rest:
            return True
        known: list[Any] = []
        named: list[tuple[Any, Any]] = []
        for sort in model.sorts():
            objects = model.get_universe(sort)
            constants = [z3.FreshConst(sort) for _ in objects]
            variable = z3.Const("any", sort)
            known += [z3.ForAll([variable], z3.Or(*[variable == each for each in constants])), z3.Distinct(*constants)]
            named += zip(objects, constants, strict=True)
        # Z3 takes the objects of its models for symbols of no fixed meaning if they are asserted again.
        denied = z3.substitute(z3.Not(z3.And(*rest)), *named)
        return bool(self._checked([*known, denied])[1] == z3.unsat)

    def _degree(self) -> int:
        return max(term.measures.degree for term in terms.parts(self._terms))

    def _values(self, model: Any) -> list[tuple[Term, str]]:
        """The values of numbers and formulas that depend on no variable, those of the claim first."""
        bound = terms.bound_in(self._terms)
        found: dict[str, tuple[Term, str]] = {}
        for term in terms.parts(self._terms):
            if len(found) == MOST_VALUES:
                break
            if term.operator == terms.APPLY and term.sort in (BOOL, *NUMBERS) and terms.is_closed(term, bound):
                built = self._built.term(term)
                found.setdefault(str(built.sexpr()), (term, str(model.eval(built, model_completion=True))))
        return list(found.values())


class _Built:
    """Terms of Z3 for ours. Names of a text do not get into Z3: its symbols are numbered."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._sorts = {BOOL: z3.BoolSort(context), INT: z3.IntSort(context), REAL: z3.RealSort(context)}
        self._symbols: dict[Symbol, Any] = {}
        self._made: dict[int, Any] = {}

    def term(self, term: Term) -> Any:
        """The term in Z3. By recursion, which the depth of terms bounds."""
        if id(term) not in self._made:
            self._made[id(term)] = self._make(term)
        return self._made[id(term)]

    def _make(self, term: Term) -> Any:
        if term.operator == terms.NUMBER:
            make = z3.IntVal if term.sort == INT else z3.RealVal
            return make(str(term.value), self._context)
        if term.operator in ("true", "false"):
            return z3.BoolVal(term.operator == "true", self._context)
        arguments = [self.term(each) for each in term.arguments]
        if term.symbol is not None:
            symbol = self._symbol(term.symbol)
            return symbol(*arguments) if arguments else symbol
        if term.bound:
            quantifier = z3.ForAll if term.operator == terms.FORALL else z3.Exists
            return quantifier([self._symbol(each) for each in term.bound], arguments[0])
        return _OPERATIONS[term.operator](*arguments)

    def _symbol(self, symbol: Symbol) -> Any:
        if symbol not in self._symbols:
            name = f"s{len(self._symbols)}"
            sorts = [self._sort(each) for each in (*symbol.parameters, symbol.sort)]
            self._symbols[symbol] = z3.Function(name, *sorts) if len(sorts) > 1 else z3.Const(name, sorts[0])
        return self._symbols[symbol]

    def _sort(self, name: str) -> Any:
        if name not in self._sorts:
            self._sorts[name] = z3.DeclareSort(f"S{len(self._sorts)}", self._context)
        return self._sorts[name]


def _irrational_degree(model: Any) -> int:
    """The degrees of the irrational numbers in a model, multiplied; 1 if there are none."""
    waiting: list[Any] = []
    for symbol in model.decls():
        value = model[symbol]
        if isinstance(value, z3.FuncInterp):
            entries = [value.entry(at) for at in range(value.num_entries())]
            waiting += [each.value() for each in entries]
            waiting += [each.arg_value(at) for each in entries for at in range(each.num_args())]
            waiting.append(value.else_value())
        else:
            waiting.append(value)
    degree = 1
    seen: set[int] = set()
    while waiting and degree <= MOST_IRRATIONAL_DEGREE:
        value = waiting.pop()
        if value is None or value.get_id() in seen:
            continue
        seen.add(value.get_id())
        if z3.is_algebraic_value(value):
            degree *= len(value.poly()) - 1
        waiting += value.children()
    return degree


def _folded(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Of many, from the left: a - b - c."""
    return lambda *arguments: reduce(operation, arguments)


def _chained(relation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Of many, each with the next: a < b < c."""

    def all_in_order(*arguments: Any) -> Any:
        pairs = [relation(*pair) for pair in pairwise(arguments)]
        return pairs[0] if len(pairs) == 1 else z3.And(*pairs)

    return all_in_order


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "not": z3.Not,
    "and": z3.And,
    "or": z3.Or,
    "xor": _folded(z3.Xor),
    "=>": lambda *arguments: reduce(lambda after, before: z3.Implies(before, after), reversed(arguments)),
    "=": _chained(lambda left, right: left == right),
    "distinct": z3.Distinct,
    "ite": z3.If,
    "<": _chained(lambda left, right: left < right),
    "<=": _chained(lambda left, right: left <= right),
    ">": _chained(lambda left, right: left > right),
    ">=": _chained(lambda left, right: left >= right),
    "+": lambda *arguments: z3.Sum(*arguments),
    "-": lambda *arguments: -arguments[0] if len(arguments) == 1 else reduce(lambda a, b: a - b, arguments),
    "*": lambda *arguments: z3.Product(*arguments),
    "/": _folded(lambda left, right: left / right),
    "div": _folded(lambda left, right: left / right),
    "mod": lambda left, right: left % right,
    "abs": lambda number: z3.If(number >= 0, number, -number),
    "to_real": z3.ToReal,
    "to_int": z3.ToInt,
}


def _shown(reason: object) -> str:
    """What Z3 says, in a short line."""
    return " ".join(str(reason).split())[:80]
