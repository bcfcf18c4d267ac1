"""What the chain browser shows: which chains, which data of each, and which rollouts of its prefixes. Pure.

A page holds as many chains, and as much of their texts, as its size limit allows (`sample`). A chain is shown as its row of
`labels` with texts cut (`shown_row`). Examples of rollouts are chosen for each prefix, and for as many prefixes as
the size limit allows (`rollout_examples`, `affordable`).
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, NamedTuple

import polars as pl

from pipeline.consensus.kept import reason_text, witness_places
from pipeline.core.ids import content_id
from pipeline.core.records import UNGRADED, Finish, Verdict
from pipeline.display.embedded import shortened

_PER_PREFIX = (
    *("value", "value_sd", "low", "high"),
    *("n_correct", "n_rollouts", "n_ungraded", "n_truncated", "origin"),
)
COLUMNS = (
    *("chain_id", "source_id", "problem", "gold_answer", "steps", "root_prefix_id", "prefix_ids"),
    *(
        "final_answer",
        "outcome",
        "p_outcome",
        "estimator",
        "label",
        *_PER_PREFIX,
        *(f"root_{name}" for name in _PER_PREFIX),
    ),
)
"""Columns of `labels` that are read."""
CONSENSUS_COLUMNS = ("mc_label", "p_error_free", "left_out", "opinions")
"""Columns that are also read of labels by consensus."""
SHORT_CHARACTERS = 200
"""Characters of answers and of the user's ids, whatever the limit of other texts."""
_DIGITS = 9
"""Decimals of a drop, so that 0.9 - 0.8 and 0.8 - 0.7 are equal despite rounding."""
TEXT_BYTES = 18_000_000
"""Of all texts and numbers of chains, before compression to a half or a third."""
LIMITS = (4_000, 2_000, 1_000, 500, 250)
"""Characters of a text. The first limit at which all chains fit is used. If none is, chains are left out."""
_STEP_BYTES = 40
"""Bytes of a step's numbers."""
OPINION_BYTES = 8
"""Bytes of what a witness says of a step, and of what consensus says of it."""
FINDING_BYTES = 40
"""Bytes of what a verifier says of a step, on average: most steps have no verdict."""
PER_PREFIX = 3
CHARACTERS = 400
"""Characters of a rollout's text."""
ROLLOUT_COLUMNS = ("rollout_id", "prefix_id", "issue_index", "text", "finish", "n_tokens", "answer", "verdict")
"""Columns of `rollouts` that are read."""
_OTHER_BYTES = 60
"""Bytes of an example besides its texts."""
_RIGHT, _WRONG, _OPEN = range(3)
_UNSERVED = [Finish.ABORT.value, Finish.TOO_LONG.value, Finish.ENGINE_FAILED.value]


Row = Mapping[str, Any]
"""A chain: a row of `labels`, see `shown_row`."""


