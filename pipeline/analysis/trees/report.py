"""`report tree=PROBLEM`: the rollout tree of one problem as a page of its own.

The data of the page are JSON: a tree has columns with one entry per node, parents before children. Numbers have three decimals.
"""

from collections.abc import Sequence

from pipeline.analysis.settings import ReportConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.display.document import Inset, Page, run_name, sentence
from pipeline.display.embedded import data_element, json_text, packed, part, rounded, script, shortened
from pipeline.display.page import foot, html
from pipeline.engines.registry import made_up_text
from pipeline.storage.starts import tree_page
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, stored_run
from pipeline.storage.stored_trees import ProblemTree, StoredTrees
from pipeline.trees.posterior import posteriors
from pipeline.trees.tree import NO_PARENT, RolloutTree, Tally, TreeNode, most_counted

KIND = "tree"
CHARACTERS = 2_000
"""Of a step's text, at most. The whole text is in the tables."""
MOST_NODES = 5_000
"""Nodes of a tree, at most: more than a reader opens, and as many as a browser draws at once."""
_SHORT = 300
"""Characters of an answer or an id, at most."""
_SOURCES = 5
"""Ids of rows, at most."""
_OUTCOMES = {True: "r", False: "w", None: "o"}


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
        title=run_name(config.run_dir[0]),
        kind=KIND,
        verdict=_verdict(run, found),
        details=_details(run, stored, found),
        inset=build_tree(found, stored.strength),
        foot=foot("report", {"run_dir": config.run_dir[0], "tree": ids[0]}),
    )
    return tree_page(ids[0]), html(page), [f"tree      {line}" for line in map(_counts, found)]


def _counts(found: ProblemTree) -> str:
    steps = format_count(len(found.tree.nodes) - 1, "step")
    return f"{steps} of {format_count(found.tree.rollouts, 'rollout')} and the chains"


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


_OURS, _SHARED = "pipeline.analysis.trees", "pipeline.analysis.report.browser"
_SCRIPTS = (
    *((_SHARED, f"{name}.js") for name in ("elements", "treeview")),
    *((_OURS, f"{name}.js") for name in ("rows", "trees")),
)
ANCHOR = "tree"


def build_tree(found: Sequence[ProblemTree], strength: float) -> Inset:
    """The part of the page. `strength`: see `trees.posterior`."""
    styles = ((_SHARED, "browser.css"), (_SHARED, "tree.css"), (_OURS, "trees.css"))
    return Inset(
        html=part(_OURS, "trees.html"),
        css="\n".join(part(package, name) for package, name in styles),
        js=script(_SCRIPTS),
        data=data_element("trees-data", packed(trees_json(found, strength))),
        anchor=ANCHOR,
        heading="Tree",
    )


def trees_json(found: Sequence[ProblemTree], strength: float) -> str:
    """The trees of one problem: one for each unit that has it. `strength`: see `trees.posterior`."""
    first = found[0]
    sources = list(dict.fromkeys(name for each in found for name in each.source_ids))
    data = {
        "problem": shortened(first.problem, CHARACTERS),
        "gold": shortened(first.gold_answer, _SHORT),
        "id": first.tree.problem_id,
        "sources": [shortened(name, _SHORT) for name in sources[:_SOURCES]],
        "more": max(0, len(sources) - _SOURCES),
        "trees": [_tree(each.tree, strength) for each in found],
    }
    return json_text(data)


def _tree(tree: RolloutTree, strength: float) -> dict[str, object]:
    kept = most_counted(tree, MOST_NODES)
    places = {old: new for new, old in enumerate(kept)}
    nodes = [tree.nodes[old] for old in kept]
    estimates = posteriors(tree, strength)
    return {
        "parents": [-1 if node.parent == NO_PARENT else places[node.parent] for node in nodes],
        "texts": [shortened(node.text, CHARACTERS) for node in nodes],
        "values": [rounded(node.value) for node in nodes],
        "means": [rounded(estimates[old].mean) for old in kept],
        "spreads": [rounded(node.label.value_sd if node.label else None) for node in nodes],
        "labels": [node.label.label if node.label else None for node in nodes],
        "named": [int(bool(node.prefix_ids)) for node in nodes],
        "grown": [place for place, node in enumerate(nodes) if node.grown],
        "ends": {place: _OUTCOMES[node.outcome] for place, node in enumerate(nodes) if node.ended},
        "issued": [_of_rollouts(node.issued) for node in nodes],
        "passed": [_of_rollouts(node.passed) for node in nodes],
        "fair": [_fair(node) for node in nodes],
        "hidden": len(tree.nodes) - len(nodes),
        "steps": len(tree.nodes) - 1,
        "rollouts": tree.rollouts,
    }


def _of_rollouts(tally: Tally) -> list[int]:
    """Correct, graded and ungraded rollouts."""
    return [tally.correct, tally.graded, tally.ungraded]


def _fair(node: TreeNode) -> list[int]:
    """Correct and graded fair trials."""
    return [
        node.fair_issued.correct + node.fair_passed.correct,
        node.fair_issued.graded + node.fair_passed.graded,
    ]
