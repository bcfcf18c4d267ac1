"""The readers of SMT-LIB and FLD: any text is read or refused, and what is read means what was written."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.verifiers.reading import NotRead
from pipeline.verifiers.z3 import terms
from pipeline.verifiers.z3.fover_steps import Vocabulary, fld_formula
from pipeline.verifiers.z3.smtlib import Script, SExpression, expressions, written, written_term
from pipeline.verifiers.z3.terms import Term

ATOMS = st.sampled_from(["x", "f", "+", "=>", "p.q", "12", "0", "3.50", "forall", "!", "a-b"])
EXPRESSIONS: st.SearchStrategy[SExpression] = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=30
)
SCRIPTED = "".join(
    f"(declare-const {name} {sort})" for name, sort in (("x", "Int"), ("y", "Int"), ("p", "Bool"), ("r", "Real"))
)


@given(st.lists(EXPRESSIONS, max_size=5), st.sampled_from([" ", "\n", " ; a remark (\n "]))
def test_what_is_written_is_read_again(written_ones: list[SExpression], between: str) -> None:
    text = between.join(written(each) for each in written_ones)
    assert expressions(text) == written_ones


@given(st.text("() x12.|;:\"\n+'#_é\x00", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read = expressions(text)
    except NotRead:
        return
    assert expressions(" ".join(map(written, read))) == read


WORDS = st.sampled_from(
    ["assert", "declare-const", "declare-fun", "define-fun", "declare-sort", "x", "g", "S", "Int", "Bool", "1", "let"]
)
COMMANDS: st.SearchStrategy[SExpression] = st.recursive(
    WORDS, lambda inner: st.lists(inner | ATOMS, max_size=5).map(tuple), max_leaves=20
)


@given(st.lists(COMMANDS, max_size=4))
def test_any_commands_are_read_or_refused(commands: list[SExpression]) -> None:
    script = Script()
    try:
        asserted = script.read(SCRIPTED + " ".join(map(written, commands)))
    except NotRead:
        return
    assert all(each.sort == terms.BOOL for each in asserted.formulas)


@given(st.text("()xyzABC{}abv&¬->:E ", max_size=60))
def test_any_text_is_a_formula_of_fld_or_refused(text: str) -> None:
    try:
        formula = fld_formula(text, Vocabulary())
    except NotRead:
        return
    assert formula.sort == terms.BOOL


def integers() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(["x", "y", "0", "7", "(abs y)"]),
        lambda inner: st.tuples(st.sampled_from(["+", "-", "div", "mod"]), inner, inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        max_leaves=8,
    )


def formulas() -> st.SearchStrategy[str]:
    compared = st.tuples(st.sampled_from(["=", "<", ">=", "distinct"]), integers(), integers())
    return st.recursive(
        st.just("p") | compared.map(lambda parts: f"({' '.join(parts)})"),
        lambda inner: (
            st.tuples(st.sampled_from(["and", "or", "=>", "xor"]), inner, inner).map(
                lambda parts: f"({' '.join(parts)})"
            )
            | inner.map(lambda formula: f"(not {formula})")
        ),
        max_leaves=8,
    )


@given(formulas())
def test_a_formula_is_read_as_it_is_written(formula: str) -> None:
    (read,) = Script().read(f"{SCRIPTED}(assert {formula})").formulas
    assert written_term(read) == formula
    assert read.measures.size >= len(formula.split())


@given(formulas(), integers())
def test_let_and_definitions_mean_what_they_stand_for(formula: str, number: str) -> None:
    def read(text: str) -> str:
        return written_term(Script().read(SCRIPTED + text).formulas[-1])

    assert read(f"(assert (let ((z {number})) (and {formula} (= z 1))))") == f"(and {formula} (= {number} 1))"
    assert read(f"(define-fun g ((z Int)) Bool (= z 1))(assert (g {number}))") == f"(= {number} 1)"


def test_numbers_without_a_point_are_real_where_they_must_be() -> None:
    (read,) = Script().read(f"{SCRIPTED}(assert (= (/ r 3) (+ 1 0.5) (- 2)))").formulas
    assert [each.sort for each in read.arguments] == [terms.REAL] * 3
    with pytest.raises(NotRead, match="Real is needed"):
        Script().read(f"{SCRIPTED}(assert (= r x))")


def repeated(operator: str, term: Term, times: int) -> Term:
    """The operator on the term twice, or once where it takes one, then on what that makes, and so on."""
    for _ in range(times):
        term = terms.operation(operator, [term] * (1 if operator == "not" else 2))
    return term


def test_limits_are_those_of_the_formula_written_out() -> None:
    x = terms.applied(terms.Symbol("x", (), terms.INT))
    for match, operator, first, times in (
        ("factors", "*", x, 5),
        ("parts", "and", terms.TRUE, 40),
        ("levels", "not", terms.TRUE, terms.MOST_DEPTH),
    ):
        with pytest.raises(NotRead, match=match):
            repeated(operator, first, times)
    with pytest.raises(NotRead, match="bits"):
        terms.number(Fraction(2) ** 4_000, terms.INT)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("{A}", "{A}"),
        ("¬¬{A}", "(not (not {A}))"),
        ("{A}{a} & {B}{a} & {C}", "(and ({A} {a}) ({B} {a}) {C})"),
        ("¬{A} v {B}", "(or (not {A}) {B})"),
        ("¬({A} v {B})", "(not (or {A} {B}))"),
        ("{A} & {B} -> {C}", "(=> (and {A} {B}) {C})"),
        ("(x): {A}x -> {B}x", "(forall (=> ({A} x) ({B} x)))"),
        ("((x): {A}x) -> {B}{b}", "(=> (forall ({A} x)) ({B} {b}))"),
        ("(Ex): ¬({A}x & {AB}x)", "(exists (not (and ({A} x) ({AB} x))))"),
        ("(x): ((Ey): ({A}x v {B}y))", "(forall (exists (or ({A} x) ({B} y))))"),
    ],
)
def test_formulas_of_fld(text: str, meaning: str) -> None:
    assert written_term(fld_formula(text, Vocabulary())) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{A} & {B} v {C}",
        "{A} -> {B} -> {C}",
        "{A} -> {B} & {C}",
        "{A} v {B} & {C}",
        "¬(x): {A}x",
        "{A} & (x): {A}x",
        "(x): (x): {A}x",
        "{A}x",
        "{A}{a}{b}",
        "{a}",
        "#F#",
        "({A} & {B}",
        "{A})",
        "{A} {B}",
        "({A} & {B} v {C}) -> {A}",
    ],
)
def test_formulas_of_two_meanings_or_none_are_refused(text: str) -> None:
    with pytest.raises(NotRead):
        fld_formula(text, Vocabulary())
