"""The pilot: `run_pilot` labels some problems in a scratch run directory, as `label` would, and measures what that costs.

Without a pilot, the settings supply what it would measure: `believed_values`, `completion_tokens`, `success_rate`,
`tokens_per_second`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from pipeline.analysis.plan.expected import BelievedValues
from pipeline.config.label import EstimatorConfig, LabelConfig
from pipeline.config.recorded_settings import chosen_settings
from pipeline.core.errors import StepvalueError
from pipeline.core.forecast import Range
from pipeline.core.ids import content_id
from pipeline.core.progress import Status, Summary
from pipeline.core.records import InputRow, RolloutOutcome, SampledSolution, Totals, Trials
from pipeline.core.tables import LABELS, SOLUTIONS, rollout_outcomes
from pipeline.core.tables import ROLLOUTS as LOG
from pipeline.engines.registry import policy_for
from pipeline.estimators.intervals import beta_moments
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.estimators.tree import Tree, trials_of
from pipeline.runtime.chain_run.run import Hiring, run_held
from pipeline.runtime.chain_run.task import HeldRun, RunPlace, Task
from pipeline.runtime.driver import LabelTask, check_place
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher, WorkerPool
from pipeline.storage.commits import INPUT, Commit, CommitState, publish
from pipeline.storage.run_record import STAGED_INPUT, claim
from pipeline.storage.starts import read_starts
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, stored_run
from pipeline.storage.units import write_units

ROLLOUTS = 4_000
"""About the largest number of rollouts of a pilot. It uses only some chains of a problem with many chains."""
UNKNOWN_SD = 0.3
"""The sd of a value that is not measured."""
SPEED_MARGIN = 1.1
"""The run may be faster than the pilot's engine at full load by this factor, and slower than the whole pilot by this factor."""
OFF_BY = 2.0
"""Assumed lengths and speeds may be wrong by this factor in both directions."""
RATE_OFF_BY = 0.3
"""An assumed success rate may be this much higher or lower."""
SHARE_OF_BOUND = 0.5
"""The share of a device's upper bound that engines commonly reach."""
HOST_TOKENS_PER_SECOND = 30_000.0
"""What one engine reaches at most: it schedules on one core. On an H200 a model of 1.5B made 23,300 to 32,300."""
LOAD_SECONDS = 120.0
"""Until a worker has loaded a model, where nothing measured it. A model of 1.5B took 76 to 129 s on an H200, and SmolLM2 17 s
on two cores, 140 s with compilation."""
ATTACH_SECONDS = 5.0
"""Until a worker that loads no model is ready: 2 s on two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotResult:
    """The cost of each problem of a pilot, in the order of the problems.

    `tokens`: those of the rollouts and of the chains that the policy drew. `believed` and `trials`: by prefix id. `offer`: the
    workers that the whole run would have.
    """

    rollouts: Sequence[int]
    tokens: Sequence[int]
    tokens_of_rollouts: Sequence[int]
    believed: Mapping[str, BelievedValues]
    trials: Mapping[str, Trials]
    solutions: Mapping[tuple[str, int], SampledSolution]
    summary: Summary
    offer: WorkerPool
    tokens_per_second: Range | None


def run_pilot(
    config: LabelConfig,
    problems: Sequence[Sequence[InputRow]],
    storage: Storage,
    run_identity: Mapping[str, object],
    hiring: Hiring,
    watch: Watcher,
    stop: StopSignal,
) -> PilotResult:
    """Label the problems as one unit, with one worker. Raises the errors of `label`."""
    staged_id = str(run_identity[STAGED_INPUT])
    claim(storage, run_identity)
    rows = [row for together in problems for row in together]
    shard = write_units(storage, content_id("inputs", staged_id, "pilot"), [rows])
    totals = Totals(rows=len(rows), used=len(rows))
    publish(
        storage,
        Commit(
            kind=INPUT, sequence_id=staged_id, number=0, state=CommitState.WHOLE, shards=(shard,), tally=totals.tally
        ),
    )
    offers: list[WorkerPool] = []

    @contextmanager
    def one_worker(task: Task[Any]) -> Iterator[WorkerPool]:
        with hiring(task) as offer:
            offers.append(offer)
            yield replace(offer, workers=1)

    def watch_pilot(status: Status) -> None:
        watch(replace(status, stage=f"pilot: {status.stage}"))

    held = HeldRun(storage=storage, identity=run_identity, asked=run_identity, stop=stop)
    summary = run_held(LabelTask(config), held, one_worker, watch_pilot)
    run = stored_run(storage)
    found = _Log(run)
    ids = [together[0].problem.problem_id for together in problems]
    return PilotResult(
        rollouts=[found.rollouts[each] for each in ids],
        tokens=[found.tokens[each] + found.drawn_tokens[each] for each in ids],
        tokens_of_rollouts=[found.tokens[each] for each in ids],
        believed=_believed(run, found),
        trials=trials_of(found.outcomes),
        solutions=found.solutions,
        summary=summary,
        offer=offers[0],
        tokens_per_second=_speed(summary),
    )


def believed_values(trees: Sequence[Tree], tokens: float, rate: float) -> dict[str, BelievedValues]:
    """The same assumed value for every prefix."""
    one = BelievedValues(mean=rate, sd=UNKNOWN_SD, tokens=tokens)
    return {prefix: one for tree in trees for prefix in tree.prefix_ids}


def completion_tokens(config: LabelConfig) -> Range:
    """Assumed tokens per rollout."""
    most = config.sampling.max_tokens
    expected = float(min(most, config.plan.completion_tokens or max(1, most // 2)))
    return Range(low=expected / OFF_BY, expected=expected, high=min(float(most), expected * OFF_BY))


def success_rate(config: LabelConfig) -> Range:
    """Assumed mean success rate of the prefixes."""
    rate = config.plan.success_rate
    return Range(low=max(0.0, rate - RATE_OFF_BY), expected=rate, high=min(1.0, rate + RATE_OFF_BY))


def tokens_per_second(config: LabelConfig, context: float) -> Range | None:
    """Assumed tokens/s of one worker. From the roofline if the settings do not give them but name a device, and the model's
    sizes are known; None if not known either way."""
    speed = config.plan.tokens_per_second or _share_of_bound(config, context)
    return None if speed is None else Range(low=speed / OFF_BY, expected=speed, high=speed * OFF_BY)


def start_seconds(config: LabelConfig, place: RunPlace, devices: float) -> tuple[float, str]:
    """How long a worker takes to start, from the last start of the run in which one was ready, and where that comes from."""
    with suppress(StepvalueError):
        check_place(place)
        for start in reversed(read_starts(place.storage).starts):
            if workers := max((sample.workers for sample in start.samples), default=0):
                return start.status.starting_seconds / workers / devices, "in the last start of this run"
    return (LOAD_SECONDS if policy_for(config.policy).loads_model else ATTACH_SECONDS), "by assumption"


class _Log:
    """Sums over the log of a finished run, by problem id."""

    def __init__(self, run: StoredRun) -> None:
        self.outcomes: list[RolloutOutcome] = []
        self.solutions: dict[tuple[str, int], SampledSolution] = {}
        self.rollouts: dict[str, int] = defaultdict(int)
        self.tokens: dict[str, int] = defaultdict(int)
        self.drawn_tokens: dict[str, int] = defaultdict(int)
        for _, table in run.tables(LOG):
            known = rollout_outcomes(table)
            self.outcomes += known.values()
            for rollout, problem in zip(*(table[key].to_pylist() for key in ("rollout_id", "problem_id")), strict=True):
                self.rollouts[problem] += 1
                self.tokens[problem] += known[rollout].n_tokens
        for _, table in run.tables(SOLUTIONS):
            for drawn in SOLUTIONS.from_table(table):
                self.solutions[drawn.problem_id, drawn.draw] = drawn
                self.drawn_tokens[drawn.problem_id] += len(drawn.token_ids)


def _believed(run: StoredRun, log: _Log) -> dict[str, BelievedValues]:
    """Value and tokens per rollout of every prefix that has a value or a rollout, from the labels and the log."""
    issued: dict[str, int] = defaultdict(int)
    tokens: dict[str, int] = defaultdict(int)
    for outcome in log.outcomes:
        issued[outcome.prefix_id] += 1
        tokens[outcome.prefix_id] += outcome.n_tokens
    mean_tokens = sum(tokens.values()) / max(1, sum(issued.values()))
    values: dict[str, tuple[float, float]] = {}
    estimator = estimator_for(chosen_settings(run.settings, EstimatorConfig, ESTIMATORS))
    names = ("value", "value_sd", "n_correct", "n_rollouts")
    columns = ["root_prefix_id", "prefix_ids", *(f"{at}{name}" for at in ("root_", "") for name in names)]
    for row in run.rows(LABELS, columns):
        prefixes = [row["root_prefix_id"], *row["prefix_ids"]]
        of_prefixes = zip(*([row[f"root_{name}"], *row[name]] for name in names), strict=True)
        for prefix, (value, sd, correct, rollouts) in zip(prefixes, of_prefixes, strict=True):
            if value is not None and sd is not None:
                # A share of 0 or 1 would say that the prefix always fails or succeeds.
                share = estimator.value_is_share and rollouts
                values[prefix] = beta_moments(correct, rollouts) if share else (value, sd)
    usual = sum(mean for mean, _ in values.values()) / max(1, len(values))
    return {
        prefix: BelievedValues(
            mean=values.get(prefix, (usual, UNKNOWN_SD))[0],
            sd=values.get(prefix, (usual, UNKNOWN_SD))[1],
            tokens=tokens[prefix] / issued[prefix] if prefix in issued else mean_tokens,
        )
        for prefix in {*values, *issued}
    }


def _speed(summary: Summary) -> Range | None:
    """Tokens/s of one worker: between the mean of the whole pilot, which ends with an idle engine, and the estimate for an
    engine at full load."""
    seconds = summary.seconds_working
    generated = summary.now.tokens
    if not generated or seconds <= 0:
        return None
    overall = full = generated / seconds
    if summary.throughput is not None:
        full = max(full, summary.throughput.tokens_per_second / max(1 - summary.throughput.idle, 0.01))
    return Range(low=overall / SPEED_MARGIN, expected=(overall * full) ** 0.5, high=full * SPEED_MARGIN)


def _share_of_bound(config: LabelConfig, context: float) -> float | None:
    bound = policy_for(config.policy).planned_speed(context)
    return None if bound is None else min(SHARE_OF_BOUND * bound, HOST_TOKENS_PER_SECOND)
