"""The files of the pages of trees. Pure."""

_BEGIN, _END = "tree-", ".html"


def tree_page(problem_id: str) -> str:
    """The name of a problem's page in the run directory. A problem_id is a hash, so no text of a data set is in a name."""
    return f"{_BEGIN}{problem_id}{_END}"


def is_tree_page(name: str) -> bool:
    """Whether an entry of a run directory is such a page."""
    return name.startswith(_BEGIN) and name.endswith(_END) and name[len(_BEGIN) : -len(_END)].isalnum()
