"""The command `report`."""

from pipeline.analysis.settings import ReportConfig
from pipeline.cli.command import Command, interruptible


def _report(config: ReportConfig) -> int:
    return _one(config) if len(config.run_dir) == 1 else _two(config)


def _one(config: ReportConfig) -> int:
    from rich.console import Console

    from pipeline.analysis.report.run import report
    from pipeline.analysis.report.terminal import print_lines

    with interruptible():
        lines = report(config)
    print_lines(Console(highlight=False), lines)
    return 0


def _two(config: ReportConfig) -> int:
    from rich.console import Console

    from pipeline.analysis.compare.page import write_comparison
    from pipeline.analysis.compare.tables import print_comparison
    from pipeline.analysis.report.terminal import print_lines

    with interruptible():
        found, out = write_comparison(config)
    console = Console(highlight=False)
    print_comparison(console, found)
    print_lines(console, ["", f"report    {out.resolve().as_uri()}"])
    return 0


REPORT = Command(
    name="report",
    summary="what a run came to, as one HTML page and in a few lines, also of an unfinished run; or two runs side by side",
    examples="""\
report: a page with charts of values, labels, rollouts and cost, and all chains to browse; nothing in it needs a network.

  python -m pipeline report run_dir=out
  python -m pipeline report run_dir=s3://bucket/run out=report.html planned=plan.json

The page is report.html in the run directory, where `label` has written it too. It shows the current labels, those of `relabel`
and `regrade` too, and of an unfinished run what is there so far.

  python -m pipeline report run_dir=[old,new]

puts two runs side by side on the prefixes that both have labelled: what their settings differ in, how far values shifted, how
many labels flip, what of it is sampling noise, and what each cost. The page is compare.html here, or out=FILE.
""",
    schema=ReportConfig,
    run=_report,
)
