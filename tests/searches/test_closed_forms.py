"""Methods of whole chains choose as often rightly as the sum over all chains says."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pipeline.searches.base import Found
from pipeline.searches.choice import Scored, rank
from tests.searches import closed_forms
from tests.searches.closed_forms import AllChains, all_chains
from tests.searches.worlds import TreeWorld, WorldKind, found_by, problem_of, search_of

pytestmark = pytest.mark.slow
KIND = WorldKind(seed=1, depth=3, branching=3, mean=0.4, auc=0.8)
SMALL = WorldKind(seed=2, depth=2, branching=2, mean=0.4, auc=0.7)
PROBLEMS = 20
TIMES = 60
"""Searches of each problem, with other draws."""


def measured(
    kind: WorldKind, method: str, good: Callable[[TreeWorld, Found], bool], **settings: object
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """For each problem, the share of searches whose result is good."""
    search = search_of(method, **settings)
    shares = []
    for number in range(PROBLEMS):
        worlds = [
            TreeWorld(kind, problem_of(number), newest_only=search.newest_only, seed=time) for time in range(TIMES)
        ]
        shares.append(np.mean([good(world, found_by(search, world)) for world in worlds]))
    return np.array(shares)


def chose_right(world: TreeWorld, found: Found) -> bool:
    return world.right(found.chosen)


def deviation(shares: "np.ndarray[tuple[int], np.dtype[np.float64]]", truth: list[float]) -> float:
    """How many standard errors the mean share lies from the mean of the true probabilities."""
    exact = np.array(truth)
    error = np.sqrt((exact * (1 - exact)).sum() / TIMES) / len(exact)
    return float((shares.mean() - exact.mean()) / error)


def truth_of(kind: WorldKind, form: Callable[[AllChains, int], float], n: int) -> list[float]:
    return [form(all_chains(kind, number), n) for number in range(PROBLEMS)]


@pytest.mark.parametrize(
    ("kind", "method", "form", "n"),
    [
        *((KIND, "best_of_n", closed_forms.best_of_n, n) for n in (1, 4, 16)),
        *((KIND, "majority", closed_forms.majority, n) for n in (1, 4, 16)),
        *((SMALL, "weighted", closed_forms.weighted, n) for n in (1, 4, 9)),
    ],
)
def test_the_right_chain_is_chosen_as_often_as_the_sum_says(
    kind: WorldKind, method: str, form: Callable[[AllChains, int], float], n: int
) -> None:
    assert abs(deviation(measured(kind, method, chose_right, n=n), truth_of(kind, form, n))) < 2.5


@pytest.mark.parametrize("n", [1, 4, 16])
def test_a_right_chain_is_among_n_as_often_as_the_bound_says(n: int) -> None:
    possible = measured(KIND, "best_of_n", lambda world, found: any(map(world.right, found.candidates)), n=n)
    assert abs(deviation(possible, truth_of(KIND, closed_forms.bound, n))) < 2.5


def test_weighted_by_draws_is_weighted_by_all_multisets() -> None:
    rng = np.random.default_rng(0)
    for number in range(8):
        chains = all_chains(SMALL, number)
        exact = closed_forms.weighted(chains, 6)
        assert closed_forms.weighted_sampled(chains, 6, 20_000, rng) == pytest.approx(exact, abs=0.015)


def test_majority_by_series_is_majority_by_counting() -> None:
    """With scores that are all 1, a weighted vote counts; its equals are broken in favour of the first answer."""
    for number in range(8):
        chains = all_chains(SMALL, number)
        counts = np.random.default_rng(number).multinomial(5, chains.chances / chains.chances.sum(), size=20_000)
        votes = counts @ np.eye(int(chains.groups.max()) + 1)[chains.groups]
        lead = votes == votes.max(axis=1, keepdims=True)
        assert closed_forms.majority(chains, 5) == pytest.approx((lead[:, 0] / lead.sum(axis=1)).mean(), abs=0.015)


def test_a_choice_of_the_worst_chain_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def worst(chains: Sequence[Scored], _settings: object) -> Scored | None:
        return max(chains, key=rank, default=None)

    monkeypatch.setattr("pipeline.searches.choice.best_of", worst)
    shares = measured(KIND, "best_of_n", chose_right, n=4)
    assert abs(deviation(shares, truth_of(KIND, closed_forms.best_of_n, 4))) > 6
