"""What the chain browser shows: which chains, which data of each, and which rollouts of its prefixes. Pure.

A page holds as many chains, and as much of their texts, as its size limit allows (`sample`). A chain is shown as a record of
its row of `labels` with texts cut (`chain_view`). Examples of rollouts are chosen for each prefix, and for as many prefixes as
the size limit allows (`rollout_examples`, `affordable`).
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any

import polars as pl

from pipeline.analysis.report.embedded import shortened
from pipeline.consensus.kept import differs, label_place, reason_text, witness_places
from pipeline.core.ids import content_id
from pipeline.core.records import UNGRADED, Finish, Verdict

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One prefix: a step with all steps before it, or the bare problem, whose text is empty. `sd` is that of the posterior."""

    prefix_id: str
    text: str
    value: float | None
    low: float | None
    high: float | None
    sd: float | None
    n_correct: int
    n_rollouts: int
    n_ungraded: int
    n_truncated: int
    origin: str | None
    label: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingView:
    """What a verifier says of a step. `whole`: of the whole of it, else of a part."""

    verifier: str
    verdict: str
    whole: bool
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionView:
    """What a witness says of a chain. `shares`: of its votes, those that name each step as the first error; `no_error`: those
    that name none. `steps`: of a witness that checks steps, whether each holds. `place`: see `consensus.kept`."""

    witness: str
    shares: tuple[float, ...]
    no_error: float
    steps: tuple[int | None, ...] | None
    place: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusView:
    """What labels by consensus say of a chain besides its labels. `mc_place`: the first error of `mc_labels`, by Monte Carlo
    alone. `error_free`: P(no error so far) for each step. `left_out`: why the chain has no labels. See `tables.CONSENSUS`."""

    mc_labels: tuple[int | None, ...]
    mc_place: int | None
    error_free: tuple[float, ...] | None
    left_out: str | None
    opinions: tuple[OpinionView, ...]

    @property
    def disagrees(self) -> bool:
        """Whether a witness names another first error than Monte Carlo, or only one of them names one."""
        return differs(self.mc_place, {each.witness: each.place for each in self.opinions})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainView:
    """A chain. `root` is its bare problem. `outcome`: whether its own answer is correct, None if that is unknown.
    `p_outcome`: the probability of this outcome, given all rollouts but not that outcome. `consensus`: None for labels by
    another rule. `findings`: those of verifiers with a verdict, by step, from 1."""

    chain_id: str
    source_id: str
    problem: str
    gold: str
    answer: str | None
    outcome: bool | None
    p_outcome: float | None
    root: StepView
    steps: tuple[StepView, ...]
    consensus: ConsensusView | None = None
    findings: Mapping[int, Sequence[FindingView]] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutExample:
    """A rollout as it is shown, with its text cut."""

    text: str
    finish: str
    n_tokens: int
    answer: str
    verdict: str

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


def chain_view(
    row: Mapping[str, Any], characters: int, findings: Mapping[int, Sequence[FindingView]] | None = None
) -> ChainView:
    """The chain of a row of `labels` with `COLUMNS`, and `CONSENSUS_COLUMNS` where it has them. Texts are cut at
    `characters`."""
    return ChainView(
        chain_id=row["chain_id"],
        source_id=cut(row["source_id"] or "", SHORT_CHARACTERS),
        problem=cut(row["problem"], characters),
        gold=cut(row["gold_answer"], SHORT_CHARACTERS),
        answer=None if row["final_answer"] is None else cut(row["final_answer"], SHORT_CHARACTERS),
        outcome=row["outcome"],
        p_outcome=row["p_outcome"],
        root=_step(row["root_prefix_id"], "", None, {name: row[f"root_{name}"] for name in _PER_PREFIX}),
        steps=tuple(
            _step(prefix_id, cut(text, characters), label, dict(zip(_PER_PREFIX, found, strict=True)))
            for prefix_id, text, label, *found in zip(
                row["prefix_ids"], row["steps"], row["label"], *(row[name] for name in _PER_PREFIX), strict=True
            )
        ),
        consensus=None if row.get("mc_label") is None else _consensus(row),
        findings=findings or {},
    )


