"""What is compared: tables by column and files by content, as short digests.

Numbers with a fraction are compared to SIGNIFICANT digits, in tables and in text, for the last bits are another processor's or
library's to choose: numpy's logarithm with AVX-512 is not the one without.
Nothing else is left out but what MASKED_COLUMNS and MASKED_TEXT name.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.export.result import CARD

SIGNIFICANT = 7
DIGEST_CHARS = 16
_PRECISE = re.compile(r"-?\d+\.\d{8,}(e-?\d+)?")

MASKED_COLUMNS = frozenset({"grader", "file"})
"""Of stored tables: the version of the checker, and where an input lay: for the sample, where the program lies."""
MASKED_SETTINGS = frozenset({"check", "grader_version"})
"""Of run.json: the version of the checker, and the check sum over it."""
MASKED_TEXT = (
    (re.compile(r"stepvalue-\d+\.\d+\.\d+"), "stepvalue-VERSION"),
    (re.compile(r"^time .*\n", re.MULTILINE), ""),
    (
        re.compile(
            r"^(reading the input|starting|loading the policy|loading the model|labelling|stopping) .*\n", re.MULTILINE
        ),
        "",
    ),
    (re.compile(r"interrupted: .* ago"), "interrupted: TIME ago"),
    (re.compile(r"^(start|cost) .*\n", re.MULTILINE), ""),
    (re.compile(r"(\d[\d,]* lines) in [\d.]+ s"), r"\1"),
)
"""Of what commands print and `export` writes: versions, times, and processes."""
KEYS = {"labels": "chain_id", "rollouts": "rollout_id", "inputs": "chain_id"}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_CHARS]


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


def columns(frame: pl.DataFrame) -> dict[str, str]:
    """A digest of each column: its type and its values."""
    return {
        name: digest(f"{frame.schema[name]}\n{json.dumps(_plain(frame[name].to_list()))}".encode())
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
            found[name] = digest(json.dumps(columns(pl.read_parquet(path))).encode())
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
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value
