"""Formal steps with known truth: generated ones, which cvc5 decides, and hostile ones.

Generated formulas are written by this module, as text in the layout of the step, and as SMT-LIB for cvc5. It shares no code
with the verifier. cvc5 reads the SMT-LIB with its own parser.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from pipeline.verifiers.base import StepInContext, StepVerdict

CVC5_MS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FormalStep:
    """A step, with its question in SMT-LIB: what declares, the premises, and the claim."""

    family: str
    step: StepInContext
    declared: str
    premises: tuple[str, ...]
    claim: str


@dataclass(frozen=True, slots=True)
class Truth:
    """What another solver says; None where it does not say."""

    entailed: bool | None
    consistent: bool | None

    def is_wrong(self, verdict: StepVerdict) -> bool | None:
        """Whether the step does not hold or is not refuted, as the verdict says; None where the solver does not decide."""
        known = (self.entailed, self.consistent)
        wrong = False in known if verdict is StepVerdict.HOLDS else self.entailed is True
        return True if wrong else None if None in known else False


def truth(problem: FormalStep) -> Truth:
    """What cvc5 says of a step."""
    given = problem.declared + "".join(f"(assert {each})" for each in problem.premises)
    against = _satisfiable(f"{given}(assert (not {problem.claim}))")
    return Truth(entailed=None if against is None else not against, consistent=_satisfiable(given))


def _satisfiable(script: str) -> bool | None:
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    for option, value in (("tlimit-per", str(CVC5_MS)), ("finite-model-find", str("declare-sort" in script).lower())):
        solver.setOption(option, value)
    solver.setLogic("ALL")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, f"{script}(check-sat)", "problem")
    symbols = parser.getSymbolManager()
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, symbols)
        assert "error" not in said, (said, script)
    return {"sat": True, "unsat": False}.get(said.strip())


def generated(count: int, seed: int) -> Iterator[FormalStep]:
    """Formal steps, of all families in turn. A third or more of them follow, and about as many do not."""
    random = Random(seed)
    makers = list(FAMILIES.values())
    for at in range(count):
        yield makers[at % len(makers)](random)


# First-order logic of FLD. A formula is a text for FLD and a text for SMT-LIB.


@dataclass(frozen=True, slots=True)
class _Both:
    fld: str
    smt: str


def _atom(random: Random, bound: str) -> _Both:
    if random.random() < 0.15:
        name = random.choice("PQ")
        return _Both(f"{{{name}}}", f"p{name}")
    predicate = random.choice("ABCD")
    if bound:
        return _Both(f"{{{predicate}}}{bound}", f"(p{predicate} {bound})")
    thing = random.choice("abc")
    return _Both(f"{{{predicate}}}{{{thing}}}", f"(p{predicate} c{thing})")


def _literal(random: Random, bound: str) -> _Both:
    atom = _atom(random, bound)
    return _Both(f"¬{atom.fld}", f"(not {atom.smt})") if random.random() < 0.3 else atom


def _group(random: Random, bound: str) -> _Both:
    """An atom, its negation, or two joined in brackets."""
    if random.random() < 0.5:
        return _literal(random, bound)
    sign, word = random.choice((("&", "and"), ("v", "or")))
    left, right = _literal(random, bound), _literal(random, bound)
    joined = _Both(f"({left.fld} {sign} {right.fld})", f"({word} {left.smt} {right.smt})")
    return _Both(f"¬{joined.fld}", f"(not {joined.smt})") if random.random() < 0.2 else joined


def _fld(random: Random) -> _Both:
    bound = random.choice(("", "", "x", "y"))
    left, right = _group(random, bound), _group(random, bound)
    implied = _Both(f"{left.fld} -> {right.fld}", f"(=> {left.smt} {right.smt})")
    body = implied if random.random() < 0.7 else left
    if not bound:
        return body
    some = random.random() < 0.25
    return _Both(
        f"({'E' if some else ''}{bound}): {body.fld}",
        f"({'exists' if some else 'forall'} (({bound} Object)) {body.smt})",
    )


_FLD_DECLARED = (
    "(declare-sort Object 0)"
    + "".join(f"(declare-fun p{name} (Object) Bool)" for name in "ABCD")
    + "(declare-const pP Bool)(declare-const pQ Bool)"
    + "".join(f"(declare-const c{name} Object)" for name in "abc")
)


def fover(random: Random) -> FormalStep:
    """Facts, and a step from two or three of them and a conclusion before it. Half of the steps use a rule of logic."""
    facts = [_fld(random) for _ in range(random.randint(4, 9))]
    earlier = [_fld(random) for _ in range(random.randint(0, 2))]
    rule = random.random()
    if rule < 0.25:
        left, right = _group(random, ""), _group(random, "")
        facts += [left, _Both(f"{left.fld} -> {right.fld}", f"(=> {left.smt} {right.smt})")]
        names, claim = [f"fact{len(facts) - 1}", f"fact{len(facts)}"], right
    elif rule < 0.5:
        left, right = _literal(random, "x"), _literal(random, "x")
        facts.append(_Both(f"(x): {left.fld} -> {right.fld}", f"(forall ((x Object)) (=> {left.smt} {right.smt}))"))
        at = [_Both(each.fld.replace("}x", "}{a}"), each.smt.replace(" x)", " ca)")) for each in (left, right)]
        names, claim = ([f"fact{len(facts)}"], _Both(f"{at[0].fld} -> {at[1].fld}", f"(=> {at[0].smt} {at[1].smt})"))
    else:
        names = [f"fact{random.randint(1, len(facts))}" for _ in range(random.randint(1, 3))]
        names += [f"int{at + 1}" for at in range(len(earlier)) if random.random() < 0.5]
        claim = random.choice([facts[int(names[0].removeprefix("fact")) - 1], _fld(random), _fld(random)])
    given = {f"fact{at + 1}": formula for at, formula in enumerate(facts)}
    given |= {f"int{at + 1}": formula for at, formula in enumerate(earlier)}
    hypothesis = _fld(random)
    if random.random() < 0.2:
        claim, conclusion = hypothesis, "hypothesis"
    else:
        conclusion = f"int{len(earlier) + 1}: {claim.fld}"
    listed = "\n".join(f"fact{at + 1}: {formula.fld}" for at, formula in enumerate(facts))
    return FormalStep(
        family="fover",
        step=StepInContext(
            problem=f"$hypothesis$: {hypothesis.fld}\n\n$context$:\n{listed}",
            earlier=tuple(f"fact1 -> int{at + 1}: {formula.fld}" for at, formula in enumerate(earlier)),
            step=f"{' & '.join(names)} -> {conclusion};",
        ),
        declared=_FLD_DECLARED,
        premises=tuple(given[name].smt for name in names),
        claim=claim.smt,
    )


# SMT-LIB


def _script(family: str, declared: str, premises: Sequence[str], earlier: Sequence[str], claim: str) -> FormalStep:
    return FormalStep(
        family=family,
        step=StepInContext(
            problem=declared + "\n" + "\n".join(f"(assert {each})" for each in premises),
            earlier=tuple(f"(assert {each})" for each in earlier),
            step=f"(assert {claim})",
        ),
        declared=declared,
        premises=(*premises, *earlier),
        claim=claim,
    )


def _numeral(value: int, real: bool) -> str:
    digits = f"{abs(value)}.0" if real else str(abs(value))
    return f"(- {digits})" if value < 0 else digits


def _linear(random: Random, names: Sequence[str], real: bool) -> str:
    parts = [f"(* {_numeral(random.randint(-4, 4), real)} {name})" for name in names if random.random() < 0.7]
    parts.append(_numeral(random.randint(-9, 9), real))
    parts.append(random.choice(names))
    return f"(+ {' '.join(parts)})"


def _comparison(random: Random, names: Sequence[str], real: bool) -> str:
    sign = random.choice(("<", "<=", ">", ">=", "=", "distinct"))
    return f"({sign} {_linear(random, names, real)} {_linear(random, names, real)})"


def linear(random: Random) -> FormalStep:
    """Linear constraints on integers or real numbers; the claim is often a sum of two premises."""
    real = random.random() < 0.5
    names = ("x", "y", "z")
    declared = "".join(f"(declare-const {name} {'Real' if real else 'Int'})" for name in names)
    premises = [_comparison(random, names, real) for _ in range(random.randint(1, 4))]
    rule = random.random()
    if rule < 0.5:
        left, right = _linear(random, names, real), _linear(random, names, real)
        more, again = _linear(random, names, real), _linear(random, names, real)
        premises += [f"(<= {left} {right})", f"(< {more} {again})"]
        sign = "<" if rule < 0.35 else ">"
        claim = f"({sign} (+ {left} {more}) (+ {right} {again}))"
    else:
        claim = _comparison(random, names, real)
    return _script("linear", declared, premises, premises[:1], claim)


def whole(random: Random) -> FormalStep:
    """Division with remainder, absolute values, choices."""
    divisor, remainder = random.randint(2, 9), random.randint(0, 3)
    declared = "(declare-const x Int)(declare-const y Int)"
    premises = [f"(= (mod x {divisor}) {remainder})", f"(= y (ite (> x 0) (div x {divisor}) (abs x)))"]
    claims = (
        f"(=> (> x 0) (= x (+ (* {divisor} y) {remainder})))",
        f"(=> (> x {_numeral(random.randint(-3, 3), False)}) (>= x y))",
        f"(= (mod (+ x {divisor}) {divisor}) {random.choice((remainder, remainder, 1))})",
        f"(distinct (mod (* 2 x) {divisor}) {random.randint(0, 9)})",
        f"(>= y {random.choice((0, 0, 1))})",
        f"(= (- (- x)) (abs {random.choice(('x', '(- x)'))}))",
        f"(= (to_int (to_real x)) {random.choice(('x', 'y'))})",
    )
    return _script("whole", declared, premises[: random.randint(1, 2)], [], random.choice(claims))


def uninterpreted(random: Random) -> FormalStep:
    """Equalities between functions of objects."""
    declared = "(declare-sort T 0)(declare-fun f (T) T)(declare-fun g (T T) T)(declare-const a T)(declare-const b T)"

    def term(level: int) -> str:
        if level == 0 or random.random() < 0.3:
            return random.choice("ab")
        if random.random() < 0.6:
            return f"(f {term(level - 1)})"
        return f"(g {term(level - 1)} {term(level - 1)})"

    premises = [f"(= {term(2)} {term(2)})" for _ in range(random.randint(1, 4))]
    premises += [f"(distinct {term(1)} {term(3)})" for _ in range(random.randint(0, 1))]
    premises.append(random.choice(("(= a b)", "(= (f (f (f a))) a)", "(= (g a b) (g b a))")))
    left = term(2)
    claims = (
        f"(= {left} {left.replace('a', 'b')})",
        f"(= (f {left}) (f {left.replace('b', 'a')}))",
        f"(= {term(3)} {term(3)})",
    )
    claim = random.choice(claims)
    return _script("uninterpreted", declared, premises, premises[-1:], claim)


def defined(random: Random) -> FormalStep:
    """Definitions, `let`, and variables of one name in several scopes."""
    more = random.randint(1, 5)
    declared = (
        "(declare-const x Int)(declare-const y Int)"
        f"(define-fun twice ((x Int)) Int (+ x x))(define-fun plus ((y Int)) Int (let ((x (+ y {more}))) (twice x)))"
    )
    premises = [
        f"(> x {_numeral(random.randint(-5, 5), False)})",
        f"(= y (let ((x y) (y x)) (+ (twice x) (* 0 {more}) (plus y))))",
    ]
    claims = (
        f"(= y (- {random.choice(('2', '(twice 1)'))} (plus x) 2))",
        "(= y (- (plus x)))",
        f"(forall ((x Int)) (=> (> x y) (> (plus x) {random.choice(('(plus y)', '(plus x)', 'y'))})))",
        f"(exists ((y Int)) (and (= (twice y) (twice x)) (> y {_numeral(random.randint(-9, 1), False)})))",
        f"(let ((y x)) (=> (> y 5) (> (plus y) {random.randint(6, 30)})))",
        f"(xor (= x y) (distinct x y) {random.choice(('true', 'false'))})",
        f"(=> (> x 0) (< y 0) {random.choice(('false', 'true', '(< x y)'))})",
    )
    return _script("defined", declared, premises, [], random.choice(claims))


def nonlinear(random: Random) -> FormalStep:
    """Products of unknowns, and identities with a slip."""
    a, b = random.randint(1, 9), random.randint(1, 9)
    declared = "(declare-const x Real)(declare-const y Real)"
    claims = (
        f"(= (* (+ x {a}.0) (+ x {b}.0)) (+ (* x x) (* {a + b}.0 x) {a * b + random.choice((0, 0, 1))}.0))",
        f"(>= (+ (* x x) (* y y)) (* {random.choice((2, 2, 3))}.0 x y))",
        f"(=> (> x {a}.0) (> (* x x) {a * a + random.choice((0, 0, b))}.0))",
        f"(=> (= (* x x) {a * a}.0) {random.choice((f'(= x {a}.0)', f'(or (= x {a}.0) (= x (- {a}.0)))'))})",
        f"(=> (= (+ (/ x {a}.0) (/ y {b}.0)) 1.0) (= (+ (* {b}.0 x) (* {a}.0 y)) {a * b + random.choice((0, 0, 1))}.0))",
    )
    return _script("nonlinear", declared, [f"(> y {_numeral(random.randint(-5, 5), True)})"], [], random.choice(claims))


FAMILIES: dict[str, Callable[[Random], FormalStep]] = {
    maker.__name__: maker for maker in (fover, linear, whole, uninterpreted, defined, nonlinear)
}
