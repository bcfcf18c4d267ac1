"""The driver of `grow`: decides what a growth may cost in which problem, and has the workers of `label` measure what its picker
promotes there.

What problems are allotted follows from the whole log, once, before anything is promoted. The rest is decided in each unit.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import accumulate

from pipeline.config.choices import BudgetUnit
from pipeline.config.grow import GrowConfig, PickerConfig
from pipeline.config.label import LabelConfig
from pipeline.config.words import setting_word
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.core.progress import Status, Summary
from pipeline.engines.registry import policy_for
from pipeline.pickers.registry import picker_for
from pipeline.pickers.rounds import allotted
from pipeline.runtime.chain_run.run import Hiring, run_task
from pipeline.runtime.chain_run.task import HeldRun, RunPlace
from pipeline.runtime.driver import LabelTask
from pipeline.runtime.harvest import Harvest, read_harvest
from pipeline.runtime.heartbeat import heartbeat
from pipeline.runtime.state import identity, section_identity, start_settings
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher
from pipeline.storage.commits import Commit
from pipeline.storage.growths import STRENGTH, begin_growth, growth_sequence, growths_needed, growths_of, has_grown
from pipeline.storage.location import storage_at
from pipeline.storage.repair import repair
from pipeline.storage.run_record import STAGED_INPUT, as_recorded, check_claim, with_input
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import GrownCounts, StoredRun, stored_run

_BUDGET, _UNIT, _PICK = "grow.budget", "grow.budget_unit", "grow.pick"
_NAMES = {_PICK, "grow.plugin"}
"""Keys of a growth's record that `grow=PICKER` stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGrowth:
    """What a growth begins with. `allotments`: (unit id, problem id, budget) of the problems that get a part of the budget.
    Their first `picks` would cost `cost`, in the unit of the budget."""

    harvest: Harvest
    allotments: Sequence[tuple[str, str, int]]
    picks: int
    cost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """The result of `grow`. `summary`: of the run. `planned`: None where the growth had begun before, and where the run had
    grown as much. `counts`: of all growths of the run."""

    summary: Summary
    planned: PlannedGrowth | None
    counts: GrownCounts


def grow(config: GrowConfig, hiring: Hiring, watch: Watcher, stop: StopSignal) -> Grown:
    """Grow the run in `config.run_dir`. A later start continues a growth that is not done.

    Raises UsageError for a run that is unfinished or cannot grow, and for a budget of less than a rollout; RunConflict for
    settings of another run; else as `run_task` does. Committed work is always kept.
    """
    task = GrowTask(config)
    summary = run_task(task, hiring, watch, stop)
    return Grown(summary=summary, planned=task.planned, counts=stored_run(task.storage()).grown_counts())


class GrowTask(LabelTask):
    """`label` with the settings and the input of a run, after what is promoted in it is planned. `planned`: see `Grown`."""

    config: GrowConfig
    planned: PlannedGrowth | None = None

    def __init__(self, config: GrowConfig) -> None:
        super().__init__(replace(config, run_dir=storage_at(str(config.run_dir)).run_dir))

    def wanted(self, watch: Watcher) -> RunPlace:
        watch(Status(stage="reading the run"))
        check_budget(self.config.grow)
        return _place(self.config, stored_run(self.storage()))

    def check_place(self, place: RunPlace) -> None:
        check_claim(place.storage, as_recorded(place.storage, place.identity))

    @contextmanager
    def recorded(self, held: HeldRun, watch: Watcher) -> Iterator[Watcher]:
        storage, config = held.storage, self.config
        sequence, _ = repair(storage, growth_sequence(storage))
        growths, found = growths_of(sequence), stored_run(storage)
        if _unfinished(found, growths):
            _refuse_other(storage, config.grow, growths[-1])
        elif (planned := _planned(storage, found, config.grow, growths)) is not None:
            self.planned = planned
            settings = {**_settings(config.grow), STRENGTH: planned.harvest.strength}
            begin_growth(storage, sequence, settings, planned.allotments)
        settings = start_settings(label_part(config), held.identity)
        with heartbeat(storage, config.plan.gpu_hour_price, watch, settings) as beat:
            yield beat


def planned_growth(config: GrowConfig) -> PlannedGrowth:
    """What `grow` with these settings would begin with, without a model and without writing anything. Raises as `grow` does."""
    storage = storage_at(str(config.run_dir))
    check_budget(config.grow)
    found = stored_run(storage)
    check_claim(storage, as_recorded(storage, _place(config, found).identity))
    growths = growths_of(growth_sequence(storage))
    if _unfinished(found, growths):
        _refuse_other(storage, config.grow, growths[-1])
        raise UsageError(f"{storage.run_dir} has begun this growth: start it without --estimate to finish it")
    planned = _planned(storage, found, config.grow, growths)
    if planned is None:
        raise UsageError(
            f"{storage.run_dir} has grown by these settings already: give a larger {_BUDGET}, or another picker"
        )
    return planned


def label_part(config: GrowConfig) -> LabelConfig:
    """The settings of `label` among those of `grow`."""
    return LabelConfig(**{each.name: getattr(config, each.name) for each in fields(LabelConfig)})


def check_budget(settings: PickerConfig) -> int:
    """The budget. Raises UsageError if there is none, or one of less than the rollouts of a prefix."""
    budget = settings.budget
    if budget is None:
        raise UsageError(f"{_BUDGET} is not set: give {_BUDGET}=NUMBER, in {settings.budget_unit.value}")
    if budget < settings.rollouts:
        raise UsageError(
            f"{_BUDGET}={budget} {settings.budget_unit.value} is less than one prefix costs, which has {settings.rollouts} "
            "rollouts (grow.rollouts): give a larger one"
        )
    return budget


