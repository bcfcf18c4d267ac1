"""Commands, one after the other in one process: `python -m tests.guard.batch ANSWERS`, with a JSON list on standard input.

`main` runs each. Its exit code and what it printed go into the file ANSWERS. `copy FROM TO` copies a
folder, so that what a command leaves can be looked at behind the next one too; `cd FOLDER` goes on in another one.
The workers are in this process too.
"""

import contextlib
import io
import json
import os
import shutil
import sys
from pathlib import Path

from pipeline.__main__ import main
from tests.runtime.without_ray import without_ray


def run(words: list[str]) -> dict[str, object]:
    """One command, without the word that starts the program."""
    if words[0] == "copy":
        shutil.copytree(words[1], words[2])
        return {"code": 0, "out": "", "err": ""}
    if words[0] == "cd":
        os.chdir(words[1])
        return {"code": 0, "out": "", "err": ""}
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    with without_ray():
        Path(sys.argv[1]).write_text(json.dumps([run(words) for words in asked]), encoding="utf-8")
