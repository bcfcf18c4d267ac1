"""Formal steps that are written to mislead, stall or crash whoever reads them, or to make a solver write files.

None of them may hold or be refuted. `TRICKY` ones are legal and have a verdict, which cvc5 knows, too.
"""

from pipeline.verifiers.base import StepInContext
from tests.verifiers.z3_problems import FormalStep

PROBLEM = "(declare-const x Int)(declare-const p Bool)(declare-fun f (Int) Int)(assert (> x 2))"
FOVER = (
    "$hypothesis$: {C}{a}\n\n$context$:\nfact1: (x): {A}x -> {B}x\nfact2: {A}{a}\nfact3: ({A}{a} v {B}{b}) -> {C}{b}"
)
FILE = "written-by-a-step"

COMMANDS = {
    "an output file": f'(set-option :regular-output-channel "{FILE}")(echo "x")',
    "a diagnostic file": f'(set-option :diagnostic-output-channel "{FILE}")',
    "a log": f'(set-option :smtlib2_log "{FILE}")(open-log "{FILE}")',
    "an option": "(set-option :timeout 4294967295)",
    "a parameter": "(set-option :rlimit 0)",
    "information": '(set-info :status unsat)(set-info :notes "true")',
    "an include": '(include "/etc/passwd")',
    "an exit": "(exit)",
    "a push": "(push 1)",
    "a pop": "(pop 1)",
    "a reset": "(reset)",
    "a reset of assertions": "(reset-assertions)",
    "a check": "(check-sat)",
    "a check with assumptions": "(check-sat-assuming (p))",
    "a model": "(get-model)",
    "a value": "(get-value (x))",
    "a proof": "(get-proof)",
    "an evaluation": "(eval (+ x 1))(simplify (+ 1 1))",
    "an echo": '(echo "holds")',
    "help": "(help)(display x)",
    "a tactic": "(apply smt)(check-sat-using smt)",
    "a datatype": "(declare-datatypes () ((T A B)))",
    "a recursive function": "(define-fun-rec g ((n Int)) Int (+ 1 (g n)))",
    "recursive functions": "(define-funs-rec ((g ((n Int)) Int)) ((g n)))",
    "a function that calls itself": "(define-fun g ((n Int)) Int (g n))",
    "a defined sort": "(define-sort MyInt () Int)",
    "a sort again": "(declare-sort Int 0)",
    "a sort with parameters": "(declare-sort L 1)",
    "a constant again": "(declare-const x Real)",
    "the constant true": "(declare-const true Bool)",
    "the constant false defined": "(define-fun false () Bool true)",
    "a connective declared": "(declare-fun and (Bool Bool) Bool)",
    "a connective in bars": "(declare-fun |not| (Bool) Bool)",
    "negation defined": "(define-fun not ((a Bool)) Bool a)",
    "equality defined": "(define-fun = ((a Int) (b Int)) Bool true)",
    "a sum defined": "(define-fun + ((a Int) (b Int)) Int 0)",
    "a quantifier declared": "(declare-const forall Bool)",
    "let declared": "(declare-const let Int)",
    "a number declared": "(declare-const 5 Int)",
    "a name of a solver": "(declare-const @x Int)",
    "a hidden name": "(declare-const .def_1 Int)",
    "an object of a model": "(declare-const |S!val!0 | Int)",
    "a rule": "(declare-rel r (Int))(rule (r 1))(query r)",
    "an objective": "(maximize x)(assert-soft p :weight 2)",
    "a named assertion": "(assert (! (> x 3) :named a))",
    "a command in bars": "(|assert| (> x 3))(|exit|)",
    "a command of a list": "((assert (> x 3)))",
    "an atom": "assert",
    "a keyword": ":named",
    "a string": '"text"',
    "no bracket": "(assert (> x 3)",
    "a bracket too many": "(assert (> x 3)))",
    "an empty list": "()",
    "an assertion of nothing": "(assert)",
    "two formulas": "(assert p p)",
    "a number asserted": "(assert 1)",
    "letters of others": "(assert (> х 3))",
    "a null": "(assert (> x 3))\x00",
    "a surrogate": "(assert (> x 3))\ud800",
    "python": "(assert __import__('os').system('touch written-by-a-step'))",
}
"""Commands that are not read, in a problem, in a step before, or in the step."""

