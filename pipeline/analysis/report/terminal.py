"""What a person sees in the terminal of a run that has worked: its chains and its totals."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.analysis.report.speed import speed_lines
from pipeline.core.progress import Edited, Summary
from pipeline.core.records import Totals
from pipeline.estimators.registry import value_column

_BAR = 10
_RULES = {1: ("+", "green"), 0: ("-", "red"), 2: ("o", "blue"), None: ("?", "yellow")}
_WITHOUT_COUNTS = ("terminal", "unmeasured", "implied")


def print_chains(console: Console, chains: Sequence[Mapping[str, Any]]) -> None:
    """One block per chain: each step's text, value, interval, counts and label.

    Shown is the estimate that the estimator means (`Estimator.value_column`).
    """
    problem = None
    for chain in chains:
        shown = value_column(None, chain["estimator"]).value
        if chain["problem_id"] != problem:
            problem = chain["problem_id"]
            console.print()
            console.print(Text(_plain(chain["problem"]), style="bold"))
            root = _estimate(chain[f"root_{shown}"], chain["root_low"], chain["root_high"])
            console.print(
                Text(f"answer {_plain(chain['gold_answer'])}; from the bare problem: {root}, ")
                + Text(_counts(chain["root_n_correct"], chain["root_n_rollouts"]))
            )
        outcome = {True: "right", False: "wrong", None: "open"}[chain["outcome"]]
        table = Table(
            title=Text(_plain(f"{chain['source_id'] or chain['chain_id']} ({outcome})")),
            title_justify="left",
            box=None,
            pad_edge=False,
        )
        table.add_column("step", justify="right")
        table.add_column("text", overflow="fold", min_width=24, ratio=1)
        for name in ("value", "interval", "correct", "label"):
            table.add_column(name, no_wrap=True)
        columns = ("steps", shown, "low", "high", "n_correct", "n_rollouts", "label", "origin")
        for index, entry in enumerate(zip(*(chain[name] for name in columns), strict=True), start=1):
            text, value, low, high, correct, rollouts, label, origin = entry
            mark, colour = _RULES[label]
            table.add_row(
                str(index),
                Text(_plain(text)),
                Text(_bar(value)),
                Text("" if low is None or origin == "terminal" else f"{low:.2f}-{high:.2f}"),
                Text(origin if origin in _WITHOUT_COUNTS else _counts(correct, rollouts)),
                Text(mark, style=colour),
            )
        console.print(table)


def print_summary(console: Console, summary: Summary) -> None:
    """Counts that add up, and what this start of the run cost."""

    def line(text: str) -> None:
        console.print(Text(text), soft_wrap=True)

    totals = summary.totals
    if summary.units_done_now == 0:
        line("Nothing was owed: this run was finished before.")
    for text in totals_lines(totals):
        line(text)
    if summary.units_done_now:
        seconds = summary.seconds_labelling
        rate = f" ({summary.tokens_now / seconds:,.0f} tokens/s)" if seconds >= 1 else ""
        line(
            f"time      {summary.seconds_starting:.0f} s to start, {seconds:.0f} s to label "
            f"{summary.rollouts_now:,} rollouts{rate}"
        )
    if summary.throughput:
        line("engine    " + "\n          ".join(speed_lines(summary.throughput)))
    if summary.overspent:
        line(f"budget    {summary.overspent}")
    for name in summary.damaged:
        line(f"damaged   {name}: set aside in damaged/; what it held was made anew")
    line(f"labels    {summary.run_dir}/labels/*.parquet" if totals.chains else f"labels    none in {summary.run_dir}")
    if summary.labels:
        line(f"          they are {summary.labels}")


def totals_lines(totals: Totals) -> list[str]:
    """Counts that add up."""
    lines: list[str] = []
    tell = lines.append
    tell(f"rows      {totals.rows:,} read = {totals.used:,} used + {totals.rejected:,} rejected")
    tell(f"work      {totals.problems:,} problems, {totals.chains:,} chains, {totals.prefixes:,} distinct prefixes")
    tell(
        f"rollouts  {totals.rollouts:,} = {totals.correct:,} correct + {totals.incorrect:,} incorrect "
        f"+ {totals.no_answer:,} without an answer + {totals.ungraded:,} ungraded"
        + (f" + {totals.aborted:,} stopped, for they no longer counted" if totals.aborted else "")
    )
    if totals.truncated:
        tell(f"          {totals.truncated:,} of them cut by sampling.max_tokens")
    if totals.engine_failed:
        tell(f"          {totals.engine_failed:,} got no answer from any engine (finish engine_failed)")
    if totals.undecided:
        tell(
            f"undecided {totals.undecided:,} chains: their budget was spent before their values were known to "
            "estimator.target_sd; raise estimator.budget, estimator.run_budget or sampling.rollouts to go on"
        )
    if totals.too_long:
        tell(f"          {totals.too_long:,} prefixes were too long for the policy's context: see rejects/")
    tell(
        f"tokens    {totals.tokens:,} in rollouts"
        + (f", {totals.solution_tokens:,} in sampled solutions" if totals.solution_tokens else "")
    )
    return lines


def print_edited(console: Console, edited: Edited) -> None:
    """What `relabel` or `regrade` has changed."""

    def line(text: str) -> None:
        console.print(Text(text), soft_wrap=True)

    if edited.number is None:
        line("Nothing to do: the labels are what is asked for.")
    else:
        line(f"verdicts  {edited.verdicts_changed:,} of {edited.rollouts:,} changed")
        line(f"labels    {edited.labels_changed:,} of {edited.labels:,} changed, in {edited.chains:,} chains")
        line(f"edition   {edited.number} holds the current labels: {edited.run_dir}/labels/*.parquet")


def print_lines(console: Console, lines: Sequence[str]) -> None:
    """Lines as they are, but for control characters, however long."""
    for line in lines:
        console.print(Text(_plain(line)), soft_wrap=True)


def print_rejects(console: Console, counts: Mapping[str, int]) -> None:
    """Why rows were not used."""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
    console.print(Text(f"rejected  {reasons}: rejects/ names each row and the remedy"), soft_wrap=True)


def _plain(text: str) -> str:
    """Model text without control characters, which a terminal would obey."""
    return "".join(character if character.isprintable() or character == "\n" else "�" for character in text)


def _estimate(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return "no value"
    return f"{value:.2f} ({low:.2f}-{high:.2f})"


def _counts(correct: int, rollouts: int) -> str:
    return f"{correct}/{rollouts}"


def _bar(value: float | None) -> str:
    if value is None:
        return "-"
    full = round(value * _BAR)
    return f"{value:.2f} {'█' * full}{'·' * (_BAR - full)}"
