"""Prints a comparison of runs of `search` in the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.analysis.searches.coverage import COVERAGES
from pipeline.analysis.searches.equal_tokens import EqualTokens
from pipeline.analysis.searches.figures import RunFigures
from pipeline.analysis.searches.sentences import claim_sentences, start_sentences, trust_sentences
from pipeline.config.recorded_settings import SETTING_NAMES
from pipeline.core.formatting import format_count, format_number, format_percent, listed, plain_lines, printable
from pipeline.core.statistics import CONFIDENCE, Interval

_MOST_SETTINGS = 8
_WIDTH = 120
"""The widest table fits. A narrower terminal wraps lines, so no figure is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchComparison:
    """`problems`: those that all runs have; `left_out`: those that only some have. `differing`: settings besides those of the
    method in which the runs differ. `against`: the run whose chains best-of-k is made of, None without one."""

    problems: int
    left_out: int
    differing: tuple[str, ...]
    against: str | None
    runs: tuple[RunFigures, ...]


def print_comparison(found: SearchComparison, console: Console) -> None:
    """Print the counts, the tables of runs, equal tokens and coverage, and what trust is worth."""
    console.width = max(console.width, _WIDTH)
    for line in remarks(found):
        _print(console, line)
    _titled(
        console,
        f"choices of the searches, with {CONFIDENCE:.0%} intervals; means of a problem",
        _runs(found.runs),
    )
    equal = [(each.summary.name, each.equal_tokens) for each in found.runs if each.equal_tokens is not None]
    if equal and found.against is not None:
        title = f"accuracy against the best of k chains of {found.against}, where k chains cost as many tokens in all"
        _titled(console, title, _equal(equal))
    covered = [each for each in found.runs if each.coverage.points]
    if covered:
        _titled(console, "accuracy of the choices with the most confidence, by coverage", _coverage(covered))
    for each in found.runs:
        if each.coverage.trust is not None:
            _print(console, f"\ntrust in {each.summary.name}")
            for line in trust_sentences(each.coverage.trust, each.accept, calibrated=each.calibrated):
                _print(console, f"  {line}")


def remarks(found: SearchComparison) -> Iterator[str]:
    """The lines above the tables: problems, runs, and for how many searches accuracy is not claimed."""
    yield f"problems  {found.problems:,}{' that all runs have' if len(found.runs) > 1 else ''}"
    if found.left_out:
        yield f"          {found.left_out:,} more that only some runs have, left out"
    for each in found.runs:
        for sentence in claim_sentences(each.summary):
            yield f"          {each.summary.name}: {sentence}"
        for sentence in start_sentences(each.summary):
            yield f"          {each.summary.name}: {sentence}"
        if not each.coverage.points and each.coverage.searches:
            yield f"          {each.summary.name}: no confidence is stated, so there is no accuracy by coverage"
    if found.against is None:
        yield (
            "          no comparison at equal tokens: it needs a run of search=best_of_n with scores, without search.accept, "
            "and best with a large n, in searches=[...]"
        )
    if found.differing:
        more = len(found.differing) - _MOST_SETTINGS
        shown = [SETTING_NAMES.get(name, name) for name in found.differing[:_MOST_SETTINGS]]
        shown += [f"{more:,} more"] if more > 0 else []
        yield f"          the runs also differ in {listed(shown)}"


def _runs(runs: Sequence[RunFigures]) -> Table:
    tokens = ("policy\ntokens", "scorer\ntokens", "total\ntokens")
    table = _table("run", "method", "n", "chains", "accuracy", *tokens, "seconds")
    for each in runs:
        of = each.summary
        table.add_row(
            *(Text(printable(name)) for name in (of.name, of.method)),
            f"{of.n:,}",
            format_number(of.chains, 1),
            cell(of.accuracy),
            *(f"{count:,.0f}" for count in (of.policy_tokens, of.scorer_tokens, of.total_tokens)),
            format_number(of.seconds, 1),
        )
    return table


def _equal(runs: Sequence[tuple[str, EqualTokens]]) -> Table:
    table = _table("run", "total\ntokens", "k", "problems", "accuracy", "best of k", "difference")
    for name, of in runs:
        figures: list[str | Text] = (
            [f"{of.problems:,}", cell(of.accuracy), cell(of.best_of_k), cell(of.difference, sign="+")]
            if of.in_range
            else ["", "", "", Text(_out_of_range(of))]
        )
        table.add_row(Text(printable(name)), f"{of.tokens:,.0f}", f"{of.k:,.2f}", *figures)
    return table


def _out_of_range(of: EqualTokens) -> str:
    if of.k < 1:
        return f"out of range: one chain costs {of.tokens / of.k:,.0f}" if of.most else "out of range: no chains"
    return f"out of range: {format_count(of.most, 'chain')} cost {of.most_tokens:,.0f}"


def _coverage(runs: Sequence[RunFigures]) -> Table:
    table = _table("run", *(format_percent(each) for each in COVERAGES))
    for each in runs:
        table.add_row(Text(printable(each.summary.name)), *(cell(point.accuracy) for point in each.coverage.points))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in ("run", "method") else "right", no_wrap=True)
    return table


def _titled(console: Console, title: str, table: Table) -> None:
    _print(console, "")
    _print(console, title)
    console.print(table)


def _print(console: Console, line: str) -> None:
    console.print(Text(plain_lines(line)), soft_wrap=True)


def cell(estimate: Interval, sign: str = "") -> Text:
    """A figure with its interval below it; a dash where it has no value. `sign`: `+` for a difference."""
    if estimate.value is None:
        return Text("-")
    value = rounded(estimate.value, 3, sign)
    if estimate.low is None or estimate.high is None:
        return Text(value)
    return Text(f"{value}\n{rounded(estimate.low, 2, sign)} {rounded(estimate.high, 2, sign)}")


def rounded(value: float, digits: int, sign: str = "") -> str:
    """A value that rounds to 0 has no sign."""
    return f"{value:{sign if round(value, digits) else ''}z.{digits}f}"
