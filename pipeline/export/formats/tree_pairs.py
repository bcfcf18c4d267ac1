"""Rows of pairs from rollout trees: `format=preference preference.siblings=rollouts`.

`chosen_value` and `rejected_value` are posterior means, or outcomes of chains that have ended: evidence for this pair, and no
labels. They are not unbiased, and no step has to have a label to be in a pair.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.core.errors import UsageError
from pipeline.export.base import ExportRow
from pipeline.export.example import LabelCounts
from pipeline.export.formats.base import Encoder, FormatError, Row
from pipeline.export.formats.pairs import (
    followed,
    pair_columns,
    pair_span,
    pair_token_errors,
    prompt_part,
    separator_errors,
)
from pipeline.export.formats.siblings import NO_END, SiblingPair, ends, sibling_pairs
from pipeline.export.settings import CERTAINTY, Balance, ExportConfig, PairReader, PairSpan, PreferenceConfig
from pipeline.export.targets import LabelRow, LeftOutChains
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.posterior import Posterior

NO_TREE_PAIR = LeftOutChains(
    kind="no_pair",
    detail="no two steps after the same prefix of its problem differ so surely; preference.certainty=0.8 asks for less, and "
    "preference.span=step needs no end of a chain",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePair:
    """A pair with its texts. `before`: the steps before both. Of `chosen` and `rejected`, the first step is the one that the
    pair is about."""

    found: SiblingPair
    before: list[str]
    chosen: list[str]
    rejected: list[str]


def tree_pairs(tree: ProblemTree, values: Sequence[Posterior], config: PreferenceConfig) -> Iterator[TreePair]:
    """The pairs of one problem, by prefix and then by decreasing margin, at most `pairs_per_branch` of a prefix."""
    grown = tree.tree
    rest = pair_span(config) is PairSpan.rest
    right, wrong = (
        ends(grown, outcome=outcome) if rest else list(range(len(grown.nodes))) for outcome in (True, False)
    )
    certainty = CERTAINTY if config.certainty is None else config.certainty
    for pairs in sibling_pairs(grown, values, certainty=certainty, margin=config.margin):
        usable = (pair for pair in pairs if right[pair.better] != NO_END and wrong[pair.worse] != NO_END)
        for _, pair in zip(range(config.pairs_per_branch), usable, strict=False):
            before = grown.nodes[pair.better].depth - 1
            chosen, rejected = grown.steps(right[pair.better]), grown.steps(wrong[pair.worse])
            yield TreePair(found=pair, before=chosen[:before], chosen=chosen[before:], rejected=rejected[before:])


def tree_pair_row(
    pair: TreePair, tree: ProblemTree, values: Sequence[Posterior], reader: PairReader, separator: str
) -> Row:
    """The row of a pair for its reader. `step`, counted from 1, is the one that the pair is about."""
    better, worse = tree.tree.nodes[pair.found.better], tree.tree.nodes[pair.found.worse]
    return prompt_part(tree.problem, followed(pair.before, separator), reader, separator) | {
        "chosen": separator.join(pair.chosen),
        "rejected": separator.join(pair.rejected),
        "answer": tree.gold_answer,
        "chosen_value": values[pair.found.better].mean,
        "rejected_value": values[pair.found.worse].mean,
        "step": better.depth,
        "problem_id": tree.tree.problem_id,
        "margin": pair.found.margin,
        "certainty": pair.found.certainty,
        "chosen_correct": better.correct,
        "chosen_rollouts": better.graded,
        "rejected_correct": worse.correct,
        "rejected_rollouts": worse.graded,
    }


def tree_pair_schema(reader: PairReader) -> pa.Schema:
    """The Parquet schema of the rows."""
    counts = [f"{role}_{what}" for role in ("chosen", "rejected") for what in ("correct", "rollouts")]
    return pa.schema(
        [
            *pair_columns(reader),
            ("margin", pa.float64()),
            ("certainty", pa.float64()),
            *((name, pa.int64()) for name in counts),
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePairRows:
    """Makes one row per pair. A row is made from all chains of its problem, and counts as one good and one bad step. Tokens are
    checked only for TRL, because Step-DPO's reader puts its own template around the problem."""

    config: PreferenceConfig
    separator: str
    encoder: Encoder | None
    max_length: int | None

    def __call__(
        self, chains: Sequence[LabelRow], tree: ProblemTree, values: Sequence[Posterior]
    ) -> Iterator[ExportRow]:
        reader = self.config.reader
        pair = None
        for pair in tree_pairs(tree, values, self.config):
            row = tree_pair_row(pair, tree, values, reader, self.separator)
            found = tuple(self._errors(pair))
            if self.encoder is not None and reader is PairReader.trl:
                found += tuple(pair_token_errors(row, self.encoder, self.max_length))
            yield pair_of_problem(chains, row, found)
        if pair is None:
            yield from (ExportRow(chain=chain, left_out=NO_TREE_PAIR) for chain in chains)

    def _errors(self, pair: TreePair) -> Iterator[FormatError]:
        for role, steps in (("chosen", pair.chosen), ("rejected", pair.rejected)):
            yield from separator_errors(role, [*pair.before, steps[0]], self.separator)


def pair_of_problem(chains: Sequence[LabelRow], row: Row, offences: tuple[FormatError, ...]) -> ExportRow:
    """A row of a pair that is made from all chains of a problem."""
    first, *others = chains
    return ExportRow(chain=first, others=tuple(others), row=row, labels=LabelCounts(good=1, bad=1), offences=offences)


def refuse_about_targets(config: ExportConfig) -> None:
    """Raise UsageError for settings about targets of steps and about classes: a pair has neither."""
    for key in ("target", "uncertain", "after_error"):
        if getattr(config, key) is not None:
            raise UsageError(
                f"{key}: format={config.format} pairs single steps by their labels or values; leave it out"
            )
    if config.balance is not Balance.none:
        raise UsageError(f"balance={config.balance.value}: every pair has a good step and a bad one; leave it out")


def ineffective_for_trees(config: ExportConfig) -> dict[str, str]:
    """Key -> reason, for given settings about labels and columns of values, of which rows of rollout trees have none."""
    why = "rows of rollout trees are made from all rollouts of a problem, not from labels; leave it out"
    return {key: why for key in ("threshold", "soft", "neutral") if getattr(config, key) is not None}
