"""The verifier `z3`: both layouts, what counts as a premise, what is refuted and what only doubted."""

import sys

import pytest

from pipeline.core.errors import UsageError
from pipeline.verifiers.base import Covers, Finding, StepInContext, StepVerdict
from pipeline.verifiers.registry import verifier_for, verifier_named
from pipeline.verifiers.settings import Z3Config
from tests.verifiers.steps import finding

INTEGERS = "(declare-const x Int)(declare-const y Int)(assert (> x 2))(assert (= y (* 2 x)))"
REALS = "(set-logic QF_NRA)(declare-const a Real)(declare-fun f (Real) Real)(assert (= (* a a) 2))"
FOVER = """Based on the provided facts ($context$), either prove or disprove the hypothesis or state that it is unknown.

$hypothesis$: ¬({C}{b} & {D}{b})

$context$:
fact1: {B}{b}
fact2: (x): ({A}x & {B}x) -> ¬{C}x
fact3: ¬{C}{a} -> ¬({C}{b} & {D}{b})
fact4: {A}{a}
fact5: ¬{D}{b} -> (¬{D}{a} & ¬{A}{a})
fact6: {B}{a}"""
PROOF = (
    "fact4 & fact6 -> int1: ({A}{a} & {B}{a});",
    "fact2 -> int2: ({A}{a} & {B}{a}) -> ¬{C}{a};",
    "int1 & int2 -> int3: ¬{C}{a};",
    "int3 & fact3 -> hypothesis;",
    "The final answer is PROVED",
)
"""A problem and its proof from FoVer's prompts (psunlpgroup/FoVer, fol/prompts/initial_answers_prompt.py)."""


def smt(step: str, *earlier: str, problem: str = INTEGERS) -> Finding:
    return finding("z3", step, problem=problem, earlier=earlier)


def fover(step: str, *earlier: str, problem: str = FOVER) -> Finding:
    return finding("z3", step, problem=problem, earlier=earlier)


@pytest.mark.parametrize(
    ("problem", "claim", "verdict"),
    [
        (INTEGERS, "(assert (> y 4))", "holds"),
        (INTEGERS, "(assert (> y 6))", "refuted"),
        (INTEGERS, "(assert (> x 2))(assert (>= y 6))", "holds"),
        (INTEGERS, "(assert (> x 2))(assert (>= y 7))", "refuted"),
        (INTEGERS, "(assert (= (mod y 2) 0))", "holds"),
        (f"{INTEGERS}(define-fun half ((n Int)) Int (div n 2))", "(assert (= (half y) x))", "holds"),
        (REALS, "(assert (> a 1))", "refuted"),
        (REALS, "(assert (or (> a 1.4) (< a (- 1.4))))", "holds"),
        (REALS, "(assert (=> (= a (- 2 a)) (= (f a) (f (- 2 a)))))", "holds"),
        (REALS, "(assert (= (f a) (f (- 2 a))))", "refuted"),
        (REALS, "(assert (= (/ a a) 1))", "holds"),
        ("(declare-const r Real)", "(assert (= (/ 1 (+ r 1)) (/ 1 (- r 1))))", "refuted"),
        ("", "(assert (= (* 3 4) 12))", "holds"),
        ("", "(assert (= (* 3 4) 13))", "refuted"),
        ("", "(declare-const x Int)", "unknown"),
    ],
)
def test_a_claim_in_smt_lib_is_judged(problem: str, claim: str, verdict: str) -> None:
    found = smt(claim, problem=problem)
    assert found.verdict.value == verdict, found
    assert found.covers is (Covers.PART if verdict == "unknown" else Covers.WHOLE)


def test_what_a_comment_of_a_step_claims_is_not_looked_at() -> None:
    found = smt("(assert (= (mod y 2) 0)) ; so Ann has 500 apples", problem=INTEGERS)
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.PART)
    assert smt("(assert (= (mod y 2) 1)) ; so Ann has 500 apples", problem=INTEGERS).verdict is StepVerdict.UNKNOWN
    found = smt("(assert (= (mod y 2) 0)) ;;", problem=f"{INTEGERS} ; of a problem it is given")
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.WHOLE)


def test_evidence_shows_a_counter_model() -> None:
    assert smt("(assert (> y 6))").evidence == "(> y 6) does not follow from 2 premises: it is false where y = 6, x = 3"
    assert smt("(assert (> y 4))").evidence == "(> y 4) follows from 2 premises"


def test_claims_of_steps_before_are_premises() -> None:
    assert smt("(assert (> y 17))").verdict is StepVerdict.REFUTED
    assert smt("(assert (> y 17))", "(assert (> x 8))").verdict is StepVerdict.HOLDS
    assert smt("(assert (> z 17))", "(declare-const z Int)(assert (> z 20))").verdict is StepVerdict.HOLDS


def test_premises_that_contradict_each_other_prove_nothing() -> None:
    found = smt("(assert (= y 1))", "(assert (< x 0))")
    assert found.verdict is StepVerdict.UNKNOWN
    assert "contradict" in found.evidence
    found = fover("int1 -> int2: {C}{b}", "fact1 -> int1: ({A}{b} & ¬{A}{b})")
    assert found.verdict is StepVerdict.UNKNOWN
    assert "contradict" in found.evidence


def test_a_quotient_by_zero_refutes_nothing() -> None:
    found = smt("(assert (= (div x (- x x)) 1))")
    assert found.verdict is StepVerdict.UNKNOWN
    assert "divided by 0" in found.evidence
    assert smt("(assert (= (div x (- x 2)) 1))").verdict is StepVerdict.REFUTED