def finding_view(verifier: str, verdict: str, *, whole: bool, evidence: str) -> FindingView:
    """A finding with its evidence cut."""
    return FindingView(
        verifier=cut(verifier, SHORT_CHARACTERS), verdict=verdict, whole=whole, evidence=cut(evidence, SHORT_CHARACTERS)
    )


def drops(chain: ChainView) -> Iterator[Drop]:
    """The drops of the chain, from the bare problem on. Steps without a value are skipped."""
    before = chain.root.value
    for number, step in enumerate(chain.steps, start=1):
        if step.value is None:
            continue
        if before is not None and step.value < before:
            yield Drop(size=round(before - step.value, _DIGITS), step=number)
        before = step.value


def largest_drop(chain: ChainView) -> Drop | None:
    """The largest drop, the first of equal ones; None if the value never falls."""
    return max(drops(chain), key=lambda drop: drop.size, default=None)


def uncertainty(chain: ChainView) -> float | None:
    """Root mean square of the posterior standard deviations of the steps; None if none is known."""
    known = [step.sd for step in chain.steps if step.sd is not None]
    return math.sqrt(sum(sd * sd for sd in known) / len(known)) if known else None


def cut(text: str, characters: int, table: str = "labels") -> str:
    """The text, or its beginning and its full length. `table`: the one that has all of it."""
    return shortened(text, characters, table)


def rollout_examples(
    rollouts: pl.DataFrame, verdicts: pl.DataFrame | None, prefixes: Iterable[str]
) -> dict[str, tuple[RolloutExample, ...]]:
    """Up to `PER_PREFIX` rollouts of each of the prefixes, by prefix id: first a correct one, an incorrect one and one that was
    cut or not graded, if there are any, then others in the order of the log. `verdicts` replace those of the log; the table has
    one row per rollout."""
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
    by_prefix: dict[str, tuple[RolloutExample, ...]] = {}
    for row in chosen.iter_rows(named=True):
        example = RolloutExample(
            text=cut(row["text"], CHARACTERS, "rollouts"),
            finish=row["finish"],
            n_tokens=row["n_tokens"],
            answer=cut(row["answer"], SHORT_CHARACTERS),
            verdict=row["verdict"],
        )
        by_prefix[row["prefix_id"]] = (*by_prefix.get(row["prefix_id"], ()), example)
    return by_prefix


def affordable(
    chains: Sequence[ChainView], found: Mapping[str, tuple[RolloutExample, ...]], left: float
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


def _step(prefix_id: str, text: str, label: int | None, found: Mapping[str, Any]) -> StepView:
    return StepView(
        prefix_id=prefix_id,
        text=text,
        value=found["value"],
        low=found["low"],
        high=found["high"],
        sd=found["value_sd"],
        n_correct=found["n_correct"],
        n_rollouts=found["n_rollouts"],
        n_ungraded=found["n_ungraded"],
        n_truncated=found["n_truncated"],
        origin=found["origin"],
        label=label,
    )


def _consensus(row: Mapping[str, Any]) -> ConsensusView:
    places = witness_places(row["opinions"])
    free, left_out = row["p_error_free"], row["left_out"]
    return ConsensusView(
        mc_labels=tuple(row["mc_label"]),
        mc_place=label_place(row["mc_label"]),
        error_free=None if free is None else tuple(free),
        left_out=None if left_out is None else cut(reason_text(left_out), SHORT_CHARACTERS),
        opinions=tuple(
            OpinionView(
                witness=cut(each["witness"], SHORT_CHARACTERS),
                shares=tuple(each["first_error"]),
                no_error=each["no_error"],
                steps=None if each["steps"] is None else tuple(each["steps"]),
                place=places[each["witness"]],
            )
            for each in row["opinions"]
        ),
    )


def _by_interest(chains: Sequence[ChainView]) -> Iterator[str]:
    lost = [(drop, chain) for chain in chains if (drop := largest_drop(chain))]
    for drop, chain in sorted(lost, key=lambda entry: -entry[0].size):
        prefixes = (chain.root, *chain.steps)
        yield prefixes[drop.step].prefix_id
        yield prefixes[drop.step - 1].prefix_id
    all_prefixes = (prefix for chain in chains for prefix in (chain.root, *chain.steps))
    for prefix in sorted(all_prefixes, key=lambda prefix: -(prefix.sd or 0)):
        yield prefix.prefix_id
