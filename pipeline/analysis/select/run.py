"""The `select` command: read, compare, choose, write."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from pipeline.analysis.select.chosen import chosen_lines
from pipeline.analysis.select.compared import compared
from pipeline.analysis.select.read import known, scored
from pipeline.analysis.select.settings import SelectConfig
from pipeline.analysis.select.told import accuracy_table, facts, lead_table, record
from pipeline.core.errors import UsageError
from pipeline.core.statistics import CONFIDENCE
from pipeline.storage.files import check_output_file, refuse_overwriting, replaced_at_end
from pipeline.storage.place import folder_at


def select(config: SelectConfig, console: Console) -> None:
    """Write the best chains; compare ways to choose, print and write what came out. Raises InputError, UsageError and
    StoreError."""
    _check_outputs(config)
    candidates = scored(config)
    if config.best is not None:
        _write(config.best, chosen_lines(candidates))
        console.print(Text(f"chosen    {config.best}"), soft_wrap=True)
    if config.best is not None and config.out is None and not candidates.has_answers:
        console.print(Text("No problem has a known answer: there is nothing to compare."), soft_wrap=True)
        return
    found = known(candidates, config)
    rows = compared(found.contests, _sizes(config.n, max(found.counts)), config.seed)
    for line in facts(candidates.model, found, rows):
        console.print(Text(line), soft_wrap=True)
    console.print(f"\naccuracy of a choice among n candidates, with {CONFIDENCE:.0%} intervals", soft_wrap=True)
    console.print(accuracy_table(rows))
    console.print("\nby how much PRM best-of-n exceeds it", soft_wrap=True)
    console.print(lead_table(rows))
    if config.out is not None:
        _write(config.out, [f"{json.dumps(record(config, candidates.model, found, rows), indent=1)}\n".encode()])
        console.print(Text(f"figures   {config.out}"), soft_wrap=True)


def _sizes(wanted: Sequence[int], most: int) -> list[int]:
    """Those of `wanted` that some problem has candidates for."""
    possible = sorted({n for n in wanted if n <= most})
    if not possible:
        raise UsageError(f"n={list(wanted)}: no problem has more than {most} candidates; ask for n=[{most}] or less")
    return possible


def _check_outputs(config: SelectConfig) -> None:
    named = (("best", config.best), ("out", config.out))
    outputs = {key: Path(name) for key, name in named if name is not None}
    for key, path in outputs.items():
        check_output_file(key, path)
    inputs = [Path(name) for name in (config.scores, config.outcome_scores) if name is not None]
    refuse_overwriting(outputs, inputs if config.run_dir is None else [*inputs, folder_at(config.run_dir)])


def _write(name: str, lines: Sequence[bytes]) -> None:
    with replaced_at_end(Path(name)) as file:
        file.writelines(lines)