FORMULAS = {
    "no such name": "(> z 3)",
    "too many arguments": "(> (f 1 2) 3)",
    "a formula as a number": "(> p 3)",
    "a number as a formula": "(and x p)",
    "one conjunct": "(and p)",
    "no conjunct": "(and)",
    "mixed sorts": "(= x p)",
    "an integer and a real": "(> x 2.5)",
    "a quotient of integers": "(= (/ x 2) x)",
    "a negative number": "(> x -1)",
    "a leading zero": "(> x 007)",
    "a hexadecimal": "(> x #xff)",
    "a number that is called": "(> (3 x) 2)",
    "an empty formula": "()",
    "an array": "(= (select (store a 0 1) 0) 1)",
    "an indexed function": "((_ divisible 3) x)",
    "a lambda": "(= (lambda ((y Int)) y) f)",
    "a qualified name": "(> (as x Int) 2)",
    "a match": "(match x ((y p)))",
    "an annotation": "(! p :pattern (p))",
    "a pattern": "(forall ((y Int)) (! (> (f y) y) :pattern ((f y))))",
    "no variables": "(forall () p)",
    "a variable of no sort": "(forall ((y)) p)",
    "one variable twice": "(forall ((y Int) (y Bool)) y)",
    "true as a variable": "(forall ((true Bool)) true)",
    "true by let": "(let ((true false)) (not true))",
    "a let that reads itself": "(let ((y y)) (= y y))",
    "one let twice": "(let ((y 1) (y 2)) (= y 2))",
    "a function shadowed": "(let ((f 1)) (= (f 1) 1))",
    "a division by zero": "(= (/ 1.0 0.0) 0.0)",
    "a remainder by zero": "(= (mod x 0) x)",
    "a divisor that is bound": "(forall ((y Int)) (= (div y y) 1))",
    "a power": "(= (^ x 2) (* x x))",
    "a huge number": f"(> x {'9' * 5_000})",
    "a huge product": f"(> x (* {' '.join(['9' * 600] * 20)}))",
    "a tower of lets": "(let ((a (* 99999 99999))) " * 1
    + "".join(f"(let ((a{at} (* a{at - 1 if at else ''} a{at - 1 if at else ''}))) " for at in range(30))
    + "(> a29 0)"
    + ")" * 31,
    "a large power by lets": "".join(
        f"(let ((a{at} (* {f'a{at - 1} a{at - 1}' if at else 'x x'}))) " for at in range(30)
    )
    + "(> a29 0)"
    + ")" * 30,
    "exponential lets": "".join(f"(let ((a{at} (and {f'a{at - 1} a{at - 1}' if at else 'p p'}))) " for at in range(60))
    + "a59"
    + ")" * 60,
    "nested negations": "(not " * 9_000 + "p" + ")" * 9_000,
    "nested brackets": "(" * 19_000,
    "brackets that close": "(" * 9_000 + ")" * 9_000,
    "many arguments": f"(and {'p ' * 9_000})",
    "many different": f"(distinct {' '.join(map(str, range(190)))} x)",
    "many names": f"(and {' '.join(f'q{at}' for at in range(3_000))})",
    "many quantifiers": "(forall ((y Int)) " * 99 + "p" + ")" * 99,
}
"""Formulas that are not read, or not decided."""

