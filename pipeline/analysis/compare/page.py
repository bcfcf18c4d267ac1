"""A comparison as a page: one file that loads nothing, see `analysis.report.page`."""

from pipeline.analysis.compare import charts, tables
from pipeline.analysis.compare.compared import Comparison, Side
from pipeline.analysis.compare.verdict import interval, verdict
from pipeline.analysis.report.page import html
from pipeline.analysis.report.parts import Page, Section, Tile
from pipeline.core.words import percent

KIND = "comparison"


def page(found: Comparison, foot: tuple[str, ...]) -> bytes:
    """The file; `foot` says what made it."""
    figures = tuple(figure for figure in (charts.scatter(found), charts.by_position(found)) if figure)
    settings = (
        "What is not the same in the settings of the two runs." if found.differing else "All settings are the same."
    )
    return html(
        Page(
            title=_title(found),
            kind=KIND,
            facts=_facts(found),
            banners=(_sentence(verdict(found.shift, found.noise, found.flips)), *map(_sentence, tables.remarks(found))),
            tiles=_tiles(found),
            sections=(
                Section(
                    anchor="settings",
                    heading="Settings that differ",
                    intro=settings,
                    tables=(tables.settings(found),) if found.differing else (),
                ),
                Section(
                    anchor="values",
                    heading="Values",
                    intro="Each distinct prefix counts once; intervals take problems for independent, not their prefixes.",
                    tables=(tables.values(found),),
                    figures=figures,
                ),
                Section(
                    anchor="labels",
                    heading="Labels",
                    intro="Steps that chains share count once. Ends of chains, whose label is their answer's, are left out.",
                    tables=(tables.labels(found), tables.flipped(found)),
                ),
                *_moved(found),
                Section(anchor="cost", heading="Cost", tables=(tables.overlap(found), tables.cost(found))),
            ),
            foot=foot,
        )
    )  # fmt: skip


def _title(found: Comparison) -> str:
    names = [side.run_dir.rstrip("/").rpartition("/")[2] for side in (found.a, found.b)]
    return " and ".join(names if names[0] != names[1] else (found.a.run_dir, found.b.run_dir))


def _facts(found: Comparison) -> tuple[tuple[str, str], ...]:
    both = found.overlap
    common = f"{both.prefixes:,} prefixes with rollouts, {both.chains:,} chains, {both.problems:,} problems"
    return (("a", _made(found.a)), ("b", _made(found.b)), ("in common", common))


def _made(side: Side) -> str:
    return f"{side.run_dir}: {side.policy}; {side.estimator}, {side.label_rule}"


def _tiles(found: Comparison) -> tuple[Tile, ...]:
    shift, noise, flips = found.shift, found.noise, found.flips
    tiles = [
        Tile(
            name="Values, b - a",
            value="-" if shift.shift.value is None else f"{shift.shift.value:+.3f}",
            note=interval(shift.shift),
        ),
        Tile(
            name="Correlation",
            value="-" if shift.pearson.value is None else f"{shift.pearson.value:.2f}",
            note="" if noise.correlation.value is None else f"without noise {interval(noise.correlation, '')}",
        ),
        Tile(
            name="Labels that flip",
            value="-" if flips.flipped.value is None else percent(flips.flipped.value),
            note="" if flips.by_chance is None else f"by chance alone {percent(flips.by_chance)}",
        ),
    ]  # fmt: skip
    if noise.beyond is not None and noise.by_chance is not None:
        note = f"of prefixes; by chance alone {percent(noise.by_chance)}"
        tiles.append(Tile(name="Beyond noise", value=percent(noise.beyond), note=note))
    return tuple(tiles)


def _moved(found: Comparison) -> tuple[Section, ...]:
    if not found.moved:
        return ()
    return (
        Section(
            anchor="moved",
            heading="Prefixes that moved most",
            intro=(
                "At most one of a problem: posterior mean and standard deviation, right of all rollouts in each run, and how "
                "many standard deviations lie between. Among many prefixes some are far apart by chance."
            ),
            tables=(tables.moved(found),),
        ),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
