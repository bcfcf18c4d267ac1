"""A hundred thousand hostile answers through one checker, in a process and in folders of their own.

Started as a program with a count: prints what the flood left behind as JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from pipeline.graders.registry import checker_for
from tests.conftest import ROOT
from tests.graders.flood import Usage, Wake, flood
from tests.graders.hostile import hostile_answers
from tests.settings import grader_settings

ANSWERS = 100_000
COUNT_VARIABLE = "STEPVALUE_BENCH_HOSTILE"
SEED = 1


def hostile_flood() -> Wake:
    """Grade `ANSWERS` of them, or as many as the environment says."""
    count = os.environ.get(COUNT_VARIABLE, str(ANSWERS))
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        work, temporary = Path(folder, "work"), Path(folder, "tmp")
        work.mkdir()
        temporary.mkdir()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tests.bench.grading_hostile", count],
            cwd=work,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            check=True,
        )
    report = json.loads(done.stdout)
    return Wake(**report | {"usage": [Usage(**usage) for usage in report["usage"]]})


if __name__ == "__main__":
    answers = int(sys.argv[1])
    with checker_for(grader_settings()) as checker:
        print(json.dumps(asdict(flood(checker, hostile_answers(answers, SEED), answers))))
