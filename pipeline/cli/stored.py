"""The commands `relabel`, `regrade` and `audit`, which work on the stored rollouts of a run."""

from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.config.changes import AuditConfig, RegradeConfig, RelabelConfig


def _relabel(config: RelabelConfig) -> int:
    from rich.console import Console

    from pipeline.analysis.relabel import relabel
    from pipeline.analysis.report.terminal import print_new_labels

    with interruptible():
        print_new_labels(Console(highlight=False), relabel(config))
    return 0


def _regrade(config: RegradeConfig) -> int:
    from rich.console import Console

    from pipeline.analysis.relabel import regrade
    from pipeline.analysis.report.terminal import print_new_labels

    with interruptible():
        print_new_labels(Console(highlight=False), regrade(config))
    return 0


def _audit(config: AuditConfig) -> int:
    from pipeline.analysis.audit.run import audit

    with interruptible():
        report = audit(config)
    write_lines(report.lines())
    return 0 if report.sound else 1


RELABEL = Command(
    name="relabel",
    summary="make other labels from a finished run, by another rule",
    about=(
        "relabel: make new labels from the rollouts of a finished run. labels/ holds the newest labels; the earlier ones "
        "are kept. A setting that is not named stays as the labels were made."
    ),
    examples=(
        "relabel run_dir=out estimator.rule=first_error",
        "relabel run_dir=out estimator.rule=consensus consensus.how=exact",
        "relabel run_dir=out estimator.rule=threshold estimator.threshold=0.3",
        "relabel run_dir=out estimator.rule=consensus consensus.witnesses=[judge:qwen,scores:scores.parquet]",
        "relabel run_dir=out estimator.interval=jeffreys estimator.confidence=0.9",
    ),
    notes="""\
Where the labels are what is asked for already, nothing is written.

estimator.rule=consensus joins what Monte Carlo says of a chain with what other witnesses say: judges of the run (see `judge`),
and scores of process reward models (see `score`). exact keeps the labels of chains on which all name the same first error, or
none. side labels the steps on which they agree. posterior learns from the run how reliable each of them is, and labels a step
whose label has at least the probability estimator.certainty; `p_error_free` in the labels is a soft target for every step.
consensus.recalibrate=FILE, people's labels of some chains, limits its probabilities to what these chains support.
""",
    most_used=(
        "run_dir",
        "estimator.rule",
        "estimator.threshold",
        "estimator.certainty",
        "consensus.how",
        "consensus.witnesses",
    ),
    schema=RelabelConfig,
    run=_relabel,
)

REGRADE = Command(
    name="regrade",
    summary="grade a finished run's stored texts again, and make new labels",
    about=(
        "regrade: check all stored completions and chains again, with other settings or a newer checker, and label from "
        "the new verdicts. A setting that is not named stays as it was."
    ),
    examples=(
        "regrade run_dir=out grader.fallback=none",
        "regrade run_dir=out grader.deadline_seconds=5 estimator.rule=threshold",
    ),
    notes="""\
`relabel` goes on from the new verdicts. The critiques of the run's judges are read again too: where a reading changes, the new
readings count.
""",
    most_used=(
        "run_dir",
        "grader.deadline_seconds",
        "grader.fallback",
        "grader.answer_pattern",
        "estimator.rule",
        "estimator.threshold",
    ),
    schema=RegradeConfig,
    run=_regrade,
)

AUDIT = Command(
    name="audit",
    summary="check a run directory: files, checksums, totals and labels",
    about=(
        "audit: check everything in a run directory: records, checksums, schemas, totals, that every planned rollout is "
        "there exactly once, and that the labels follow from the log; so too judges, checks and searches. Prints "
        "`sound`, or every fault."
    ),
    examples=(
        "audit run_dir=out",
        "audit --prune run_dir=out",
    ),
    notes="""\
It writes nothing, and may be used while `label` works; it then says that the run is unfinished. With --prune, and only
where nothing is wrong, it removes temporary files, files that no record names, damaged/, parts that were put together, and
editions of labels that are not current. Exit code 0: sound, 1: not, 2: no run.
""",
    most_used=(
        "run_dir",
        "prune",
        "lock",
    ),
    schema=AuditConfig,
    run=_audit,
    flags=("prune",),
)
