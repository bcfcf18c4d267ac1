"""What is compared: tables by column and files by content, as short digests.

Numbers with a fraction are compared to SIGNIFICANT digits, in tables and in text, for the last bits are another processor's or
library's to choose: numpy's logarithm with AVX-512 is not the one without.
Nothing else is left out but what MASKED_COLUMNS and MASKED_TEXT name.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.export.result import CARD

SIGNIFICANT = 7
DIGEST_CHARS = 8
EXPORTED_CHARS = 16
"""Of the digests of columns that the digest of an exported table is made of."""
_PRECISE = re.compile(r"-?\d+\.\d{8,}(e-?\d+)?")

MASKED_COLUMNS = frozenset({"grader", "file", "seconds", "took"})
"""Of stored tables: the version of the checker; where an input lay: for the sample, where the program lies; and times."""
MASKED_SETTINGS = frozenset({"check", "grader_version", "verifier_version"})
"""Of run.json: versions, and the check sum over them."""
MASKED_FIELDS = frozenset({*MASKED_SETTINGS, "made_at", "seconds", "start_seconds", "stepvalue"})
"""Of other JSON: times too."""
MASKED_TEXT = (
    (re.compile(r"stepvalue-\d+\.\d+\.\d+"), "stepvalue-VERSION"),
    (re.compile(r"^time .*\n", re.MULTILINE), ""),
    (re.compile(r"^[a-z0-9_: ]+ \d+:\d\d:\d\d( \|.*)?\n", re.MULTILINE), ""),
    (re.compile(r"interrupted: .* ago"), "interrupted: TIME ago"),
    (re.compile(r"^(start|cost) .*\n", re.MULTILINE), ""),
    (re.compile(r"(\d[\d,]* lines) in [\d.]+ s"), r"\1"),
    (re.compile(r"^(this start|slow scorer): .*\n", re.MULTILINE), ""),
    (re.compile(r"in [\d.]+ s, after [\d.]+ s to start"), "in SECONDS"),
)
"""Of what commands print and `export` writes: versions, times, and processes."""
KEYS = {"labels": "chain_id", "rollouts": "rollout_id", "inputs": "chain_id"}
PASSING = frozenset({"aside", "flushed", "commits", "starts"})
"""Folders of a run directory that say how it came about, and when."""
DETAILS = frozenset({"chains", "inputs", "rollouts", "solutions", "candidates", "samples", "stepscores", "allotments"})
"""Tables of which no row is stored to look at: others show what came of them."""
GLANCE_CHARS, GLANCE_ITEMS = 60, 3
LINE_CHARS = 128


def digest(data: bytes, chars: int = DIGEST_CHARS) -> str:
    return hashlib.sha256(data).hexdigest()[:chars]


def masked(text: str, *folders: Path) -> str:
    """What was printed or exported, without what differs from run to run."""
    for folder in folders:
        text = text.replace(str(folder), "FOLDER")
    for pattern, instead in MASKED_TEXT:
        text = pattern.sub(instead, text)
    return text


def table(run_dir: Path, kind: str) -> pl.DataFrame:
    """All rows of a kind, in the order of their ids."""
    return pl.concat([pl.read_parquet(path) for path in sorted((run_dir / kind).glob("*.parquet"))]).sort(KEYS[kind])


def columns(frame: pl.DataFrame, chars: int = DIGEST_CHARS) -> dict[str, str]:
    """A digest of each column: its type and its values."""
    return {
        name: digest(f"{frame.schema[name]}\n{json.dumps(_plain(frame[name].to_list()))}".encode(), chars)
        for name in frame.columns
        if name not in MASKED_COLUMNS
    }


def tables(run_dir: Path) -> dict[str, Any]:
    """A run's tables of labels, rollouts and inputs: rows, digests, and the first row of labels to look at."""
    found: dict[str, Any] = {}
    for kind in KEYS:
        frame = table(run_dir, kind)
        found[kind] = {"rows": frame.height, "columns": columns(frame)}
        if kind == "labels":
            found[kind]["first"] = _plain(frame.row(0, named=True))
        if kind == "rollouts":
            counts = frame.group_by("verdict").len().rows()
            found[kind]["verdicts"] = {str(verdict): count for verdict, count in sorted(counts)}
    return found


def made(path: Path, mask: Callable[[str], str]) -> dict[str, Any]:
    """What a command made, a file or a folder: tables by their columns, JSON by its values, models by their shapes, and other
    text by its digest, once it is masked."""
    if not path.is_dir():
        return _file(path, mask)
    found: dict[str, Any] = {}
    for each in sorted(each for each in path.rglob("*") if each.is_file()):
        name = each.relative_to(path)
        kind = name.parent.as_posix()
        if PASSING & set(name.parts) or each.suffix == ".html" or name.name.startswith("."):
            continue
        if each.suffix != ".parquet":
            found[name.as_posix()] = _file(each, mask)
        elif kind not in found:
            found[kind] = _rows([pl.read_parquet(table) for table in each.parent.glob("*.parquet")], name.parent.name)
    return found


