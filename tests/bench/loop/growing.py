"""What tokens are worth to a student: prefixes that `grow` promotes, against more chains and more problems for as many
tokens. All students of a seed have as many updates, with the same settings.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tests.bench.loop.equal import ChainDraw, Paid, Part, paid, repeated_to
from tests.bench.loop.plan import TRAINING
from tests.bench.loop.repeats import counted_once, is_grown, promoted_alone, targets_of
from tests.bench.loop.tiny_runs import TinyRun, TinyRuns
from tests.tiny.arithmetic import Exercise


class Sizes(NamedTuple):
    """Of the runs of a seed and of its trainings. `problems`, with `solutions` chains each and `rollouts` of each prefix, are
    those of the run that grows; `more_problems` and `more_solutions` must cost more than it has cost when it has grown.
    `updates_chains`: how many chains a student sees, each as often as any other but for once."""

    problems: int = 400
    more_problems: int = 800
    solutions: int = 6
    more_solutions: int = 16
    rollouts: int = 4
    updates_chains: int = 9_600


BASE = "the run that grows"
GROWN = "grow=pairs"
GROWN_ALONE = "grow=pairs, of promoted chains the promoted step alone"
GROWN_ONCE = "grow=pairs, each prefix once"
MORE_CHAINS = "more chains"
MORE_PROBLEMS = "more problems"
SEEDS = 3
TRAINED = {**TRAINING, "epochs": 1, "validation": 0}
"""All students have as many updates, with these settings of `train`."""
COMPARED = (BASE, GROWN, MORE_CHAINS, MORE_PROBLEMS)
VARIED = (GROWN_ALONE, GROWN_ONCE)
"""Labels of repeated prefixes that do not count again for each promoted chain, or for any chain."""
ARMS = (*COMPARED, *VARIED)


def plan() -> list[tuple[str, int]]:
    """All arms with all seeds, in an order in which an interrupted experiment says most."""
    seeds = range(SEEDS)
    return [*((arm, seed) for seed in seeds for arm in COMPARED), *((arm, seed) for arm in VARIED for seed in seeds)]


class Seed:
    """The runs of a seed. `exercises`: problems to learn from, its own."""

    def __init__(self, folder: Path, exercises: Sequence[Exercise], seed: int, sizes: Sizes) -> None:
        self._runs = TinyRuns(folder, seed)
        self._exercises = exercises
        self._sizes = sizes
        self._seed = seed

    def part(self, arm: str) -> Part:
        """What an arm learns from."""
        made: Mapping[str, Callable[[], Part]] = {
            BASE: lambda: _whole(self.base),
            GROWN: lambda: _whole(self.grown),
            GROWN_ALONE: lambda: _alone(_whole(self.grown)),
            GROWN_ONCE: lambda: _once(_whole(self.grown)),
            MORE_CHAINS: self._more_chains,
            MORE_PROBLEMS: self._more_problems,
        }
        return made[arm]()

    def trained_on(self, arm: str) -> Part:
        """The same, each row as often as any other but for once, with what the labels are as figures."""
        found = self.part(arm)
        targets, prefixes = targets_of(found.rows)
        more = {"grown": sum(map(is_grown, found.rows)), "targets": targets, "prefixes": prefixes}
        return Part(repeated_to(found.rows, self._sizes.updates_chains, self._seed), found.tokens, more)

    @cached_property
    def base(self) -> TinyRun:
        return self._labelled("base")

    @cached_property
    def grown(self) -> TinyRun:
        """By the picker's own settings, with the tokens of the base's rollouts as budget. It may find nothing worth the rest:
        all other arms cost as much as this one did."""
        budget = sum(self.base.rollout_tokens.values())
        return self._runs.grown("grown-pairs", self.base, "grow=pairs", f"grow.budget={budget}")

    def _more_chains(self) -> Part:
        """More chains of the same problems: of all of them as many, or one more of the first ones."""
        run = self._labelled("more-chains", solutions=self._sizes.more_solutions)
        return self._paid(run, lambda draw: (draw.number, self._place[draw.problem]))

    def _more_problems(self) -> Part:
        """More problems, with as many chains each."""
        run = self._labelled("more-problems", problems=self._sizes.more_problems)
        return self._paid(run, lambda draw: (self._place[draw.problem], draw.number))

    def _labelled(self, name: str, **other: int) -> TinyRun:
        asked = {"problems": self._sizes.problems, "solutions": self._sizes.solutions, "rollouts": self._sizes.rollouts}
        asked |= other
        exercises = self._exercises[: asked.pop("problems")]
        return self._runs.labelled(name, exercises, "estimator=fixed", **asked)

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return {exercise.problem: place for place, exercise in enumerate(self._exercises)}

    def _paid(self, run: TinyRun, order: Callable[[ChainDraw], tuple[int, int]]) -> Part:
        """What the tokens of the grown run pay for of a larger one."""
        most = self.grown.tokens
        assert run.tokens > most, f"{run.run_dir} has {run.tokens:,} tokens, and {most:,} are wanted"
        found: Paid = paid(sorted(run.draws, key=order), run.rollout_tokens, most)
        return Part([row for row in run.rows if row["chain_id"] in found.chains], found.tokens)


def _whole(run: TinyRun) -> Part:
    return Part(run.rows, run.tokens)


def _alone(part: Part) -> Part:
    return part._replace(rows=promoted_alone(part.rows))


def _once(part: Part) -> Part:
    return part._replace(rows=counted_once(part.rows))