def test_blocks_are_read_and_words_are_doubted() -> None:
    problem = f"Let x be above 2 and y twice as much.\n```smt2\n{INTEGERS}\n```\nWhat follows?"
    assert smt("(assert (> y 4))", problem=problem).verdict is StepVerdict.HOLDS
    found = smt("(assert (> y 6))", problem=problem)
    assert found.verdict is StepVerdict.UNKNOWN
    assert "words before the step" in found.evidence
    step = StepInContext(problem=problem, earlier=("Let us see.",), step="```smt-lib\n(assert (> y 6))\n```")
    assert verifier_for(Z3Config(ignore_words=True)).verify(step).verdict is StepVerdict.REFUTED
    found = smt("So we know:\n```smt2\n(assert (> y 4))\n```")
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.PART)
    found = smt("Is it true?\n```smt2\n(assert (> y 6))\n```")
    assert found.verdict is StepVerdict.UNKNOWN
    assert "words around" in found.evidence


@pytest.mark.parametrize("at", range(len(PROOF)))
def test_a_proof_of_fover_holds(at: int) -> None:
    found = fover(PROOF[at], *PROOF[:at])
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.WHOLE), found


@pytest.mark.parametrize(
    ("step", "verdict", "said"),
    [
        ("int3 & fact3 -> ¬hypothesis;", "refuted", "¬hypothesis does not follow from int3 & fact3"),
        ("fact2 -> int4: {C}{b};", "refuted", "{C}{b} does not follow from fact2: it is false where {C}{b} = false"),
        ("fact2 -> int4: (Ex): ({A}x & {B}x)", "refuted", "does not follow from fact2"),
        ("fact4 & fact6 -> int4: (Ex): ({A}x & {B}x)", "holds", "follows from fact4 & fact6"),
        ("fact4 -> int4: ({A}{a} & {B}{a})", "refuted", "does not follow from fact4"),
        ("The final answer is DISPROVED", "refuted", "¬hypothesis does not follow from all facts"),
        ("The final answer is UNKNOWN.", "refuted", "hypothesis follows from all facts"),
        ("$proof_label$: PROVED", "holds", "hypothesis follows from all facts"),
        ("fact9 -> int4: {C}{b};", "unknown", "fact9 is not given"),
        ("int9 -> int4: {C}{b};", "unknown", "int9 is not given"),
        ("Let us begin with fact2.", "unknown", ""),
    ],
)
def test_a_step_of_fover_is_judged_by_the_premises_that_it_names(step: str, verdict: str, said: str) -> None:
    found = fover(step, *PROOF[:3])
    assert found.verdict.value == verdict, found
    assert said in found.evidence
    assert found.evidence or not said


def test_a_step_of_several_derivations_holds_if_all_do() -> None:
    assert fover("$proof$:\n" + "\n".join(PROOF[:-1])).verdict is StepVerdict.HOLDS
    found = fover("\n".join([*PROOF[:2], "fact1 -> int4: {C}{b}"]))
    assert found.verdict is StepVerdict.REFUTED
    assert found.evidence.startswith("{C}{b} does not follow from fact1")


def test_neither_proved_nor_disproved() -> None:
    problem = "$hypothesis$: {C}\n\n$context$:\nfact1: {A} fact2: {A} -> ({B} v {C})"
    assert fover("The final answer is UNKNOWN", problem=problem).verdict is StepVerdict.HOLDS
    assert fover("The final answer is PROVED", problem=problem).verdict is StepVerdict.REFUTED
    assert fover("fact1 & fact2 -> int1: ({C} v {B})", problem=problem).verdict is StepVerdict.HOLDS
    assert fover("The final answer is UNKNOWN", problem=f"{problem}\nfact 3: {{C}}").verdict is StepVerdict.UNKNOWN


def test_several_problems_in_one_are_not_read() -> None:
    found = fover(PROOF[0], problem=f"{FOVER}\n\n{FOVER}")
    assert found.verdict is StepVerdict.UNKNOWN
    assert "several contexts" in found.evidence


def test_a_name_that_is_given_twice_is_no_premise() -> None:
    found = fover("int1 -> int2: {A}{a}", PROOF[0], "fact1 -> int1: {B}{b}")
    assert found.verdict is StepVerdict.UNKNOWN
    assert "given twice" in found.evidence


@pytest.mark.parametrize(
    "settings", [Z3Config(resource_limit=1_000), Z3Config(time_limit_ms=10), Z3Config(memory_mb=50)]
)
def test_limits_leave_a_step_unknown(settings: Z3Config) -> None:
    problem = "(declare-fun f (Int) Int)(assert (forall ((y Int)) (> (f (f (+ y 1))) (+ (f y) (f (* 2 y))))))"
    step = StepInContext(problem=problem, earlier=(), step="(assert (= (f 1) (f 2)))")
    found = verifier_for(settings).verify(step)
    assert found.verdict is StepVerdict.UNKNOWN
    assert found.evidence.startswith("Z3 does not decide it: ")


def test_equal_steps_get_equal_findings() -> None:
    step = StepInContext(problem=INTEGERS, earlier=(), step="(assert (distinct (* x y) 20))")
    first = verifier_named("z3").verify(step)
    for _ in range(3):
        smt("(assert (> y 6))")
        assert verifier_named("z3").verify(step) == first


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    monkeypatch.delitem(sys.modules, "pipeline.verifiers.z3.solver", raising=False)
    monkeypatch.delattr("pipeline.verifiers.z3.solver", raising=False)
    with pytest.raises(UsageError, match=r"z3-solver.*pip install 'stepvalue\[formal\]'"):
        verifier_named("z3")
