"""What is shown of two runs: lines of what was compared, key figures, and sections of tables and charts."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.analysis.compare.comparison import Comparison, Side, verdict
from pipeline.analysis.compare.shift import KINDS, ShiftByPosition
from pipeline.core.formatting import format_count, format_percent, format_span, format_unfinished
from pipeline.display.columns import table_of
from pipeline.display.document import (
    Axis,
    Chart,
    ChartKind,
    Figure,
    Line,
    Mark,
    Page,
    Scale,
    Section,
    Table,
    sentence,
    there,
)
from pipeline.display.numbers import interval, number, percent, percents, reach
from pipeline.storage.location import last_part

KIND = "comparison"
TEXT = 300
"""Characters of a problem or a step that are shown."""
_LABELS = {1: "1 good", 0: "0 bad", 2: "2 neutral", None: "uncertain"}
_SETTINGS = 8
"""The most differing settings that are printed."""


def page_of(found: Comparison, made: tuple[str, ...]) -> Page:
    """The page, whose sections are also what the terminal shows. `made` says how it was made."""
    return Page(
        title=_title(found),
        kind=KIND,
        verdict=sentence(verdict(found.shift, found.noise, found.flips)),
        details=_details(found),
        notes=tuple(map(sentence, remark_lines(found))),
        figures=_figures(found),
        sections=(_settings(found), *sections(found), *([_moved(found)] if found.moved else [])),
        foot=made,
    )


def sections(found: Comparison) -> tuple[Section, ...]:
    """The tables and charts, in order; settings and single prefixes are the page's alone."""
    return (
        Section(
            anchor="values",
            heading="Values",
            intro="Each distinct prefix counts once. Intervals treat problems as independent, but not their prefixes.",
            tables=(_values(found),),
            charts=there(_scatter(found), _by_position(found)),
        ),
        Section(
            anchor="labels",
            heading="Labels",
            intro="Steps that chains share count once. Last steps are left out: their label is the outcome.",
            tables=(_labels(found), _flips(found)),
        ),
        Section(anchor="cost", heading="Cost", tables=(_overlap(found), _cost(found))),
    )


def _settings(found: Comparison) -> Section:
    rows = tuple((difference.key, difference.a, difference.b) for difference in found.differing)
    return Section(
        anchor="settings",
        heading="Settings that differ",
        intro="The settings in which the two runs differ." if rows else "All settings are the same.",
        tables=(Table(heads=("setting", "a", "b"), rows=rows, words=3),) if rows else (),
    )


def _values(found: Comparison) -> Table:
    shift, noise = found.shift, found.noise
    both = f"of {format_count(shift.prefixes, 'prefix')} with an unbiased value in both"
    rows = [
        (f"mean of a, {both}", number(shift.mean_a, 3)),
        ("mean of b", number(shift.mean_b, 3)),
        ("b - a", interval(shift.shift, 3, "+")),
        ("correlation", interval(shift.pearson, 3)),
        ("... of ranks", number(shift.spearman, 3)),
    ]
    if noise.correlation.value is not None:
        corrected = f"... corrected for noise, of {noise.correlated:,} unbiased values"
        rows.append((corrected, interval(noise.correlation, 3)))
    if noise.beyond is not None and noise.by_chance is not None:
        rows.append((f"differ by more than 1.96 sd of noise, of {noise.tested:,}", format_percent(noise.beyond)))
        rows.append(("... expected by chance", format_percent(noise.by_chance)))
    return Table(heads=("values", ""), rows=tuple(rows))


def _labels(found: Comparison) -> Table:
    """Rows are labels of a, columns are labels of b. Only labels that occur are shown."""
    table = found.flips.table
    used = [at for at in range(len(KINDS)) if any(table[at]) or any(row[at] for row in table)]
    return Table(
        heads=("a \\ b", *(_LABELS[KINDS[at]] for at in used)),
        rows=tuple((_LABELS[KINDS[i]], *(f"{table[i][j]:,}" for j in used)) for i in used),
        caption="labels of steps",
    )


