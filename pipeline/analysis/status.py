"""The `status` command: reads from a run directory whether the run is in progress, how it ended, what is done and what it cost.

Prints text, or JSON for programs. It changes nothing and takes no lock, so `label` may run at the same time. The state of a run
comes from its commits and from the files that its starts write.

Commits are read quickly: the last record of most units is enough. Records are checked against their checksums; the files that
they name are not (`audit` does that).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from pipeline.analysis.report.plan_check import plan_of
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.forecast import Forecast, Range
from pipeline.core.formatting import (
    WHY_NO_VERDICT,
    WHY_UNCHECKED,
    WHY_UNSCORED,
    format_count,
    format_number,
    format_range,
    format_verdict_counts,
    format_work,
    printable,
    status_items,
    unscored_text,
)
from pipeline.core.progress import Pace, pace, repeats
from pipeline.core.records import ReadingKind, Tally
from pipeline.estimators.labels import label_rule
from pipeline.storage.commits import INPUT, UNIT, Commit, log_tally, record, record_sequence, resolve, sequence_lengths
from pipeline.storage.commits import CommitState as CommitState
from pipeline.storage.editions import current_edition, edition_command, edition_sequence, edition_settings
from pipeline.storage.growths import growths_begun, has_grown
from pipeline.storage.objects import each
from pipeline.storage.run_record import CHECK, JUDGE, LABEL, SCORE, SEARCH, STAGED_INPUT, command_of
from pipeline.storage.starts import (
    FAILED,
    INTERRUPTED,
    LIMITED,
    RunCost,
    Start,
    cost_of,
    process_with,
    read_starts,
    same_machine,
)
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import JUDGE_RUNS
from pipeline.storage.stored_findings import CHECK_RUNS
from pipeline.storage.stored_run import RunFolder, readable_identity
from pipeline.storage.tasks import TASKS, task_runs
from pipeline.storage.units import units_of

SILENT_SECONDS = 60.0
"""A start on another machine counts as dead after six missing heartbeats."""
SHOWN_DAMAGE = 3


class StartState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    LIMITED = "stopped at its limit"
    DEAD = "dead"
    UNFINISHED = "unfinished"
    """Some units are unfinished, and no start gives a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedStart:
    """A start, the seconds since its last heartbeat, and whether its process exists (None if it is on another machine)."""

    start: Start
    silent_seconds: float
    process: bool | None

    @property
    def at_work(self) -> bool:
        if self.start.ended:
            return False
        return self.silent_seconds <= SILENT_SECONDS if self.process is None else self.process


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCondition:
    """The state of a run. `why` explains it in words. `seen` is the start that it refers to, None if there is no start."""

    state: StartState
    why: str
    seen: ObservedStart | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Everything that `status` prints.

    `units` is None while their number is unknown. `tally`: of the input and of `units_done` whole units. `unfinished`: of the
    other units. `unreadable`: names of damaged records. `damaged_starts`: names of damaged files of starts, whose cost `spent`
    lacks. `rule`: the label rule in words, empty while no unit is whole. `edition`: the number of the current edition; None:
    the labels are those of `label` itself. `edition_command`: the command that made the edition, empty without one. `pace`: of
    the start that `condition` refers to. `plan_fault`: why `plan.json` cannot be read. `command`: whose run it is. `judges`,
    `checks`, `tasks`: the runs in a run of `label`, by name: `checks` by that of the verifier, `tasks` of plug-ins by command.
    """

    run_dir: str
    condition: RunCondition
    units: int | None
    units_done: int
    tally: Tally
    unfinished: Tally
    unreadable: tuple[str, ...]
    damaged_starts: tuple[str, ...]
    rule: str
    edition: int | None
    edition_command: str
    pace: Pace
    spent: RunCost
    planned: Forecast | None
    plan_fault: str
    command: str = LABEL
    judges: "tuple[ObservedPart, ...]" = ()
    checks: "tuple[ObservedPart, ...]" = ()
    tasks: "tuple[ObservedPart, ...]" = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPart:
    """A run in a run. `status`: None where it cannot be read, and `fault` says why."""

    name: str
    status: RunStatus | None = None
    fault: str = ""


def run_status(storage: Storage, now: float) -> RunStatus:
    """`now`: seconds since 1970. Raises UsageError for a directory that is no run of this version, StoreError for one that
    cannot be read."""
    identity = readable_identity(storage, "`label`, `score`, `judge`, `check` or `search`")
    command = command_of(identity)
    # Starts are read first, so that commits made in the meantime are counted too.
    read = read_starts(storage)
    starts = read.starts
    inputs = record_sequence(storage, INPUT, str(identity.get(STAGED_INPUT)))
    staged = resolve(inputs).whole
    committed = list(each(storage, partial(_unit, storage), sequence_lengths(storage, UNIT).items()))
    wholes = {unit.unit_id: unit.whole for unit in committed if unit.whole is not None}
    units = (starts[-1].status.units if starts else None) or _unit_count(storage, staged)
    done = has_grown(wholes.values(), growths_begun(storage))
    condition = condition_of(
        [observe_start(start, now) for start in starts],
        finished=units is not None and done >= units,
        command=command,
    )
    start = condition.seen and condition.seen.start
    edition = current_edition(edition_sequence(storage), wholes)
    command_of_edition = edition_command(edition)
    planned, fault = plan_of(storage)
    return RunStatus(
        run_dir=storage.run_dir,
        condition=condition,
        units=units,
        units_done=done,
        tally=sum((whole.tally for whole in (staged, *wholes.values()) if whole), Tally()),
        unfinished=sum((unit.unfinished for unit in committed), Tally()),
        unreadable=(*inputs.unreadable, *(name for unit in committed for name in unit.unreadable)),
        damaged_starts=read.damaged,
        rule=label_rule(edition_settings(edition) if edition else identity) if wholes and command == LABEL else "",
        edition=edition.number if edition and command_of_edition else None,
        edition_command=command_of_edition,
        pace=pace(start.samples, start.status) if start else Pace(),
        spent=cost_of(starts),
        planned=planned,
        plan_fault=fault,
        command=command,
        judges=tuple(_parts(storage, JUDGE_RUNS, now)),
        checks=tuple(_parts(storage, CHECK_RUNS, now)),
        tasks=tuple(part for name in TASKS.usable() for part in _parts(storage, task_runs(name), now)),
    )


def _parts(storage: Storage, folder: RunFolder[Any], now: float) -> Iterator[ObservedPart]:
    for name in folder.names(storage):
        try:
            yield ObservedPart(name=name, status=run_status(folder.at(storage, name), now))
        except (StoreError, UsageError) as error:
            yield ObservedPart(name=name, fault=str(error))


def lines(status: RunStatus) -> Iterator[str]:
    tally, condition = status.tally, status.condition
    yield _line("run", printable(status.run_dir))
    yield _line("state", f"{condition.state.value}: {condition.why}")
    if condition.seen:
        yield _line("start", _whose(condition.seen))
    if status.units is None:
        yield _line("units", "not known yet: the input has not been read completely")
    else:
        yield _line("units", f"{status.units_done:,} of {status.units:,} finished")
    if tally["rows"]:
        yield _line("rows", f"{tally['rows']:,} read = {tally['used']:,} used + {tally['rejected']:,} rejected")
    of_command = {LABEL: _rollouts, SCORE: _scores, JUDGE: _critiques, CHECK: _findings, SEARCH: _searches}
    yield from of_command.get(status.command, _rows)(status)
    if status.rule:
        yield _line("rule", printable(status.rule))
        if status.edition is not None:
            yield _line("edition", printable(f"{status.edition}, made by `{status.edition_command}`"))
    yield from _part_lines("judges", status.judges, "critique")
    yield from _part_lines("checks", status.checks, "step")
    yield from _part_lines("tasks", status.tasks, "result")
    yield from _now(status)
    yield from _cost(status)
    again = f"start `{status.command}` again, which repeats the work that is lost"
    yield from _damage(status.unreadable, again, "records")
    yield from _damage(status.damaged_starts, "unreadable, so the cost of this start is not counted", "starts")


def _rollouts(status: RunStatus) -> Iterator[str]:
    """What a run of `label` holds."""
    totals, unfinished = status.tally.totals, status.unfinished.totals
    if status.units_done:
        yield _line("work", format_work(totals))
        yield _line("rollouts", f"{totals.rollouts:,} = {format_verdict_counts(totals)}")
    if totals.truncated:
        yield _line("", f"{totals.truncated:,} of them cut by sampling.max_tokens")
    if totals.too_long:
        yield _line(
            "", f"{format_count(totals.too_long, 'prefix')} did not fit into the policy's context: see rejects/"
        )
    if unfinished.rollouts:
        yield _line("", f"{unfinished.rollouts:,} more in unfinished units")
    if tokens := totals.tokens + unfinished.tokens:
        solutions = f", {totals.solution_tokens:,} in sampled solutions" if totals.solution_tokens else ""
        yield _line("tokens", f"{tokens:,} in rollouts{solutions}")


def _rows(status: RunStatus) -> Iterator[str]:
    """What a run of a plug-in holds."""
    yield from _made(status, status.command, format_count(status.tally["results"], "result"))


def _scores(status: RunStatus) -> Iterator[str]:
    """What a run of `score` holds."""
    yield from _made(status, "scores", format_count(status.tally["steps"], "step"))
    yield from _without(status, "chain", "without a score", WHY_UNSCORED)
    yield from _in_work(status, "chain")
    if tokens := status.tally["tokens"] + status.unfinished["tokens"]:
        yield _line("tokens", f"{tokens:,}")


def _critiques(status: RunStatus) -> Iterator[str]:
    """What a run of `judge` holds."""
    tally = status.tally
    said = f"{tally[ReadingKind.ERROR]:,} name an error, {tally[ReadingKind.NO_ERROR]:,} find none"
    yield from _made(status, "critiques", f"{tally['critiques']:,}", said)
    yield from _without(status, "critique", "without a verdict", WHY_NO_VERDICT)
    yield from _in_work(status, "critique")
    if tokens := tally["tokens"] + status.unfinished["tokens"]:
        yield _line("tokens", f"{tokens:,} written")


def _findings(status: RunStatus) -> Iterator[str]:
    """What a run of `check` holds."""
    said = f"{status.tally['refuted']:,} refuted, {status.tally['holds']:,} hold"
    yield from _made(status, "findings", format_count(status.tally["steps"], "step"), said)
    yield from _without(status, "step", "unknown", WHY_UNCHECKED)
    yield from _in_work(status, "chain")


def _made(status: RunStatus, name: str, made: str, said: str = "") -> Iterator[str]:
    """What finished units hold."""
    if status.units_done:
        yield _line(name, f"{made} of {format_count(status.tally['chains'], 'chain')}")
        if said:
            yield _line("", said)


def _without(status: RunStatus, noun: str, lack: str, reasons: Mapping[Any, str]) -> Iterator[str]:
    """What lacks a result. The engine has failed those that the tally names so, and that the reasons put last."""
    for reason, why in zip((*[*reasons][:-1], "engine_failed"), reasons.values(), strict=True):
        if count := status.tally[reason]:
            yield _line("", f"{format_count(count, noun)} {lack}: {why}")


def _in_work(status: RunStatus, noun: str) -> Iterator[str]:
    if more := status.unfinished[f"{noun}s"]:
        yield _line("", f"{format_count(more, noun)} more in unfinished units")


def _searches(status: RunStatus) -> Iterator[str]:
    """What a run of `search` holds."""
    tally, unfinished = status.tally, status.unfinished
    if status.units_done:
        whose = " of finished units" if status.units != status.units_done else ""
        problems, steps = format_count(tally["problems"], "problem"), format_count(tally["steps"], "sampled step")
        yield _line("searches", f"{problems}{whose}, {steps}")
        answers = {"correct": "right", "incorrect": "wrong", "no_answer": "without an answer", "ungraded": "ungraded"}
        if known := sum(tally[name] for name in answers):
            others = tally["problems"] - known
            why = f"; {others:,} with no known answer, one that the grader cannot read, or no chain" if others else ""
            yield _line("", ", ".join(f"{tally[name]:,} {words}" for name, words in answers.items()) + why)
    if failed := tally["engine_failed"]:
        yield _line("", f"{format_count(failed, 'problem')} not searched: no engine survived it")
    if words := unscored_text(scored=tally["scored"], unscored=tally["unscored"]):
        yield _line("scores", words)
    if (both := tally + unfinished)["tokens"]:
        yield _line("tokens", _of_models(both))
    if unfinished["tokens"]:
        log = _of_models(unfinished)
        yield _line("", f"of these {log} in units that are not finished: the same command goes on with their log")


def _of_models(tally: Tally) -> str:
    scorer = tally["scorer_tokens"]
    return f"{tally['tokens']:,} of the policy" + (f", {scorer:,} computed by the scorer" if scorer else "")


def _part_lines(name: str, parts: Sequence[ObservedPart], noun: str) -> Iterator[str]:
    """A line for each of the runs in a run. `noun`: what they hold."""
    for at, part in enumerate(parts):
        found = part.status
        if found is None:
            words = f"cannot be read: {part.fault}"
        else:
            done = found.tally + found.unfinished
            units = "" if found.units is None else f" ({found.units_done:,} of {format_count(found.units, 'unit')})"
            made, chains = format_count(done[f"{noun}s"], noun), format_count(done["chains"], "chain")
            words = f"{found.condition.state.value}, {made} of {chains}{units}"
        yield _line("" if at else name, printable(f"{part.name}: {words}"))


def as_json(status: RunStatus) -> dict[str, object]:
    """`RunStatus` as a JSON object, with `condition.seen.start` but without its samples."""
    fields = asdict(status)
    for found in (fields, *(part["status"] for part in (*fields["judges"], *fields["checks"], *fields["tasks"]))):
        if found:
            for name, tally in (("totals", found.pop("tally")), ("unfinished", found["unfinished"])):
                found[name] = asdict(tally.totals) if found["command"] == LABEL else dict(tally)
        if found and (seen := found["condition"]["seen"]):
            del seen["start"]["samples"]
    return fields


def observe_start(start: Start, now: float) -> ObservedStart:
    here = same_machine(start.process)
    process = process_with(start.pid) == start.process if here else None
    # Two machines' clocks differ, so a heartbeat may seem to lie in the future.
    return ObservedStart(start=start, silent_seconds=max(0.0, now - start.at), process=process)


def condition_of(starts: Sequence[ObservedStart], *, finished: bool, command: str = LABEL) -> RunCondition:
    """The state of a run of `command`. `starts`: in the order of time. `finished`: every unit is finished."""
    go_on = f"start `{command}` again to go on"
    last = next((seen for seen in reversed(starts) if seen.at_work), starts[-1] if starts else None)
    if last and last.at_work:
        state, why = StartState.RUNNING, f"last heartbeat {span(last.silent_seconds)} ago"
    elif finished:
        state, why = StartState.FINISHED, "all units are finished"
    elif last is None:
        state, why = StartState.UNFINISHED, f"no start gives a reason; {go_on}"
    elif not last.start.ended and last.process is None:
        silence = f"no heartbeat for {span(last.silent_seconds)}: the process is dead or disconnected"
        state, why = StartState.DEAD, f"{silence}; {go_on}"
    elif not last.start.ended:
        state, why = StartState.DEAD, f"its process is gone; last heartbeat {span(last.silent_seconds)} ago; {go_on}"
    elif last.start.ended == INTERRUPTED:
        state, why = StartState.INTERRUPTED, f"{span(last.silent_seconds)} ago; {go_on}"
    elif last.start.ended in (FAILED, LIMITED):
        state, why = StartState(last.start.ended), printable(last.start.message)
    else:
        state, why = StartState.UNFINISHED, f"some units need rollouts again since the last start; {go_on}"
    return RunCondition(state=state, why=why, seen=last)


def span(seconds: float) -> str:
    """A rounded duration in one unit of time."""
    for length, name in ((86_400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnitState:
    """`whole`: the record that completes the unit. `unfinished`: what it does not contain; no record holds verdicts of these.
    `unreadable`: names of damaged records."""

    unit_id: str
    whole: Commit | None
    unfinished: Tally = field(default_factory=Tally)
    unreadable: tuple[str, ...] = ()


def _unit_count(storage: Storage, staged: Commit | None) -> int | None:
    """The number of units of the staged input; None if it, or one of its files, is damaged, and where there is none."""
    try:
        return sum(1 for _ in units_of(storage, staged)) or None if staged else None
    except StoreError:
        return None


def _unit(storage: Storage, named: tuple[str, int]) -> _UnitState:
    unit_id, length = named
    last = record(storage, UNIT, unit_id, length - 1)
    if last is not None and last.state is CommitState.WHOLE:
        return _UnitState(unit_id=unit_id, whole=last)
    found = record_sequence(storage, UNIT, unit_id, length)
    whole = resolve(found).whole
    return _UnitState(
        unit_id=unit_id,
        whole=whole,
        unfinished=log_tally(found) - (whole.tally if whole else Tally()),
        unreadable=found.unreadable,
    )


def _now(status: RunStatus) -> Iterator[str]:
    """What the running start does now, or what the last start did at its last heartbeat."""
    seen = status.condition.seen
    if seen is None or status.condition.state is StartState.FINISHED:
        return
    last = seen.start.status
    yield _line("now" if seen.at_work else "at last", printable(last.stage))
    for name, words in status_items(last, status.pace, None):
        if seen.at_work or name != "left":
            yield _line("", f"{name:<9} {words}")
    if last.workers:
        yield _line("", f"{'workers':<9} {last.workers:,}")
    for warning in last.warnings:
        if not repeats(warning, seen.start.message):
            yield _line("warning", printable(warning))


def _cost(status: RunStatus) -> Iterator[str]:
    spent = status.spent
    if spent.starts:
        price = "" if spent.money is None else f", {format_number(spent.money, 2)} in money"
        unpriced = f" ({spent.unpriced:,} without a price)" if spent.money is not None and spent.unpriced else ""
        yield _line(
            "cost",
            f"{format_number(spent.device_hours, 2)} device hours{price}, in {format_count(spent.starts, 'start')}{unpriced}",
        )
    if status.plan_fault:
        yield _line("planned", f"plan.json cannot be read: {printable(status.plan_fault)}")
    if status.planned:
        cost = status.planned.cost
        both = status.tally + status.unfinished
        done, tokens = both["rollouts"], both["tokens"] + status.tally["solution_tokens"]
        yield _line("planned", f"rollouts {_range(cost.rollouts, 0)}, so far {done:,}")
        yield _line("", f"tokens {_range(cost.tokens, 0)}, so far {tokens:,}")
        if cost.device_hours:
            yield _line(
                "", f"device hours {_range(cost.device_hours, 2)}, so far {format_number(spent.device_hours, 2)}"
            )
        if cost.money and spent.money is not None:
            yield _line("", f"money {_range(cost.money, 2)}, so far {format_number(spent.money, 2)}")


def _damage(names: Sequence[str], comment: str, kind: str) -> Iterator[str]:
    for name in names[:SHOWN_DAMAGE]:
        yield _line("damaged", f"{name}: {comment}")
    if (more := len(names) - SHOWN_DAMAGE) > 0:
        yield _line("", f"{more:,} more {kind}")


def _whose(seen: ObservedStart) -> str:
    start = seen.start
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(start.began_at))
    return f"on {printable(start.host)}, process {start.pid}, started {began} UTC"


def _range(planned: Range, digits: int) -> str:
    return f"{format_number(planned.expected, digits)} ({format_range(planned.low, planned.high, digits)})"


def _line(name: str, words: str) -> str:
    return f"{name:<9} {words}"
