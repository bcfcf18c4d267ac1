"""`report` of two runs: compares them and writes the page with its charts. The page is one file that loads nothing, see
`analysis.report.page`.
"""

from pathlib import Path

import altair as alt

from pipeline.analysis.compare import tables
from pipeline.analysis.compare.comparison import Comparison, Side, format_interval, verdict
from pipeline.analysis.compare.run import compare_runs
from pipeline.analysis.report.page import (
    ACCENT,
    GENERATOR,
    LINE,
    Figure,
    Page,
    Section,
    Table,
    Tile,
    chart_of,
    diagonal,
    ends,
    foot,
    html,
    rows_of,
    sentence,
)
from pipeline.analysis.settings import ReportConfig
from pipeline.config.words import setting_word
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count, format_percent
from pipeline.storage.location import folder_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_foreign, refuse_overwriting

KIND = "comparison"
_LARGE = 300
NAME = "compare.html"
"""In the current folder, because the page belongs to neither run."""


def write_comparison(config: ReportConfig) -> tuple[Comparison, Path]:
    """Compare the two runs and write the page. Returns the comparison and the path of the page.

    Raises as `compare_runs` does, UsageError for a plan and for an `out` that cannot be written, is in one of the runs, or
    exists and is not a page of ours, and StoreError for a page that cannot be written.
    """
    if config.planned is not None:
        raise UsageError(f"planned={config.planned} is the plan of one run: leave it out when comparing two runs")
    out = Path(NAME if config.out is None else config.out).expanduser()
    check_output_file("out", out)
    refuse_overwriting({"out": out}, [folder_at(run_dir) for run_dir in config.run_dir])
    refuse_foreign("out", out, GENERATOR, "report")
    found = compare_runs(config.run_dir)
    runs = setting_word("run_dir", list(config.run_dir), '"').removeprefix("run_dir=")
    data = page(found, foot("report", {"run_dir": runs, "out": config.out}))
    with atomic_file(out) as file:
        file.write(data)
    return found, out


def page(found: Comparison, made: tuple[str, ...]) -> bytes:
    """The content of the file. `made` says how it was made."""
    figures = tuple(figure for figure in (scatter(found), by_position(found)) if figure)
    settings = "The settings in which the two runs differ." if found.differing else "All settings are the same."
    return html(
        Page(
            title=_title(found),
            kind=KIND,
            details=_details(found),
            banners=(sentence(verdict(found.shift, found.noise, found.flips)), *map(sentence, tables.remark_lines(found))),
            tiles=_tiles(found),
            sections=(
                Section(
                    anchor="settings",
                    heading="Settings that differ",
                    intro=settings,
                    tables=(tables.settings_table(found),) if found.differing else (),
                ),
                Section(
                    anchor="values",
                    heading="Values",
                    intro="Each distinct prefix counts once. Intervals treat problems as independent, but not their prefixes.",
                    tables=(tables.values_table(found),),
                    figures=figures,
                ),
                Section(
                    anchor="labels",
                    heading="Labels",
                    intro="Steps that chains share count once. Last steps are left out: their label is the outcome.",
                    tables=(tables.labels_table(found), tables.flips_table(found)),
                ),
                *_moved(found),
                Section(anchor="cost", heading="Cost", tables=(tables.overlap_line(found), tables.cost_table(found))),
            ),
            foot=made,
        )
    )  # fmt: skip


def scatter(found: Comparison) -> Figure | None:
    """Values of b against values of a."""
    counts = found.bins
    n_bins = len(counts)
    cells = [
        {"a": i / n_bins, "to_a": (i + 1) / n_bins, "b": j / n_bins, "to_b": (j + 1) / n_bins, "prefixes": number}
        for i, row in enumerate(counts)
        for j, number in enumerate(row)
        if number
    ]
    if not cells:
        return None
    unit = alt.Scale(domain=[0, 1])
    chart = (
        alt.Chart(rows_of(cells))
        .mark_rect(fill=ACCENT)
        .encode(
            x=alt.X("a:Q", title="value in a", scale=unit),
            x2="to_a:Q",
            y=alt.Y("b:Q", title="value in b", scale=unit),
            y2="to_b:Q",
            opacity=alt.Opacity("prefixes:Q", scale=alt.Scale(type="log", range=[0.12, 1]), legend=None),
        )
    )
    return Figure(
        title="Values of b against those of a",
        reading="Darker cells hold more prefixes (logarithmic scale). On the dashed line, values are equal; below, b is lower.",
        chart=chart_of(chart + diagonal(), height=_LARGE),
        numbers=Table(
            heads=("a", "b", "prefixes"),
            rows=tuple(
                (f"{cell['a']:.2f}-{cell['to_a']:.2f}", f"{cell['b']:.2f}-{cell['to_b']:.2f}", f"{cell['prefixes']:,}")
                for cell in cells
            ),
            words=2,
        ),
    )