def _planned(
    storage: Storage, found: StoredRun, settings: PickerConfig, growths: Sequence[Commit]
) -> PlannedGrowth | None:
    """Share what the budget leaves by what the rollouts of the run wrote. None if the last growth has these settings.

    Raises UsageError as `_left_of` does, for an unfinished run, for one whose rollouts have no tokens, or whose splitter cuts
    them nowhere, and for a budget that pays for nothing.
    """
    found.refuse_unfinished()
    budget = _left_of(storage, settings, growths)
    if budget is None:
        return None
    if not found.identity.get("sampling.store_tokens"):
        raise UsageError(
            f"{storage.run_dir} does not have the tokens of its rollouts, which `grow` continues: label with "
            "sampling.store_tokens=true, in another run_dir. `export format=preference preference.siblings=rollouts` needs none"
        )
    harvest = read_harvest(found, settings)
    if not harvest.counts.candidates:
        deepest = max((each.deepest for each in harvest.problems), default=0)
        raise UsageError(_nothing_to_pick(storage, deepest, found.identity.get("data.splitter")))
    picks = [each.picks for each in harvest.problems]
    budgets = allotted(picks, budget, comparable=picker_for(settings).comparable)
    costs = [
        [cost for cost in accumulate(cost for _, cost in of_problem) if cost <= mine]
        for mine, of_problem in zip(budgets, picks, strict=True)
    ]
    if not any(picks):
        raise UsageError(
            f"{storage.run_dir}: grow={settings.pick} finds nothing worth a measurement among "
            f"{format_count(harvest.counts.candidates, 'prefix')} that can be measured: take another picker, or a smaller "
            "grow.least_gain"
        )
    if not any(costs):
        first = [of_problem[0][1] for of_problem in picks if of_problem]
        raise UsageError(
            f"{_BUDGET}: {budget:,} {settings.budget_unit.value} pay for no prefix: of those that grow={settings.pick} would "
            f"measure, the cheapest costs about {min(first):,.0f}"
        )
    return PlannedGrowth(
        harvest=harvest,
        allotments=[
            (each.unit_id, each.problem_id, mine) for each, mine in zip(harvest.problems, budgets, strict=True) if mine
        ],
        picks=sum(map(len, costs)),
        cost=sum(int(of_problem[-1]) for of_problem in costs if of_problem),
    )


def _place(config: LabelConfig, found: StoredRun) -> RunPlace:
    """Of a start of `label` with these settings and the present input of the run."""
    asked = identity(config, str(found.present["input"]), policy_for(config.policy).fingerprint())
    asked = with_input({**asked, STAGED_INPUT: found.identity[STAGED_INPUT]}, found.present)
    return RunPlace(storage=found.storage, identity=asked)


def _unfinished(found: StoredRun, growths: Sequence[Commit]) -> bool:
    """Whether the last growth has begun and is not done in each unit."""
    return has_grown(found.wholes.values(), growths_needed(growths)) < len(found.wholes)


def _refuse_other(storage: Storage, settings: PickerConfig, growth: Commit) -> None:
    """Raise UsageError for other settings than those of the growth that is not done."""
    recorded, asked = growth.recorded, _settings(settings)
    if any(recorded.get(key) != value for key, value in asked.items()):
        own = [
            setting_word(key, value) for key, value in recorded.items() if key.startswith("grow.") and key not in _NAMES
        ]
        raise UsageError(
            f"{storage.run_dir} has a growth that is not done. Finish it with `grow run_dir={storage.run_dir} "
            f"grow={recorded[_PICK]} {' '.join(own)}`, then grow the run by other settings"
        )


def _left_of(storage: Storage, settings: PickerConfig, growths: Sequence[Commit]) -> int | None:
    """What the budget leaves after the earlier growths; None where the last one has these settings: it is done. Raises
    UsageError if theirs is in another unit, and if nothing is left."""
    budget = check_budget(settings)
    if not growths:
        return budget
    before = growths[-1].recorded
    if before[_UNIT] != settings.budget_unit.value:
        raise UsageError(
            f"{storage.run_dir} has grown by {before[_BUDGET]} {before[_UNIT]}: give {_UNIT}={before[_UNIT]}, and a larger "
            f"{_BUDGET} for all growths together"
        )
    if all(before.get(key) == value for key, value in _settings(settings).items()):
        return None
    before_it = spent(stored_run(storage).grown_counts(), settings.budget_unit)
    if before_it >= budget:
        raise UsageError(
            f"earlier growths of {storage.run_dir} have cost {before_it:,} {settings.budget_unit.value}, and "
            f"{_BUDGET}={budget} is for all growths together: give a larger one"
        )
    return budget - before_it


def spent(counts: GrownCounts, unit: BudgetUnit) -> int:
    """What all growths of a run have cost, in the unit of a budget."""
    return counts.rollouts if unit is BudgetUnit.rollouts else counts.tokens


def _settings(settings: PickerConfig) -> dict[str, object]:
    """The settings of a growth as its record has them."""
    return section_identity(PickerConfig.SECTION, settings)


def _nothing_to_pick(storage: Storage, deepest: int, splitter: object) -> str:
    if deepest <= 1:
        return (
            f"{storage.run_dir}: each of its rollouts is one step, so there is no prefix to measure: the policy writes single "
            f"steps, or data.splitter={splitter} finds no end of a step in them; then label with another data.splitter"
        )
    return (
        f"{storage.run_dir}: its rollouts wrote no prefix that is not measured and that a chain continues: they are too short, "
        f"or data.splitter={splitter} finds no end of a step in them. More chains (sampling.solutions), or another "
        "data.splitter, in another run_dir, may give some"
    )
