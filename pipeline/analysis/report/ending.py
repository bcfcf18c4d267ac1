"""How `label` ends: with the report in short, and with its page."""

from rich.console import Console

from pipeline.analysis.report.reading import link_in, read_run
from pipeline.analysis.report.settings import ReportConfig
from pipeline.analysis.report.terminal import print_lines
from pipeline.core.errors import StepvalueError
from pipeline.storage.starts import REPORT
from pipeline.storage.storage import Storage


def end_with_report(console: Console, storage: Storage, *, page: bool, changed: bool) -> None:
    """Print it and, with `page`, write the page: not again where nothing has `changed`. The run is done, whatever becomes of
    either, and says so."""
    try:
        read = read_run(storage, None)
        print_lines(console, read.short)
        if page:
            if changed or REPORT not in storage.names(""):
                # Loads what draws the charts.
                from pipeline.analysis.report.run import page_data

                storage.replace(REPORT, page_data(storage, read, ReportConfig(run_dir=storage.place)))
            print_lines(console, [f"report    {link_in(storage)}"])
    except Exception as error:  # noqa: BLE001  charts are drawn by others' code; whatever it says, the run is done
        reason = error if isinstance(error, StepvalueError) else f"{type(error).__name__}: {error}"
        print_lines(console, [f"report    none, though the run is done: {reason}"])
