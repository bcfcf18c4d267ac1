"""What is shown of a calibration: lines of remarks, key figures, and sections of tables and charts."""

from dataclasses import replace

from pipeline.analysis.calibrate.report import CalibrationReport, Reliability, ReliabilityBin
from pipeline.analysis.settings import CalibrateConfig
from pipeline.core.formatting import format_count
from pipeline.display.columns import cells, heads, table_of
from pipeline.display.document import Axis, Chart, ChartKind, Colour, Line, Mark, Page, Section, Table, sentence
from pipeline.display.numbers import count, interval, key_figure, number
from pipeline.display.page import foot
from pipeline.scorers.calibration import MapKind, PositionMap

KIND = "calibration of step scores"
_MAPS = 12
"""Maps that are drawn at most; the JSON file has all of them."""
WORDS = {
    MapKind.identity: "the scores as they are",
    MapKind.beta: "beta calibration",
    MapKind.isotonic: "isotonic regression",
}


def page_of(report: CalibrationReport, config: CalibrateConfig) -> Page:
    """The page, whose sections are also what the terminal shows."""
    before, after = report.total.before, report.total.after
    counted = [line for line in count_lines(report) if line[:9].strip()]
    maps = Section(
        anchor="maps",
        heading="Maps",
        intro="What score makes of a score with calibration=FILE. The band is the 95 % interval of V among prefixes with this "
        "score.",
        charts=tuple(map(_map_chart, report.calibration.maps[:_MAPS])),
    )
    return Page(
        title=report.calibration.made_from.model or report.scores,
        kind=KIND,
        verdict=(
            f"The scores are too high by {interval(before.bias, 3, '+')} on average. Calibrated, their expected calibration "
            f"error is {number(after.ece.value, 3)} instead of {number(before.ece.value, 3)}."
        ),
        details=tuple((line[:9].strip(), line[9:].strip()) for line in (*counted, *choice_lines(report))),
        notes=tuple(map(sentence, report.remarks)),
        figures=(
            key_figure("ECE before", before.ece),
            key_figure("ECE after", after.ece),
            key_figure("Brier score before", before.brier),
            key_figure("Brier score after", after.brier),
            replace(key_figure("Scores too high by", before.bias), value=number(before.bias.value, 3, "+")),
        ),
        sections=(*sections(report), maps),
        foot=foot("calibrate", {"scores": config.scores, "run_dir": config.run_dir, "out": config.out}),
    )


def lines(report: CalibrationReport) -> list[str]:
    """What was read, what was chosen and why, and what a reader must know of it."""
    return [*count_lines(report), *choice_lines(report), *(f"note      {remark}" for remark in report.remarks)]


def sections(report: CalibrationReport) -> tuple[Section, ...]:
    """The tables and charts, in order; those of the maps are the page's alone."""
    return (
        Section(
            anchor="reliability",
            heading="Are scores probabilities?",
            intro="V is the probability that this policy ends the chain right. It is not the probability that people call the "
            "step correct. 'Calibrated' are predictions of problems from maps that were fitted to others.",
            charts=(_reliability_chart(report),),
            tables=(_figures(report),),
        ),
        Section(anchor="steps", heading="By step", tables=(_groups(report),)),
    )


def count_lines(report: CalibrationReport) -> list[str]:
    """What was read and what of it counts."""
    counts, made = report.counts, report.calibration.made_from
    files = "" if len(report.files) == 1 else f" ({len(report.files):,} files)"
    others = (
        (counts.repeated, "repeated in another chain"),
        (counts.ends, "ends with an outcome"),
        (counts.unscored, "without a score"),
        (counts.unsampled, "without rollouts"),
        (counts.biased, "without an unbiased value"),
    )
    rest = "".join(f" + {number:,} {what}" for number, what in others if number)
    return [
        f"scores    {report.scores}{files}: {format_count(counts.scored, 'chain')}; by "
        f"{made.model or 'a model without a name'}",
        f"run       {made.run_dir}: {format_count(counts.chains, 'chain')} of these; policy {made.policy}, estimator "
        f"{made.estimator}",
        f"prefixes  {format_count(counts.steps, 'step')} = {counts.prefixes:,} prefixes that count{rest}",
        f"          of {format_count(counts.problems, 'problem')}, with {format_count(counts.rollouts, 'graded rollout')}",
        f"target    {report.target}",
    ]


