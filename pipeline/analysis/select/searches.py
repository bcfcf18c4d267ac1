"""`select searches=[...]`: reads runs of `search`, compares them, and prints and writes the figures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath

import polars as pl
from rich.console import Console
from rich.text import Text

from pipeline.analysis.searches.equal_tokens import at_equal_tokens
from pipeline.analysis.searches.figures import run_figures
from pipeline.analysis.searches.read import finished_searches, search_run
from pipeline.analysis.searches.records import SearchRun
from pipeline.analysis.select.search_tables import SearchComparison, print_comparison
from pipeline.analysis.settings import SelectConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import plain_lines, printable
from pipeline.core.statistics import CONFIDENCE, RESAMPLES
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting
from pipeline.storage.stored_search import stored_search

_OWN = ("search.", "staged_input")
"""Settings in which runs that are compared differ as a matter of course."""


def select_searches(config: SelectConfig, console: Console) -> None:
    """Compare the runs, and print and write the figures. Raises UsageError for what is no finished run of `search` and for runs
    without a common problem; and StoreError."""
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
        console.print(Text(f"{run.name}: {printable(folder)}"), soft_wrap=True)
    print_comparison(found, console)
    if config.out is not None:
        with atomic_file(Path(config.out)) as file:
            file.write(f"{json.dumps(record(config, found), indent=1)}\n".encode())
        console.print(Text(plain_lines(f"\nfigures   {config.out}")), soft_wrap=True)


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