def _file(path: Path, mask: Callable[[str], str]) -> dict[str, Any]:
    match path.suffix:
        case ".parquet":
            return _rows([pl.read_parquet(path)])
        case ".jsonl":
            return _rows([pl.read_ndjson(path, infer_schema_length=None)])
        case ".json":
            found = _unmasked(json.loads(mask(path.read_text(encoding="utf-8"))))
            return {name: _outline(value) for name, value in found.items()}
        case ".safetensors":
            with path.open("rb") as file:
                tensors = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            shapes = {
                name: f"{each['dtype']} {each['shape']}" for name, each in sorted(tensors.items()) if name[0] != "_"
            }
            return {"tensors": _digested(shapes), **Counter(shapes.values())}
        case _:
            return {"digest": digest(mask(path.read_text(encoding="utf-8")).encode())}


def _rows(frames: Sequence[pl.DataFrame], kind: str = "") -> dict[str, Any]:
    """The rows of a table, in an order that depends neither on that of the files nor on that of their making, and one of them
    to look at."""
    frame = pl.concat(frames)
    frame = frame.select(name for name in frame.columns if name not in MASKED_COLUMNS)
    texts = [json.dumps(_plain(row)) for row in frame.rows(named=True)]
    frame = frame[sorted(range(frame.height), key=texts.__getitem__)]
    found: dict[str, Any] = {"rows": frame.height, "columns": columns(frame)}
    if kind not in DETAILS and frame.height:
        found["first"] = {name: _glance(value) for name, value in frame.row(0, named=True).items() if value is not None}
    return found


def _glance(value: Any) -> Any:
    match _plain(value):
        case str() as text if len(text) > GLANCE_CHARS:
            return f"{text[:GLANCE_CHARS]}..."
        case list() as items if len(items) > GLANCE_ITEMS:
            return [*map(_glance, items[:GLANCE_ITEMS]), "..."]
        case plain:
            return plain


def _outline(value: Any) -> Any:
    """A value of JSON to look at: what lies deeper, and lists, as a digest."""
    if isinstance(value, dict):
        return {name: _digested(inner) for name, inner in value.items()}
    return _digested(value)


def laid_out(value: Any, indent: int = 0) -> str:
    """JSON in lines of which a reader of a difference sees at once what changed: short values share a line, others have one of
    their own."""
    whole = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(whole) + indent <= LINE_CHARS:
        return whole
    if isinstance(value, dict):
        first, last = "{}"
        items = [
            f"{json.dumps(name, ensure_ascii=False)}: {laid_out(each, indent + 1)}" for name, each in value.items()
        ]
    else:
        first, last = "[]"
        items = [laid_out(each, indent + 1) for each in value]
    together = isinstance(value, dict) or not any(" " in item for item in items)
    lines: list[str] = []
    for item in items:
        if lines and together and "\n" not in lines[-1] + item and len(lines[-1]) + len(item) < LINE_CHARS - indent:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    space = "\n" + " " * (indent + 1)
    return f"{first}{space}{f',{space}'.join(lines)}{space[:-1]}{last}"


def _digested(value: Any) -> Any:
    if isinstance(value, dict | list) and value:
        return f"{len(value)} {digest(json.dumps(_plain(value)).encode())}"
    return _glance(value)


def _unmasked(value: Any) -> Any:
    """Without the fields of JSON that differ from run to run."""
    if isinstance(value, list):
        return [_unmasked(item) for item in value]
    if isinstance(value, dict):
        return {name: _unmasked(inner) for name, inner in value.items() if name not in MASKED_FIELDS}
    return value


def differences(found: Any, expected: Any, place: str = "") -> Iterator[str]:
    """A line for each value that is another one than expected, with its place."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in {**expected, **found}:
            yield from differences(found.get(name), expected.get(name), f"{place} > {name}" if place else str(name))
    elif _are_lines(found) and _are_lines(expected):
        for line in unified_diff(expected, found, n=0, lineterm=""):
            if line[:2] not in ("--", "++", "@@"):
                yield f"{place}: {line}"
    elif found != expected:
        yield f"{place}: was {expected}, is {found}"


def _are_lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def unspaced(text: str) -> str:
    """A text without what fills the columns of a table, for they are as wide as the times in it."""
    return "\n".join(re.sub(r" {2,}", "  ", line.rstrip()) for line in text.splitlines() if line.strip())


def differing(run_dir: Path, own: dict[str, str]) -> dict[str, str]:
    """The digests of those columns of the labels that are not what they were."""
    return {name: found for name, found in columns(table(run_dir, "labels")).items() if own.get(name) != found}


def exported(folder: Path, *folders: Path) -> dict[str, Any]:
    """What `export` wrote: Parquet by its columns, anything else by its text, in which folders and versions are masked.

    The card is left out: it is for readers, and `tests/export/test_hub.py` looks at it."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CARD):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".parquet":
            found[name] = digest(json.dumps(columns(pl.read_parquet(path), EXPORTED_CHARS)).encode())
        else:
            found[name] = digest(_PRECISE.sub(_short, masked(path.read_text(encoding="utf-8"), *folders)).encode())
    return found


def settings(run_dir: Path) -> dict[str, Any]:
    """A run's identity as run.json has it, versions left out."""
    found = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))
    return {name: value for name, value in found.items() if name not in MASKED_SETTINGS}


def _short(number: re.Match[str]) -> str:
    return repr(_plain(float(number[0])))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT}g}")
    if isinstance(value, str):  # A column may hold JSON.
        return _PRECISE.sub(_short, value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value
