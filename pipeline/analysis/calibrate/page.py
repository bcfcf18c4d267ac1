"""The page of a calibration, with the parts and the machinery of the report's page: one file that loads nothing."""

from dataclasses import replace
from typing import Any

import altair as alt

from pipeline.analysis.calibrate.run import CalibrationReport
from pipeline.analysis.calibrate.tables import (
    choice_lines,
    count_lines,
    curve_table,
    figures_table,
    groups_table,
    signed,
)
from pipeline.analysis.report.page import (
    ACCENT,
    BY_OUTCOME,
    Figure,
    Page,
    Section,
    Table,
    Tile,
    chart_of,
    diagonal,
    ends,
    figure_tile,
    foot,
    html,
    rows_of,
    scale,
    sentence,
)
from pipeline.analysis.settings import CalibrateConfig
from pipeline.core.statistics import Interval
from pipeline.scorers.calibration import PositionMap

KIND = "calibration of step scores"
_LARGE = 300
_COLOURS = {"scores": BY_OUTCOME["wrong"], "calibrated": ACCENT}
_MAPS = 12
"""Maps that are drawn at most; the JSON file has all of them."""


def page_of(report: CalibrationReport, config: CalibrateConfig) -> bytes:
    """The content of the file."""
    made = report.calibration.made_from
    return html(
        Page(
            title=made.model or report.scores,
            kind=KIND,
            details=(
                *((line[:9].strip(), line[9:].strip()) for line in count_lines(report) if line[:9].strip()),
                ("map", choice_lines(report)[0][9:].strip()),
            ),
            banners=tuple(map(sentence, report.remarks)),
            tiles=_tiles(report),
            sections=(
                Section(
                    anchor="reliability",
                    heading="Are scores probabilities?",
                    intro="V is the probability that this policy ends the chain right. It is not the probability that people "
                    "call the step correct. 'Calibrated' are predictions of problems from maps that were fitted to others.",
                    figures=(_reliability_figure(report),),
                    tables=(figures_table(report),),
                ),
                Section(anchor="steps", heading="By step", tables=(groups_table(report),)),
                Section(
                    anchor="maps",
                    heading="Maps",
                    intro="What score makes of a score with calibration=FILE. The band is the 95 % interval of V among "
                    "prefixes with this score.",
                    figures=tuple(map(_map_figure, report.calibration.maps[:_MAPS])),
                ),
            ),
            foot=foot("calibrate", {"scores": config.scores, "run_dir": config.run_dir, "out": config.out}),
        )
    )


def _reliability_figure(report: CalibrationReport) -> Figure:
    """Mean value against mean prediction, before and after."""
    rows = [
        {"prediction": each.prediction, "kind": kind, **ends(each.value)}
        for kind, found in (("scores", report.total.before), ("calibrated", report.total.after))
        for each in found.bins
    ]
    unit = alt.Scale(domain=[0, 1])
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X("prediction:Q", title="mean score of the bin", scale=unit),
        color=alt.Color("kind:N", scale=scale(_COLOURS, set(_COLOURS)), sort=list(_COLOURS)),
    )
    rules = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=unit), y2="high:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(y=alt.Y("value:Q", title="mean V", scale=unit))
    before, after = curve_table(report.total.before), curve_table(report.total.after)
    numbers = Table(
        heads=("", *before.heads),
        rows=(*(("scores", *row) for row in before.rows), *(("calibrated", *row) for row in after.rows)),
        words=2,
    )
    return Figure(
        title="V by score, before and after",
        reading="Mean V of the prefixes in each bin of scores, with its interval. On the dashed line scores are "
        "probabilities; below it they are too high.",
        chart=chart_of(diagonal() + rules + points, height=_LARGE),
        numbers=numbers,
    )


def _map_figure(found: PositionMap) -> Figure:
    rows: list[dict[str, Any]] = [
        {"score": score, "value": value, "low": low, "high": high}
        for score, value, low, high in zip(found.scores, found.values, found.low, found.high, strict=True)
    ]
    unit = alt.Scale(domain=[0, 1])
    base = alt.Chart(rows_of(rows)).encode(x=alt.X("score:Q", title="score", scale=unit))
    band = base.mark_area(color=ACCENT, opacity=0.2).encode(y=alt.Y("low:Q", scale=unit), y2="high:Q")
    line = base.mark_line(color=ACCENT, strokeWidth=2.5).encode(y=alt.Y("value:Q", title="V", scale=unit))
    until = "and later ones" if found.last is None else f"to {found.last}"
    name = f"Step {found.first}" if found.first == found.last else f"Steps {found.first} {until}"
    return Figure(
        title=name,
        reading=f"From {found.prefixes:,} prefixes.",
        chart=chart_of(diagonal() + band + line),
        numbers=Table(
            heads=("score", "V", "low", "high"),
            rows=tuple(
                (f"{row['score']:.6f}", *(f"{row[name]:.3f}" for name in ("value", "low", "high"))) for row in rows
            ),
        ),
    )


def _tiles(report: CalibrationReport) -> tuple[Tile, ...]:
    before, after = report.total.before, report.total.after
    bias = signed(Interval(value=before.bias.value))
    return (
        figure_tile("ECE before", before.ece),
        figure_tile("ECE after", after.ece),
        figure_tile("Brier score before", before.brier),
        figure_tile("Brier score after", after.brier),
        replace(figure_tile("Scores too high by", before.bias), value=bias),
    )
