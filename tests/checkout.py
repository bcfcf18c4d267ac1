"""Where this checkout lies, and rows written as JSONL. Needs no development package: the GPU image has this and no pytest."""

import json
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write_rows(path: Path, rows: Sequence[dict[str, object]]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
