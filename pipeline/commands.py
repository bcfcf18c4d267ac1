"""The commands: what each is called, which settings it takes, how it explains itself, and what it runs.

What a command loads, it loads when it runs: Ray and the readers are slow to load, and a wrong setting should be told at once.
"""

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from pipeline.changes import AuditConfig, RegradeConfig, RelabelConfig
from pipeline.config import GradeConfig, LabelConfig
from pipeline.errors import Interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`run` gets the composed settings, an instance of `schema`, and returns the exit code. Raises StepvalueError.

    `examples` stand in its help, above its groups and settings. A flag is a setting that `--name` makes true.
    """

    name: str
    summary: str
    examples: str
    schema: type
    run: Callable[[Any], int]
    flags: tuple[str, ...] = ()


def _label(config: LabelConfig) -> int:
    _set_up_ray(config.cluster.address)
    from pipeline.report.labels import first_chains, reject_counts
    from pipeline.report.terminal import ProgressView, print_chains, print_rejects, print_summary
    from pipeline.run.actors import actors
    from pipeline.run.driver import label
    from pipeline.run.stop import StopSignal
    from pipeline.store.place import storage_at

    console = Console(highlight=False)
    stop = StopSignal()
    stop.listen()
    try:
        with ProgressView(console) as view:
            summary = label(config, actors, view, stop)
    finally:
        stop.release()
    storage = storage_at(summary.run_dir)
    if summary.totals.rejected:
        print_rejects(console, reject_counts(storage))
    if config.run.show_chains:
        print_chains(console, first_chains(storage, config.run.show_chains))
        console.print()
    print_summary(console, summary)
    return 0


def _grade(config: GradeConfig) -> int:
    from pipeline.grade import grade_lines

    return grade_lines(config)


def _relabel(config: RelabelConfig) -> int:
    from pipeline.relabel.labels import relabel
    from pipeline.report.terminal import print_edited

    with _interruptible():
        print_edited(Console(highlight=False), relabel(config))
    return 0


def _regrade(config: RegradeConfig) -> int:
    from pipeline.relabel.verdicts import regrade
    from pipeline.report.terminal import print_edited

    with _interruptible():
        print_edited(Console(highlight=False), regrade(config))
    return 0


def _audit(config: AuditConfig) -> int:
    from pipeline.audit.run import audit
    from pipeline.audit.told import told

    with _interruptible():
        report = audit(config)
    for line in told(report):
        sys.stdout.write(f"{line}\n")
    return 0 if report.sound else 1


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; nothing was changed that counts: start the same command again") from error


def _set_up_ray(address: str | None) -> None:
    """Ray reads these when it is imported."""
    if "ray" in sys.modules:
        return
    if address is not None:
        # Ray 2.60 makes clusters that want a token, and clients that do not offer the one they have.
        if "RAY_AUTH_TOKEN" in os.environ or (Path.home() / ".ray" / "auth_token").exists():
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        return
    # Ray has no setting for it on Linux, but stays on 127.0.0.1 where it believes that there can be no cluster.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    # A token of its own, which Ray would else make, and leave in the user's home.
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


LABEL = Command(
    name="label",
    summary="label the steps of reasoning chains; started again on the same run_dir it goes on with what is owed",
    examples="""\
label: sample completions from every step prefix, check their answers, write P(correct | prefix) as Parquet.

  python -m pipeline label data=sample run_dir=runs/sample
  python -m pipeline label data.path=my.jsonl run_dir=out sampling.rollouts=16
  python -m pipeline label data=gsm8k data.path='hf://openai/gsm8k/main:train' policy.model=Qwen/Qwen2.5-Math-7B-Instruct \\
      cluster.address=auto cluster.workers=8 run_dir=/shared/run
""",
    schema=LabelConfig,
    run=_label,
)

GRADE = Command(
    name="grade",
    summary="check answers: lines with gold and prediction in, the same lines with a verdict out",
    examples="""\
grade: the answer checker alone. JSON lines in, the same lines in the same order out, with verdict, answer and ms.

  python -m pipeline grade input=cases.jsonl output=verdicts.jsonl
  zcat outputs.jsonl.gz | python -m pipeline grade grader.processes=2 | grep '"incorrect"'

  {"gold": "1/2", "prediction": "So it is \\\\boxed{0.5}."}         a whole output that states its answer
  {"gold": ["2", "-2"], "prediction": "-2", "extracts": false}   a bare answer; any of several golds counts

A line that cannot be graded comes back with an error that names its number, and the exit code is 2. Blank lines are left out.
Input may end in .gz or .zst. An output file appears when it is whole.
""",
    schema=GradeConfig,
    run=_grade,
)

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

COMMANDS = {command.name: command for command in (LABEL, RELABEL, REGRADE, AUDIT, GRADE)}