def by_position(found: Comparison) -> Figure | None:
    """Mean shift by number of steps in the prefix."""
    rows = [{"at": tables.format_span(part.first, part.last), **ends(part.shift)} for part in found.shift.by_position]
    if not rows:
        return None
    x = alt.X("at:O", title="steps in the prefix", sort=None, axis=alt.Axis(labelAngle=0))
    base = alt.Chart(rows_of(rows))
    zero = alt.Chart(rows_of([{"zero": 0}])).mark_rule(color=LINE, strokeWidth=2).encode(y="zero:Q")
    bars = base.mark_rule(color=ACCENT, strokeWidth=2).encode(x=x, y=alt.Y("low:Q", title="b - a"), y2="high:Q")
    points = base.mark_point(filled=True, color=ACCENT, size=70, opacity=1).encode(x=x, y="value:Q")
    return Figure(
        title="Shift by position",
        reading="Mean of b - a by number of steps in the prefix, with its 95 % interval over problems. 0 is the bare problem.",
        chart=chart_of(zero + bars + points, height=_LARGE),
        numbers=tables.positions_table(found),
    )


def _title(found: Comparison) -> str:
    names = [side.run_dir.rstrip("/").rpartition("/")[2] for side in (found.a, found.b)]
    return " and ".join(names if names[0] != names[1] else (found.a.run_dir, found.b.run_dir))


def _details(found: Comparison) -> tuple[tuple[str, str], ...]:
    both = found.overlap
    common = ", ".join(
        [
            f"{format_count(both.prefixes, 'prefix')} with rollouts",
            format_count(both.chains, "chain"),
            format_count(both.problems, "problem"),
        ]
    )
    return (("a", _made(found.a)), ("b", _made(found.b)), ("in common", common))


def _made(side: Side) -> str:
    return f"{side.run_dir}: {side.policy}; {side.estimator}, {side.label_rule}"


def _tiles(found: Comparison) -> tuple[Tile, ...]:
    shift, noise, flips = found.shift, found.noise, found.flips
    tiles = [
        Tile(
            name="Values, b - a",
            value="-" if shift.shift.value is None else f"{shift.shift.value:+.3f}",
            note=format_interval(shift.shift),
        ),
        Tile(
            name="Correlation",
            value="-" if shift.pearson.value is None else f"{shift.pearson.value:.2f}",
            note="" if noise.correlation.value is None else f"corrected for noise {format_interval(noise.correlation, '')}",
        ),
        Tile(
            name="Labels that flip",
            value="-" if flips.flipped.value is None else format_percent(flips.flipped.value),
            note="" if flips.by_chance is None else f"{format_percent(flips.by_chance)} expected by chance",
        ),
    ]  # fmt: skip
    if noise.beyond is not None and noise.by_chance is not None:
        note = f"of prefixes; {format_percent(noise.by_chance)} expected by chance"
        tiles.append(Tile(name="Beyond noise", value=format_percent(noise.beyond), note=note))
    return tuple(tiles)


def _moved(found: Comparison) -> tuple[Section, ...]:
    if not found.moved:
        return ()
    return (
        Section(
            anchor="moved",
            heading="Prefixes that moved most",
            intro=(
                "At most one prefix per problem. For each run: value ± standard deviation, correct / graded rollouts. "
                "The difference is in standard deviations. Among many prefixes, some differ much by chance."
            ),
            tables=(tables.moved_prefixes(found),),
        ),
    )
