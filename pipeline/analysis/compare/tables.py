"""A comparison as tables of texts, for the page and for the terminal. The page also has the prefixes that moved."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from pipeline.analysis.compare.comparison import Comparison, Side, format_interval, verdict
from pipeline.analysis.compare.flips import KINDS
from pipeline.analysis.report.page import Table
from pipeline.analysis.report.rich_tables import as_rich, widen
from pipeline.analysis.report.terminal import print_lines
from pipeline.core.formatting import format_count, format_percent, format_unfinished

TEXT = 300
"""Characters of a problem or a step that are shown."""
_LABELS = {1: "1 good", 0: "0 bad", 2: "2 neutral", None: "uncertain"}
_SETTINGS = 8
"""The most differing settings that are printed."""


def print_comparison(console: Console, found: Comparison) -> None:
    """Print what was compared, the verdict, then tables."""
    widen(console)
    print_lines(console, list(_lines(found)))
    for table in (values_table, positions_table, labels_table, flips_table, cost_table):
        console.print()
        console.print(as_rich(table(found)))


def settings_table(found: Comparison) -> Table:
    rows = tuple((difference.key, difference.a, difference.b) for difference in found.differing)
    return Table(heads=("setting", "a", "b"), rows=rows, words=3)


def values_table(found: Comparison) -> Table:
    shift, noise = found.shift, found.noise
    rows = [
        (
            f"mean of a, of {format_count(shift.prefixes, 'prefix')} with an unbiased value in both",
            _number(shift.mean_a),
        ),
        ("mean of b", _number(shift.mean_b)),
        ("b - a", format_interval(shift.shift)),
        ("correlation", format_interval(shift.pearson, "")),
        ("... of ranks", _number(shift.spearman)),
    ]
    if noise.correlation.value is not None:
        rows.append(
            (
                f"... corrected for noise, of {noise.correlated:,} unbiased values",
                format_interval(noise.correlation, ""),
            )
        )
    if noise.beyond is not None and noise.by_chance is not None:
        rows.append((f"differ by more than 1.96 sd of noise, of {noise.tested:,}", format_percent(noise.beyond)))
        rows.append(("... expected by chance", format_percent(noise.by_chance)))
    return Table(heads=("values", ""), rows=tuple(rows))


def positions_table(found: Comparison) -> Table:
    rows = tuple(
        (format_span(part.first, part.last), f"{part.prefixes:,}", format_interval(part.shift))
        for part in found.shift.by_position
    )
    return Table(heads=("steps in the prefix", "prefixes", "b - a"), rows=rows)


def labels_table(found: Comparison) -> Table:
    """Rows are labels of a, columns are labels of b. Only labels that occur are shown."""
    table = found.flips.table
    used = [at for at in range(len(KINDS)) if any(table[at]) or any(row[at] for row in table)]
    return Table(
        heads=("a \\ b", *(_LABELS[KINDS[at]] for at in used)),
        rows=tuple((_LABELS[KINDS[i]], *(f"{table[i][j]:,}" for j in used)) for i in used),
        caption="labels of steps",
    )


def flips_table(found: Comparison) -> Table:
    flips, errors = found.flips, found.flips.first_errors
    chance = [] if flips.by_chance is None else [("... expected by chance", format_percent(flips.by_chance))]
    rows = [
        (f"flipped, of {flips.decided:,} that are certain in both", _share(found)),
        *chance,
        (f"first error of {format_count(errors.chains, 'chain')}: the same step", f"{errors.same:,}"),
        ("... an earlier one in b", f"{errors.earlier:,}"),
        ("... a later one in b", f"{errors.later:,}"),
        ("... only b has one", f"{errors.appeared:,}"),
        ("... only a has one", f"{errors.vanished:,}"),
        ("... none in either", f"{errors.none:,}"),
        ("... uncertain in one of them", f"{errors.uncertain:,}"),
    ]
    return Table(heads=("labels", ""), rows=tuple(rows))


def cost_table(found: Comparison) -> Table:
    sides = found.a, found.b
    return Table(
        heads=("cost", "a", "b"),
        rows=(
            ("chains labelled", *(f"{side.chains:,}" for side in sides)),
            ("rollouts per chain", *(_per_chain(side.rollouts, side) for side in sides)),
            ("tokens per chain", *(_per_chain(side.tokens, side) for side in sides)),
            ("graded rollouts per common prefix", *(f"{side.on_common / found.overlap.prefixes:.2f}" for side in sides)),
        ),
    )  # fmt: skip


def moved_prefixes(found: Comparison) -> Table:
    """The prefixes that moved most, with their texts."""
    return Table(
        heads=("chain", "step", "problem", "last step", "a", "b", "difference"),
        rows=tuple(_moved(part) for part in found.moved),
        words=4,
    )


def overlap_line(found: Comparison) -> Table:
    both = found.overlap
    return Table(
        heads=("", "in both", "only a", "only b"),
        rows=(
            ("chains", f"{both.chains:,}", f"{both.chains_only_a:,}", f"{both.chains_only_b:,}"),
            ("prefixes", f"{both.prefixes:,}", f"{both.prefixes_only_a:,}", f"{both.prefixes_only_b:,}"),
        ),
    )


def remark_lines(found: Comparison) -> list[str]:
    """What a reader must know before the figures."""
    both = found.overlap
    lines = [
        f"{name}: {format_unfinished(side.owed, side.units)}, and only finished units are compared"
        for name, side in (("a", found.a), ("b", found.b))
        if side.owed
    ]
    if both.by_words:
        lines.append(
            f"common chains that are matched by the words of their steps: {both.by_words:,}; the ids of sampled chains depend "
            "on the tokens of the policy, so they differ between the runs"
        )
    if found.other_answers:
        lines.append(
            f"left out because the runs have different known answers: {format_count(found.other_answers, 'problem')}"
        )
    if not both.chains:
        lines.append(
            "no chain is in both runs, so only bare problems are compared: label the chains of one run with the policy of the "
            "other"
        )
    uncounted = sorted({side.estimator for side in (found.a, found.b) if not side.counts_are_shares})
    if uncounted:
        lines.append(
            f"{' and '.join(uncounted)}: sampling stops at a correct rollout, so the share of correct rollouts is biased, and "
            "the effect of noise cannot be computed"
        )
    return lines


def format_span(first: int, last: int) -> str:
    """A range of counts as text."""
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


def _share(found: Comparison) -> str:
    flipped = found.flips.flipped
    if flipped.value is None:
        return "-"
    if flipped.low is None or flipped.high is None:
        return format_percent(flipped.value)
    return f"{format_percent(flipped.value)} ({format_percent(flipped.low)} to {format_percent(flipped.high)})"


def _per_chain(number: int, side: Side) -> str:
    return f"{number / side.chains:,.1f}"


def _moved(part: Mapping[str, Any]) -> tuple[str, ...]:
    last = "(the bare problem)" if part["last"] is None else part["last"]
    texts = (_cut(part["name"]), f"{part['position']}", _cut(part["problem"]), _cut(last))
    seen = (
        f"{part[f'value_{of}']:.2f} ± {part[f'sd_{of}']:.2f}, {part[f'correct_{of}']}/{part[f'rollouts_{of}']}"
        for of in ("a", "b")
    )
    return (*texts, *seen, f"{part['distance']:.1f} sd")


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}..."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _lines(found: Comparison) -> Iterator[str]:
    for name, side in (("a", found.a), ("b", found.b)):
        yield f"{name:<10}{_made(side)}"
    shown = found.differing[:_SETTINGS]
    for at, difference in enumerate(shown):
        yield f"{'' if at else 'differ':<10}{difference.key}: {difference.a} in a, {difference.b} in b"
    if len(found.differing) > len(shown):
        yield f"{'':<10}... and {len(found.differing) - len(shown)} more settings"
    if not found.differing:
        yield f"{'differ':<10}no settings"
    both = found.overlap
    yield (
        f"{'common':<10}{format_count(both.problems, 'problem')}, {format_count(both.chains, 'chain')} "
        f"({both.chains_only_a:,} only in a, {both.chains_only_b:,} only in b), "
        f"{format_count(both.prefixes, 'distinct prefix')} with rollouts"
    )
    for remark in remark_lines(found):
        yield f"{'':<10}{remark}"
    yield f"{'verdict':<10}{verdict(found.shift, found.noise, found.flips)}"


def _made(side: Side) -> str:
    return f"{side.run_dir}: {side.policy}; {side.estimator}, {side.label_rule}; {format_count(side.chains, 'chain')}"
