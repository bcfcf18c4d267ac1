"""What the parts of `make bench-gpu` found, as one table and one JSON file. Pure, but for writing the file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

TEXT, JSON = "bench-gpu.txt", "bench-gpu.json"
MAX_WHY = 300
"""Characters of a reason in the table. All of it is in the JSON file."""


class State(StrEnum):
    """How a part ended. `WRONG`: it ran, and what it found is not as it should be."""

    DONE = "done"
    WRONG = "wrong"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Of one part. `figures` have their unit in their names; `said` are lines for people; `why`: of anything but done."""

    part: str
    state: State
    seconds: float = 0.0
    figures: Mapping[str, float | str | None] = field(default_factory=dict)
    said: Sequence[str] = ()
    why: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Result":
        stored = json.loads(text)
        return cls(**{**stored, "state": State(stored["state"])})


def table(results: Sequence[Result]) -> list[str]:
    """A line for each part, with its reason and what it says below."""
    width = max(len(result.part) for result in results)
    lines = []
    for result in results:
        first, *rest = [*([_short(result.why)] if result.why else []), *result.said, *([] if result.said else [""])]
        lines.append(f"{result.part:<{width}}  {result.state:<7}  {result.seconds:5.0f} s  {first}".rstrip())
        lines.extend(f"{'':<{width}}  {'':<7}  {'':5}    {line}".rstrip() for line in rest if line)
    return lines


def write(folder: Path, origin: str, model: str, results: Sequence[Result]) -> None:
    """Both files. They are written again after every part, so that a bench that is cut off leaves what it has."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TEXT).write_text("\n".join([origin, model, "", *table(results), ""]), encoding="utf-8")
    stored = {"origin": origin, "model": model, "parts": [asdict(result) for result in results]}
    (folder / JSON).write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def _short(why: str) -> str:
    line = " ".join(why.split())
    return line if len(line) <= MAX_WHY else "... " + line[-MAX_WHY:]
