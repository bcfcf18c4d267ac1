"""The command `agree`: compares a run's labels with human labels and prints the report."""

from pipeline.analysis.settings import AgreeConfig
from pipeline.cli.command import Command, interruptible
from pipeline.config.choices import Layout


def _agree(config: AgreeConfig) -> int:
    from pipeline.analysis.agree.render import print_agreement
    from pipeline.analysis.agree.run import agree

    with interruptible():
        print_agreement(agree(config))
    return 0


AGREE = Command(
    name="agree",
    summary="compare labels with human labels, such as ProcessBench or PRM800K",
    about="agree: compare a run's labels with human labels of the same chains: F1 as in ProcessBench, accuracy, first errors.",
    examples=(
        "agree data=processbench data.path=cases.jsonl run_dir=out out=agreement.json",
        "agree data=prm800k data.path=phase2_test.jsonl run_dir=out neutral=bad",
    ),
    notes="""\
Label the same file first: label data=processbench data.path=processbench.jsonl run_dir=out. Chains are matched by their
texts. ProcessBench's `label` (or `first_error`) is the first wrong step, counted from 0, or -1; PRM800K has ratings. It
prints tables; out=FILE gets all figures as JSON.
""",
    most_used=(
        "run_dir",
        "data",
        "data.path",
        "column",
        "neutral",
        "out",
        "partial",
    ),
    schema=AgreeConfig,
    run=_agree,
    flags=("partial",),
    # The other options of `data` are data sets without step labels. They have no layout of their own.
    offers={"data": [layout.value for layout in Layout]},
)