def choice_lines(report: CalibrationReport) -> list[str]:
    """Which kind of map is taken, and why."""
    choice, gain = report.choice, interval(report.choice.gain, 4, "+")
    reason = f"its Brier score on other problems is {gain} better than that of the scores"
    if choice.kind is not choice.best:
        reason = (
            f"the best map, {WORDS[choice.best]}, gains {gain} of Brier score on other problems (below 0: it loses), which is "
            "no reliable gain"
        )
    return [f"map       {WORDS[choice.kind]}: {reason}"]


def _figures(report: CalibrationReport) -> Table:
    """Before and after: bias, ECE, Brier score and log loss."""
    total, ends = report.total, report.ends
    given = {} if report.given is None else {"as in the file": report.given}
    last = {} if ends is None else {"last steps: scores": ends.before, "... calibrated": ends.after}
    note = "" if ends is None else "V of a last step is the outcome of its chain. No map is fitted to last steps."
    return table_of("", Reliability, {"scores": total.before, **given, "calibrated": total.after, **last}, caption=note)


def _groups(report: CalibrationReport) -> Table:
    """Before and after by group of steps."""
    rows = []
    for group in report.groups:
        both = (group.before, group.after)
        counts = map(count, (group.before.prefixes, group.before.problems))
        biases, errors = (interval(each.bias, 3, "+") for each in both), (interval(each.ece, 3) for each in both)
        rows.append((group.name, *counts, *biases, *errors))
    names = ("steps", "prefixes", "problems", "too high by", "... calibrated", "ECE", "... calibrated")
    return Table(heads=names, rows=tuple(rows))


def _reliability_chart(report: CalibrationReport) -> Chart:
    """Mean value against mean prediction, before and after."""
    of_kinds = {"scores": report.total.before.bins, "calibrated": report.total.after.bins}
    bins = [(kind, each) for kind, found in of_kinds.items() for each in found]
    rows = ((kind, f"{each.low:.2f}-{each.high:.2f}", *cells(each)) for kind, each in bins)
    return Chart(
        title="V by score, before and after",
        reading="Mean V of the prefixes in each bin of scores, with its interval. On the dashed line scores are probabilities; "
        "below it they are too high.",
        kind=ChartKind.points,
        marks=tuple(Mark.of(each.prediction, each.value, kind) for kind, each in bins),
        x=Axis(title="mean score of the bin"),
        y=Axis(title="mean V"),
        groups={"scores": Colour.wrong, "calibrated": Colour.accent},
        line=Line.diagonal,
        numbers=Table(heads=("", "score", *heads(ReliabilityBin)), rows=tuple(rows), words=2),
    )


def _map_chart(found: PositionMap) -> Chart:
    points = list(zip(found.scores, found.values, found.low, found.high, strict=True))
    until = "and later ones" if found.last is None else f"to {found.last}"
    return Chart(
        title=f"Step {found.first}" if found.first == found.last else f"Steps {found.first} {until}",
        reading=f"From {found.prefixes:,} prefixes.",
        kind=ChartKind.lines,
        marks=tuple(Mark(x=score, y=value, low=low, high=high) for score, value, low, high in points),
        x=Axis(title="score"),
        y=Axis(title="V"),
        line=Line.diagonal,
        numbers=Table(
            heads=("score", "V", "low", "high"),
            rows=tuple((f"{score:.6f}", *(number(each, 3) for each in rest)) for score, *rest in points),
        ),
    )
