"""Which rollouts are shown as examples: a few of each prefix of the chains, and of as many prefixes as fit. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import polars as pl

from pipeline.analysis.browser.parts import short
from pipeline.core.records import UNGRADED, Finish, Verdict
from pipeline.display.embedded import shortened

PER_PREFIX = 3
CHARACTERS = 400
"""Characters of a rollout's text."""
ROLLOUT_COLUMNS = ("rollout_id", "prefix_id", "issue_index", "text", "finish", "n_tokens", "answer", "verdict")
"""Columns of `rollouts` that are read."""
_DIGITS = 9
"""Decimals of a drop, so that 0.9 - 0.8 and 0.8 - 0.7 are equal despite rounding."""
_OTHER_BYTES = 60
"""Bytes of an example besides its texts."""
_RIGHT, _WRONG, _OPEN = range(3)
_UNSERVED = [Finish.ABORT.value, Finish.TOO_LONG.value, Finish.ENGINE_FAILED.value]

Row = Mapping[str, Any]
"""A chain: a row of `labels`."""


class Drop(NamedTuple):
    """How far a step's value is below the last known value, that of `before`. Steps count from 1; 0 is the bare problem."""

    size: float
    step: int
    before: int


class RolloutExample(NamedTuple):
    """A rollout as it is shown, with its text cut."""

    verdict: str
    finish: str
    n_tokens: int
    answer: str
    text: str

    @property
    def size(self) -> int:
        """Approximate bytes before compression."""
        return len(self.text.encode()) + len(self.answer.encode()) + _OTHER_BYTES


Examples = Mapping[str, Sequence[RolloutExample]]
"""By prefix id."""


def along(chain: Row, name: str) -> list[Any]:
    """What a column says of the bare problem, then of each step."""
    return [chain[f"root_{name}"], *chain[name]]


def prefixes(chain: Row) -> list[str]:
    """The ids of its prefixes, the bare problem first."""
    return [chain["root_prefix_id"], *chain["prefix_ids"]]


def drops(chain: Row) -> Iterator[Drop]:
    """The drops of the chain, from the bare problem on. Steps without a value are skipped."""
    known = [(value, step) for step, value in enumerate(along(chain, "value")) if value is not None]
    for (before, above), (value, step) in pairwise(known):
        if value < before:
            yield Drop(size=round(before - value, _DIGITS), step=step, before=above)


def largest_drop(chain: Row) -> Drop | None:
    """The largest drop, the first of equal ones; None if the value never falls."""
    return max(drops(chain), key=lambda drop: drop.size, default=None)


def rollout_examples(rollouts: pl.DataFrame, verdicts: pl.DataFrame | None, of: Iterable[str]) -> Examples:
    """Up to `PER_PREFIX` rollouts of each prefix of `of`: first a correct one, an incorrect one and one that was cut or not
    graded, if there are any, then others in the order of the log. `verdicts` replace those of the log; the table has one row
    per rollout."""
    found = rollouts.filter(pl.col("prefix_id").is_in(list(of)))
    if verdicts is not None:
        later = verdicts.select("rollout_id", "answer", "verdict")
        found = found.drop("answer", "verdict").join(later, on="rollout_id", how="left", validate="1:1")
    kind = (
        pl.when((pl.col("finish") == Finish.LENGTH) | pl.col("finish").is_in(_UNSERVED))
        .then(pl.lit(_OPEN))
        .when(pl.col("verdict").is_in([verdict.value for verdict in UNGRADED]))
        .then(pl.lit(_OPEN))
        .when(pl.col("verdict") == Verdict.CORRECT)
        .then(pl.lit(_RIGHT))
        .otherwise(pl.lit(_WRONG))
    )
    chosen = (
        found.with_columns(pl.col("finish", "verdict").cast(pl.String))
        .with_columns(kind=kind)
        .sort("prefix_id", "kind", "issue_index")
        .with_columns(turn=pl.int_range(pl.len()).over("prefix_id", "kind"))
        .sort("prefix_id", "turn", "kind")
        .group_by("prefix_id", maintain_order=True)
        .head(PER_PREFIX)
    )
    by_prefix: dict[str, list[RolloutExample]] = {}
    for row in chosen.iter_rows(named=True):
        example = RolloutExample(
            verdict=row["verdict"],
            finish=row["finish"],
            n_tokens=row["n_tokens"],
            answer=short(row["answer"], "rollouts"),
            text=shortened(row["text"], CHARACTERS, "rollouts"),
        )
        by_prefix.setdefault(row["prefix_id"], []).append(example)
    return by_prefix


def affordable(chains: Sequence[Row], found: Examples, left: float) -> Examples:
    """Examples of the prefixes that matter most to a reader, as many as fit into `left` bytes: first of the steps with the
    largest drops and of the steps before them, largest drop first, then of the prefixes with the most uncertain values."""
    afforded: dict[str, Sequence[RolloutExample]] = {}
    for prefix in _by_interest(chains):
        if prefix in afforded or prefix not in found:
            continue
        left -= sum(example.size for example in found[prefix])
        if left < 0:
            break
        afforded[prefix] = found[prefix]
    return afforded


def _by_interest(chains: Sequence[Row]) -> Iterator[str]:
    lost = [(drop, chain) for chain in chains if (drop := largest_drop(chain))]
    for drop, chain in sorted(lost, key=lambda entry: -entry[0].size):
        yield prefixes(chain)[drop.step]
        yield prefixes(chain)[drop.step - 1]
    uncertain = [entry for chain in chains for entry in zip(prefixes(chain), along(chain, "value_sd"), strict=True)]
    for prefix, _ in sorted(uncertain, key=lambda entry: -(entry[1] or 0)):
        yield prefix
