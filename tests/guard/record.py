"""Record again what the guard compares with: `python -m tests.guard.record [PART ...]`, all parts or those named:

    runs          stored/runs-*.json: runs over two data sets, relabelled, regraded and exported
    capabilities  stored/CAPABILITY.json: what the other commands come to
    command_lines stored/command_lines.json, refused.json, settings.json: keys and groups from what `lines.py` makes. All
                  other lines are listed there by hand: a new one is added and recorded. Names of settings of
                  implementations that are not the default are kept for as long as they are known

Legitimate where a change means to alter what users have, and says so in CHANGELOG.md: a label rule that is corrected, a new
column, a message in other words, a new setting. The difference in the stored files is then part of what is
reviewed, line by line, and nothing else may be in it.

Never legitimate because a test of the guard fails in a change that only moves code.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.guard.capabilities import all_golden
from tests.guard.digests import differences, laid_out
from tests.guard.lines import COMMANDS, accepted, keys_that_were, refusal
from tests.guard.runs import DATA, ESTIMATORS, everything
from tests.guard.terminal import HERE

STORED = HERE / "stored"


def stored(name: str) -> Any:
    """What was recorded under a name."""
    return json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))


def write(name: str, found: Any) -> None:
    """Store what was found, and say what of it is another than before."""
    for line in differences(found, stored(name) if (STORED / f"{name}.json").exists() else {}):
        print(f"{name}: {line}")
    (STORED / f"{name}.json").write_text(laid_out(found) + "\n", encoding="utf-8")


def runs() -> None:
    for data in DATA:
        with tempfile.TemporaryDirectory() as folder:
            for estimator, found in everything(Path(folder), data, ESTIMATORS).items():
                write(f"runs-{data}-{estimator}", found)


def capabilities() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for capability, found in all_golden(Path(folder)).items():
            write(capability, found)


def command_lines() -> None:
    write("command_lines", accepted(stored("command_lines")))
    write("refused", {line: refusal(line) for line in stored("refused")})
    earlier = stored("settings")
    write("settings", {command: keys_that_were(command, earlier.get(command, [])) for command in COMMANDS})


PARTS: dict[str, Callable[[], None]] = {"runs": runs, "capabilities": capabilities, "command_lines": command_lines}

if __name__ == "__main__":
    asked = sys.argv[1:] or list(PARTS)
    if not set(asked) <= PARTS.keys():
        raise SystemExit(__doc__)
    STORED.mkdir(exist_ok=True)
    for part in asked:
        PARTS[part]()
