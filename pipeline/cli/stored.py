"""The commands that work on a finished run: `relabel`, `regrade` and `audit`."""

from rich.console import Console

from pipeline.cli.command import Command, interruptible, write_out
from pipeline.config.changes import AuditConfig, RegradeConfig, RelabelConfig


def _relabel(config: RelabelConfig) -> int:
    from pipeline.analysis.relabel import relabel
    from pipeline.analysis.report.terminal import print_new_labels

    with interruptible():
        print_new_labels(Console(highlight=False), relabel(config))
    return 0


def _regrade(config: RegradeConfig) -> int:
    from pipeline.analysis.relabel import regrade
    from pipeline.analysis.report.terminal import print_new_labels

    with interruptible():
        print_new_labels(Console(highlight=False), regrade(config))
    return 0


def _audit(config: AuditConfig) -> int:
    from pipeline.analysis.audit.run import audit, audit_lines

    with interruptible():
        report = audit(config)
    write_out("".join(f"{line}\n" for line in audit_lines(report)))
    return 0 if report.sound else 1


RELABEL = Command(
    name="relabel",
    summary="other labels from a finished run: another rule, threshold or interval; no model is loaded",
    examples="""\
relabel: new labels from the rollouts of a finished run, as a new edition; labels/ holds the newest, the others are kept aside.

  python -m pipeline relabel run_dir=out estimator.rule=threshold estimator.threshold=0.3
  python -m pipeline relabel run_dir=out estimator.interval=jeffreys estimator.confidence=0.9

What is not named stays as the labels were made. Where they are what is asked for already, nothing is written.
""",
    schema=RelabelConfig,
    run=_relabel,
)

REGRADE = Command(
    name="regrade",
    summary="other verdicts from a finished run's stored text, and labels from them; no model is loaded",
    examples="""\
regrade: check all stored completions and chains anew, with other settings or a newer checker, and label from the new verdicts.

  python -m pipeline regrade run_dir=out grader.fallback=none
  python -m pipeline regrade run_dir=out grader.deadline_seconds=5 grader.processes=8 estimator.rule=threshold

What is not named stays as the verdicts and labels were made. `relabel` goes on from the new verdicts.
""",
    schema=RegradeConfig,
    run=_regrade,
)

AUDIT = Command(
    name="audit",
    summary="prove a run directory anew: files, ids of rollouts, totals and labels; --prune removes what nothing needs",
    examples="""\
audit: read everything a run directory holds and prove it: records, checksums, schemas, every planned rollout exactly once,
totals, and labels computed anew from the log. Prints what was looked at, then `sound`, or every fault with its remedy.

  python -m pipeline audit run_dir=out
  python -m pipeline audit --prune run_dir=out

It writes nothing, and may be used while `label` works, of which it then says that it is unfinished. With --prune, and only
where nothing is wrong, it removes temporary files, files that no record names, damaged/, parts that were put together, and
editions of labels that are not current. Exit code 0: sound, 1: not, 2: no run.
""",
    schema=AuditConfig,
    run=_audit,
    flags=("prune",),
)
