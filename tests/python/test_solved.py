"""What `solve` says of a problem, from rows of a run, and how it is shown."""

from typing import Any

import pytest

from pipeline.analysis.searches.trees import ProblemTree, TreeNode
from pipeline.python.solved import Solved, solved_of


def candidate(number: int, answer: str | None, scores: list[float | None], **other: Any) -> dict[str, Any]:
    return {
        "candidate": number, "final_answer": answer, "score": scores[-1] if scores else None, "step_scores": scores,
        "steps": [f"step {at} of {number}" for at in range(1, len(scores) + 1)], "cut": False, "reliability": None, **other,
    }  # fmt: skip


CANDIDATES = (
    candidate(0, "1/2", [0.9, 0.4]),
    candidate(1, "0.5", [0.9, 0.95], reliability=[0.3, 0.8]),
    candidate(2, "7", [None, None]),
    candidate(3, "7", [0.6], cut=True),
    candidate(4, None, [0.7]),
)


def solved(
    *, accept: float | None = None, reliability: float | None = None, chosen: int | None = 1, **other: Any
) -> Solved:
    search: dict[str, Any] = {
        "problem": "What is half?", "problem_id": "p", "source_id": None, "chosen": chosen, "final_answer": "0.5",
        "outcome": True, "score": 0.95, "confidence": 0.95, "trusted": None, "weakest_step": 1, "stopped": "done",
        "policy_tokens": 1234, "scorer_computed": 56, "seconds": 1.5,
    }  # fmt: skip
    return solved_of({**search, **other}, CANDIDATES, accept, reliability)


def test_the_chosen_chain_and_the_others_best_first() -> None:
    found = solved()
    assert [step.text for step in found.steps] == ["step 1 of 1", "step 2 of 1"]
    assert [(step.score, step.reliability, step.sure) for step in found.steps] == [(0.9, 0.3, None), (0.95, 0.8, None)]
    assert [each.score for each in found.alternatives] == [0.7, 0.6, 0.4, None]
    assert [each.answer for each in found.alternatives] == [None, "7", "1/2", "7"]
    assert [each.cut for each in found.alternatives] == [False, True, False, False]


def test_equal_answers_share_their_votes() -> None:
    found = solved()
    assert found.share == 2 / 5, "1/2 is 0.5"
    assert [each.share for each in found.alternatives] == [None, 2 / 5, 2 / 5, 2 / 5]


@pytest.mark.parametrize(
    ("accept", "reliability", "sure"),
    [
        (None, None, [None, None]),
        (0.9, None, [True, True]),
        (0.93, None, [False, True]),
        (0.9, 0.5, [False, True]),
        (0.9, 0.9, [False, False]),
    ],
)
def test_a_step_is_sure_where_its_score_and_its_reliability_reach_the_settings(
    accept: float | None, reliability: float | None, sure: list[bool | None]
) -> None:
    assert [step.sure for step in solved(accept=accept, reliability=reliability).steps] == sure


def test_a_step_without_a_score_or_a_reliability_is_not_sure() -> None:
    assert [step.sure for step in solved(chosen=2, accept=0.1).steps] == [False, False]
    assert [step.sure for step in solved(chosen=0, accept=0.1, reliability=0.1).steps] == [False, False]


def test_it_is_shown_by_its_steps_and_other_answers() -> None:
    assert repr(solved(accept=0.93, trusted=True)).splitlines() == [
        "What is half?",
        "answer      0.5, which is right",
        "confidence  0.95: trusted",
        "agreement   40 % of 5 candidates state this answer",
        "others      7: 2 candidates, best score 0.60",
        "            1/2: 1 candidate, best score 0.40",
        "tokens      1,234 of the policy, 56 of the scorer",
        "",
        "            score",
        "step 1      0.90  step 1 of 1  (the weakest step, not sure)",
        "step 2      0.95  step 2 of 1",
    ]


def test_a_search_without_a_chain_says_so() -> None:
    found = solved(
        chosen=None, final_answer=None, outcome=None, score=None, confidence=None, trusted=False, stopped="no_chain"
    )
    assert (found.steps, found.share, found.answer) == ((), None, None)
    lines = repr(found).splitlines()
    assert lines[1:4] == ["answer      none", "trusted     no", "no chain    the search ended with no_chain"]
    assert "<table>" in found._repr_html_()


def test_what_a_model_writes_is_shown_as_text() -> None:
    hostile = "<script>\x1b[31m</script>\u202e"
    row = {**candidate(0, hostile, [0.5, 0.2]), "steps": [hostile, "two\nlines"]}
    other = candidate(1, f"{hostile}\n2", [0.1])
    made = solved_of(
        {
            "problem": hostile, "problem_id": "p", "source_id": None, "chosen": 0, "final_answer": hostile, "outcome": None,
            "score": 0.2, "confidence": 0.2, "trusted": None, "weakest_step": 2, "stopped": hostile, "policy_tokens": 1,
            "scorer_computed": 1, "seconds": 0.0,
        },
        [row, other], None, None,
    )  # fmt: skip
    html = made._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    for shown in (html, repr(made)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "step 2      0.20  two  (the weakest step)" in repr(made)


def test_a_tree_is_an_outline_of_its_steps() -> None:
    nodes = (
        TreeNode(parent=None, depth=0, text="", prefix_id="r", visits=4),
        TreeNode(parent=0, depth=1, text="a\x1b", prefix_id="a", score=0.5, visits=3, on_path=True),
        TreeNode(parent=0, depth=1, text="b", prefix_id="b", visits=1, ends=1, answer="9"),
        TreeNode(parent=1, depth=2, text="c", prefix_id="c", score=0.25, visits=2, on_path=True, ends=2, answer="8"),
    )
    tree = ProblemTree(problem="How\nmany?", nodes=nodes, path=(1, 3), weakest=3)
    assert repr(tree).splitlines() == [
        "How many?",
        "* 0.50    3x a�",
        "* 0.25    2x   c  -> 8  (the weakest step)",
        "   -      1x b  -> 9",
    ]
    frame = tree.frame()
    assert frame["text"].to_list() == ["", "a\x1b", "b", "c"]
    assert frame["parent"].to_list() == [None, 0, 0, 1]
    assert (tree.path, tree.weakest) == ((1, 3), 3)
