"""What the runs of an experiment came to: a file with a line for each of them, so that none is run again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Results:
    """The lines of a file, which need not exist yet."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def rows(self) -> list[Row]:
        """Everything that was run."""
        if not self._file.exists():
            return []
        return [json.loads(line) for line in self._file.read_text(encoding="utf-8").splitlines()]

    def has(self, key: Mapping[str, object]) -> bool:
        """Whether the run with these entries is there."""
        return any(key.items() <= row.items() for row in self.rows())

    def add(self, row: Mapping[str, object]) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