def _flips(found: Comparison) -> Table:
    flips, errors, share = found.flips, found.flips.first_errors, found.flips.flipped
    chance = [] if flips.by_chance is None else [("... expected by chance", format_percent(flips.by_chance))]
    rows = [
        (f"flipped, of {flips.decided:,} that are certain in both", percents(share)),
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


def _cost(found: Comparison) -> Table:
    sides, common = (found.a, found.b), found.overlap.prefixes
    rows = (
        ("chains labelled", *(f"{side.chains:,}" for side in sides)),
        ("rollouts per chain", *(f"{side.rollouts / side.chains:,.1f}" for side in sides)),
        ("tokens per chain", *(f"{side.tokens / side.chains:,.1f}" for side in sides)),
        ("graded rollouts per common prefix", *(f"{side.on_common / common:.2f}" for side in sides)),
    )
    return Table(heads=("cost", "a", "b"), rows=rows)


def _overlap(found: Comparison) -> Table:
    both = found.overlap
    rows = (
        ("chains", f"{both.chains:,}", f"{both.chains_only_a:,}", f"{both.chains_only_b:,}"),
        ("prefixes", f"{both.prefixes:,}", f"{both.prefixes_only_a:,}", f"{both.prefixes_only_b:,}"),
    )
    return Table(heads=("", "in both", "only a", "only b"), rows=rows)


def remark_lines(found: Comparison) -> Iterator[str]:
    """What a reader must know before the figures."""
    both = found.overlap
    for name, side in (("a", found.a), ("b", found.b)):
        if side.owed:
            yield f"{name}: {format_unfinished(side.owed, side.units)}, and only finished units are compared"
    if both.by_words:
        yield (
            f"common chains that are matched by the words of their steps: {both.by_words:,}; the ids of sampled chains depend "
            "on the tokens of the policy, so they differ between the runs"
        )
    if found.other_answers:
        yield (
            f"left out because the runs have different known answers: {format_count(found.other_answers, 'problem')}"
        )
    if not both.chains:
        yield (
            "no chain is in both runs, so only bare problems are compared: label the chains of one run with the policy of the "
            "other"
        )
    uncounted = sorted({side.estimator for side in (found.a, found.b) if not side.counts_are_shares})
    if uncounted:
        yield (
            f"{' and '.join(uncounted)}: sampling stops at a correct rollout, so the share of correct rollouts is biased, and "
            "the effect of noise cannot be computed"
        )


def lines(found: Comparison) -> Iterator[str]:
    for name, side in (("a", found.a), ("b", found.b)):
        yield f"{name:<10}{_made(side)}; {format_count(side.chains, 'chain')}"
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


def _scatter(found: Comparison) -> Chart:
    """Values of b against values of a."""
    bins = len(found.bins)
    cells = [(i / bins, j / bins, count) for i, row in enumerate(found.bins) for j, count in enumerate(row) if count]
    return Chart(
        title="Values of b against those of a",
        reading="Cells with more colour hold more prefixes (logarithmic scale). On the dashed line, values are equal; below, b "
        "is lower.",
        kind=ChartKind.heat,
        marks=tuple(Mark(x=a, x_end=a + 1 / bins, y=b, y_end=b + 1 / bins, weight=count) for a, b, count in cells),
        x=Axis(title="value in a"),
        y=Axis(title="value in b"),
        line=Line.diagonal,
        numbers=Table(
            heads=("a", "b", "prefixes"),
            rows=tuple(
                (f"{a:.2f}-{a + 1 / bins:.2f}", f"{b:.2f}-{b + 1 / bins:.2f}", f"{count:,}") for a, b, count in cells
            ),
            words=2,
        ),
    )


def _by_position(found: Comparison) -> Chart:
    """Mean shift by number of steps in the prefix."""
    parts = {format_span(part.first, part.last): part for part in found.shift.by_position}
    return Chart(
        title="Shift by position",
        reading="Mean of b - a by number of steps in the prefix, with its 95 % interval over problems. 0 is the bare problem.",
        kind=ChartKind.points,
        marks=tuple(Mark.of(span, part.shift) for span, part in parts.items()),
        x=Axis(title="steps in the prefix", scale=Scale.names),
        y=Axis(title="b - a", scale=Scale.numbers),
        line=Line.zero,
        numbers=table_of("steps in the prefix", ShiftByPosition, parts),
    )


def _title(found: Comparison) -> str:
    names = [last_part(side.run_dir) for side in (found.a, found.b)]
    return " and ".join(names if names[0] != names[1] else (found.a.run_dir, found.b.run_dir))


def _details(found: Comparison) -> tuple[tuple[str, str], ...]:
    both = found.overlap
    chains, problems = format_count(both.chains, "chain"), format_count(both.problems, "problem")
    common = f"{format_count(both.prefixes, 'prefix')} with rollouts, {chains}, {problems}"
    return (("a", _made(found.a)), ("b", _made(found.b)), ("in common", common))


def _made(side: Side) -> str:
    return f"{side.run_dir}: {side.policy}; {side.estimator}, {side.label_rule}"


def _figures(found: Comparison) -> tuple[Figure, ...]:
    shift, noise, flips = found.shift, found.noise, found.flips
    corrected = "" if noise.correlation.value is None else f"corrected for noise {interval(noise.correlation, 3)}"
    chance = "" if flips.by_chance is None else f"{format_percent(flips.by_chance)} expected by chance"
    figures = [
        ("Values, b - a", number(shift.shift.value, 3, "+"), reach(shift.shift, 3, "+")),
        ("Correlation", number(shift.pearson.value), corrected),
        ("Labels that flip", percent(flips.flipped.value), chance),
    ]
    if noise.beyond is not None and noise.by_chance is not None:
        note = f"of prefixes; {format_percent(noise.by_chance)} expected by chance"
        figures.append(("Beyond noise", format_percent(noise.beyond), note))
    return tuple(Figure(name=name, value=value, reading=reading) for name, value, reading in figures)


def _moved(found: Comparison) -> Section:
    heads = ("chain", "step", "problem", "last step", "a", "b", "difference")
    return Section(
        anchor="moved",
        heading="Prefixes that moved most",
        intro="At most one prefix per problem. For each run: value ± standard deviation, correct / graded rollouts. "
        "The difference is in standard deviations. Among many prefixes, some differ much by chance.",
        tables=(Table(heads=heads, rows=tuple(map(_prefix, found.moved)), words=4),),
    )


def _prefix(part: Mapping[str, Any]) -> tuple[str, ...]:
    last = "(the bare problem)" if part["last"] is None else part["last"]
    texts = (_cut(part["name"]), f"{part['position']}", _cut(part["problem"]), _cut(last))
    seen = (
        f"{part[f'value_{of}']:.2f} ± {part[f'sd_{of}']:.2f}, {part[f'correct_{of}']}/{part[f'rollouts_{of}']}"
        for of in ("a", "b")
    )
    return (*texts, *seen, f"{part['distance']:.1f} sd")


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}..."
