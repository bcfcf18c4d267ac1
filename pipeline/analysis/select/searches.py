"""`select searches=[...]`: reads runs of `search`, compares them, and prints and writes the figures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath

from rich.console import Console
from rich.text import Text

from pipeline.analysis.searches.equal_tokens import at_equal_tokens
from pipeline.analysis.searches.figures import run_figures
from pipeline.analysis.searches.read import SearchRun, search_run
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
    """Compare the runs, and print and write the figures. Raises UsageError for what is no finished run of `search`, for runs
    without a common problem and for an `against` that best-of-k cannot be made of; and StoreError."""
    names = list(config.searches)
    folders = [*names, *([] if config.against in (None, *names) else [str(config.against)])]
    if config.out is not None:
        out = Path(config.out)
        check_output_file("out", out)
        refuse_overwriting({"out": out}, [folder_at(folder) for folder in folders])
    runs = _runs(folders)
    found = _compared(runs, names, config)
    for folder, run in runs.items():
        console.print(Text(f"{run.name}: {printable(folder)}"), soft_wrap=True)
    print_comparison(found, console)
    if config.out is not None:
        with atomic_file(Path(config.out)) as file:
            file.write(f"{json.dumps(record(config, found), indent=1)}\n".encode())
        console.print(Text(plain_lines(f"\nfigures   {config.out}")), soft_wrap=True)


def on_common_problems(runs: Sequence[SearchRun]) -> tuple[list[SearchRun], int]:
    """The runs with the searches of those problems that all of them have, and how many problems are left out."""
    sets = [set(run.problem_ids) for run in runs]
    common = set.intersection(*sets)
    kept = [replace(run, searches=tuple(each for each in run.searches if each.problem_id in common)) for run in runs]
    return kept, len(set.union(*sets) - common)


def best_of_k_from(runs: Sequence[SearchRun]) -> SearchRun | None:
    """The first run that best-of-k can be made of: with independent, scored chains."""
    return next((run for run in runs if run.independent and run.scored), None)


def compare_searches(runs: Sequence[SearchRun], against: SearchRun | None, seed: int) -> SearchComparison:
    """Compare runs. `against`: the run of independent, scored chains that best-of-k is made of; it need not be among `runs`.

    Raises ValueError if the runs have no problem in common.
    """
    every = [*runs, *([] if against is None or against in runs else [against])]
    kept, left_out = on_common_problems(every)
    if not kept[0].searches:
        raise ValueError("the runs have no problem in common")
    chains = None if against is None else kept[every.index(against)]
    figures = []
    for run in kept[: len(runs)]:
        # Nothing says what chains of the input cost.
        apart = chains is None or run is chains or run.given
        figures.append(run_figures(run, seed, None if apart or chains is None else at_equal_tokens(run, chains, seed)))
    return SearchComparison(
        problems=len(set(kept[0].problem_ids)),
        left_out=left_out,
        differing=_differing([run.settings for run in kept]),
        against=None if against is None else against.name,
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


def _runs(folders: Sequence[str]) -> dict[str, SearchRun]:
    names = dict(zip(folders, map(printable, short_names(folders)), strict=True))
    runs = {folder: search_run(stored_search(storage_at(folder)), names[folder]) for folder in folders}
    for folder, run in runs.items():
        if not run.searches:
            raise UsageError(f"{folder} has no problems")
    return runs


def _compared(runs: dict[str, SearchRun], names: Sequence[str], config: SelectConfig) -> SearchComparison:
    if not on_common_problems(list(runs.values()))[0][0].searches:
        raise UsageError(
            f"searches={list(names)}: no problem is in all runs, so there is nothing to compare: name runs on the same problems"
        )
    compared = [runs[name] for name in names]
    against = best_of_k_from(compared) if config.against is None else runs[config.against]
    if against is not None and not (against.independent and against.scored):
        raise UsageError(
            f"against={config.against}: the best of k chains needs chains that were sampled whole, without regard to each "
            "other, and scored: name a run of search=best_of_n without search.accept"
        )
    return compare_searches(compared, against, config.seed)
