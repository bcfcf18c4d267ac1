"""`report` of two runs: compared, and the page put where it is wanted."""

import shlex
import time
from pathlib import Path

from pipeline import __version__
from pipeline.analysis.compare.compared import Comparison
from pipeline.analysis.compare.page import page
from pipeline.analysis.compare.run import compare
from pipeline.analysis.report.contents import moment
from pipeline.analysis.report.page import GENERATOR
from pipeline.analysis.report.settings import ReportConfig
from pipeline.core.errors import UsageError
from pipeline.storage.files import check_output_file, refuse_foreign, refuse_overwriting, replaced_at_end
from pipeline.storage.place import folder_at

NAME = "compare.html"
"""In the current folder: the page belongs to neither run."""


def compared(config: ReportConfig) -> tuple[Comparison, Path]:
    """What the two runs came to, and where the page of it is.

    Raises as `compare` does, UsageError for a plan and for an `out` that cannot be written, lies in one of the runs, or
    is there and no page of ours; StoreError.
    """
    if config.planned is not None:
        raise UsageError(f"planned={config.planned} is the plan of one run: leave it out where two are compared")
    out = Path(NAME if config.out is None else config.out).expanduser()
    check_output_file("out", out)
    refuse_overwriting({"out": out}, [folder_at(run_dir) for run_dir in config.run_dir])
    refuse_foreign("out", out, GENERATOR, "report")
    found = compare(config.run_dir)
    data = page(found, (f"stepvalue {__version__}, {moment(time.time())} UTC", _command(config)))
    with replaced_at_end(out) as file:
        file.write(data)
    return found, out


def _command(config: ReportConfig) -> str:
    words = [f"run_dir=[{','.join(config.run_dir)}]", *([] if config.out is None else [f"out={config.out}"])]
    return shlex.join(["python", "-m", "pipeline", "report", *words])
