"""Pairs of sibling steps, a better and a worse one after the same prefix, for step-wise preference training.

With `siblings=chains`, steps are siblings if they follow the same prefix, by prefix id, and their texts differ. Prefixes with
equal texts but different tokens have different ids and values, so their steps are not siblings. Rows are made from all chains
of a problem at once (`PairRows`).

With `siblings=rollouts`, siblings are those of the problem's rollout tree (`formats.tree_pairs`).
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pyarrow as pa

from pipeline.config.choices import ValueColumn
from pipeline.export.base import Exporter, ExportRow, Plan, marks_of
from pipeline.export.example import LabelCounts
from pipeline.export.formats.base import Encoder, FormatError, Marks, Row
from pipeline.export.formats.pairs import (
    MAX_LENGTH,
    ROUNDING,
    SEPARATOR,
    followed,
    pair_columns,
    pair_span,
    pair_token_errors,
    prompt_part,
    separator_errors,
)
from pipeline.export.formats.tree_pairs import (
    TreePairRows,
    ineffective_for_trees,
    refuse_about_targets,
    tree_pair_schema,
)
from pipeline.export.settings import (
    ExportConfig,
    FileType,
    NeutralSteps,
    PairReader,
    PairSiblings,
    PairSpan,
    PreferenceConfig,
    TargetKind,
    UncertainSteps,
)
from pipeline.export.targets import (
    OTHER_VALUES,
    PLACE,
    VALUES,
    LabelRow,
    LeftOutChains,
    TargetChoice,
    hard_labels,
    soft_values,
)

NO_PAIR = LeftOutChains(
    kind="no_pair",
    detail="no step has a sibling with the other label; preference.margin=... pairs by values, threshold=... sets other labels",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """One of the steps after a prefix: step `index`, counted from 0, of a chain. `text`: the step, or for span=rest also all
    steps after it, joined by separators. `score`: its value. `label`: 1, 0, 2 for neutral, or None."""

    chain: LabelRow
    index: int
    text: str
    score: float | None
    label: int | None

    @property
    def prefix_id(self) -> str:
        """What it follows."""
        return self.chain.prefix_ids[self.index - 1] if self.index else self.chain.root_prefix_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    chosen: Sibling
    rejected: Sibling

    @property
    def gap(self) -> float:
        """The value of the chosen step minus that of the rejected one; 0 if a value is unknown."""
        if self.chosen.score is None or self.rejected.score is None:
            return 0.0
        return self.chosen.score - self.rejected.score


def preference_pairs(
    chains: Sequence[LabelRow], choice: TargetChoice, config: PreferenceConfig, separator: str
) -> Iterator[Pair]:
    """All pairs of one problem, from all its chains, ordered by prefix (in the order of the chains) and then by decreasing gap.

    A pair whose values contradict its labels is left out. No two pairs have the same three texts.
    """
    written: set[tuple[str, str, str]] = set()
    for branch in _branches(chains, choice):
        here = heapq.nsmallest(config.pairs_per_branch, _paired(branch, config, separator), key=_order)
        for pair in here:
            texts = (_before(pair.chosen, separator), pair.chosen.text, pair.rejected.text)
            if texts not in written:
                written.add(texts)
                yield pair


def pair_row(pair: Pair, reader: PairReader, separator: str) -> Row:
    """The row of a pair for its reader. `step`, counted from 1, is the first step in which the two chains differ."""
    chain = pair.chosen.chain
    prompt = prompt_part(chain.problem, _before(pair.chosen, separator), reader, separator)
    return prompt | {
        "chosen": pair.chosen.text,
        "rejected": pair.rejected.text,
        "answer": chain.gold_answer,
        "chosen_value": pair.chosen.score,
        "rejected_value": pair.rejected.score,
        "step": pair.chosen.index + 1,
        "problem_id": chain.problem_id,
        "prefix_id": pair.chosen.prefix_id,
        "chosen_chain_id": chain.chain_id,
        "rejected_chain_id": pair.rejected.chain.chain_id,
    }


def pair_schema(reader: PairReader) -> pa.Schema:
    """The Parquet schema of the rows."""
    columns = [
        *pair_columns(reader),
        ("prefix_id", pa.string()),
        ("chosen_chain_id", pa.string()),
        ("rejected_chain_id", pa.string()),
    ]
    return pa.schema(columns)


def pair_errors(pair: Pair, separator: str) -> Iterator[FormatError]:
    """Errors in the texts: the reader takes a separator within a step for the end of a step."""
    for role, sibling in (("chosen", pair.chosen), ("rejected", pair.rejected)):
        yield from separator_errors(role, sibling.chain.steps[: sibling.index + 1], separator)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRows:
    """Makes one row per pair. A row belongs to its chosen chain and counts as one good and one bad step. Chains in no pair are
    left out.

    Tokens are checked only for TRL, because Step-DPO's reader puts its own template around the problem.
    """

    choice: TargetChoice
    config: PreferenceConfig
    separator: str
    encoder: Encoder | None
    max_length: int | None

    def __call__(self, chains: Sequence[LabelRow]) -> Iterator[ExportRow]:
        paired: set[str] = set()
        for pair in preference_pairs(chains, self.choice, self.config, self.separator):
            written = pair_row(pair, self.config.reader, self.separator)
            found = tuple(pair_errors(pair, self.separator))
            if self.encoder is not None and self.config.reader is PairReader.trl:
                found += tuple(pair_token_errors(written, self.encoder, self.max_length))
            paired |= {pair.chosen.chain.chain_id, pair.rejected.chain.chain_id}
            yield ExportRow(chain=pair.chosen.chain, row=written, labels=LabelCounts(good=1, bad=1), offences=found)
        for chain in chains:
            if chain.chain_id not in paired:
                yield ExportRow(chain=chain, left_out=NO_PAIR)


class PairExporter(Exporter):
    """Exports pairs of sibling steps for step-wise preference training."""

    Config = PreferenceConfig

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        refuse_about_targets(config)
        own = config.own
        assert isinstance(own, PreferenceConfig)
        marks = marks_of(config, Marks(separator=SEPARATOR))
        file = config.file or FileType.jsonl
        max_length = config.max_length or MAX_LENGTH
        if own.siblings is PairSiblings.rollouts:
            of_trees = TreePairRows(config=own, separator=marks.separator, encoder=encoder, max_length=max_length)
            return Plan(of_trees=of_trees, schema=tree_pair_schema(own.reader), file=file, marks=marks)
        choice = TargetChoice(
            target=TargetKind.hard,
            soft=config.soft or ValueColumn.value,
            threshold=config.threshold,
            uncertain=UncertainSteps.ignore,
            neutral=config.neutral or NeutralSteps.keep,
            after_error=True,
            whole=True,
        )
        return Plan(
            make=PairRows(choice=choice, config=own, separator=marks.separator, encoder=encoder, max_length=max_length),
            schema=pair_schema(own.reader),
            file=file,
            marks=marks,
            reads=(*VALUES, *OTHER_VALUES, *PLACE),
        )

    def ineffective_settings(self, config: ExportConfig) -> dict[str, str]:
        own = config.own
        assert isinstance(own, PreferenceConfig)
        if own.siblings is PairSiblings.chains:
            why = "pairs of chains have none; leave it out, or add preference.siblings=rollouts"
            return {} if own.certainty is None else {"preference.certainty": why}
        return ineffective_for_trees(config)


PREFERENCE = PairExporter()


def _branches(chains: Sequence[LabelRow], choice: TargetChoice) -> Iterator[list[Sibling]]:
    """The steps after each prefix that more than one text follows."""
    after: dict[str, list[Sibling]] = {}
    for chain in chains:
        known = zip(chain.steps, soft_values(chain, choice.soft), hard_labels(chain, choice), strict=True)
        for index, (text, score, label) in enumerate(known):
            sibling = Sibling(chain=chain, index=index, text=text, score=score, label=label)
            after.setdefault(sibling.prefix_id, []).append(sibling)
    return (steps for steps in after.values() if len({step.text for step in steps}) > 1)


def _paired(branch: Sequence[Sibling], config: PreferenceConfig, separator: str) -> Iterator[Pair]:
    span = pair_span(config)
    better, worse = ([step for step in branch if config.margin or step.label == label] for label in (1, 0))
    chosen, rejected = _distinct(better, span, outcome=True), _distinct(worse, span, outcome=False)
    for good, bad in product(chosen, rejected):
        pair = Pair(chosen=_spanning(good, span, separator), rejected=_spanning(bad, span, separator))
        if good.text != bad.text and _apart(pair, config.margin):
            yield pair


def _apart(pair: Pair, margin: float) -> bool:
    known = pair.chosen.score is not None and pair.rejected.score is not None
    if margin:
        return known and pair.gap >= margin - ROUNDING
    return not known or pair.gap > 0


def _distinct(steps: Iterable[Sibling], span: PairSpan, *, outcome: bool) -> list[Sibling]:
    """One step for each text, from the first chain that has it; for span=rest, from the first one that also has the outcome."""
    found: dict[str, Sibling] = {}
    for step in steps:
        if span is PairSpan.step or step.chain.outcome is outcome:
            found.setdefault(step.text, step)
    return list(found.values())


def _spanning(step: Sibling, span: PairSpan, separator: str) -> Sibling:
    return step if span is PairSpan.step else replace(step, text=separator.join(step.chain.steps[step.index :]))


def _order(pair: Pair) -> tuple[float, str, str]:
    return -pair.gap, pair.chosen.chain.chain_id, pair.rejected.chain.chain_id


def _before(sibling: Sibling, separator: str) -> str:
    """The steps before a step, each followed by the separator."""
    return followed(sibling.chain.steps[: sibling.index], separator)
