"""The shipped sample is right: correct chains are correct, and planted errors are at the steps that the rows name."""

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pipeline.config.label import FewShotExample, PromptConfig, SamplingConfig

EMBEDDED = Path(__file__).parents[1] / "conf" / "policy" / "embedded.yaml"
NUMBER = r"\d+(?:\.\d+)?"
CALCULATION = re.compile(rf"({NUMBER}) ([-+*/]) ({NUMBER}) = ({NUMBER})")
OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    id: str
    problem: str
    answer: str
    steps: list[str]
    first_error: int | None
    difficulty: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculation:
    left: Fraction
    sign: str
    right: Fraction
    result: Fraction

    @property
    def true(self) -> bool:
        return OPERATIONS[self.sign](self.left, self.right) == self.result


def _calculation(step: str) -> Calculation:
    """The one calculation of a step; anything else fails."""
    ((left, sign, right, result),) = CALCULATION.findall(step)
    return Calculation(left=Fraction(left), sign=sign, right=Fraction(right), result=Fraction(result))


def _stated(step: str) -> Fraction:
    match = re.fullmatch(rf"The answer is ({NUMBER})\.", step)
    assert match, step
    return Fraction(match[1])


ROWS = [Row(**json.loads(line)) for line in (files("pipeline.data") / "sample.jsonl").read_text("utf-8").splitlines()]
PAIRS = list(zip(ROWS[::2], ROWS[1::2], strict=True))
pairs = pytest.mark.parametrize(("right", "wrong"), PAIRS, ids=[right.id.partition("-")[0] for right, _ in PAIRS])


def test_there_are_enough_problems_and_every_id_and_problem_is_its_own() -> None:
    assert len(PAIRS) >= 30
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert len({right.problem for right, _ in PAIRS}) == len(PAIRS)


def test_difficulty_rises() -> None:
    levels = [right.difficulty for right, _ in PAIRS]
    assert levels == sorted(levels)
    assert set(levels) == {1, 2, 3, 4, 5}
    assert levels.count(1) >= 12


@pairs
def test_a_pair_differs_in_its_chain_only(right: Row, wrong: Row) -> None:
    assert (right.problem, right.answer, right.difficulty) == (wrong.problem, wrong.answer, wrong.difficulty)
    assert right.id.removesuffix("-right") == wrong.id.removesuffix("-wrong")
    assert right.first_error is None
    assert wrong.first_error is not None


@pairs
def test_texts_are_clean(right: Row, wrong: Row) -> None:
    for row in (right, wrong):
        assert 2 <= len(row.steps) <= 6
        for text in (row.problem, *row.steps):
            assert text == text.strip()
            assert "\n" not in text
            assert text.isascii()


@pairs
def test_the_right_chain_is_true_and_reaches_the_answer(right: Row, wrong: Row) -> None:
    calculations = [_calculation(step) for step in right.steps[:-1]]
    assert all(calculation.true for calculation in calculations)
    assert calculations[-1].result == _stated(right.steps[-1]) == Fraction(right.answer)


@pairs
def test_the_wrong_chain_goes_wrong_exactly_where_it_says(right: Row, wrong: Row) -> None:
    at = wrong.first_error
    assert at is not None
    assert at < len(wrong.steps) - 1, "the last step is terminal: an error there is never measured"
    assert wrong.steps[:at] == right.steps[:at]

    planted, meant = _calculation(wrong.steps[at]), _calculation(right.steps[at])
    assert planted.result != meant.result
    assert not planted.true or (planted.left, planted.sign, planted.right) != (meant.left, meant.sign, meant.right)


@pairs
def test_after_the_error_the_wrong_chain_is_consistent_and_ends_wrong(right: Row, wrong: Row) -> None:
    at = wrong.first_error
    assert at is not None
    calculations = [_calculation(step) for step in wrong.steps[:-1]]
    later = calculations[at + 1 :]
    assert all(calculation.true for calculation in later)
    if later:
        assert any(calculations[at].result in (calculation.left, calculation.right) for calculation in later)
    assert calculations[-1].result == _stated(wrong.steps[-1]) != Fraction(wrong.answer)


def test_the_default_policy_is_not_shown_a_sample_problem() -> None:
    assert EMBEDDED.read_text("utf-8").startswith("# @package _global_\n")
    conf = OmegaConf.load(EMBEDDED)
    assert conf.policy.kind == "embedded"
    prompt = PromptConfig(
        system=conf.policy.prompt.system,
        examples=[FewShotExample(**example) for example in conf.policy.prompt.examples],
    )
    SamplingConfig(**conf.sampling)
    assert len(prompt.examples) == 3
    assert not {example.problem for example in prompt.examples} & {row.problem for row in ROWS}
    for example in prompt.examples:
        steps = example.solution.split("\n")
        assert all(_calculation(step).true for step in steps[:-1])
        assert _calculation(steps[-2]).result == _stated(steps[-1])
