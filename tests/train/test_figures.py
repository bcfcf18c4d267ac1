"""The pure parts of training: validation metrics, scores of chains, and the order of chains."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.scorers.chain_scores import chain_scores
from pipeline.scorers.heads import like_lengths
from pipeline.train.data import LengthBatchSampler
from pipeline.train.result import accuracy, auc, brier

shares = st.floats(0, 1)
labelled = st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.sampled_from([0, 1, None])), max_size=12)
lengths = st.lists(st.integers(0, 300), max_size=60)


@given(labelled)
def test_auc_is_the_share_of_pairs_in_order(steps: list[tuple[float, int | None]]) -> None:
    pairs = [(good, bad) for good, one in steps if one == 1 for bad, other in steps if other == 0]
    found = auc([score for score, _ in steps], [label for _, label in steps])
    if pairs:
        assert found == pytest.approx(sum((good > bad) + (good == bad) / 2 for good, bad in pairs) / len(pairs))
    else:
        assert found is None


def test_accuracy_and_brier_count_what_is_known() -> None:
    assert accuracy([0.9, 0.2, 0.6, 0.4], [1, 0, 0, None]) == pytest.approx(2 / 3)
    assert accuracy([0.9], [None]) is None
    assert brier([0.5, 1.0, 0.3], [0.0, 1.0, None]) == pytest.approx(0.125)
    assert brier([0.5], [None]) is None


@given(st.lists(shares, min_size=1, max_size=9))
def test_a_chain_has_the_scores_of_its_steps(scores: list[float]) -> None:
    product, mean = math.prod(scores), sum(scores) / len(scores)
    wanted = {"score_last": scores[-1], "score_min": min(scores), "score_product": product, "score_mean": mean}
    assert chain_scores(scores) == pytest.approx(wanted)


@given(st.lists(shares, max_size=5))
def test_a_chain_with_an_unscored_step_or_none_has_no_score(scores: list[float]) -> None:
    assert set(chain_scores([*scores, None]).values()) == {None} == set(chain_scores([]).values())


@given(lengths, st.integers(1, 1_000))
def test_forward_passes_hold_every_chain_once_and_no_more_tokens_than_allowed(sizes: list[int], tokens: int) -> None:
    batches = list(like_lengths(sizes, tokens))
    assert sorted(index for batch in batches for index in batch) == [index for index, size in enumerate(sizes) if size]
    assert all(len(batch) == 1 or len(batch) * max(sizes[index] for index in batch) <= tokens for batch in batches)


@given(lengths, st.integers(1, 7), st.integers(0, 9))
def test_an_epoch_has_every_chain_once_in_an_order_of_its_own(sizes: list[int], batch: int, epoch: int) -> None:
    order = LengthBatchSampler(sizes, batch, seed=3)
    order.set_epoch(epoch)
    drawn = list(order)
    assert sorted(drawn) == list(range(len(order))) == list(range(len(sizes)))
    assert drawn == list(order)


def test_batches_hold_chains_of_like_length_and_epochs_differ() -> None:
    sizes = [number * 37 % 500 for number in range(400)]
    order = LengthBatchSampler(sizes, 8, seed=3)
    first = list(order)
    spreads = [max(part) - min(part) for part in ([sizes[i] for i in first[s : s + 8]] for s in range(0, 400, 8))]
    assert max(spreads) < 20
    order.set_epoch(1)
    assert list(order) != first != list(LengthBatchSampler(sizes, 8, seed=4))
