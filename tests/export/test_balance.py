"""Balancing leaves out the fewest whole chains of the larger side, and the order of the chains does not matter."""

from itertools import chain as chained
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import UsageError
from pipeline.export import balance as module
from pipeline.export.balance import Counted, chains_to_drop
from pipeline.export.example import LabelCounts
from pipeline.export.settings import Balance

PER_CHAIN = st.tuples(st.integers(0, 6), st.integers(0, 6))


def counted(pairs: list[tuple[int, int]]) -> list[Counted]:
    return [(f"c{number}", LabelCounts(good, bad)) for number, (good, bad) in enumerate(pairs)]


def kept(chains: list[Counted], balance: Balance, seed: int = 0) -> list[Counted]:
    gone = chains_to_drop(chains, balance, seed)
    return [chain for chain in chains if chain[0] not in gone]


def surplus(chains: list[Counted] | tuple[Counted, ...]) -> int:
    return sum(labels.good - labels.bad for _, labels in chains)


@given(st.lists(PER_CHAIN, max_size=40), st.integers(0, 3))
def test_as_many_chains_with_a_bad_step_as_without(pairs: list[tuple[int, int]], seed: int) -> None:
    chains = counted([(5, 0), (1, 1), *pairs])
    left = kept(chains, Balance.chains, seed)
    bad = sum(labels.bad > 0 for _, labels in left)
    assert bad == len(left) - bad == min(sum(c.bad > 0 for _, c in chains), sum(c.bad == 0 for _, c in chains))


@given(st.lists(PER_CHAIN, max_size=9))
def test_steps_come_as_near_as_leaving_out_chains_of_the_surplus_side_can(pairs: list[tuple[int, int]]) -> None:
    chains = counted([(1, 0), (0, 1), *pairs])
    total = surplus(chains)
    left = kept(chains, Balance.steps)
    gone = [chain for chain in chains if chain not in left]
    assert all(surplus([chain]) * total > 0 for chain in gone)
    heavy = [chain for chain in chains if surplus([chain]) * total > 0]
    every = chained.from_iterable(combinations(heavy, size) for size in range(len(heavy) + 1))
    assert abs(surplus(left)) == min(abs(total - surplus(subset)) for subset in every)


@given(st.lists(PER_CHAIN, max_size=30), st.randoms(use_true_random=False), st.sampled_from(list(Balance)))
def test_the_order_of_the_chains_does_not_matter(
    pairs: list[tuple[int, int]], random: object, balance: Balance
) -> None:
    chains = counted([(1, 0), (0, 1), *pairs])
    shuffled = sorted(chains, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert chains_to_drop(shuffled, balance, 7) == chains_to_drop(chains, balance, 7)


def test_another_seed_leaves_out_others() -> None:
    chains = counted([(3, 0)] * 40 + [(1, 1)] * 20)
    assert chains_to_drop(chains, Balance.chains, 1) != chains_to_drop(chains, Balance.chains, 2)


def test_what_is_far_from_even_becomes_even_to_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXACT_STEPS", 10)
    chains = counted([(3 + number % 4, 0) for number in range(200)] + [(0, 1)] * 50)
    assert surplus(chains) > 100 * module.EXACT_STEPS - 350
    assert surplus(kept(chains, Balance.steps)) == 0


def test_without_balance_all_stay() -> None:
    assert chains_to_drop(counted([(3, 0)]), Balance.none, 0) == frozenset()


@pytest.mark.parametrize(
    ("balance", "pairs", "lacking"),
    [
        (Balance.chains, [(3, 0), (2, 0)], "bad step"),
        (Balance.chains, [(3, 1), (2, 2)], "chain without a bad step"),
        (Balance.steps, [(3, 0), (2, 0)], "bad step"),
        (Balance.steps, [(0, 0), (0, 2)], "good step"),
    ],
)
def test_one_side_alone_is_refused(balance: Balance, pairs: list[tuple[int, int]], lacking: str) -> None:
    with pytest.raises(
        UsageError, match=rf"balance={balance.value} .* there is no {lacking}\. Export with balance=none"
    ):
        chains_to_drop(counted(pairs), balance, 0)