DEFINITIONS = {
    "exponential definitions": "(define-fun g0 ((n Int)) Int (+ n n))"
    + "".join(f"(define-fun g{at} ((n Int)) Int (+ (g{at - 1} n) (g{at - 1} (g{at - 1} n))))" for at in range(1, 30))
    + "(assert (> (g29 x) 0))",
    "deep definitions": "(define-fun g0 ((n Int)) Int (+ n 1))"
    + "".join(f"(define-fun g{at} ((n Int)) Int (+ 1 (g{at - 1} n)))" for at in range(1, 300))
    + "(assert (> (g299 x) 0))",
    "a definition shadowed": "(define-fun g ((n Int)) Int n)(assert (let ((g 1)) (= (g 1) 1)))",
    "a step that declares": "(declare-const y Int)(assert (= y x))",
    "a step that assumes": "(declare-const y Int)(assert (and (= y 1) (> x 100)))",
    "a step that only declares": "(declare-const y Int)",
    "a step that asserts nothing": "(set-logic QF_LIA)",
    "a comment": "; (assert (> x 1))",
    "a block that does not end": "```smt2\n(assert (> x 1))",
    "another block": "```python\n(assert (> x 1))\n```",
    "a false claim in words": "It is wrong to say:\n```smt2\n(assert (> x 5))\n```",
}


def _pigeonhole(holes: int) -> str:
    """That a function of this number of arguments cannot have one value more."""
    each = (" ".join(f"(= (f {hole}) {bird})" for hole in range(holes)) for bird in range(holes + 1))
    return f"(not (and {' '.join(f'(or {some})' for some in each)}))"


_BIG = "9" * 300
LOOPS: dict[str, tuple[str, str, bool]] = {
    "a quantifier loop": (
        "(assert (forall ((y Int)) (> (f (f (+ y 1))) (+ (f y) (* (f (* 2 y)) (f y))))))",
        "p",
        False,
    ),
    "a matching loop": ("(assert (forall ((y Int)) (> (f (+ y 1)) (f y))))", "(= (f 9) (f (f 9)))", False),
    "a hard equation": ("", "(forall ((a Int) (b Int)) (distinct (+ (* a a a) (* b b b) (* x x x)) 42))", False),
    "a pigeonhole": ("", _pigeonhole(10), True),
    "large factors": ("", "(forall ((a Int) (b Int)) (=> (> a b 1) (distinct (* a b) 1000000016000000063)))", False),
    "an irrational root of a high degree": (
        "(declare-const r Real)",
        "(distinct (+ (* r r r r r r r r r r r) (* 3 r r r r r r r) (* 17 r r r) 5 (- r)) 0)",
        False,
    ),
    "large numbers": ("(declare-const r Real)", f"(distinct (* r r r {_BIG}) (+ (* r {_BIG}) {_BIG}))", False),
    "large remainders": ("(declare-const a Int)", f"(distinct (mod a {_BIG}) (div x {'7' * 200}))", False),
}
"""What may take solvers long: commands in the problem, a claim, and whether it follows."""

DERIVATIONS = {
    "a fact that is not there": "fact9 -> int1: {B}{a}",
    "a premise that is not there": "int7 -> int8: {B}{a}",
    "the hypothesis as a premise": "hypothesis -> int1: {C}{a}",
    "an assumption": "void -> assump1: {A}{a}",
    "a premise by assumption": "[assump1] & fact1 -> int1: {B}{a}",
    "a contradiction": "fact1 & fact2 -> #F#",
    "a formula as a premise": "fact1 & {A}{a} -> int1: {B}{a}",
    "a premise in brackets": "(fact1) & fact2 -> int1: {B}{a}",
    "an or of premises": "fact1 v fact2 -> int1: {B}{a}",
    "no conclusion": "fact1 & fact2 -> ",
    "no premises": " -> int1: {B}{a}",
    "words": "fact1 & fact2 -> int1: {B}{a} because of fact1",
    "words before": "So fact1 & fact2 -> int1: {B}{a}",
    "a free variable": "fact1 -> int1: {B}x",
    "two places": "fact1 -> int1: {B}{a}{b}",
    "two connectives": "fact1 & fact2 -> int1: {A}{a} & {B}{a} v {C}{a}",
    "two arrows": "fact1 & fact2 -> int1: {A}{a} -> {B}{a} -> {C}{a}",
    "a conjunction after an arrow": "fact1 & fact2 -> int1: {A}{a} -> {B}{a} & {C}{a}",
    "a quantifier inside": "fact1 & fact2 -> int1: ¬(x): {A}x",
    "a variable bound twice": "fact1 -> int1: (x): (x): {A}x",
    "other letters": "fact1 & fact2 -> int1: {Α}{a}",
    "other signs": "fact1 & fact2 → int1: {B}{a}",
    "a bracket that does not close": "fact1 & fact2 -> int1: ({A}{a} & {B}{a}",
    "a bracket too many": "fact1 & fact2 -> int1: {A}{a})",
    "many negations": f"fact1 & fact2 -> int1: {'¬' * 4_001}{{B}}{{a}}",
    "many brackets": f"fact1 & fact2 -> int1: {'(' * 4_000}{{B}}{{a}}{')' * 4_000}",
    "many premises": f"{' & '.join(['fact1'] * 3_000)} -> int1: {{B}}{{a}}",
    "many steps": "fact1 & fact2 -> int1: {B}{a};\n" * 400,
    "a long formula": f"fact1 & fact2 -> int1: ({' & '.join(['{B}{a}'] * 2_000)})",
    "a name twice": "fact1 & fact2 -> int1: {B}{a};\nfact2 -> int1: {A}{a};\nint1 -> int2: {A}{a}",
    "a proof and words": "fact1 & fact2 -> int1: {B}{a};\nThat was easy.",
    "another label": "The final answer is MAYBE",
    "smt-lib": "(assert false)",
    "python": "fact1 & fact2 -> int1: __import__('os').system('touch written-by-a-step')",
}
"""Steps in FoVer's layout that are not read, or have no one meaning."""

