"""The rollout trees of a run directory, read through its commit records, one unit at a time."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from pipeline.config.label import DataConfig, EstimatorConfig
from pipeline.config.recorded_settings import chosen_settings, settings_section
from pipeline.core.errors import UsageError
from pipeline.core.records import GROWN
from pipeline.core.tables import LABELS, ROLLOUTS
from pipeline.estimators.base import Estimator, Need
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.storage.editions import VERDICTS, current_shards
from pipeline.storage.shards import read_shard
from pipeline.storage.stored_run import StoredRun
from pipeline.storage.units import UnitRef
from pipeline.trees.cut import StepCut, step_cut
from pipeline.trees.posterior import MeasuredStep, learned_strength
from pipeline.trees.tree import FairRounds, LabelledSteps, RolloutTree, StepLabel, WrittenRollout, rollout_tree

_ROLLOUTS = ("problem_id", *WrittenRollout._fields)
_BLANKS = " \t"
_PER_PREFIX = ("value", "value_sd", "unbiased_value", "n_correct", "n_rollouts")
"""The fields of a `StepLabel` but the last, as columns of `labels`."""
_CHAIN = ("problem_id", "source_id", "problem", "gold_answer", "steps", "solution", "step_ends", "outcome")
COLUMNS = (
    *_CHAIN,
    "root_prefix_id",
    "prefix_ids",
    *_PER_PREFIX,
    "label",
    *(f"root_{name}" for name in _PER_PREFIX),
    GROWN,
)
"""The columns of `labels` that trees are made from."""
_KEYS = ("problem_id", "source_id", "problem")
"""By what a problem is found."""
_COUNTS = ("root_n_correct", "root_n_rollouts", "prefix_ids", "n_correct", "n_rollouts")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemTree:
    """The rollout tree of a problem. `source_ids`: the user's own ids of its rows."""

    problem: str
    gold_answer: str
    source_ids: tuple[str, ...]
    tree: RolloutTree


