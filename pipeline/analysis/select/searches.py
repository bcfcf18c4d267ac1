"""`select searches=[...]`: reads runs of `search`, compares them, and prints and writes the figures."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

import polars as pl

from pipeline.analysis.comparison import CONFIDENCE, RESAMPLES
from pipeline.analysis.searches.equal_tokens import at_equal_tokens
from pipeline.analysis.searches.figures import COVERAGES, EqualTokens, RunFigures, SearchRun, run_figures
from pipeline.analysis.searches.read import finished_searches, search_run
from pipeline.analysis.searches.sentences import claim_sentences, start_sentences, trust_sentences
from pipeline.analysis.settings import SelectConfig
from pipeline.config.recorded_settings import SETTING_NAMES
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count, format_number, format_percent, listed, printable
from pipeline.display.document import Part, Table
from pipeline.display.numbers import below
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting
from pipeline.storage.stored_search import stored_search

_OWN = ("search.", "staged_input")
"""Settings in which runs that are compared differ as a matter of course."""
_MOST_SETTINGS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchComparison:
    """`problems`: those that all runs have; `left_out`: those that only some have. `differing`: settings besides those of the
    method in which the runs differ. `against`: the run whose chains best-of-k is made of, None without one."""

    problems: int
    left_out: int
    differing: tuple[str, ...]
    against: str | None
    runs: tuple[RunFigures, ...]


def select_searches(config: SelectConfig) -> Iterator[Part]:
    """Compare the runs, and write the figures. Returns what is printed. Raises UsageError for what is no finished run of
    `search` and for runs without a common problem; and StoreError."""
    folders = list(config.searches)
    if config.out is not None:
        out = Path(config.out)
        check_output_file("out", out)
        refuse_overwriting({"out": out}, [folder_at(folder) for folder in folders])
    runs = _runs(folders)
    found = compare_searches(runs, config.seed)
    if not found.problems:
        raise UsageError(
            f"searches={folders}: no problem is in all runs, so there is nothing to compare: name runs on the same problems"
        )
    for folder, run in zip(folders, runs, strict=True):
        yield f"{run.name}: {printable(folder)}"
    yield from comparison_parts(found)
    if config.out is not None:
        with atomic_file(Path(config.out)) as file:
            file.write(f"{json.dumps(record(config, found), indent=1)}\n".encode())
        yield f"\nfigures   {config.out}"


def compare_searches(runs: Sequence[SearchRun], seed: int) -> SearchComparison:
    """Compare runs on the problems that all of them have. Best-of-k is made of the first run with independent, scored chains.
    Nothing is said of the runs if they have no problem in common."""
    sets = [set(run.searches["problem_id"]) for run in runs]
    common = set.intersection(*sets)
    of_all = pl.col("problem_id").is_in(sorted(common))
    kept = [replace(run, searches=run.searches.filter(of_all)) for run in runs]
    chains = next((run for run in kept if run.independent and run.scored), None)
    figures = []
    for run in kept if common else ():
        # Nothing says what chains of the input cost.
        apart = chains is None or run is chains or run.given
        figures.append(run_figures(run, seed, None if apart or chains is None else at_equal_tokens(run, chains, seed)))
    return SearchComparison(
        problems=len(common),
        left_out=len(set.union(*sets) - common),
        differing=_differing([run.settings for run in runs]),
        against=None if chains is None else chains.name,
        runs=tuple(figures),
    )


def _differing(settings: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """The settings that all runs have, and not alike. A run that needs no scorer has no settings of one."""
    keys = sorted(key for key in set.intersection(*(set(each) for each in settings)) if not key.startswith(_OWN))
    return tuple(key for key in keys if len({repr(each[key]) for each in settings}) > 1)


def record(config: SelectConfig, found: SearchComparison) -> dict[str, object]:
    """The figures as one JSON object. A missing value, or end of an interval, is null."""
    return {
        "searches": list(config.searches),
        "confidence": CONFIDENCE,
        "resamples": RESAMPLES,
        "seed": config.seed,
        **asdict(found),
    }


def short_names(folders: Sequence[str]) -> list[str]:
    """A short name of each folder: as many of its last parts as tell all of them apart. Raises UsageError for equal ones."""
    paths = [PurePosixPath(str(folder_at(folder)) if "://" not in folder else folder).parts for folder in folders]
    if len(set(paths)) < len(paths):
        raise UsageError(f"searches={list(folders)} names a run twice: name it once")
    parts = next(
        parts for parts in range(1, max(map(len, paths)) + 1) if len({path[-parts:] for path in paths}) == len(paths)
    )
    return ["/".join(path[-parts:]) for path in paths]


def _runs(folders: Sequence[str]) -> list[SearchRun]:
    names = map(printable, short_names(folders))
    found = [stored_search(storage_at(folder)) for folder in folders]
    runs = [search_run(each, name, finished_searches(each)) for each, name in zip(found, names, strict=True)]
    for folder, run in zip(folders, runs, strict=True):
        if run.searches.is_empty():
            raise UsageError(f"{folder} has no problems")
    return runs


def comparison_parts(found: SearchComparison) -> Iterator[Part]:
    """The counts, the tables of runs, equal tokens and coverage, and what trust is worth."""
    yield from remarks(found)
    yield from _tables(found)
    for each in found.runs:
        if each.coverage.trust is not None:
            yield f"\ntrust in {each.summary.name}"
            said = trust_sentences(each.coverage.trust, each.accept, calibrated=each.calibrated)
            yield from (f"  {line}" for line in said)


def _tables(found: SearchComparison) -> Iterator[Table]:
    yield _run_table(found.runs)
    equal = [(each.summary.name, each.equal_tokens) for each in found.runs if each.equal_tokens is not None]
    if equal and found.against is not None:
        yield _equal(equal, found.against)
    covered = [each for each in found.runs if each.coverage.points]
    rows = ((printable(each.summary.name), *(below(at.accuracy) for at in each.coverage.points)) for each in covered)
    if covered:
        title = "accuracy of the choices with the most confidence, by coverage"
        yield Table(title=title, heads=("run", *map(format_percent, COVERAGES)), rows=tuple(rows))


def remarks(found: SearchComparison) -> Iterator[str]:
    """The lines above the tables: problems, runs, and for how many searches accuracy is not claimed."""
    yield f"problems  {found.problems:,}{' that all runs have' if len(found.runs) > 1 else ''}"
    if found.left_out:
        yield f"          {found.left_out:,} more that only some runs have, left out"
    for each in found.runs:
        for sentence in (*claim_sentences(each.summary), *start_sentences(each.summary)):
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


def _run_table(runs: Sequence[RunFigures]) -> Table:
    tokens = ("policy\ntokens", "scorer\ntokens", "total\ntokens")
    return Table(
        title=f"choices of the searches, with {CONFIDENCE:.0%} intervals; means of a problem",
        heads=("run", "method", "n", "chains", "accuracy", *tokens, "seconds"),
        rows=tuple(
            (
                *map(printable, (of.name, of.method)),
                f"{of.n:,}",
                format_number(of.chains, 1),
                below(of.accuracy),
                *(f"{count:,.0f}" for count in (of.policy_tokens, of.scorer_tokens, of.total_tokens)),
                format_number(of.seconds, 1),
            )
            for of in (each.summary for each in runs)
        ),
        words=2,
    )


def _equal(runs: Sequence[tuple[str, EqualTokens]], against: str) -> Table:
    rows = []
    for name, of in runs:
        figures = (f"{of.problems:,}", *map(below, (of.accuracy, of.best_of_k)), below(of.difference, "+"))
        shown = figures if of.in_range else ("", "", "", _out_of_range(of))
        rows.append((printable(name), f"{of.tokens:,.0f}", f"{of.k:,.2f}", *shown))
    return Table(
        title=f"accuracy against the best of k chains of {against}, where k chains cost as many tokens in all",
        heads=("run", "total\ntokens", "k", "problems", "accuracy", "best of k", "difference"),
        rows=tuple(rows),
    )


def _out_of_range(of: EqualTokens) -> str:
    if of.k < 1:
        return f"out of range: one chain costs {of.tokens / of.k:,.0f}" if of.most else "out of range: no chains"
    return f"out of range: {format_count(of.most, 'chain')} cost {of.most_tokens:,.0f}"
