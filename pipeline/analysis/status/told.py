"""How a run stands, in lines for people and as an object for programs."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pipeline.analysis.status.read import RunStatus, Seen, State
from pipeline.core.forecast import Range
from pipeline.core.words import facts_of, figure, printable, ranged

SHOWN_DAMAGE = 3


def lines(status: RunStatus) -> Iterator[str]:
    """For people."""
    totals, unfinished = status.totals, status.unfinished
    condition = status.condition
    yield _line("run", printable(status.run_dir))
    yield _line("state", f"{condition.state.value}: {condition.why}")
    if condition.seen:
        yield _line("start", _whose(condition.seen))
    if status.units is None:
        yield _line("units", "not known yet: the input is being read, or was not")
    else:
        yield _line("units", f"{status.units_done:,} of {status.units:,} whole")
    if totals.rows:
        yield _line("rows", f"{totals.rows:,} read = {totals.used:,} used + {totals.rejected:,} rejected")
    if status.units_done:
        yield _line("work", f"{totals.problems:,} problems, {totals.chains:,} chains, {totals.prefixes:,} prefixes")
        yield _line(
            "rollouts",
            f"{totals.rollouts:,} = {totals.correct:,} correct + {totals.incorrect:,} incorrect + {totals.no_answer:,} "
            f"without an answer + {totals.ungraded:,} ungraded + {totals.aborted:,} stopped",
        )
    if totals.truncated:
        yield _line("", f"{totals.truncated:,} of them cut by sampling.max_tokens")
    if totals.too_long:
        yield _line("", f"{totals.too_long:,} prefixes were too long for the policy's context: see rejects/")
    if unfinished.rollouts:
        yield _line("", f"{unfinished.rollouts:,} more are committed of units that are not whole")
    if tokens := totals.tokens + unfinished.tokens:
        solutions = f", {totals.solution_tokens:,} in sampled solutions" if totals.solution_tokens else ""
        yield _line("tokens", f"{tokens:,} in rollouts{solutions}")
    yield from _now(status)
    yield from _cost(status)
    yield from _damage(status.unreadable, "start `label` again, which redoes what it held", "records")
    yield from _damage(status.damaged_starts, "it says nothing, and what that start took is not counted", "starts")


def as_json(status: RunStatus) -> dict[str, object]:
    """For programs: `RunStatus`, with `condition.seen` without its samples."""
    told = asdict(status)
    if seen := told["condition"]["seen"]:
        del seen["start"]["samples"]
    return told


def _now(status: RunStatus) -> Iterator[str]:
    """What the start does that is at work, or did when it was last heard of."""
    seen = status.condition.seen
    if seen is None or status.condition.state is State.FINISHED:
        return
    told = seen.start.status
    yield _line("now" if seen.at_work else "at last", printable(told.stage))
    for name, words in facts_of(told, status.pace, None):
        if seen.at_work or name != "left":
            yield _line("", f"{name:<9} {words}")
    if told.workers:
        yield _line("", f"{'workers':<9} {told.workers:,}")


def _cost(status: RunStatus) -> Iterator[str]:
    spent = status.spent
    if spent.starts:
        starts = f"{spent.starts:,} start{'s' if spent.starts > 1 else ''}"
        price = "" if spent.money is None else f", {figure(spent.money, 2)} in money"
        unpriced = f" ({spent.unpriced:,} without a price)" if spent.money is not None and spent.unpriced else ""
        yield _line("cost", f"{figure(spent.device_hours, 2)} device hours{price}, in {starts}{unpriced}")
    if status.plan_fault:
        yield _line("planned", f"plan.json cannot be read: {printable(status.plan_fault)}")
    if status.planned:
        cost = status.planned.cost
        done = status.totals.rollouts + status.unfinished.rollouts
        tokens = status.totals.tokens + status.unfinished.tokens + status.totals.solution_tokens
        yield _line("planned", f"rollouts {_range(cost.rollouts, 0)}, so far {done:,}")
        yield _line("", f"tokens {_range(cost.tokens, 0)}, so far {tokens:,}")
        if cost.device_hours:
            yield _line("", f"device hours {_range(cost.device_hours, 2)}, so far {figure(spent.device_hours, 2)}")
        if cost.money and spent.money is not None:
            yield _line("", f"money {_range(cost.money, 2)}, so far {figure(spent.money, 2)}")


def _damage(names: Sequence[str], comment: str, kind: str) -> Iterator[str]:
    for name in names[:SHOWN_DAMAGE]:
        yield _line("damaged", f"{name}: {comment}")
    if (more := len(names) - SHOWN_DAMAGE) > 0:
        yield _line("", f"{more:,} more {kind}")


def _whose(seen: Seen) -> str:
    start = seen.start
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(start.began_at))
    return f"on {printable(start.host)}, process {start.pid}, begun {began} UTC"


def _range(planned: Range, digits: int) -> str:
    return f"{figure(planned.expected, digits)} ({ranged(planned.low, planned.high, digits)})"


def _line(name: str, words: str) -> str:
    return f"{name:<9} {words}"
