"""Verifiers on real steps: hardly any step that people wrote or approved of is refuted."""

import pytest

from pipeline.verifiers.base import StepVerdict
from tests.verifiers.real_steps import HUMAN, MARKED, asked, human_steps, marked_steps, refuted
from tests.verifiers.steps import ASKED, verifier

pytestmark = pytest.mark.skipif(
    not (HUMAN.exists() and MARKED.exists()), reason="the data are not beside this checkout"
)

MISTAKEN = {"gsm8k-train-77"}
"""Solutions with a mistake of their author: 1550 / 50 = 29."""


@pytest.mark.parametrize("name", ASKED)
def test_steps_of_people_are_not_refuted(name: str) -> None:
    answers = asked(verifier(name), human_steps())
    wrong = refuted(answers)
    assert 1000 * len(wrong) <= len(answers), [each.found.evidence for each in wrong]
    assert {each.step.chain for each in wrong} <= MISTAKEN


def test_most_steps_of_people_have_equations_that_hold() -> None:
    answers = asked(verifier("arithmetic"), human_steps())
    assert sum(each.found.verdict is StepVerdict.HOLDS for each in answers) > 0.9 * len(answers)


def test_what_is_refuted_is_what_people_marked() -> None:
    wrong = [each for name in ASKED for each in refuted(asked(verifier(name), marked_steps()))]
    assert len(wrong) >= 7
    assert all(each.step.is_error for each in wrong), [(each.step.chain, each.found.evidence) for each in wrong]
