"""How a comparison is told: lines and tables for people, an object for JSON."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from pipeline.analysis.select.compared import AGAINST, Method, Row
from pipeline.analysis.select.read import Known
from pipeline.analysis.select.settings import SelectConfig
from pipeline.core.statistics import CONFIDENCE, RESAMPLES, Estimated

_NAMES = {
    Method.prm: "PRM",
    Method.weighted: "weighted\nvote",
    Method.majority: "majority\nvote",
    Method.orm: "ORM",
    Method.random: "random",
    Method.oracle: "bound",
}


def facts(model: str, found: Known, rows: Sequence[Row]) -> list[str]:
    """What the candidates are, and what of them a reader has to know."""
    fewest, most = min(found.counts), max(found.counts)
    each = f"{most}" if fewest == most else f"{fewest} to {most}"
    few = [(row.short, f"have fewer than {row.n} candidates: all of theirs compete") for row in rows]
    said = [
        (found.unknown, "more have no known answer and are left out"),
        (
            found.absent,
            "more have chains in the run and none in scores, as sampling.keep=mixed has it, and are left out",
        ),
        *few,
        (found.unjudged, "candidates have no outcome and count as wrong"),
        (found.empty, "draws of the run are empty and count as wrong"),
        (found.unscored, "candidates have no score and rank last"),
        (found.outcome_unscored, "candidates have no outcome score and rank last for the ORM"),
    ]
    return [
        f"scores    by {model or 'a model without a name'}",
        f"problems  {len(found.contests):,} with {each} candidates, {sum(found.counts):,} in all",
        *(f"          {count:,} {what}" for count, what in said if count),
    ]


def accuracy_table(rows: Sequence[Row]) -> Table:
    """Accuracy by method, a row for each n, intervals below the means."""
    methods = [method for method in Method if method in rows[0].accuracy]
    table = _table(methods)
    for row in rows:
        table.add_row(str(row.n), *(_shown(row.accuracy[method]) for method in methods))
    return table


def lead_table(rows: Sequence[Row]) -> Table:
    """By how much best-of-n by the PRM exceeds the others, over the same problems."""
    rivals = [method for method in AGAINST if method in rows[0].ahead]
    table = _table(rivals)
    for row in rows:
        table.add_row(str(row.n), *(_shown(row.ahead[rival], sign="+") for rival in rivals))
    return table


def record(config: SelectConfig, model: str, found: Known, rows: Sequence[Row]) -> dict[str, object]:
    """All of it as one object; an interval without ends is null."""
    return {
        "scores": config.scores,
        "outcome_scores": config.outcome_scores,
        "run_dir": config.run_dir,
        "aggregation": config.aggregation.value if config.aggregation else None,
        "model": model,
        "problems": len(found.contests),
        "unknown": found.unknown,
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


def _table(methods: Sequence[Method]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("n", justify="right", no_wrap=True)
    for method in methods:
        table.add_column(_NAMES[method], justify="right", no_wrap=True)
    return table


def _plain(estimates: Mapping[Method, Estimated]) -> dict[str, dict[str, float | None]]:
    return {
        method.value: {"mean": estimate.value, "low": estimate.low, "high": estimate.high}
        for method, estimate in estimates.items()
    }


def _shown(estimate: Estimated, sign: str = "") -> Text:
    mean = _rounded(estimate.value, 3, sign)
    if estimate.low is None or estimate.high is None:
        return Text(mean)
    return Text(f"{mean}\n{_rounded(estimate.low, 2, sign)} {_rounded(estimate.high, 2, sign)}")


def _rounded(value: float, digits: int, sign: str) -> str:
    """Without the sign that rounding errors give to 0."""
    return f"{value:{sign if round(value, digits) else ''}z.{digits}f}"
