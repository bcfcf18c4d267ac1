"""The methods of search once more, written from their descriptions for the tree world alone: plain loops over paths, random
numbers of their own, and no code of `pipeline.searches`. They are the independent second opinion on the machines.

Each function returns the path of the chosen chain and the number of steps that were sampled.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.searches.worlds import TreeWorld

Path = tuple[int, ...]
Chosen = tuple[Path, int]


@dataclass(slots=True)
class Policy:
    """Draws steps, and counts them."""

    world: TreeWorld
    rng: random.Random
    steps: int = 0

    def next(self, path: Path) -> Path:
        children = self.world.kind.tree.children(self.world.problem.problem_id, path)
        self.steps += 1
        (branch,) = self.rng.choices(range(len(children)), [child.probability for child in children])
        return (*path, branch)

    def ended(self, path: Path) -> bool:
        """Whether the last step states the answer."""
        return not self.world.kind.tree.children(self.world.problem.problem_id, path)

    def rest(self, path: Path) -> Path:
        while not self.ended(path):
            path = self.next(path)
        return path

    def score(self, path: Path) -> float:
        found = self.world.score(path).score
        assert found is not None
        return found


def beam(policy: Policy, n: int, width: int, lookahead: int = 0) -> Chosen:
    """Beam search over texts: copies of the same text are one beam."""
    finished: set[Path] = set()
    fresh = [policy.next(()) for _ in range(n)]
    while True:
        value: dict[Path, float] = {}
        for path in fresh:
            end = path
            for _ in range(lookahead):
                if not policy.ended(end):
                    end = policy.next(end)
            value.setdefault(path, policy.score(end))
        finished |= {path for path in value if policy.ended(path)}
        value |= {path: policy.score(path) for path in finished}
        survivors = sorted(value, key=lambda path: value[path], reverse=True)[: n // width]
        going = [path for path in survivors if not policy.ended(path)]
        if not going:
            return max(finished, key=policy.score), policy.steps
        fresh = [policy.next(path) for path in going for _ in range(width)]


def dvts(policy: Policy, n: int, width: int) -> Chosen:
    """Greedy descent in each of n / width subtrees."""
    finished = []
    for _ in range(n // width):
        path: Path = ()
        while not policy.ended(path):
            options = [policy.next(path) for _ in range(width)]
            finished += [option for option in options if policy.ended(option)]
            path = max(options, key=policy.score)
    return max(finished, key=policy.score), policy.steps


def particle(policy: Policy, n: int, resample_below: float, temperature: float = 1.0) -> Chosen:
    """A particle filter with target p(chain) * score ** (1 / temperature)."""
    particles: list[Path] = [()] * n
    old = [1.0] * n
    finished = set()
    while not all(policy.ended(path) for path in particles):
        particles = [path if policy.ended(path) else policy.next(path) for path in particles]
        finished |= {path for path in particles if policy.ended(path)}
        new = [policy.score(path) ** (1 / temperature) for path in particles]
        weights = [now / before for now, before in zip(new, old, strict=True)]
        size = sum(weights) ** 2 / sum(weight**2 for weight in weights)
        if size < resample_below * n:
            # One draw on a wheel with n equally spaced pointers.
            spacing = sum(weights) / n
            pointer = policy.rng.random() * spacing
            survivors: list[Path] = []
            reached = 0.0
            for path, weight in zip(particles, weights, strict=True):
                reached += weight
                while pointer < reached and len(survivors) < n:
                    survivors.append(path)
                    pointer += spacing
            survivors += [particles[-1]] * (n - len(survivors))
            particles = survivors
            old = [policy.score(path) ** (1 / temperature) for path in particles]
    return max(finished, key=policy.score), policy.steps


@dataclass(slots=True)
class Statistics:
    """What a tree search knows of a text. `share`: of the draws at its parent."""

    share: float
    values: list[float]
    kids: list[Path] = field(default_factory=list)


def mcts(policy: Policy, n: int, width: int, exploration: float, parallel: int = 1, rollout: bool = False) -> Chosen:
    """PUCT. The tree is a table from paths to statistics."""
    table: dict[Path, Statistics] = {(): Statistics(1.0, [0.0])}
    finished: set[Path] = set()
    empty: set[Path] = set()

    def exhausted(path: Path) -> bool:
        kids = table[path].kids
        if path not in empty and (policy.ended(path) or (kids and all(exhausted(kid) for kid in kids))):
            empty.add(path)
        return path in empty

    def available(path: Path, taken: Sequence[Path]) -> bool:
        if exhausted(path) or path in taken:
            return False
        return not table[path].kids or any(available(kid, taken) for kid in table[path].kids)

    def seen(path: Path, taken: Sequence[Path]) -> int:
        return len(table[path].values) + sum(other[: len(path)] == path for other in taken)

    def worth(path: Path, taken: Sequence[Path]) -> float:
        visits, above = seen(path, taken), seen(path[:-1], taken)
        mean = sum(table[path].values) / visits
        return mean + exploration * table[path].share * math.sqrt(above) / visits

    done = 0
    while done < n and not exhausted(()):
        taken: list[Path] = []
        while len(taken) < min(parallel, n - done) and available((), taken):
            path: Path = ()
            while table[path].kids:
                path = max(
                    (kid for kid in table[path].kids if available(kid, taken)), key=lambda kid: worth(kid, taken)
                )
            taken.append(path)
        done += len(taken)
        for start in taken:
            path = start
            ends = []
            while not policy.ended(path):
                options = [policy.next(path) for _ in range(width)]
                for option in sorted(set(options)):
                    table[option] = Statistics(options.count(option) / width, [policy.score(option)])
                    table[path].kids.append(option)
                deepest, path = path, max(options, key=policy.score)
                ends += [option for option in options if policy.ended(option)]
                if rollout and not policy.ended(path):
                    ends.append(policy.rest(path))
                    break
            finished |= set(ends)
            value = max(policy.score(end) for end in ends)
            for length in range(len(deepest) + 1):
                table[deepest[:length]].values.append(value)
    return max(finished, key=policy.score), policy.steps


def regenerate(policy: Policy, n: int, chains: int, largest_drop: bool = True) -> Chosen:
    """Rewrites chains from where they turn bad."""
    current = [policy.rest(()) for _ in range(chains)]
    finished = list(current)
    beginnings = [0.5] + [policy.score(chain[:1]) for chain in current]
    for _ in range(n // chains):
        rewritten = []
        level = sum(beginnings) / len(beginnings)
        for chain in current:
            scores = [policy.score(chain[: number + 1]) for number in range(len(chain))]
            falls = [before - after for before, after in zip([level, *scores], scores, strict=False)]
            bad = falls.index(max(falls)) if largest_drop else scores.index(min(scores))
            rewritten.append(policy.rest(chain[:bad]))
            if bad == 0:
                beginnings.append(policy.score(rewritten[-1][:1]))
        finished += rewritten
        current = [max(pair, key=policy.score) for pair in zip(current, rewritten, strict=True)]
    return max(finished, key=policy.score), policy.steps


Simulator = Callable[[Policy], Chosen]
