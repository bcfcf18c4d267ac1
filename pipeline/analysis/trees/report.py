"""`report tree=PROBLEM`: the rollout tree of one problem as a page of its own.

The main line of the tree is a chain of the run, where it has one, else the steps that most rollouts went through.
"""

from collections.abc import Sequence

from pipeline.analysis.browser.parts import LIMITS, MARKS, MOST_NODES, OUTCOMES, Detail, entry, nodes, part_of, short
from pipeline.analysis.settings import ReportConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.core.tables import LABELS, ROLLOUTS
from pipeline.display.document import Inset, Page, sentence
from pipeline.display.embedded import data_element, packed, part, shortened
from pipeline.display.page import foot, html
from pipeline.engines.registry import made_up_text
from pipeline.storage.location import last_part
from pipeline.storage.starts import tree_page
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, stored_run
from pipeline.storage.stored_trees import ProblemTree, StoredTrees
from pipeline.trees.posterior import posteriors
from pipeline.trees.tree import NO_PARENT, RolloutTree, TreeNode, most_counted

KIND = "tree"
_SOURCES = 5
"""Ids of rows, at most."""
_SMALL = 60
"""A tree with at most this number of nodes is open at first."""


def tree_report(storage: Storage, config: ReportConfig) -> tuple[str, bytes, list[str]]:
    """The name of the page of the problem `config.tree`, the page, and the lines to print.

    Raises UsageError for a problem that no finished unit has, and for a name that several have; StoreError for a damaged file.
    """
    assert config.tree is not None
    run = stored_run(storage)
    stored = StoredTrees(run)
    found = stored.of_problem(config.tree)
    ids = list(dict.fromkeys(each.tree.problem_id for each in found))
    if len(ids) > 1:
        raise UsageError(
            f"tree={config.tree[:80]}: {len(ids)} problems have that name: give the problem_id of one, such as {ids[0]}"
        )
    page = Page(
        title=f"{next((name for each in found for name in each.source_ids), ids[0])} of {last_part(config.run_dir[0])}",
        kind=KIND,
        verdict=_verdict(run, found),
        details=_details(run, stored, found),
        inset=build_tree(found, stored.strength),
        foot=foot("report", {"run_dir": config.run_dir[0], "tree": config.tree}),
    )
    return tree_page(ids[0]), html(page), [f"tree      {_counts(each.tree, 'step')}" for each in found]


def _counts(tree: RolloutTree, noun: str) -> str:
    steps = format_count(len(tree.nodes) - 1, noun)
    return f"{steps} of {format_count(tree.rollouts, 'rollout')} and the chains"


def _details(run: StoredRun, stored: StoredTrees, found: Sequence[ProblemTree]) -> tuple[tuple[str, str], ...]:
    setting = run.identity.get
    fair = {None: "all rollouts", 0: "none"}.get(stored.fair, "rollouts of first rounds")
    if any(node.grown for each in found for node in each.tree.nodes):
        fair += ", of those that began at a step; none of those that pass through one"
    return (
        ("policy", str(setting("policy.model") or setting("policy.kind"))),
        ("estimator", str(setting("estimator.name"))),
        ("rollouts", f"{sum(each.tree.rollouts for each in found):,}"),
        ("unbiased trials", fair),
    )


def _verdict(run: StoredRun, found: Sequence[ProblemTree]) -> str:
    rollouts = sum(each.tree.rollouts for each in found)
    said = [f"What the policy wrote for one problem: its chains and {format_count(rollouts, 'rollout')}."]
    if run.unfinished:
        said.append(f"{run.owed}: this page has what finished units know of the problem.")
    if made_up := made_up_text(run.identity):
        said.append(sentence(made_up))
    return " ".join(said)


def build_tree(found: Sequence[ProblemTree], strength: float) -> Inset:
    """The part of the page. `strength`: see `trees.posterior`."""
    legend = part("pipeline.analysis.trees", "legend.html")
    data = data_element("browser-entry", packed(trees_json(found, strength)))
    return part_of(legend, "labels/*.parquet and rollouts/*.parquet", data, "tree", "Tree")