INCONSISTENT = {
    "false": (PROBLEM, ("(assert false)",), "(assert (> x 1))"),
    "a premise against another": (PROBLEM, ("(assert (< x 1))",), "(assert (> x 1))"),
    "a function of two values": (PROBLEM, ("(assert (and (= (f 1) 2) (= (f 1) 3)))",), "(assert p)"),
    "an earlier claim in FoVer": (FOVER, ("fact1 & fact2 -> int1: ¬{A}{a};",), "fact2 & int1 -> int2: {C}{b}"),
    "a claim against itself in FoVer": (FOVER, ("fact1 -> int1: ({A}{a} & ¬{A}{a})",), "int1 -> hypothesis"),
}
"""Premises that contradict each other: problem, steps before, step."""

WORDY = {
    "words in the problem": ("Let x be positive.\n```smt2\n(declare-const x Int)\n```", (), "(assert (> x 0))"),
    "a step in words": ("(declare-const x Int)", ("Let x be positive.",), "(assert (> x 0))"),
    "a problem in words": ("Is 1 = 2?", (), "(assert (= 1 2))"),
    "a block in words": ("(declare-const x Int)", (), "Suppose first that\n```smt2\n(assert (> x 0))\n```"),
    "a list in words": ("(a) x is positive. (b) y is not.", (), "(assert (= 1 2))"),
}


UNPROVED = """(= x 7) § (< x 3) § p § (not p) § (= (f x) x) § (exists ((y Int)) (= (f y) 5)) § (forall ((y Int)) p) §
(distinct x 3) § (= (div x 2) 2) § (xor p (> x 5)) § (and (> x 2) p) § (= x (ite p 5 6)) § (> (* x x) 20)"""
"""Claims that do not follow from PROBLEM."""
FORGERIES = """(define-fun x () Int 7)(define-fun p () Bool true)(assert CLAIM)
§ (define-fun g () Bool CLAIM)(assert (= g CLAIM))
§ (define-fun g ((x Int) (p Bool)) Bool (or true CLAIM))(assert (g x p)) § (define-sort Int () Bool)(assert (not (not CLAIM)))
§ (define-fun |and| ((a Bool) (b Bool)) Bool true)(assert (and CLAIM true)) § (declare-fun f (Int) Int)(assert CLAIM)
§ (declare-const z Bool)(assert (=> (and z (not z)) CLAIM))(assert CLAIM) § (assert (let ((x 7) (p true)) (or CLAIM (= x 7))))
§ (assert (let ((x 1) (p false)) (or (not CLAIM) (= x 1)))) § (assert (exists ((x Int) (p Bool)) (or CLAIM (not CLAIM))))
§ (assert (forall ((x Int) (p Bool)) (=> CLAIM CLAIM))) § (assert (let ((f 1)) (= f 1)))(assert (or CLAIM (not CLAIM)))
§ (assert (> x 2)) ;| CLAIM | § (assert (> x 2)) ;" CLAIM " § ```smt2\n(assert (> x 2))\n```\nCLAIM § (assert CLAIM)(check-sat)
§ (push 1)(assert CLAIM)(pop 1)(assert (> x 2)) § (assert (! (> x 2) :named CLAIM)) § (assert CLAIM)(assert (not CLAIM))"""
"""Steps that say a claim and prove less, or something else."""