class StoredTrees:
    """Reads the trees of a run. `threshold`: that of its labels. `fair`: see `fair_rounds`.

    Raises StoreError for a damaged file.
    """

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self._cut: StepCut = step_cut(settings_section(run.identity, "data", DataConfig))
        estimator = estimator_for(chosen_settings(run.identity, EstimatorConfig, ESTIMATORS))
        self.threshold = chosen_settings({**run.identity, **run.settings}, EstimatorConfig, ESTIMATORS).threshold
        self.fair: FairRounds = fair_rounds(estimator)
        self._verdicts = current_shards(run.wholes, run.edition, VERDICTS)

    @cached_property
    def strength(self) -> float:
        """How far the values of steps are from those of the steps before, see `trees.posterior`: learned from all prefixes."""
        return learned_strength(step for frame in self._run.frames(LABELS, _COUNTS) for step in _measured_steps(frame))

    def problems(self) -> Iterator[tuple[UnitRef, ProblemTree]]:
        """The trees of all finished units, each made when it is asked for, in the order of the input. A problem of a grown
        input may be in several units."""
        for unit, labels in self._run.unit_frames(LABELS, COLUMNS):
            for tree in self.of_unit(unit, labels):
                yield unit, tree

    def of_unit(self, unit: UnitRef, labels: pl.DataFrame) -> Iterator[ProblemTree]:
        """The trees of a finished unit that grow from some of its chains, and from the rollouts of their prefixes alone.
        `labels`: the rows of these chains, with `COLUMNS`."""
        problems: dict[str, list[dict[str, Any]]] = {}
        for row in labels.iter_rows(named=True):
            problems.setdefault(row["problem_id"], []).append(row)
        rollouts = self._rollouts(unit, problems)
        for problem_id, rows in problems.items():
            sources = dict.fromkeys(str(row["source_id"]) for row in rows if row["source_id"] is not None)
            yield ProblemTree(
                problem=rows[0]["problem"],
                gold_answer=rows[0]["gold_answer"],
                source_ids=tuple(sources),
                tree=rollout_tree(problem_id, map(_chain, rows), rollouts[problem_id], self._cut, self.fair),
            )

    def of_problem(self, name: str | int) -> list[ProblemTree]:
        """The trees of a problem, one for each unit that has it: by its id, its text, or the id of one of its rows, which may
        be a number. Raises UsageError if the run has none."""
        name = str(name)
        named = pl.any_horizontal(pl.col(*_KEYS) == name)
        problems: dict[UnitRef, list[str]] = {}
        wanted: set[str] = set()
        for unit, keys in self._run.unit_frames(LABELS, _KEYS):
            problems[unit] = keys["problem_id"].unique().to_list()
            wanted.update(keys.filter(named)["problem_id"])
        found: list[ProblemTree] = []
        units = tuple(unit for unit, there in problems.items() if wanted.intersection(there))
        for unit, labels in replace(self._run, units=units).unit_frames(LABELS, COLUMNS):
            found += self.of_unit(unit, labels.filter(pl.col("problem_id").is_in(list(wanted))))
        if not found:
            raise UsageError(
                f"{self._run.storage.run_dir} has no labelled problem {name[:80]!r}: give the id of a row, a problem_id of "
                "`labels`, or the text of a problem"
            )
        return found

    def _rollouts(self, unit: UnitRef, problems: Mapping[str, object]) -> defaultdict[str, list[WrittenRollout]]:
        """The rollouts of a unit by problem, with their present verdicts."""
        later: dict[str, str] = {}
        for shard in self._verdicts.get(unit.unit_id, ()):
            verdicts = read_shard(self._run.storage, shard, ("rollout_id", "verdict"))
            later |= zip(*(map(str, verdicts[name].to_pylist()) for name in ("rollout_id", "verdict")), strict=True)
        found: defaultdict[str, list[WrittenRollout]] = defaultdict(list)
        for table in self._run.of_unit(unit.unit_id, ROLLOUTS, _ROLLOUTS):
            for problem_id, *values in zip(*(table[name].to_pylist() for name in _ROLLOUTS), strict=True):
                if problem_id in problems:
                    rollout = WrittenRollout(*values)
                    found[problem_id].append(rollout._replace(verdict=later[rollout.rollout_id]) if later else rollout)
        return found


def fair_rounds(estimator: Estimator) -> FairRounds:
    """The rounds of a prefix whose rollouts are fair trials of what they pass through: their number did not depend on outcomes.

    A first round is decided before any outcome of its problem is known. Where rollouts are stopped once others have succeeded,
    those that finish are the short ones, so even the first round is not fair.
    """
    if estimator.one_round:
        return None
    return 0 if Need.FREE_ORDER in estimator.lacks() else 1


def _measured_steps(labels: pl.DataFrame) -> Iterator[MeasuredStep]:
    """The counts of each prefix of a unit, with those of the prefix before it."""
    seen: set[str] = set()
    for root_correct, root_graded, prefix_ids, correct, graded in labels.select(_COUNTS).iter_rows():
        before = root_correct, root_graded
        for prefix_id, *counts in zip(prefix_ids, correct, graded, strict=True):
            if prefix_id not in seen:
                seen.add(prefix_id)
                yield MeasuredStep(*before, *counts)
            before = counts[0], counts[1]


def _chain(row: Mapping[str, Any]) -> LabelledSteps:
    of_steps = zip(*(row[name] for name in (*_PER_PREFIX, "label")), strict=True)
    return LabelledSteps(
        steps=row["steps"],
        stems=_stems(row["solution"], row["step_ends"]),
        prefix_ids=(row["root_prefix_id"], *row["prefix_ids"]),
        labels=(StepLabel(*(row[f"root_{name}"] for name in _PER_PREFIX)), *(StepLabel(*each) for each in of_steps)),
        outcome=row["outcome"],
        grown=bool(row[GROWN]),
    )


def _stems(solution: str, ends: Sequence[int]) -> list[str]:
    """The text of each step as the policy saw it last: without blanks at its end, but with line ends."""
    return [solution[begin:end].rstrip(_BLANKS) for begin, end in zip((0, *ends), ends, strict=False)]
