"""What methods of whole chains are worth in the tree world, exactly: sums over all chains of a problem, given their scores.

A problem's chains are few, and a draw is one of them. So the choice among n draws has a known distribution.
"""

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby

import numpy as np
import numpy.typing as npt

from tests.oracles.leaves import all_leaves
from tests.searches.worlds import TreeWorld, WorldKind, problem_of

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AllChains:
    """All chains of a problem. `groups`: the number of each one's answer; the right one is 0. `tokens` of a chain. Of all
    `beginnings`, `shares`: the probability that a chain has it, and `sizes`: the tokens of its last step."""

    paths: tuple[tuple[int, ...], ...]
    chances: Floats
    right: Flags
    scores: Floats
    groups: npt.NDArray[np.int64]
    tokens: Floats
    beginnings: tuple[tuple[int, ...], ...]
    shares: Floats
    sizes: Floats
    problem_tokens: int


def all_chains(kind: WorldKind, number: int) -> AllChains:
    """The chains of a problem of the world. All their ends have scores."""
    problem = problem_of(number)
    world, tree = TreeWorld(kind, problem), kind.tree
    leaves = list(all_leaves(tree, problem))
    answers = [tree.right_answer(problem), *sorted({leaf.answer for leaf in leaves if not leaf.right})]
    shares: dict[tuple[int, ...], float] = {}
    for leaf in leaves:
        for depth in range(1, len(leaf.path) + 1):
            shares[leaf.path[:depth]] = shares.get(leaf.path[:depth], 0.0) + leaf.probability
    sizes = {path: float(len(tree.step(problem, path))) for path in shares}
    return AllChains(
        paths=tuple(leaf.path for leaf in leaves),
        chances=np.array([leaf.probability for leaf in leaves]),
        right=np.array([leaf.right for leaf in leaves]),
        scores=np.array([world.score(leaf.path).score for leaf in leaves], dtype=np.float64),
        groups=np.array([answers.index(leaf.answer) for leaf in leaves]),
        tokens=np.array([sum(sizes[leaf.path[:depth]] for depth in range(1, len(leaf.path) + 1)) for leaf in leaves]),
        beginnings=tuple(shares),
        shares=np.minimum(1.0, np.array(list(shares.values()))),
        sizes=np.array(list(sizes.values())),
        problem_tokens=len(problem.text),
    )


def best_of_n(chains: AllChains, n: int) -> float:
    """P(the best-scored of n draws is right): the best one is at most the i-th in rank with the probability F_i ** n."""
    order = np.argsort(chains.scores)
    upto = np.minimum(1.0, np.cumsum(chains.chances[order]))
    below = np.concatenate([[0.0], upto[:-1]])
    return float(((upto**n - below**n) * chains.right[order]).sum())


def bound(chains: AllChains, n: int) -> float:
    """P(at least one of n draws is right)."""
    return float(1.0 - (1.0 - chains.chances[chains.right].sum()) ** n)


def majority(chains: AllChains, n: int) -> float:
    """P(the most frequent answer of n draws is right), where answers that are equally frequent are equally likely to win.

    The right answer has k votes with a binomial probability. The other answers' votes are multinomial: the probability that
    none has more than k, and t of them have k, is a coefficient of a product of truncated exponential series.
    """
    chances = np.bincount(chains.groups, chains.chances)
    total = 0.0
    for k in range(1, n + 1):
        # rows: answers that have k votes, too; columns: votes used.
        ways = np.zeros((len(chances), n - k + 1))
        ways[0, 0] = 1.0
        for number, chance in enumerate(chances[1:]):
            terms = np.array([chance**votes / math.factorial(votes) for votes in range(min(k, n - k) + 1)])
            less = [np.convolve(row, terms[:k])[: n - k + 1] for row in ways[: number + 1]]
            grown = np.zeros_like(ways)
            grown[: number + 1] = less
            if k <= n - k:
                grown[1 : number + 2, k:] += terms[k] * ways[: number + 1, : n - 2 * k + 1]
            ways = grown
        won = (ways[:, n - k] / (1.0 + np.arange(len(ways)))).sum()
        total += won * math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) + k * math.log(max(chances[0], 1e-300)))
    return float(total)


def weighted(chains: AllChains, n: int) -> float:
    """P(the answer with the largest sum of scores among n draws is right), by all multisets of n chains. For few chains."""
    total = 0.0
    for multiset in combinations_with_replacement(range(len(chains.chances)), n):
        counts = [len(list(same)) for _, same in groupby(multiset)]
        ways = math.factorial(n) / math.prod(map(math.factorial, counts))
        sums = np.bincount(chains.groups[list(multiset)], chains.scores[list(multiset)])
        if sums.argmax() == 0:
            total += ways * float(chains.chances[list(multiset)].prod())
    return total


def weighted_sampled(chains: AllChains, n: int, samples: int, rng: np.random.Generator) -> float:
    """`weighted` by this many independent draws of n chains, for problems with more chains."""
    counts = rng.multinomial(n, chains.chances / chains.chances.sum(), size=samples).astype(np.float64)
    sums = counts @ (np.eye(int(chains.groups.max()) + 1)[chains.groups] * chains.scores[:, None])
    return float((sums.argmax(axis=1) == 0).mean())


def policy_tokens(chains: AllChains, n: int) -> float:
    return n * float((chains.chances * chains.tokens).sum())


def scorer_tokens(chains: AllChains, n: int, *, prefixes_once: bool) -> float:
    """Mean tokens that a scorer computes of n draws: of each distinct beginning one step, as with a cache of prefixes;
    otherwise each distinct chain with its problem."""
    if prefixes_once:
        return chains.problem_tokens + float(((1.0 - (1.0 - chains.shares) ** n) * chains.sizes).sum())
    return float(((1.0 - (1.0 - chains.chances) ** n) * (chains.tokens + chains.problem_tokens)).sum())