def forgeries() -> list[StepInContext]:
    """Steps that must not hold as a whole, alone, after a step that contradicts the problem, or that made up what they say."""
    claims = [each.strip() for each in UNPROVED.split("§")]
    steps = [trick.strip().replace("CLAIM", claim) for trick in FORGERIES.split("§") for claim in claims]
    wrong = [_step(PROBLEM, ("(assert (= x 1))",), f"(assert {claim})") for claim in claims]
    made = [(f"(define-fun it () Bool {claim})", "(assert (or it (not it)))") for claim in claims]
    made += [("(declare-const z Int)(assert (= z 42))", "(assert (= z 42))")]
    return (
        wrong + [_step(PROBLEM, (), step) for step in steps] + [_step(PROBLEM, (first,), last) for first, last in made]
    )


def hostile() -> dict[str, StepInContext]:
    """All of them by name."""
    good = "(assert (> x 1))"
    found: dict[str, StepInContext] = {}
    for name, commands in COMMANDS.items():
        found[f"{name}, in a problem"] = _step(PROBLEM + commands, (), good)
        found[f"{name}, before"] = _step(PROBLEM, (commands,) if "(" in commands else (f"({commands})",), good)
        found[f"{name}, in a step"] = _step(PROBLEM, (), good + commands)
    for name, formula in FORMULAS.items():
        found[f"{name}, claimed"] = _step(PROBLEM, (), f"(assert {formula})")
        found[f"the negation of {name}, claimed"] = _step(PROBLEM, (), f"(assert (not {formula}))")
    for name, commands in DEFINITIONS.items():
        found[name] = _step(PROBLEM, (), commands)
    for name, step in DERIVATIONS.items():
        found[f"{name}, in FoVer"] = _step(FOVER, (), step)
    for name, (problem, earlier, step) in (INCONSISTENT | WORDY).items():
        found[name] = _step(problem, earlier, step)
    return found


def loops() -> dict[str, tuple[StepInContext, bool]]:
    """Steps that may take solvers long, and whether they follow."""
    return {
        name: (_step(PROBLEM + given, (), f"(assert {claim})"), follows)
        for name, (given, claim, follows) in LOOPS.items()
    }


def _step(problem: str, earlier: tuple[str, ...], step: str) -> StepInContext:
    return StepInContext(problem=problem, earlier=earlier, step=step)


def _tricky(family: str, declared: str, premises: tuple[str, ...], claim: str) -> FormalStep:
    problem = declared + "".join(f"(assert {each})" for each in premises)
    return FormalStep(
        family=family, step=_step(problem, (), f"(assert {claim})"), declared=declared, premises=premises, claim=claim
    )