def trees_json(found: Sequence[ProblemTree], strength: float) -> str:
    """The trees of one problem: one for each unit that has it. `strength`: see `trees.posterior`."""
    first = found[0]
    sources = list(dict.fromkeys(name for each in found for name in each.source_ids))
    more = len(sources) - _SOURCES
    ids = ", ".join(short(name, LABELS.name) for name in sources[:_SOURCES])
    details: list[Detail] = [("correct answer", short(first.gold_answer, LABELS.name), "answer")]
    if sources:
        details.append(("id", f"{ids} and {format_count(more, 'more row')}" if more > 0 else ids))
    details.append(("problem_id", first.tree.problem_id, "code"))
    trees = []
    for number, each in enumerate(found, start=1):
        name = f"Tree {number} of {len(found)}: the input has the problem in several units, which share no rollouts"
        trees.append(_tree(each.tree, strength, name if len(found) > 1 else ""))
    return entry(shortened(first.problem, LIMITS[0], LABELS.name), details, trees)


def _tree(tree: RolloutTree, strength: float, name: str) -> dict[str, object]:
    kept = most_counted(tree, MOST_NODES)
    places = {old: new for new, old in enumerate(kept)}
    shown = [tree.nodes[old] for old in kept]
    estimates = [posterior.mean for posterior in posteriors(tree, strength)]
    said = [_counts(tree, "distinct step")]
    if hidden := len(tree.nodes) - len(shown):
        said.append(f"{format_count(hidden, 'step')} with few rollouts not shown: rollouts/*.parquet has them")
    return nodes(
        name=name,
        parents=[-1 if node.parent == NO_PARENT else places[node.parent] for node in shown],
        texts=["the problem", *(shortened(node.text, LIMITS[0], ROLLOUTS.name) for node in shown[1:])],
        values=[node.value for node in shown],
        estimates=[estimates[old] for old in kept],
        weights=[node.graded for node in shown],
        labels="".join(
            MARKS[node.label.label if node.label else None] if at and node.prefix_ids else " "
            for at, node in enumerate(shown)
        ),
        chosen=[at for at, node in enumerate(shown) if node.prefix_ids],
        notes={at: [("promoted", "")] for at, node in enumerate(shown) if node.grown},
        ends={at: _end(OUTCOMES[node.outcome]) for at, node in enumerate(shown) if node.ended},
        tails=[_counts_of(node) for node in shown],
        hints=[_hint(node, estimates[old]) for node, old in zip(shown, kept, strict=True)],
        summary="; ".join(said),
        open=len(shown) <= _SMALL,
    )


def _end(outcome: str) -> tuple[str, str, str]:
    return outcome[0], f"ends, {outcome}", ""


def _counts_of(node: TreeNode) -> str:
    said = [f"{node.correct:,} of {node.graded:,} right"]
    if node.issued.graded:
        said.append(f"{node.issued.graded:,} began here")
    if ungraded := node.issued.ungraded + node.passed.ungraded:
        said.append(f"{ungraded:,} not graded")
    return " · ".join(said)


def _hint(node: TreeNode, estimate: float) -> str:
    """What is too much for a row."""
    fair = [
        node.fair_issued.correct + node.fair_passed.correct,
        node.fair_issued.graded + node.fair_passed.graded,
    ]
    spread = node.label.value_sd if node.label else None
    said = [
        f"began here: {node.issued.correct} of {node.issued.graded} right",
        f"passed through: {node.passed.correct} of {node.passed.graded} right",
        f"unbiased trials: {fair[0]} of {fair[1]} right",
        f"estimate from all: {estimate:.2f}",
        *([] if spread is None else [f"uncertainty of the value: ±{spread:.2f}"]),
    ]
    return " · ".join(said)
