"""`select searches=[...]`: reads runs of `search`, compares them, and prints and writes the figures."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath

from rich.console import Console
from rich.text import Text

from pipeline.analysis.searches.comparison import (
    SearchComparison,
    best_of_k_from,
    compare_searches,
    on_common_problems,
)
from pipeline.analysis.searches.read import search_run
from pipeline.analysis.searches.records import SearchRun
from pipeline.analysis.select.search_tables import print_comparison
from pipeline.analysis.settings import SelectConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import plain_lines, printable
from pipeline.core.statistics import CONFIDENCE, RESAMPLES
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting
from pipeline.storage.stored_search import stored_search


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
    return compare_searches(compared, against, config.n, config.seed)
