"""The checker of answers to factual questions: names with aliases, numbers with units and tolerance, hostile texts."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import InputError
from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from pipeline.graders.settings import FactsConfig
from tests.deadlines import bounded


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with checker_for(FactsConfig()) as made:
        yield made


def verdict(checker: Checker, gold: str | tuple[str, ...], text: str) -> Verdict:
    golds = (gold,) if isinstance(gold, str) else gold
    found = checker.quick(golds, text)
    assert found is not None
    assert found.verdict is checker.grade(golds, text).verdict
    return found.verdict


RIGHT = [
    ("Paris", "France's capital has a tower. The answer is Paris."),
    ("Paris", "So it is \\boxed{\\text{Paris}}."),
    ("Paris", "#### paris"),
    ("Brasília", "The answer is **Brasilia**."),
    ("Washington, D.C.", "The answer is Washington D.C."),
    ("the Côte d'Ivoire", "The answer is Cote d’Ivoire."),
    (("William Shakespeare", "Shakespeare"), "The answer is Shakespeare."),
    ("H2O", "The answer is $\\text{H}_2\\text{O}$."),
    ("CO₂", "\\boxed{CO_2}"),
    ("366", "The answer is 366 days."),
    ("366 days", "The answer is 366."),
    ("8", "The answer is eight."), ("42", "The answer is forty-two."), ("206", "#### two hundred and six"),
    ("5 km", "The answer is five thousand metres."), ("1500000", "The answer is one and a half million."),
    ("1969", "The first landing was in 1969. \\boxed{\\text{in }1969}"),
    ("100 °C", "The answer is 212 °F."),
    ("100 °C", "\\boxed{100^\\circ C}"),
    ("1 hour", "The answer is 60 minutes."),
    ("8849 ± 5 m", "The answer is 8,848.86 m."),
    ("8849 ± 5 m", "The answer is 29,029 ft."),
    ("1,400,000", "The answer is 1.4 million."),
]  # fmt: skip
WRONG = [
    ("Paris", "The answer is Rome."),
    ("Paris", "The answer is Paris or Rome."),
    ("New Delhi", "The answer is Delhi."),
    ("366", "The answer is 365."),
    ("366", "The answer is 366.5."),
    ("100 °C", "The answer is 100 °F."),
    ("8849 m", "The answer is 8849 ft."),
    ("8849 ± 5 m", "The answer is 8,855 m."),
    ("299792458", "The answer is 300000000."),
    ("Paris", "\\boxed{}Rome"),
    ("42", "The answer is forty."), ("5", "The answer is fifth."), ("Moon Bay", "#### Half Moon Bay"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "text"), RIGHT)
def test_right_answers(checker: Checker, gold: Any, text: str) -> None:
    assert verdict(checker, gold, text) is Verdict.CORRECT


@pytest.mark.parametrize(("gold", "text"), WRONG)
def test_wrong_answers(checker: Checker, gold: str, text: str) -> None:
    assert verdict(checker, gold, text) in {Verdict.INCORRECT, Verdict.NO_ANSWER}


def test_no_answer(checker: Checker) -> None:
    assert verdict(checker, "Paris", "It has a tower, and many people like it.") is Verdict.NO_ANSWER
    assert verdict(checker, "Paris", "") is Verdict.NO_ANSWER
    assert checker.final_answer("The answer is Par", complete=False) is None


def test_tolerance_of_the_settings() -> None:
    with checker_for(FactsConfig(relative_tolerance=0.01)) as checker:
        assert verdict(checker, "299792458 m/s", "The answer is 3e8 m/s.") is Verdict.CORRECT
        assert verdict(checker, "299792458 m/s", "The answer is 310,000 km/s.") is Verdict.INCORRECT
    with pytest.raises(ValueError, match=r"grader\.relative_tolerance"):
        FactsConfig(relative_tolerance=0.5)


def test_aliases_of_a_table_count(tmp_path: Path) -> None:
    with checker_for(FactsConfig(table="sample")) as checker:
        assert verdict(checker, "Turkey", "The answer is Türkiye.") is Verdict.CORRECT
        assert verdict(checker, "Turkey", "The answer is China.") is Verdict.INCORRECT
        assert verdict(checker, "Atlantis", "The answer is Lemuria.") is Verdict.INCORRECT
    with pytest.raises(InputError, match=r"grader\.table: .*missing.parquet cannot be read"):
        checker_for(FactsConfig(table=str(tmp_path / "missing.parquet")))
    with pytest.raises(ValueError, match=r"grader\.table"):
        FactsConfig(table=" ")


def test_which_golds_can_be_used(checker: Checker) -> None:
    for gold in ("Paris", "366", "8849 ± 5 m", "北京"):
        assert checker.parses(gold)
    for gold in ("", "  ", "x" * 500):
        assert not checker.parses(gold)


@given(st.text(max_size=60), st.text(max_size=60))
def test_every_pair_of_texts_is_decided(gold: str, answer: str) -> None:
    with checker_for(FactsConfig()) as checker:
        assert checker.grade_answer((gold,), answer).verdict in {Verdict.CORRECT, Verdict.INCORRECT, Verdict.NO_ANSWER}


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=40))
def test_an_answer_is_equal_to_itself(answer: str) -> None:
    with checker_for(FactsConfig()) as checker:
        assert checker.grade_answer((answer,), answer).verdict is Verdict.CORRECT


@pytest.mark.parametrize(
    "piece", ["a ", "9", "{", "\\text{", "_1", "\\boxed{", "± 5", "the ", "'; DROP TABLE facts; --", "\u0301", "\ud800"]
)
def test_hostile_answers_are_decided_at_once(piece: str) -> None:
    with checker_for(FactsConfig(table="sample")) as checker, bounded():
        for length in (390, 100_000):
            text = piece * (length // len(piece))
            for gold in ("Paris", "8849 ± 5 m", text):
                assert checker.grade_answer((gold,), text).verdict in {
                    Verdict.CORRECT,
                    Verdict.INCORRECT,
                    Verdict.NO_ANSWER,
                }
            checker.grade(("Paris",), f"The answer is {text}")


def test_the_sample_of_questions_is_right(checker: Checker) -> None:
    lines = (files("pipeline.data") / "facts.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == len({row["id"] for row in rows}) == len({row["problem"] for row in rows}) == 100
    assert len({(row["entity"], row["attribute"]) for row in rows}) == 100
    assert sum(row["first_error"] is None for row in rows) == 50
    for row in rows:
        golds = tuple(row["answer"]) if isinstance(row["answer"], list) else (row["answer"],)
        assert all(checker.parses(gold) for gold in golds)
        found = verdict(checker, golds, "\n".join(row["steps"]))
        assert (found is Verdict.CORRECT) == (row["first_error"] is None), row
        assert verdict(checker, golds, f"The answer is {row['value']}.") is Verdict.CORRECT
