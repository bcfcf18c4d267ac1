"""Examples of rollouts: which of a prefix's are shown, and of which prefixes, as long as the bytes last. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.analysis.report.browser.shown import SHORT_CHARACTERS, ShownChain, cut, largest_drop
from pipeline.core.records import UNGRADED, Finish, Verdict

PER_PREFIX = 3
CHARACTERS = 400
"""Of a rollout's text."""
ROLLOUT_COLUMNS = ("rollout_id", "prefix_id", "issue_index", "text", "finish", "n_tokens", "answer", "verdict")
"""Of `rollouts`."""
_OTHER_BYTES = 60
"""Of an example beside its texts."""
_RIGHT, _WRONG, _OPEN = range(3)
_UNSERVED = [Finish.ABORT.value, Finish.TOO_LONG.value, Finish.ENGINE_FAILED.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A rollout as it is shown, its text cut."""

    text: str
    finish: str
    n_tokens: int
    answer: str
    verdict: str

    @property
    def size(self) -> int:
        """Bytes, about, before compression."""
        return len(self.text.encode()) + len(self.answer.encode()) + _OTHER_BYTES


def examples(
    rollouts: pl.DataFrame, verdicts: pl.DataFrame | None, prefixes: Iterable[str]
) -> dict[str, tuple[Example, ...]]:
    """Up to `PER_PREFIX` rollouts of each of the prefixes, by prefix id: a right one, a wrong one and one that was cut or
    could not be judged, where there are such; then others, in the order of the log. `verdicts` are those that count, where
    they are not the log's; that table has one row for each rollout."""
    found = rollouts.filter(pl.col("prefix_id").is_in(list(prefixes)))
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
    by_prefix: dict[str, tuple[Example, ...]] = {}
    for row in chosen.iter_rows(named=True):
        example = Example(
            text=_cut(row["text"]),
            finish=row["finish"],
            n_tokens=row["n_tokens"],
            answer=cut(row["answer"], SHORT_CHARACTERS),
            verdict=row["verdict"],
        )
        by_prefix[row["prefix_id"]] = (*by_prefix.get(row["prefix_id"], ()), example)
    return by_prefix


def affordable(
    chains: Sequence[ShownChain], found: Mapping[str, tuple[Example, ...]], room: float
) -> dict[str, tuple[Example, ...]]:
    """Examples of the prefixes that a reader asks for first, as many as `room` bytes hold: of the steps that lost the most
    and of the steps before them, largest drop first; then of those whose values are known the least."""
    afforded: dict[str, tuple[Example, ...]] = {}
    for prefix in _by_interest(chains):
        if prefix in afforded or prefix not in found:
            continue
        room -= sum(example.size for example in found[prefix])
        if room < 0:
            break
        afforded[prefix] = found[prefix]
    return afforded


def _by_interest(chains: Sequence[ShownChain]) -> Iterator[str]:
    lost = [(drop, chain) for chain in chains if (drop := largest_drop(chain))]
    for drop, chain in sorted(lost, key=lambda entry: -entry[0].size):
        prefixes = (chain.root, *chain.steps)
        yield prefixes[drop.step].prefix_id
        yield prefixes[drop.step - 1].prefix_id
    all_prefixes = (prefix for chain in chains for prefix in (chain.root, *chain.steps))
    for prefix in sorted(all_prefixes, key=lambda prefix: -(prefix.sd or 0)):
        yield prefix.prefix_id


def _cut(text: str) -> str:
    if len(text) <= CHARACTERS:
        return text
    return f"{text[:CHARACTERS]} ... ({len(text):,} characters, whole in rollouts/*.parquet)"
