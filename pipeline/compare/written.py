"""The page of a comparison, put where it is wanted."""

from collections.abc import Sequence
from pathlib import Path

from pipeline.compare.compared import Comparison
from pipeline.compare.page import KIND, page
from pipeline.errors import UsageError
from pipeline.store.disk import blamed
from pipeline.store.files import check_output_file, refuse_overwriting, replaced_at_end
from pipeline.store.place import folder_at

NAME = "compare.html"
_OURS = f'content="stepvalue {KIND}"'.encode()
_HEAD = 4096
"""So far into a page the name of what it is stands."""


def checked_out(out: str | None, run_dirs: Sequence[str]) -> Path:
    """Where the page goes: `out`, or `NAME` in the current folder.

    Raises UsageError where that cannot be, lies in one of the runs, or is a file that is no comparison; StoreError where it
    cannot be read.
    """
    path = Path(NAME if out is None else out)
    check_output_file("out", path)
    refuse_overwriting({"out": path}, [folder_at(run_dir) for run_dir in run_dirs])
    if path.exists() and not _ours(path):
        raise UsageError(f"out={path} is there already, and no comparison of stepvalue's: name another file")
    return path


def write(path: Path, found: Comparison, command: str) -> None:
    """Raises StoreError."""
    data = page(found, command)
    with replaced_at_end(path) as file:
        file.write(data)


def _ours(path: Path) -> bool:
    with blamed(path), path.open("rb") as file:
        return _OURS in file.read(_HEAD)
