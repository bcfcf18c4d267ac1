"""The tree of each problem as OmegaPRM of OpenR writes it: a JSON object per problem, nodes inside nodes.

Sources of the rules: openreasoner/openr, `data/omegaPRM_v2/run_omegaprm.py` at 5d80059, `process_question`: the keys
`question`, `final_answer` and `reasoning_steps`; `data/omegaPRM_v2/omegaprm.py` at 110e970, `get_text_with_labels`: each node
has `text` (what it adds to its parent), `mc_value` and `children`, and the text of the root is the question. OpenR writes a
file `question_N.json` for each problem; here each is a line.

`mc_value` of OpenR is the share of right ones among the rollouts that were sampled at a node, and 1 at the end of a right
rollout. So it is here where rollouts were sampled at a node, and at the end of a chain it is the outcome. Other nodes have
rollouts only that pass through them, most of them one or two, whose share would be 0 or 1: theirs is the posterior mean, which
leans on the node before.

OpenR has a node for the first wrong step that it searched for and one for each right rollout, with several steps in one text;
here each step is a node. A chain that ends with a step and one that goes on after it are two nodes with the same text.
"""

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from pipeline.core.errors import UsageError
from pipeline.export.base import Exporter, ExportRow, Plan
from pipeline.export.formats.base import Encoder, JsonText, Marks
from pipeline.export.settings import Balance, ExportConfig, FileType
from pipeline.export.targets import LabelRow
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.posterior import Posterior
from pipeline.trees.tree import TreeNode

_SCHEMA = pa.schema([("question", pa.string()), ("final_answer", pa.string()), ("reasoning_steps", pa.string())])
_CLOSE = -1


def mc_value(node: TreeNode, value: Posterior) -> float:
    """The value of a node, as the module says."""
    if node.ended and node.outcome is not None:
        return float(node.outcome)
    return node.issued.correct / node.issued.graded if node.issued.graded else value.mean


def nested(tree: ProblemTree, values: Sequence[Posterior]) -> JsonText:
    """The tree as JSON. It is written node by node, because `json` cannot write hundreds of steps inside one another."""
    nodes = tree.tree.nodes
    parts: list[str] = []
    waiting = [0]
    while waiting:
        at = waiting.pop()
        if at == _CLOSE:
            parts.append("]}")
            continue
        node = nodes[at]
        first = node.parent < 0 or nodes[node.parent].children[0] == at
        text = json.dumps(node.text if node.parent >= 0 else tree.problem.strip(), ensure_ascii=False)
        parts.append(
            f'{"" if first else ", "}{{"text": {text}, "mc_value": {mc_value(node, values[at])!r}, "children": ['
        )
        waiting.append(_CLOSE)
        waiting += reversed(node.children)
    return JsonText("".join(parts))


def omegaprm_rows(chains: Sequence[LabelRow], tree: ProblemTree, values: Sequence[Posterior]) -> Iterator[ExportRow]:
    """One row for a problem, made from all of its chains."""
    first, *others = chains
    row: dict[str, object] = {
        "question": tree.problem,
        "final_answer": tree.gold_answer,
        "reasoning_steps": nested(tree, values),
    }
    yield ExportRow(chain=first, others=tuple(others), row=row)


class OmegaPrmExporter(Exporter):
    """Exports the tree of each problem."""

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        for key in ("target", "uncertain", "after_error", "separator", "placeholder", "max_length"):
            if getattr(config, key) is not None:
                raise UsageError(f"{key}: format={config.format} holds trees, not chains with targets; leave it out")
        if config.balance is not Balance.none:
            raise UsageError(f"balance={config.balance.value}: a tree has steps of all kinds; leave it out")
        if config.file is FileType.parquet:
            raise UsageError(f"file=parquet: a tree has no columns; format={config.format} takes file=jsonl or json")
        return Plan(of_trees=omegaprm_rows, schema=_SCHEMA, file=config.file or FileType.jsonl, marks=Marks())

    def ineffective_settings(self, config: ExportConfig) -> dict[str, str]:
        why = "trees have values of all rollouts, not labels; leave it out"
        return {key: why for key in ("threshold", "soft", "neutral", "tokenizer") if getattr(config, key) is not None}


OMEGAPRM = OmegaPrmExporter()
