"""The commands that say how good labels and scores are: `select`, `agree` and `calibrate`; and `grade`, the answer checker
alone."""

from typing import TYPE_CHECKING, Any

from pipeline.analysis.settings import AgreeConfig, CalibrateConfig, SelectConfig
from pipeline.cli.command import Command, Here, imported, interruptible
from pipeline.config.choices import Layout
from pipeline.config.label import GradeConfig

if TYPE_CHECKING:
    from pipeline.analysis.calibrate.report import CalibrationReport


def _select(config: SelectConfig) -> int:
    from pipeline.analysis.select.run import select
    from pipeline.display.terminal import show

    with interruptible():
        show(select(config))
    return 0


SELECT = Command(
    name="select",
    summary="choose the best of N by scores, and compare with votes and chance",
    about=(
        "select: choose the best of n candidates by their scores, and say how often it is right. For comparison: majority "
        "vote, a vote weighted by scores, an outcome reward model, chance and the best possible choice. Or compare runs of "
        "`search`."
    ),
    examples=(
        "select scores=prm.parquet best=chosen.jsonl",
        "select searches=[beam,best_of_n]",
        "select scores=prm.parquet outcome_scores=orm.parquet run_dir=heldout n=[1,4,16]",
    ),
    notes="""\
`score` makes the scores. A figure for n candidates is the mean over all ways to take n of those that a problem has (over
500 random ones for votes). run_dir names the run that sampled the candidates: a chain that was drawn several times then
counts as often.

A run of `search` has scored candidates, so scores=RUN takes it too; best=FILE then writes what the search chose. searches=RUN
or searches=[RUN,...] compares what searches chose, on the problems that all runs have. A run of independent chains, such as one
of search=best_of_n, is what the others are compared with: the best of as many chains as cost the same tokens in all.
""",
    most_used=("scores", "searches", "outcome_scores", "run_dir", "n", "out", "best"),
    schema=SelectConfig,
    run=_select,
)


def _show_agreement(config: AgreeConfig, found: Any) -> None:
    from pipeline.analysis.agree import label_tables, score_sections
    from pipeline.analysis.agree.run import page_path
    from pipeline.display.terminal import show

    if config.scores is None:
        show([*label_tables.count_lines(found), *label_tables.tables(found)])
        return
    page = page_path(config)
    ending = f"page      {page.resolve().as_uri()}" if page else "page=FILE.html makes a page of these figures"
    show([*score_sections.lines(found), *score_sections.sections(found), "", ending])


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
    run=Here(finds="pipeline.analysis.agree.run:agree", shows=_show_agreement),
    flags=("partial",),
    # The other options of `data` are data sets without step labels. They have no layout of their own.
    offers={"data": [layout.value for layout in Layout]},
)


def _show_calibration(config: CalibrateConfig, found: "CalibrationReport") -> None:
    from pipeline.analysis.calibrate.run import page_path
    from pipeline.analysis.calibrate.sections import lines, sections
    from pipeline.display.terminal import show

    ending = ["", f"written   {config.out}", f"page      {page_path(config).resolve().as_uri()}"]
    show([*lines(found), *sections(found), *ending])


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
    run=Here(finds="pipeline.analysis.calibrate.run:calibrate", shows=_show_calibration),
    flags=("partial",),
)


GRADE = Command(
    name="grade",
    summary="check answers: read JSON lines and add a verdict to each",
    about=(
        "grade: the answer checker alone. It reads JSON lines and writes the same lines in the same order with verdict, "
        "answer and ms."
    ),
    examples=("grade input=cases.jsonl output=verdicts.jsonl",),
    notes="""\
  zcat outputs.jsonl.gz | python -m pipeline grade grader.processes=2 | grep '"incorrect"'

  {"gold": "1/2", "prediction": "So it is \\\\boxed{0.5}."}         a whole output that states its answer
  {"gold": ["2", "-2"], "prediction": "-2", "extracts": false}   a bare answer; any of several golds counts

A line that cannot be graded comes back with an error that names its number, and the exit code is 2. Blank lines are left out.
Input may end in .gz or .zst. An output file appears when it is whole.
""",
    most_used=(
        "input",
        "output",
        "grader",
        "grader.processes",
        "grader.deadline_seconds",
        "grader.fallback",
        "grader.answer_pattern",
    ),
    schema=GradeConfig,
    run=imported("pipeline.cli.grade_lines:grade_lines"),
)