_X = "(declare-const x Int)(declare-const y Int)"
_CAPTURE = _X + "(define-fun more ((n Int)) Int (+ n x))"
TRICKY = (
    _tricky("a bound variable of the name of a constant", _X, ("(= x 1)",), "(forall ((x Int)) (= x 1))"),
    _tricky("an existing one", _X, ("(= x 1)",), "(exists ((x Int)) (= x 2))"),
    _tricky("let binds all at once", _X, ("(= x 1)", "(= y 2)"), "(let ((x y) (y x)) (and (= x 2) (= y 1)))"),
    _tricky("let in order", _X, ("(= x 1)", "(= y 2)"), "(let ((x y)) (let ((y x)) (= x y 2)))"),
    _tricky("a definition and a quantifier", _CAPTURE, ("(= x 1)",), "(forall ((x Int)) (= (more x) (+ x 1)))"),
    _tricky("a definition captured", _CAPTURE, ("(= x 1)",), "(forall ((x Int)) (= (more x) (+ x x)))"),
    _tricky("a definition and let", _CAPTURE, ("(= x 1)",), "(let ((x 5)) (= (more x) 6))"),
    _tricky("a definition in let captured", _CAPTURE, ("(= x 1)",), "(let ((x 5)) (= (more x) 10))"),
    _tricky("a let in a let", _X, (), "(let ((z 1)) (let ((z 2)) (= z 2)))"),
    _tricky("a let in a let of the first value", _X, (), "(let ((z 1)) (let ((z 2)) (= z 1)))"),
    _tricky("a quantifier in a quantifier", _X, (), "(forall ((n Int)) (exists ((n Int)) (= n 5)))"),
    _tricky("a quantifier in a let", _X, (), "(let ((n 5)) (forall ((n Int)) (= n 5)))"),
    _tricky("a let under a quantifier", _X, (), "(let ((z x)) (forall ((x Int)) (= x z)))"),
    _tricky("no captured let", _X, ("(> x 0)",), "(let ((z x)) (forall ((x Int)) (=> (< x 0) (< x z))))"),
    _tricky("implications from the right", "(declare-const p Bool)", (), "(=> p false p)"),
    _tricky("implications of nothing", "(declare-const p Bool)", ("(not p)",), "(=> (=> p false) p)"),
    _tricky("a chain of comparisons", _X, ("(< x 3 y)",), "(< x y)"),
    _tricky("a chain that is no transitive one", _X, ("(distinct x 3 y)",), "(distinct x y)"),
    _tricky("differences from the left", _X, (), "(= (- 10 3 2) 5)"),
    _tricky("differences from the right", _X, (), "(= (- 10 3 2) 9)"),
    _tricky("a quotient of a negative number", _X, (), "(and (= (div (- 7) 2) (- 4)) (= (mod (- 7) 2) 1))"),
    _tricky("a quotient towards zero", _X, (), "(= (div (- 7) 2) (- 3))"),
    _tricky("by a negative number", _X, (), "(and (= (div 7 (- 2)) (- 3)) (= (mod 7 (- 2)) 1))"),
    _tricky("quotients from the left", _X, (), "(= (div 100 5 2) 10)"),
    _tricky("a whole part", "(declare-const r Real)", ("(= r (- 2.5))",), "(= (to_int r) (- 3))"),
    _tricky("a whole part towards zero", "(declare-const r Real)", ("(= r (- 2.5))",), "(= (to_int r) (- 2))"),
    _tricky("real numbers without a point", "(declare-const r Real)", ("(= r (/ 1 3))",), "(= (* 3 r) 1)"),
    _tricky("between integers", "(declare-const r Real)", ("(< 1 r 2)",), "false"),
    _tricky("no integer between", _X, ("(< 1 x 3)",), "(= x 2)"),
    _tricky(
        "an empty sort",
        "(declare-sort S 0)(declare-fun q (S) Bool)",
        ("(forall ((s S)) (q s))",),
        "(exists ((s S)) (q s))",
    ),
    _tricky("one object", "(declare-sort S 0)(declare-const s S)", (), "(forall ((t S)) (= s t))"),
    _tricky(
        "quantifiers in the other order",
        "(declare-fun r (Int Int) Bool)",
        ("(forall ((a Int)) (exists ((b Int)) (r a b)))",),
        "(exists ((b Int)) (forall ((a Int)) (r a b)))",
    ),
    _tricky("an exclusive or of three", "(declare-const p Bool)", ("p",), "(xor p p p)"),
    _tricky(
        "names of a solver's own",
        "(declare-const s0 Int)(declare-const S0 Int)(declare-const k!0 Int)",
        ("(= s0 1)",),
        "(= S0 1)",
    ),
    _tricky("bars", "(declare-const |x| Int)", ("(= x 1)",), "(= |x| 1)"),
)
"""Legal steps that a careless reader gets wrong."""
