"""The command `calibrate`: turns step scores into probabilities with fresh rollouts, and prints how good they are."""

from typing import TYPE_CHECKING

from pipeline.analysis.settings import CalibrateConfig
from pipeline.cli.command import Command, Here

if TYPE_CHECKING:
    from pipeline.analysis.calibrate.run import CalibrationReport


def _show(config: CalibrateConfig, found: "CalibrationReport") -> None:
    from rich.console import Console

    from pipeline.analysis.calibrate.run import page_path
    from pipeline.analysis.calibrate.tables import print_report
    from pipeline.analysis.report.terminal import print_lines

    console = Console(highlight=False)
    print_report(console, found)
    print_lines(console, ["", f"written   {config.out}", f"page      {page_path(config).resolve().as_uri()}"])


CALIBRATE = Command(
    name="calibrate",
    summary="turn scores into probabilities with fresh rollouts of a policy",
    about=(
        "calibrate: fit maps from the step scores of any model to V, the probability that the policy in use ends the chain "
        "right, and say how far scores are from it before and after."
    ),
    examples=(
        "calibrate scores=scores.parquet run_dir=fresh out=cal.json",
        "calibrate scores=scores.parquet run_dir=fresh out=cal.json group_prefixes=500 page=calibration.html",
    ),
    notes="""\
Label chains of problems that the model was not trained on with the policy in use (label estimator=fixed run_dir=fresh), and
score them (score model=prm run_dir=fresh out=scores.parquet). `score calibration=cal.json` then writes calibrated scores.

V is one truth: will this end right? People's word is another: is this step correct? A calibration knows V alone, and holds
for this model and this policy. `agree` compares scores with people's word.
""",
    most_used=("scores", "run_dir", "out", "page", "group_prefixes", "least_prefixes", "folds", "partial"),
    schema=CalibrateConfig,
    run=Here(finds="pipeline.analysis.calibrate.run:calibrate", shows=_show),
    flags=("partial",),
)
