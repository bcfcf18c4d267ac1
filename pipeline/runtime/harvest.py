"""What the rollouts of a finished run wrote, and what a picker would measure of it.

The units of a run do not depend on each other, so several processes read a large run. The result is the same.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from multiprocessing import get_context

from pipeline.config.grow import PickerConfig
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import chosen_settings
from pipeline.core.errors import StepvalueError
from pipeline.core.records import SummedRecord
from pipeline.estimators.registry import ESTIMATORS
from pipeline.pickers.registry import picker_for
from pipeline.pickers.rounds import MOST_PICKS, problem_of
from pipeline.storage.commits import EDITION, RecordSequence
from pipeline.storage.stored_run import StoredRun
from pipeline.storage.stored_trees import ProblemTree, StoredTrees
from pipeline.storage.units import UnitRef
from pipeline.trees.tree import FairRounds

LARGE = 100_000
"""Rollouts for which a process is worth its start."""
MOST_PROCESSES = 8
"""Each takes 300 MB."""
_MOST_UNITS = 4
"""Of a task: a process that is interrupted finishes its task first."""
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestCounts(SummedRecord):
    """What rollouts wrote. `nodes`: distinct prefixes, `measured` of them with rollouts of their own; `ended`: chains that end.
    `joined`: labelled prefixes whose texts another one has. `candidates`: prefixes that can be measured."""

    rollouts: int = 0
    nodes: int = 0
    measured: int = 0
    ended: int = 0
    joined: int = 0
    candidates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPicks:
    """The (gain, cost) of what a picker would measure of a problem of a unit, in its order. `deepest`: the most steps of a
    prefix that its rollouts wrote."""

    unit_id: str
    problem_id: str
    picks: Sequence[tuple[float, float]]
    counts: HarvestCounts
    deepest: int


@dataclass(frozen=True, kw_only=True)
class Harvest:
    """What was read of a run. `strength`: see `trees.posterior`, `fair`: `stored_trees.fair_rounds`."""

    problems: Sequence[ProblemPicks]
    strength: float
    fair: FairRounds

    @cached_property
    def counts(self) -> HarvestCounts:
        """What the rollouts of all problems wrote."""
        return sum((each.counts for each in self.problems), HarvestCounts())


def read_harvest(run: StoredRun, settings: PickerConfig, processes: int | None = None) -> Harvest:
    """What the rollouts of all finished units wrote. `processes`: how many read; None: as many as are worth their start.

    Raises StoreError for a damaged file, and StepvalueError if a process is killed.
    """
    # A unit promotes by the verdicts that its own rollouts have, so later ones do not count here either.
    run = replace(run, editions=RecordSequence(kind=EDITION, sequence_id=""))
    trees = StoredTrees(run)
    if processes is None:
        rollouts = sum(whole.totals.rollouts for whole in run.wholes.values())
        processes = min(len(os.sched_getaffinity(0)), MOST_PROCESSES, rollouts // LARGE)
    if processes > 1:
        parts = _read_elsewhere(processes, run.units, run, settings, trees.strength)
    else:
        parts = iter([_Reader(run, settings, trees.strength).read(run.units)])
    return Harvest(problems=[*chain.from_iterable(parts)], strength=trees.strength, fair=trees.fair)


class _Reader:
    """Reads units of a run."""

    def __init__(self, run: StoredRun, settings: PickerConfig, strength: float) -> None:
        self._run = run
        self._settings = settings
        self._strength = strength
        self._threshold = chosen_settings(run.identity, EstimatorConfig, ESTIMATORS).good_above
        self._picker = picker_for(settings)

    def read(self, units: Sequence[UnitRef]) -> list[ProblemPicks]:
        found = StoredTrees(replace(self._run, units=tuple(units))).problems()
        return [self._problem(unit, each) for unit, each in found]

    def _problem(self, unit: UnitRef, found: ProblemTree) -> ProblemPicks:
        tree, settings = found.tree, self._settings
        problem = problem_of(
            tree,
            strength=self._strength,
            threshold=self._threshold,
            rollouts=settings.rollouts,
            unit=settings.budget_unit,
        )
        counts = HarvestCounts(
            rollouts=tree.rollouts,
            nodes=len(tree.nodes),
            measured=sum(bool(node.issued.graded or node.issued.ungraded) for node in tree.nodes),
            ended=sum(node.ended for node in tree.nodes),
            joined=tree.joined,
            candidates=len(problem.candidates),
        )
        picks = islice(self._picker.picks(problem), MOST_PICKS)
        return ProblemPicks(
            unit_id=unit.unit_id,
            problem_id=tree.problem_id,
            picks=[(pick.gain, problem.costs[pick.node]) for pick in picks],
            counts=counts,
            deepest=max(node.depth for node in tree.nodes),
        )


def _read_elsewhere(
    processes: int, units: Sequence[UnitRef], run: StoredRun, settings: PickerConfig, strength: float
) -> Iterator[list[ProblemPicks]]:
    """Parts of the run in their order, each read by one of several processes."""
    tasks = [units[begin : begin + _MOST_UNITS] for begin in range(0, len(units), _MOST_UNITS)]
    # A fork of a process with threads, as Arrow's and Ray's, may hang.
    given = (os.getpid(), run, settings, strength)
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin, given)
    try:
        yield from pool.map(_read_here, tasks)
    except BrokenProcessPool as error:
        raise StepvalueError(
            f"a process that read the rollouts was killed, probably for want of memory: {processes} of them take some 300 MB "
            "each. Give this machine more memory, or this command fewer cores (taskset), and start it again"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_reader: _Reader | None = None
"""In a child: what it reads with."""


def _begin(parent: int, run: StoredRun, settings: PickerConfig, strength: float) -> None:
    """In a child, first of all. Ctrl-C goes to all processes of a terminal, and the parent's cancels what is left."""
    global _reader  # a pool passes nothing else from its initializer to its tasks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _reader = _Reader(run, settings, strength)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: a pool would wait for ever."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def _read_here(units: Sequence[UnitRef]) -> list[ProblemPicks]:
    assert _reader is not None
    return _reader.read(units)
