"""`report tree=PROBLEM`: the rollout tree of one problem as a page of its own."""

from collections.abc import Sequence

from pipeline.analysis.report.embedded import data_element, packed, part, script
from pipeline.analysis.report.page import Inset, Page, foot, html
from pipeline.analysis.settings import ReportConfig
from pipeline.analysis.trees.data import trees_json
from pipeline.analysis.trees.files import tree_page
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.engines.registry import made_up_text
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, stored_run
from pipeline.storage.stored_trees import ProblemTree, StoredTrees

KIND = "tree"


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
        title=config.run_dir[0],
        kind=KIND,
        details=_details(run, stored, found),
        banners=tuple(_banners(run)),
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


def _banners(run: StoredRun) -> list[str]:
    said = []
    if run.unfinished:
        said.append(f"{run.owed}: this page has what finished units know of the problem.")
    if made_up := made_up_text(run.identity):
        said.append(f"{made_up[0].upper()}{made_up[1:]}.")
    return said


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
