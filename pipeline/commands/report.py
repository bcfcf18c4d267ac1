"""The command `report`."""

from pipeline.commands.command import Command, interruptible
from pipeline.report.settings import ReportConfig


def _report(config: ReportConfig) -> int:
    from rich.console import Console

    from pipeline.report.run import report
    from pipeline.report.terminal import print_lines

    with interruptible():
        lines = report(config)
    print_lines(Console(highlight=False), lines)
    return 0


REPORT = Command(
    name="report",
    summary="what a run came to, as one HTML page and in a few lines; also of an unfinished run",
    examples="""\
report: a page with charts of values, labels, rollouts and cost, and all chains to browse; nothing in it needs a network.

  python -m pipeline report run_dir=out
  python -m pipeline report run_dir=s3://bucket/run out=report.html planned=plan.json

The page is report.html in the run directory, where `label` has written it too. It shows the current labels, those of `relabel`
and `regrade` too, and of an unfinished run what is there so far.
""",
    schema=ReportConfig,
    run=_report,
)
