"""The `select` command: reads scores, writes the best chains, and prints and writes the comparison of selection methods."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipeline.analysis.comparison import CONFIDENCE, RESAMPLES
from pipeline.analysis.searches.sentences import READABLE, UNREADABLE
from pipeline.analysis.select.methods import Method, SizeResult, compare_methods, has_any
from pipeline.analysis.select.read import SCORE, KnownAnswers, best_chain_lines, match_answers, read_scores
from pipeline.analysis.select.searches import select_searches
from pipeline.analysis.settings import SelectConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.core.statistics import Interval
from pipeline.display.document import Part, Table
from pipeline.display.numbers import below
from pipeline.storage.location import folder_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting

SIZES = (1, 2, 4, 8, 16)
"""Numbers of candidates that are chosen from where the settings name none."""
_NAMES = {
    Method.prm: "PRM",
    Method.weighted: "weighted\nvote",
    Method.majority: "majority\nvote",
    Method.orm: "ORM",
    Method.random: "random",
    Method.oracle: "bound",
}


def select(config: SelectConfig) -> Iterator[Part]:
    """Write the best chains, compare the selection methods, and write the figures; or compare runs of `search`. Returns what is
    printed. Raises InputError, UsageError and StoreError."""
    if config.searches:
        yield from select_searches(config)
        return
    _check_outputs(config)
    candidates = read_scores(config)
    if config.best is not None:
        _write(config.best, best_chain_lines(candidates))
        yield f"chosen    {config.best}"
    if config.best is not None and config.out is None and not candidates.has_answers:
        yield "No problem has a known answer: there is nothing to compare."
        return
    found = match_answers(candidates, config)
    rows = compare_methods(found.candidates, _sizes(config.n or SIZES, max(found.counts)), config.seed)
    yield from remarks(candidates.model, found, rows, candidates.search)
    yield from tables(rows)
    if config.out is not None:
        _write(config.out, [f"{json.dumps(record(config, candidates.model, found, rows), indent=1)}\n".encode()])
        yield f"figures   {config.out}"


def remarks(model: str, found: KnownAnswers, rows: Sequence[SizeResult], search: str | None = None) -> list[str]:
    """The lines above the tables: the model, the number of problems and candidates, and remarks on missing data. `search`: what
    the search is that found the candidates."""
    fewest, most = min(found.counts), max(found.counts)
    each = f"{most}" if fewest == most else f"{fewest} to {most}"
    scored = has_any(found.candidates, SCORE)
    absent = "more with chains in the run but none in the scores, left out (for example after sampling.keep=mixed)"
    empty = "of the run's draws empty" if search is None else "without a chain"
    said = [
        (found.unknown, "more without a known answer, left out"),
        (found.unreadable, f"more with {UNREADABLE}, left out: {READABLE}"),
        (found.absent, absent),
        *((row.short, f"with fewer than {row.n} candidates, of which all compete") for row in rows),
        (found.unjudged, "of the candidates without an outcome, counted as wrong"),
        (found.empty, f"{empty}, counted as wrong"),
        (found.unscored if scored else 0, "of the candidates without a score, ranked last"),
        (found.outcome_unscored, "of the candidates without an outcome score, ranked last for the ORM"),
    ]
    by = f"by {model or 'a model without a name'}"
    return [
        f"scores    {by if scored else 'none: no candidate has one, so only choices without scores are compared'}",
        f"problems  {len(found.counts):,}, with {format_count(sum(found.counts), 'candidate')} in all ({each} each)",
        *(f"          {count:,} {what}" for count, what in said if count),
        *([] if search is None else [f"search    {search}: the tables choose among its candidates in other ways"]),
    ]


def tables(rows: Sequence[SizeResult]) -> Iterator[Table]:
    """Accuracy by method, one row per n; and accuracy of best-of-n by the PRM minus that of each other method, over the same
    problems. Intervals stand below the means."""

    def table(title: str, figures: Sequence[Mapping[Method, Interval]], sign: str) -> Table:
        cells = (
            (str(row.n), *(below(each, sign) for each in of.values())) for row, of in zip(rows, figures, strict=True)
        )
        return Table(title=title, heads=("n", *(_NAMES[each] for each in figures[0])), rows=tuple(cells), words=0)

    accuracy = f"accuracy of the choice among n candidates, with {CONFIDENCE:.0%} intervals"
    yield table(accuracy, [row.accuracy for row in rows], "")
    if rows[0].ahead:
        yield table("accuracy of PRM best-of-n minus accuracy of each method", [row.ahead for row in rows], "+")


def record(config: SelectConfig, model: str, found: KnownAnswers, rows: Sequence[SizeResult]) -> dict[str, object]:
    """The figures as one JSON object. A missing end of an interval is null."""
    return {
        "scores": config.scores,
        "outcome_scores": config.outcome_scores,
        "run_dir": config.run_dir,
        "aggregation": config.aggregation.value if config.aggregation else None,
        "model": model,
        "problems": len(found.counts),
        "unknown": found.unknown,
        "unreadable": found.unreadable,
        "absent": found.absent,
        "candidates": sum(found.counts),
        "unjudged": found.unjudged,
        "empty": found.empty,
        "unscored": found.unscored,
        "outcome_unscored": found.outcome_unscored,
        "confidence": CONFIDENCE,
        "resamples": RESAMPLES,
        "seed": config.seed,
        "selections": [
            {"n": row.n, "short": row.short, "accuracy": _plain(row.accuracy), "prm_ahead_of": _plain(row.ahead)}
            for row in rows
        ],
    }


def _sizes(wanted: Sequence[int], most: int) -> list[int]:
    """The sizes in `wanted` that at least one problem has enough candidates for. Raises UsageError without any."""
    possible = sorted({n for n in wanted if n <= most})
    if not possible:
        raise UsageError(f"n={list(wanted)}: no problem has more than {most} candidates; use n=[{most}] or less")
    return possible


def _check_outputs(config: SelectConfig) -> None:
    named = (("best", config.best), ("out", config.out))
    outputs = {key: Path(name) for key, name in named if name is not None}
    for key, path in outputs.items():
        check_output_file(key, path)
    inputs = [Path(name) for name in (config.scores, config.outcome_scores) if name is not None]
    refuse_overwriting(outputs, inputs if config.run_dir is None else [*inputs, folder_at(config.run_dir)])


def _write(name: str, lines: Sequence[bytes]) -> None:
    with atomic_file(Path(name)) as file:
        file.writelines(lines)


def _plain(estimates: Mapping[Method, Interval]) -> dict[str, dict[str, float | None]]:
    return {
        method.value: {"mean": estimate.value, "low": estimate.low, "high": estimate.high}
        for method, estimate in estimates.items()
    }
