"""The rollout trees of a problem as a part of a page: markup, style, script, and compressed data.

Nothing of a run is in html, css or js: text of a data set or a model is only in the data, and enters the page as text nodes.
"""

from collections.abc import Sequence

from pipeline.analysis.report.embedded import data_element, packed, part, script
from pipeline.analysis.report.page import Inset
from pipeline.analysis.trees.data import trees_json
from pipeline.storage.stored_trees import ProblemTree

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
