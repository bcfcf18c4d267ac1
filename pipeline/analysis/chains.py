"""Chains of labelled steps for a reader: text in a terminal, HTML coloured by value in a notebook, and which chains to show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any

import polars as pl

from pipeline.consensus.kept import consensus_chains, label_place, reason_text, witness_places
from pipeline.core.errors import UsageError, first_line
from pipeline.core.formatting import format_percent
from pipeline.core.suggestions import nearest_keys
from pipeline.display.document import Colour, Table
from pipeline.display.terminal import show, terminal

COLUMNS = {
    "drop": "the largest fall of the value from one step to the next",
    "rise": "the largest rise of the value from one step to the next",
    "lowest": "the lowest value of a step",
    "n_steps": "the number of steps",
    "root_value": "the value before the first step",
    "outcome": "whether the chain's answer is correct",
    "p_outcome": "how likely the value before the last step makes the outcome",
    "source_id": "your own id of the row",
    "problem": "the problem's text",
    "solution": "the chain's text",
    "final_answer": "the chain's answer",
}
"""What a condition on chains may name."""
CONSENSUS_COLUMNS = {
    "disagree": "whether a witness names another first error than Monte Carlo, or only one of them names one",
    "left_out": "why the chain has no labels",
}
"""What it may also name where labels are by consensus."""
_OF_STEPS = (
    "a list with an entry for each step is compared by what is in it: write for example lowest < 0.2, value[1] > 0.5 (the "
    "first step) or ARRAY_CONTAINS(label, 0) (any step)"
)
_WIDTH = 120
_LIGHTNESS = 85
_MARKS = {1: "+", 0: "-", 2: "o", None: "?"}
"""Of labels."""
_COLOURS = {"+": Colour.right, "-": Colour.wrong, "o": Colour.accent, "?": Colour.uncertain}
_CHECKED = {1: "holds", 0: "refuted", None: "not checked"}
_WITHOUT_COUNTS = ("terminal", "unmeasured", "implied")
_BAR = 10


@dataclass(frozen=True, slots=True)
class Chains:
    """Rows of `labels`. `str()` is text as in the terminal. A notebook colours the steps by value: red for 0, green for 1."""

    rows: Sequence[dict[str, Any]]
    total: int = 0
    """How many chains the condition chose, those beyond the first ones too."""

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        if not self.rows:
            return "no chain"
        console = terminal(file=StringIO(), width=_WIDTH, force_jupyter=False)
        show(chain_tables(self.rows), console)
        assert isinstance(console.file, StringIO)
        return console.file.getvalue().strip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(_chain, self.rows)) or "no chain"


def chain_tables(chains: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """A table of each chain: the text, value, interval, counts and label of each step; of labels by consensus also what Monte
    Carlo and the witnesses say."""
    problem = None
    for chain in chains:
        agreed = chain.get("mc_label") is not None
        title = f"{chain['source_id'] or chain['chain_id']} ({_outcome(chain, 'open')})"
        if chain["problem_id"] != problem:
            problem = chain["problem_id"]
            value, low, high = chain["root_value"], chain["root_low"], chain["root_high"]
            root = "unknown" if None in (value, low, high) else f"{value:.2f} ({low:.2f}-{high:.2f})"
            counts = f"{chain['root_n_correct']}/{chain['root_n_rollouts']}"
            title = f"{chain['problem']}\nanswer {chain['gold_answer']}; value before step 1: {root}, {counts}\n{title}"
        columns = ("steps", "value", "low", "high", "n_correct", "n_rollouts", "label", "origin")
        rows = [
            (
                str(index),
                text + (_opinions(chain, index) if agreed else ""),
                _bar(value),
                "" if low is None or origin == "terminal" else f"{low:.2f}-{high:.2f}",
                origin if origin in _WITHOUT_COUNTS else f"{correct}/{rollouts}",
                _MARKS[label],
            )
            for index, (text, value, low, high, correct, rollouts, label, origin) in enumerate(
                zip(*(chain[name] for name in columns), strict=True), start=1
            )
        ]
        heads = ("step", "text", "value", "interval", "correct", "label")
        yield Table(title=title, heads=heads, rows=tuple(rows), words=len(heads), text=1, colours=_COLOURS)


def given_mark(outcome: bool | None, final_answer: str | None) -> str:
    """What follows the outcome of a chain that states no answer, so that its outcome is the one in the data."""
    return ", as the data say" if outcome is not None and final_answer is None else ""


def first_errors(chain: Mapping[str, Any]) -> list[str]:
    """Of a row of labels by consensus: why it has no labels, and the first error that Monte Carlo and each witness name."""
    out = chain["left_out"]
    places = {"Monte Carlo": label_place(chain["mc_label"]), **witness_places(chain["opinions"])}
    named = {None: "unknown", 0: "none"}
    errors = (f"{name} {named.get(place, f'step {place}')}" for name, place in places.items())
    return [*([] if out is None else [f"left out: {reason_text(out)}"]), f"first error: {', '.join(errors)}"]


def _opinions(chain: Mapping[str, Any], step: int) -> str:
    """A line on what Monte Carlo alone and the witnesses say of a step: its label, the shares of votes that name it as the
    first error, and P(no error so far)."""
    parts = [
        f"{each['witness']} {_CHECKED[each['steps'][step - 1]]}"
        if each["steps"] is not None
        else f"{each['witness']} {format_percent(each['first_error'][step - 1])}"
        for each in chain["opinions"]
        if each["steps"] is not None or each["first_error"][step - 1]
    ]
    free = chain["p_error_free"]
    sure = [] if free is None else [f"no error so far {free[step - 1]:.2f}"]
    return "\n" + ", ".join([f"Monte Carlo {_MARKS[chain['mc_label'][step - 1]]}", *parts, *sure])


def _outcome(chain: Mapping[str, Any], unknown: str) -> str:
    """The outcome of a chain, and what Monte Carlo and the witnesses say of a row of labels by consensus."""
    outcome = {True: "right", False: "wrong", None: unknown}[chain["outcome"]]
    outcome += given_mark(chain["outcome"], chain["final_answer"])
    return "; ".join([outcome, *(first_errors(chain) if chain.get("mc_label") is not None else [])])


def _bar(value: float | None) -> str:
    if value is None:
        return "-"
    full = round(value * _BAR)
    return f"{value:.2f} {'█' * full}{'·' * (_BAR - full)}"


def chosen(labels: pl.DataFrame, count: int, where: str | pl.Expr | None) -> Chains:
    """The first `count` of the chains for which `where` is true: a condition on `COLUMNS`, `CONSENSUS_COLUMNS` and the columns
    of `labels`, as an expression of polars or as SQL.

    Raises UsageError for a condition that cannot be evaluated.
    """
    if where is not None:
        known = measured(labels)
        names: list[str] = []
        try:
            condition = pl.sql_expr(where) if isinstance(where, str) else where
            names = condition.meta.root_names()
            for name in names:
                if name not in known.columns:
                    raise UsageError(_no_column(where, name, list(dict.fromkeys([*COLUMNS, *known.columns]))))
            labels = known.filter(condition).select(labels.columns)
        except (pl.exceptions.PolarsError, TypeError) as error:
            of_steps = [name for name in names if isinstance(known.schema[name], pl.List)]
            raise UsageError(
                f"where={where}: {' and '.join(of_steps)}: {_OF_STEPS}"
                if of_steps
                else f"where={where} cannot be evaluated ({first_line(error)}): write for example drop > 0.5 AND outcome"
            ) from error
    return Chains(labels.head(count).to_dicts(), len(labels))


def _no_column(where: object, name: str, columns: Sequence[str]) -> str:
    near = nearest_keys(name, columns)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"where={where}: there is no column {name}: {guess}It may name {', '.join(columns)}"


def measured(labels: pl.DataFrame) -> pl.DataFrame:
    """The labels with those of `COLUMNS` that they lack, and of `CONSENSUS_COLUMNS` where they are by consensus."""
    steps = pl.concat_list(pl.col("root_value"), pl.col("value"))
    change = steps.list.diff()
    made = {
        "drop": pl.max_horizontal(-change.list.min(), pl.lit(0.0)),
        "rise": pl.max_horizontal(change.list.max(), pl.lit(0.0)),
        "lowest": pl.col("value").list.min(),
        "n_steps": pl.col("steps").list.len(),
    }
    found = labels.with_columns(**{name: expression for name, expression in made.items() if name not in labels.columns})
    return found.with_columns(consensus_chains(labels)["disagree"]) if "mc_label" in labels.columns else found


def _chain(row: dict[str, Any]) -> str:
    steps = "".join(
        f'<div style="background:{value_colour(value)};color:#000;padding:1px 6px;margin:1px 0;white-space:pre-wrap" '
        f'title="{escape(_said(value, correct, rollouts))}">'
        f'<span style="font-family:monospace">{number_of(value)}</span> {escape(text)}</div>'
        for text, value, correct, rollouts in zip(
            row["steps"], row["value"], row["n_correct"], row["n_rollouts"], strict=True
        )
    )
    return (
        f'<div style="margin:0 0 1em 0"><div style="white-space:pre-wrap"><b>{escape(row["problem"])}</b></div>'
        f"<div>answer {escape(str(row['gold_answer']))}; value before step 1: {number_of(row['root_value'])}; chain "
        f"{escape(str(row['source_id'] or row['chain_id']))} ({escape(_outcome(row, 'outcome unknown'))})</div>{steps}</div>"
    )


def _said(value: float | None, correct: int | None, rollouts: int | None) -> str:
    counted = f", {correct} of {rollouts} rollouts correct" if rollouts else ""
    return "no value" if value is None else f"value {value:.3f}{counted}"


def number_of(value: float | None) -> str:
    return "  - " if value is None else f"{value:.2f}"


def value_colour(value: float | None) -> str:
    """From red (0) over yellow to green (1); grey without a value."""
    return "#eee" if value is None else f"hsl({120 * min(1.0, max(0.0, value)):.0f} 80% {_LIGHTNESS}%)"
