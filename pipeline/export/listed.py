"""Reads the problems that must not be trained on, out of files or data sets.

A list that cannot be read as a whole protects from nothing, so a single unusable row ends the command.
"""

from collections.abc import Iterator
from pathlib import Path

from pipeline.core.errors import InputError
from pipeline.core.records import Place, Reject
from pipeline.data.layouts import column, column_names
from pipeline.data.rows import blame, open_lines, read_rows
from pipeline.export.decontaminate import Contamination, Listed
from pipeline.export.settings import DecontaminateConfig

SETTING = "decontaminate.paths"
TEXT = ".txt"


def contamination(config: DecontaminateConfig) -> Contamination:
    """The index of all that `config.paths` list.

    Raises InputError for a path that leads nowhere, a file that cannot be read, and a row without a text in the column.
    """
    return Contamination((each for path in config.paths for each in _some(path, config.column)), config.ngram)


def _some(path: str, name: str) -> Iterator[Listed]:
    empty = True
    for each in _listed(path, name):
        empty = False
        yield each
    if empty:
        raise InputError(f"{SETTING}: {path} lists no problem, so nothing would be kept out; check the file")


def _listed(path: str, name: str) -> Iterator[Listed]:
    if path.lower().endswith(TEXT):
        yield from _text_lines(Path(path))
        return
    for place, row in read_rows(path, None, SETTING):
        if isinstance(row, Reject):
            raise InputError(f"{SETTING}: {place.file}, row {place.line}: {row.detail}")
        problem = column(row, name)
        if not isinstance(problem, str):
            raise InputError(
                f"{SETTING}: {place.file}, row {place.line}: the column {name!r} holds no text; set decontaminate.column to "
                f"one that holds the problem. The row has: {column_names(row)}"
            )
        yield Listed(problem=problem, place=place)


def _text_lines(path: Path) -> Iterator[Listed]:
    with blame(SETTING, path), open_lines(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                problem = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise InputError(f"{SETTING}: {path}, line {number} is not UTF-8: convert the file") from error
            if problem:
                yield Listed(problem=problem, place=Place(file=str(path), line=number))
