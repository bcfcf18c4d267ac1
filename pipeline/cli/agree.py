"""The command `agree`: compares a run's labels, or step scores, with human labels and prints the report."""

from typing import Any

from pipeline.analysis.settings import AgreeConfig
from pipeline.cli.command import Command, Here
from pipeline.config.choices import Layout


def _show(config: AgreeConfig, found: Any) -> None:
    if config.scores is None:
        from pipeline.analysis.agree.render import print_agreement

        print_agreement(found)
        return
    from rich.console import Console

    from pipeline.analysis.agree.run import page_path
    from pipeline.analysis.agree.score_tables import print_scores
    from pipeline.analysis.report.terminal import print_lines

    console = Console(highlight=False)
    print_scores(console, found)
    page = page_path(config)
    ending = f"page      {page.resolve().as_uri()}" if page else "page=FILE.html makes a page of these figures"
    print_lines(console, ["", ending])


AGREE = Command(
    name="agree",
    summary="compare labels or scores with human labels, such as ProcessBench",
    about=(
        "agree: compare a run's labels, or the step scores of any model, with human labels of the same chains: F1 as in "
        "ProcessBench, first errors, single steps."
    ),
    examples=(
        "agree data=processbench data.path=cases.jsonl run_dir=out out=agreement.json",
        "agree data=processbench data.path=cases.jsonl scores=scores.parquet threshold=dev dev=gsm8k out=agreement.json",
        "agree data=prmbench data.path=prmbench.jsonl scores=scores threshold=0.5 page=prmbench.html",
        "agree data=prm800k data.path=phase2_test.jsonl run_dir=out neutral=bad",
    ),
    notes="""\
Label the same file first: label data=processbench data.path=processbench.jsonl run_dir=out. Chains are matched by their
texts. ProcessBench's `label` (or `first_error`) is the first wrong step, counted from 0, or -1; PRM800K has ratings, and
PRMBench error steps, counted from 1. It prints tables; out=FILE gets all figures as JSON.

scores=FILE judges step scores instead, from 0 to 1, as `score` writes them: score the same file first. The threshold is
fixed, or the best one on a subset that you name (threshold=dev dev=gsm8k). The best one of each subset is shown as an upper
bound. page=FILE.html is a page of all figures, and is written beside out=FILE too.
""",
    most_used=("run_dir", "scores", "data", "data.path", "threshold", "dev", "out", "page"),
    schema=AgreeConfig,
    run=Here(finds="pipeline.analysis.agree.run:agree", shows=_show),
    flags=("partial",),
    # The other options of `data` are data sets without step labels. They have no layout of their own.
    offers={"data": [layout.value for layout in Layout]},
)