class FindingView(NamedTuple):
    """What a verifier says of a step. `whole`: of the whole of it, else of a part."""

    verifier: str
    verdict: str
    whole: bool
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """How far a step's value is below the last known value before it. `step` counts from 1."""

    size: float
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a chain: of its problem and of each step, in characters and in bytes. `other_bytes`: besides texts and the
    numbers of steps."""

    chain_id: str
    characters: tuple[int, ...]
    in_bytes: tuple[int, ...]
    other_bytes: int = 0

    def cut(self, limit: int) -> float:
        """Bytes if each text is cut at `limit` characters."""
        texts = zip(self.characters, self.in_bytes, strict=True)
        return self.other_bytes + sum(size * min(1, limit / max(1, length)) + _STEP_BYTES for length, size in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSample:
    """The positions of the shown chains in ascending order, and the characters at which texts are cut."""

    positions: tuple[int, ...]
    characters: int

    def within(self, start: int, end: int) -> Sequence[int]:
        """The positions from `start` to before `end`."""
        return self.positions[bisect_left(self.positions, start) : bisect_left(self.positions, end)]


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


def sample(sizes: Iterable[Size], most: int) -> ChainSample:
    """At most `most` chains: those with the smallest hashes, so that the choice is the same every time."""
    wanted = nsmallest(most, enumerate(sizes), key=lambda entry: (content_id("shown", entry[1].chain_id), entry[0]))
    for limit in LIMITS:
        if sum(size.cut(limit) for _, size in wanted) <= TEXT_BYTES:
            return ChainSample(positions=tuple(sorted(position for position, _ in wanted)), characters=limit)
    return ChainSample(positions=tuple(sorted(_fitting(wanted, LIMITS[-1]))), characters=LIMITS[-1])


def shown_row(row: Row, characters: int, findings: Mapping[int, Sequence[FindingView]]) -> Row:
    """A row of `labels` with `COLUMNS`, and `CONSENSUS_COLUMNS` where it has them, as it is shown: texts are cut at
    `characters`. `findings`: those of verifiers with a verdict, by step, from 1. `left_out` is in words, and each of `opinions`
    has the `place` of `consensus.kept`."""
    answer = row["final_answer"]
    shown = {
        **row,
        "source_id": cut(row["source_id"] or "", SHORT_CHARACTERS),
        "gold_answer": cut(row["gold_answer"], SHORT_CHARACTERS),
        "final_answer": None if answer is None else cut(answer, SHORT_CHARACTERS),
        "problem": cut(row["problem"], characters),
        "steps": [cut(text, characters) for text in row["steps"]],
        "findings": findings,
    }
    if is_consensus(row):
        places, left_out = witness_places(row["opinions"]), row["left_out"]
        shown["left_out"] = None if left_out is None else cut(reason_text(left_out), SHORT_CHARACTERS)
        shown["opinions"] = [
            {**each, "witness": cut(each["witness"], SHORT_CHARACTERS), "place": places[each["witness"]]}
            for each in row["opinions"]
        ]
    return shown


def is_consensus(chain: Row) -> bool:
    """Whether its labels are by consensus."""
    return chain.get("mc_label") is not None


def along(chain: Row, name: str) -> list[Any]:
    """What a column says of the bare problem, then of each step."""
    return [chain[f"root_{name}"], *chain[name]]


def prefixes(chain: Row) -> list[str]:
    """The ids of its prefixes, the bare problem first."""
    return [chain["root_prefix_id"], *chain["prefix_ids"]]


def finding_view(verifier: str, verdict: str, *, whole: bool, evidence: str) -> FindingView:
    """A finding with its evidence cut."""
    return FindingView(
        verifier=cut(verifier, SHORT_CHARACTERS), verdict=verdict, whole=whole, evidence=cut(evidence, SHORT_CHARACTERS)
    )


def drops(chain: Row) -> Iterator[Drop]:
    """The drops of the chain, from the bare problem on. Steps without a value are skipped."""
    before = chain["root_value"]
    for number, value in enumerate(chain["value"], start=1):
        if value is None:
            continue
        if before is not None and value < before:
            yield Drop(size=round(before - value, _DIGITS), step=number)
        before = value


def largest_drop(chain: Row) -> Drop | None:
    """The largest drop, the first of equal ones; None if the value never falls."""
    return max(drops(chain), key=lambda drop: drop.size, default=None)


def uncertainty(chain: Row) -> float | None:
    """Root mean square of the posterior standard deviations of the steps; None if none is known."""
    known = [sd for sd in chain["value_sd"] if sd is not None]
    return math.sqrt(sum(sd * sd for sd in known) / len(known)) if known else None


def cut(text: str, characters: int, table: str = "labels") -> str:
    """The text, or its beginning and its full length. `table`: the one that has all of it."""
    return shortened(text, characters, table)


def rollout_examples(
    rollouts: pl.DataFrame, verdicts: pl.DataFrame | None, of: Iterable[str]
) -> dict[str, tuple[RolloutExample, ...]]:
    """Up to `PER_PREFIX` rollouts of each prefix of `of`, by prefix id: first a correct one, an incorrect one and one that was
    cut or not graded, if there are any, then others in the order of the log. `verdicts` replace those of the log; the table has
    one row per rollout."""
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
    by_prefix: dict[str, tuple[RolloutExample, ...]] = {}
    for row in chosen.iter_rows(named=True):
        example = RolloutExample(
            verdict=row["verdict"],
            finish=row["finish"],
            n_tokens=row["n_tokens"],
            answer=cut(row["answer"], SHORT_CHARACTERS),
            text=cut(row["text"], CHARACTERS, "rollouts"),
        )
        by_prefix[row["prefix_id"]] = (*by_prefix.get(row["prefix_id"], ()), example)
    return by_prefix


def affordable(
    chains: Sequence[Row], found: Mapping[str, tuple[RolloutExample, ...]], left: float
) -> dict[str, tuple[RolloutExample, ...]]:
    """Examples of the prefixes that matter most to a reader, as many as fit into `left` bytes: first of the steps with the
    largest drops and of the steps before them, largest drop first, then of the prefixes with the most uncertain values."""
    afforded: dict[str, tuple[RolloutExample, ...]] = {}
    for prefix in _by_interest(chains):
        if prefix in afforded or prefix not in found:
            continue
        left -= sum(example.size for example in found[prefix])
        if left < 0:
            break
        afforded[prefix] = found[prefix]
    return afforded


def _fitting(wanted: Iterable[tuple[int, Size]], limit: int) -> Iterator[int]:
    left = float(TEXT_BYTES)
    for position, size in wanted:
        left -= size.cut(limit)
        if left < 0:
            return
        yield position


def _by_interest(chains: Sequence[Row]) -> Iterator[str]:
    lost = [(drop, chain) for chain in chains if (drop := largest_drop(chain))]
    for drop, chain in sorted(lost, key=lambda entry: -entry[0].size):
        yield prefixes(chain)[drop.step]
        yield prefixes(chain)[drop.step - 1]
    uncertain = [entry for chain in chains for entry in zip(prefixes(chain), along(chain, "value_sd"), strict=True)]
    for prefix, _ in sorted(uncertain, key=lambda entry: -(entry[1] or 0)):
        yield prefix
