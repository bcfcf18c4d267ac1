"""The command `report`: writes the HTML page of a run, or of the comparison of two runs, and prints a summary."""

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
    summary="show a run as an HTML page and in short, or compare two runs",
    about=(
        "report: write an HTML page about a run, with charts of values, labels, rollouts and cost, and with its chains. For "
        "two runs, the page compares the values and labels of the prefixes that both runs have labelled."
    ),
    examples=(
        "report run_dir=out",
        "report run_dir=[old,new] out=compare.html",
        'report run_dir=out tree="What is 3 + 4?"',
        "report run_dir=s3://bucket/run out=report.html planned=plan.json",
    ),
    notes="""\
The page is report.html in the run directory, where `label` has written it too; nothing in it needs a network. It shows the
current labels, those of `relabel` and `regrade` too, and of an unfinished run what is there so far. Of a run of `search` it
shows accuracy, trust and cost, and each problem's tree of steps.

With tree=PROBLEM the page is about one problem: the steps of its chains and rollouts as a tree, each with its value and counts.

Of two runs it shows which settings differ, how far values shifted, how many labels flip, what of it is sampling noise, and
what each run cost. The page is compare.html in the current folder, or out=FILE.
""",
    most_used=("run_dir", "out", "planned", "chains", "tree"),
    schema=ReportConfig,
    run=_report,
)
