"""Pairs of steps for the process preference model of rStar-Math (Guan et al. 2025, arXiv 2501.04519).

Sources of the rules: microsoft/rStar, branch `rStar-math`, read in the copy of yuanyunchen/SLM-Math, `rStar-Math/` at ab8631a:

- `train/rm.py`, `preprocess_value_dataset` and `RMTrainer`: prompt and step are tokenized apart, without special tokens. The
  score of each text is read at its last token, and the loss of a pair is -log sigmoid(pos - neg) times
  1 / (pos_count neg_count). Tokens beyond `max_length` are cut, and with them the place where the score is read.
- `train/train_RM.py`: reads the five columns from JSON or JSON lines, and adds `<end_of_step>` to the tokenizer.
- `extra_rm_file.py`: after each prefix, the (at most) two best steps of those that lead to a right answer and the two worst of
  those that lead to a wrong one; if there is one on one side, up to four on the other side. `pos_count` and `neg_count` are the
  numbers of these steps, before any pair is left out, so that the pairs of a prefix together weigh no more than one.
- `train/sample_rm_data.py`: of these pairs, those whose Q values differ by 0.5 and whose steps differ by 20 characters. A Q
  value is the mean of rewards of 1 and -1, so 0.5 there is 0.25 between probabilities.

What differs. Their steps are Python code: `<code>` comes before the first step, `<output>` after the last line of code. Ours
are plain texts, and each has `separator` before it and `placeholder` after it, as their second and later steps have. Of their
pairs only those stay whose continuations have the same order as the steps, on average; ours need `certainty` instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import pyarrow as pa

from pipeline.export.base import Exporter, ExportRow, Plan, marks_of
from pipeline.export.formats.base import Encoder, FormatError, Marks, Row
from pipeline.export.formats.siblings import NO_END, ends, sibling_pairs
from pipeline.export.formats.tree_pairs import ineffective_for_trees, pair_of_problem, refuse_about_targets
from pipeline.export.settings import ExportConfig, FileType, PpmConfig
from pipeline.export.targets import LabelRow, LeftOutChains
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.posterior import Posterior
from pipeline.trees.tree import RolloutTree

MAX_LENGTH = 2048
"""`--max_length` of their command."""
TEMPLATE = "<|user|>:\n{problem}\n<|assistant|>: Let's think step by step and solve the problem with code."
"""What rStar-Math's policy and its process preference model see before the first step."""
MARKS = Marks(separator="\n\n", placeholder="\n<end_of_step>")
USUAL, MOST = 2, 4
"""Steps of one side; and if the other side has one alone."""
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("prompt", pa.string()),
    ("pos", pa.string()),
    ("neg", pa.string()),
    ("pos_count", pa.int64()),
    ("neg_count", pa.int64()),
]
NO_PPM_PAIR = LeftOutChains(
    kind="no_pair",
    detail="no two steps after the same prefix of its problem differ so surely and so much; ppm.certainty=0.8 and "
    "ppm.margin=0.1 ask for less",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PpmPair:
    """Two nodes of a tree, and how many steps of each side their prefix has."""

    pos: int
    neg: int
    pos_count: int
    neg_count: int


def ppm_pairs(tree: RolloutTree, values: Sequence[Posterior], config: PpmConfig) -> Iterator[PpmPair]:
    """The pairs of one problem by rStar-Math's rule, and as certain as asked for."""
    right, wrong = ends(tree, outcome=True), ends(tree, outcome=False)
    sets = sibling_pairs(tree, values, certainty=config.certainty, margin=config.margin)
    for nodes, apart in zip(tree.sibling_sets(), sets, strict=True):
        best = _distinct(tree, sorted((n for n in nodes if right[n] != NO_END), key=lambda n: (-values[n].mean, n)))
        worst = _distinct(tree, sorted((n for n in nodes if wrong[n] != NO_END), key=lambda n: (values[n].mean, n)))
        pos = best[: MOST if len(worst) == 1 else USUAL]
        neg = worst[: MOST if len(best) == 1 else USUAL]
        able = {(pair.better, pair.worse) for pair in apart}
        for one, other in product(pos, neg):
            texts = tree.nodes[one].text, tree.nodes[other].text
            if (one, other) in able and differ_by(*texts, config.edit_distance):
                yield PpmPair(pos=one, neg=other, pos_count=len(pos), neg_count=len(neg))


def differ_by(one: str, other: str, least: int) -> bool:
    """Whether `least` characters or more have to be inserted, deleted or replaced to make one text the other."""
    if abs(len(one) - len(other)) >= least:
        return True
    before = list(range(len(other) + 1))
    for row, character in enumerate(one, start=1):
        here = [row]
        for column, theirs in enumerate(other, start=1):
            here.append(min(before[column] + 1, here[-1] + 1, before[column - 1] + (character != theirs)))
        before = here
        if min(before) >= least:
            return True
    return before[-1] >= least


@dataclass(frozen=True, slots=True, kw_only=True)
class PpmRows:
    """Makes one row per pair, from all chains of its problem."""

    config: PpmConfig
    marks: Marks
    encoder: Encoder | None
    max_length: int

    def __call__(
        self, chains: Sequence[LabelRow], tree: ProblemTree, values: Sequence[Posterior]
    ) -> Iterator[ExportRow]:
        template = TEMPLATE if self.config.template is None else self.config.template.replace("\\n", "\n")
        head = template.replace("{problem}", tree.problem)
        pair = None
        for pair in ppm_pairs(tree.tree, values, self.config):
            steps = tree.tree.steps(pair.pos)
            row: Row = {
                "prompt": head + "".join(map(self._step, steps[:-1])),
                "pos": self._step(steps[-1]),
                "neg": self._step(tree.tree.nodes[pair.neg].text),
                "pos_count": pair.pos_count,
                "neg_count": pair.neg_count,
            }
            found = tuple(self._mark_errors([*steps, tree.tree.nodes[pair.neg].text]))
            if self.encoder is not None:
                found += tuple(ppm_token_errors(row, self.encoder, self.max_length))
            yield pair_of_problem(chains, row, found)
        if pair is None:
            yield from (ExportRow(chain=chain, left_out=NO_PPM_PAIR) for chain in chains)

    def _step(self, text: str) -> str:
        return f"{self.marks.separator}{text}{self.marks.placeholder}"

    def _mark_errors(self, steps: Sequence[str]) -> Iterator[FormatError]:
        mark = self.marks.placeholder.strip() or self.marks.placeholder
        step = next((step for step in steps if mark in step), None)
        if step is not None:
            detail = f"a step contains the mark {mark!r}, which ends a step: choose another placeholder"
            yield FormatError(kind="mark_in_text", detail=detail, fatal=False)


def ppm_token_errors(row: Row, encoder: Encoder, max_length: int) -> Iterator[FormatError]:
    """A row that the trainer cuts. It reads the score at the last token that is left, which is not the end of the step."""
    prompt = len(encoder.ids(str(row["prompt"])))
    for side in ("pos", "neg"):
        length = prompt + len(encoder.ids(str(row[side])))
        if length > max_length:
            detail = f"prompt and {side} have {length:,} tokens, so the end of the step is cut off at {max_length:,}"
            yield FormatError(kind="end_lost", detail=f"{detail}: raise max_length", fatal=False)


def _distinct(tree: RolloutTree, nodes: Sequence[int]) -> list[int]:
    """The first node of each text."""
    return list({tree.nodes[node].text: node for node in reversed(nodes)}.values())[::-1]


class PpmExporter(Exporter):
    """Exports pairs of steps for rStar-Math's process preference model."""

    Config = PpmConfig

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        refuse_about_targets(config)
        own = config.own
        assert isinstance(own, PpmConfig)
        marks = marks_of(config, MARKS)
        rows = PpmRows(config=own, marks=marks, encoder=encoder, max_length=config.max_length or MAX_LENGTH)
        return Plan(of_trees=rows, schema=pa.schema(_COLUMNS), file=config.file or FileType.jsonl, marks=marks)

    def ineffective_settings(self, config: ExportConfig) -> dict[str, str]:
        return ineffective_for_trees(config)


PPM = PpmExporter()
