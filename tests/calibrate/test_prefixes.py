"""Which prefixes count: those with a score and rollouts of their own, each once."""

from typing import Any

import numpy as np
import pytest

from pipeline.analysis.agree.human import ModelChain
from pipeline.analysis.calibrate.prefixes import match_prefixes

Row = dict[str, Any]


def row(problem: str, *steps: str, **other: Any) -> Row:
    """A row of labels whose steps all have 4 rollouts, 3 of them correct."""
    size = len(steps)
    made: Row = {
        "problem": problem,
        "steps": list(steps),
        "prefix_ids": [f"{problem}/{'/'.join(steps[: at + 1])}" for at in range(size)],
        "origin": ["measured"] * size,
        "unbiased_value": [0.75] * size,
        "unbiased_rollouts": [4] * size,
        "outcome": True,
        "estimator": "fixed",
        "policy": "p",
    }
    return made | other


def scored(problem: str, *steps: str, own: float | None = 0.5, given: float | None = None) -> ModelChain:
    """A chain with the model's own scores, calibrated where others are `given`."""
    raw, size = (own,) * len(steps), len(steps)
    return ModelChain(
        chain_id="", problem_id="", problem=problem, steps=steps, values=raw if given is None else (given,) * size,
        raw=None if given is None else raw,
    )  # fmt: skip


def test_only_measured_prefixes_are_trials() -> None:
    """The sown error that this finds: values of the other origins look like shares of rollouts."""
    origins = ["measured", "implied", "unmeasured", "terminal"]
    found = match_prefixes(
        [scored("a", "s", "t", "u", "v")],
        [row("a", "s", "t", "u", "v", origin=origins, unbiased_value=[0.25, 1, 1, 1])],
    )
    assert found.trials.values.tolist() == [0.25]
    assert found.trials.steps.tolist() == [1]
    assert (found.counts.steps, found.counts.prefixes, found.counts.unsampled, found.counts.ends) == (4, 1, 2, 1)
    assert found.counts.rollouts == 4
    assert (found.ends.values.tolist(), found.ends.steps.tolist(), found.ends.rollouts.tolist()) == ([1], [4], [1])


def test_a_shared_prefix_counts_once() -> None:
    found = match_prefixes([scored("a", "s", "t"), scored("a", "s", "u")], [row("a", "s", "t"), row("a", "s", "u")])
    assert found.trials.steps.tolist() == [1, 2, 2]
    assert (found.counts.repeated, found.counts.problems) == (1, 1)


def test_a_prefix_without_a_score_in_one_chain_counts_in_another() -> None:
    found = match_prefixes(
        [scored("a", "s", "t", own=None), scored("a", "s", "u")], [row("a", "s", "t"), row("a", "s", "u")]
    )
    assert found.trials.steps.tolist() == [1, 2]
    assert (found.counts.unscored, found.counts.repeated) == (2, 0)


@pytest.mark.parametrize(("value", "rollouts"), [(None, 4), (0.5, 0), (0.5, None)])
def test_what_has_no_unbiased_value_is_left_out(value: float | None, rollouts: int | None) -> None:
    found = match_prefixes(
        [scored("a", "s", "t")], [row("a", "s", "t", unbiased_value=[value, 0.5], unbiased_rollouts=[rollouts, 2])]
    )
    assert (found.counts.biased, found.counts.prefixes, found.counts.rollouts) == (1, 1, 2)


def test_white_space_is_no_difference_and_another_text_is() -> None:
    rows = [row("what  is\n it?", "one", "two "), row("b", "s"), row("c", "s")]
    found = match_prefixes([scored("what is it?", "one", "two"), scored("b", "t"), scored("d", "s")], rows)
    assert (found.counts.scored, found.counts.matched, found.counts.not_in_run) == (3, 1, 2)
    assert (found.counts.labelled, found.counts.chains, found.counts.not_scored) == (3, 1, 2)
    assert found.trials.steps.tolist() == [1, 2]


def test_problems_are_numbered_by_their_text_and_not_by_their_order() -> None:
    names = [f"problem {number}" for number in range(20)]
    rows = [row(name, "s", "t", origin=["measured", "terminal"]) for name in names]
    chains = [scored(name, "s", "t", own=number / 20) for number, name in enumerate(names)]
    one, other = match_prefixes(chains, rows), match_prefixes(chains[::-1], rows[::-1])
    assert dict(zip(one.trials.scores, one.trials.problems, strict=True)) == dict(
        zip(other.trials.scores, other.trials.problems, strict=True)
    )
    assert sorted(one.trials.problems) == list(range(20))
    assert one.trials.problems.tolist() != list(range(20))
    assert one.ends.problems.tolist() == one.trials.problems.tolist()


def test_calibrated_scores_are_beside_the_models_own() -> None:
    found = match_prefixes([scored("a", "s", own=0.9, given=0.4)], [row("a", "s")])
    assert found.trials.scores.tolist() == [0.9]
    assert found.calibrated is not None
    assert found.calibrated.tolist() == [0.4]
    assert match_prefixes([scored("a", "s")], [row("a", "s")]).calibrated is None


def test_no_chain_in_common_is_no_error_here() -> None:
    found = match_prefixes([scored("a", "s")], [row("b", "s")])
    assert (len(found.trials), found.counts.matched, found.counts.rollouts) == (0, 0, 0)
    assert found.trials.scores.dtype == np.float64
