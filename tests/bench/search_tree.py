"""The methods of search in the tree world: how often each chooses rightly, what it costs, and what as many tokens of best-of-n
are worth. All in memory (`tests.searches.worlds`)."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.analysis.comparison import mean_over, share_over
from pipeline.core.statistics import Floats, Interval
from tests.searches import closed_forms, naive
from tests.searches.closed_forms import AllChains, all_chains
from tests.searches.naive import Chosen, Policy
from tests.searches.worlds import TreeWorld, WorldKind, found_by, problem_of, search_of

SEED = 0
"""Of resamples and of draws that no machine makes."""
VOTES = 1_000
"""Draws of n chains of a problem for a weighted vote, of which there is no sum over all chains. Their part in the standard
deviation of a mean over 500 problems is below 0.001."""
MOST_CHAINS = 400
"""The longest best-of-n of the curve."""
SIMULATORS: Mapping[str, Callable[[Policy, int], Chosen]] = {
    "beam": lambda policy, n: naive.beam(policy, n, 4),
    "dvts": lambda policy, n: naive.dvts(policy, n, 4),
    "particle": lambda policy, n: naive.particle(policy, n, 0.5),
    "mcts": lambda policy, n: naive.mcts(policy, n, 4, 0.5, 4),
    "regenerate": lambda policy, n: naive.regenerate(policy, n, 2),
}
"""Methods that have no closed form, with their default settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """A method with a closed form at an n."""

    right: Interval
    policy: float
    scorer: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A method without one. `apart`: the machine's share of right choices minus that of the simulator, and `error`: its
    standard error over problems. `k`: chains of best-of-n that cost as many tokens, where its scorer computes each prefix once;
    `gain`: over these."""

    right: Interval
    policy: float
    scorer: float
    apart: float
    error: float
    k: float
    gain: Interval


class Problems:
    """The first `count` problems of a kind of world, with everything that is known of their chains."""

    def __init__(self, kind: WorldKind, count: int) -> None:
        self.kind = kind
        self.count = count

    @cached_property
    def chains(self) -> list[AllChains]:
        return [all_chains(self.kind, number) for number in range(self.count)]

    @cached_property
    def curve(self) -> Floats:
        """P(the best of n chains is right): (problems, n), n from 1."""
        sizes = range(1, MOST_CHAINS + 1)
        return np.array([[closed_forms.best_of_n(chains, n) for n in sizes] for chains in self.chains])

    def tokens(self, n: int) -> float:
        """Mean tokens of n chains of a problem and their scores, where no prefix is scored twice."""
        return float(
            np.mean(
                [
                    closed_forms.policy_tokens(each, n) + closed_forms.scorer_tokens(each, n, prefixes_once=True)
                    for each in self.chains
                ]
            )
        )

    def at_tokens(self, tokens: float) -> tuple[float, Floats]:
        """The k at which best-of-k costs so much on average, and P(right) of each problem there. Between two n's the one or the
        other is used at random. Raises ValueError beyond MOST_CHAINS."""
        few, many = 1, MOST_CHAINS
        if not self.tokens(1) <= tokens < self.tokens(many):
            raise ValueError(f"{tokens:.0f} tokens are not between those of 1 and of {MOST_CHAINS} chains")
        while many - few > 1:
            middle = (few + many) // 2
            if self.tokens(middle) <= tokens:
                few = middle
            else:
                many = middle
        low, high = self.tokens(few), self.tokens(many)
        part = (tokens - low) / (high - low)
        return few + part, (1 - part) * self.curve[:, few - 1] + part * self.curve[:, many - 1]

    def exact(self, n: int) -> dict[str, Exact]:
        """The methods of whole chains, and the bound of all choices among n chains."""
        rng = np.random.default_rng([SEED, n])
        chances = {
            "best_of_n": [closed_forms.best_of_n(each, n) for each in self.chains],
            "majority": [closed_forms.majority(each, n) for each in self.chains],
            "weighted": [closed_forms.weighted_sampled(each, n, VOTES, rng) for each in self.chains],
            "bound": [closed_forms.bound(each, n) for each in self.chains],
        }
        policy = float(np.mean([closed_forms.policy_tokens(each, n) for each in self.chains]))
        scorer = float(np.mean([closed_forms.scorer_tokens(each, n, prefixes_once=False) for each in self.chains]))
        unscored = ("majority", "bound")
        return {
            name: Exact(
                right=share_over(np.array(values), SEED), policy=policy, scorer=0.0 if name in unscored else scorer
            )
            for name, values in chances.items()
        }

    def searched(self, method: str, n: int) -> Searched:
        """A search of each problem by a machine, and one by the simulator."""
        search = search_of(method, n=n)
        rows = []
        for number in range(self.count):
            world = TreeWorld(self.kind, problem_of(number), newest_only=search.newest_only)
            right = world.right(found_by(search, world).chosen)
            simulated = TreeWorld(self.kind, problem_of(number))
            policy = Policy(simulated, random.Random(f"{SEED} {self.kind} {number}"))
            path, _ = SIMULATORS[method](policy, n)
            theirs_right = self.kind.tree.value(simulated.problem.problem_id, path) >= 1.0
            rows.append([right, theirs_right, world.policy_tokens, world.scorer_tokens])
        table = np.array(rows, dtype=np.float64)
        ours, theirs, written, scorer = table.T
        tokens = float(written.mean() + scorer.mean())
        k, at_equal = self.at_tokens(tokens)
        return Searched(
            right=share_over(ours, SEED),
            policy=float(written.mean()),
            scorer=float(scorer.mean()),
            apart=float((ours - theirs).mean()),
            error=float((ours - theirs).std(ddof=1) / np.sqrt(self.count)),
            k=k,
            gain=mean_over(ours - at_equal, SEED),
        )
