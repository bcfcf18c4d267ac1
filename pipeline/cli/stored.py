"""The commands that work on what a run has stored: `status`, `chains`, `relabel`, `regrade`, `audit`, `report`, `export` and
`train`."""

import json
import time
from typing import TYPE_CHECKING

from pipeline.analysis.settings import ChainsConfig, ReportConfig, StatusConfig
from pipeline.cli.command import Command, Here, interruptible, write_lines, write_out
from pipeline.config.changes import AuditConfig, RegradeConfig, RelabelConfig
from pipeline.core.errors import UsageError
from pipeline.core.missing_models import refuse_missing_folder
from pipeline.export.registry import EXPORTS
from pipeline.export.settings import ExportConfig
from pipeline.train.settings import EMBEDDED, TrainConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.analysis.audit.run import AuditReport
    from pipeline.core.progress import RelabelResult
    from pipeline.display.document import Part
    from pipeline.export.result import ExportResult


def _show_labels(_config: object, found: "RelabelResult") -> None:
    from pipeline.analysis.report.run_lines import new_label_lines
    from pipeline.display.terminal import show

    show(new_label_lines(found))


def _show_audit(_config: object, found: "AuditReport") -> int:
    write_lines(found.lines())
    return 0 if found.sound else 1


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
    run=Here(finds="pipeline.analysis.relabel:relabel", shows=_show_labels),
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
    run=Here(finds="pipeline.analysis.relabel:regrade", shows=_show_labels),
)

AUDIT = Command(
    name="audit",
    summary="check a run directory: files, checksums, totals and labels",
    about=(
        "audit: check everything in a run directory: records, checksums, schemas, totals, that every planned rollout is "
        "there exactly once, and that the labels follow from the log; so too judges, checks and searches. Prints "
        "`sound`, or every fault."
    ),
    examples=("audit run_dir=out", "audit --prune run_dir=out"),
    notes="""\
It writes nothing, and may be used while `label` works; it then says that the run is unfinished. With --prune, and only
where nothing is wrong, it removes temporary files, files that no record names, damaged/, parts that were put together, and
editions of labels that are not current. Exit code 0: sound, 1: not, 2: no run.
""",
    most_used=("run_dir", "prune", "lock"),
    schema=AuditConfig,
    run=Here(finds="pipeline.analysis.audit.run:audit", shows=_show_audit),
    flags=("prune",),
)


def _status(config: StatusConfig) -> int:
    from pipeline.analysis.status import as_json, lines, run_status
    from pipeline.storage.location import storage_at

    with interruptible():
        status = run_status(storage_at(config.run_dir), time.time())
    if config.json:
        write_out(f"{json.dumps(as_json(status))}\n")
    else:
        write_lines(lines(status))
    return 0


STATUS = Command(
    name="status",
    summary="show what a run has done and the time left, from any machine",
    about="status: whether a start of a run is at work, what the run has committed, its speed, the time left and the cost.",
    examples=(
        "status run_dir=out",
        "status run_dir=s3://bucket/runs/math",
        "status run_dir=out json=true | jq .condition.state",
    ),
    notes="""\
It writes nothing and takes no lock: use it while `label` works, or to see whether it still does. A start gives a sign of
life every 10 seconds. On its own machine a dead start is known by its process, from elsewhere by a minute's silence.
""",
    most_used=("run_dir", "json"),
    schema=StatusConfig,
    run=_status,
)


def _chains(config: ChainsConfig) -> int:
    import polars as pl

    from pipeline.analysis.chains import chain_tables, chosen
    from pipeline.core.formatting import format_count
    from pipeline.core.output import say
    from pipeline.core.tables import LABELS
    from pipeline.display.terminal import show
    from pipeline.storage.location import storage_at
    from pipeline.storage.stored_run import stored_run

    with interruptible():
        frames = list(stored_run(storage_at(config.run_dir)).frames(LABELS))
        found = chosen(pl.concat(frames), config.limit, config.where) if frames else None
    if not found:
        say("no chain is labelled yet" if found is None else f"no chain has {config.where}")
    else:
        show(chain_tables(found.rows))
        if len(found) < found.total:
            say(f"{len(found)} of {format_count(found.total, 'chain')}; limit={found.total} shows all")
    return 0


CHAINS = Command(
    name="chains",
    summary="print the labelled steps of chains, such as those with a drop",
    about="chains: print chains with the value, interval and label of each step. A condition chooses which.",
    examples=(
        "chains run_dir=out",
        "chains run_dir=out where='drop > 0.5 AND NOT outcome' limit=3",
        "chains run_dir=out where=\"source_id LIKE 's01%'\"",
        "chains run_dir=out where=disagree",
    ),
    notes="""\
`where` is a condition in SQL. It may name the columns of `labels`, and drop and rise (the largest fall and rise of the
value from one step to the next, from the value before step 1 on), lowest (the lowest value of a step) and n_steps. Of labels
by consensus also disagree (a witness names another first error than Monte Carlo) and left_out (why the chain has no labels).
""",
    most_used=("run_dir", "where", "limit"),
    schema=ChainsConfig,
    run=_chains,
)


def _report(config: ReportConfig) -> int:
    from pipeline.display.terminal import show

    parts: Sequence[Part]
    if len(config.run_dir) == 1:
        from pipeline.analysis.report.run import report

        with interruptible():
            parts = report(config)
    else:
        from pipeline.analysis.compare import sections
        from pipeline.analysis.compare.run import write_comparison

        with interruptible():
            found, out = write_comparison(config)
        parts = [*sections.lines(found), *sections.sections(found), "", f"report    {out.resolve().as_uri()}"]
    show(parts)
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


def _show_export(_config: ExportConfig, exported: "ExportResult") -> None:
    from pipeline.export.result import result_lines

    write_lines(result_lines(exported))


EXPORT = Command(
    name="export",
    summary="write labels in the format of a trainer, checked by its rules",
    about=(
        "export: write the labels of a run as a trainer's training data, into a folder with a data card. Every chain is "
        "first checked as the trainer would read it."
    ),
    examples=(
        "export run_dir=out format=trl out=data/trl tokenizer=Qwen/Qwen3-8B",
        "export run_dir=out format=openrlhf target=soft out=soft",
        "export run_dir=out format=qwen out=data/qwen min_p_outcome=0.1",
        "export run_dir=out format=trl out=data/trl push_to_hub=my-name/my-steps hub.license=cc-by-4.0",
        "export run_dir=out format=preference out=data/pairs 'decontaminate.paths=[math500.jsonl]'",
    ),
    notes="""\
Where labels would be misplaced or lost, nothing is written, and a list names the chains; invalid=drop leaves them out.
With a tokenizer, lengths and placeholders are checked too. The printed target says whether values or labels were
written, and a warning where they teach little.
""",
    most_used=("run_dir", "format", "out", "target", "validation", "tokenizer", "decontaminate.paths"),
    schema=ExportConfig,
    run=Here(finds="pipeline.export.run:export", shows=_show_export),
    flags=("partial", "overwrite"),
    chooses=("format", EXPORTS),
)


def _train(config: TrainConfig) -> int:
    try:
        from pipeline.train.result import NAME
        from pipeline.train.trainer import train, validation_text
    except ImportError as error:
        raise UsageError(
            f"{error}: install the train extra: pip install 'stepvalue[train]', or '.[train]' in a checkout"
        ) from error
    from pipeline.engines.embedded import embedded_model

    refuse_missing_folder("model", config.model)
    weights = str(embedded_model()) if config.model == EMBEDDED else config.model
    with interruptible():
        trained = train(config, weights=weights, progress=lambda line: write_lines([line]))
    before = [f"Nothing to do: {trained.out} is already trained with these settings."] if trained.before else []
    write_lines([*before, f"{validation_text(trained.metrics)}; all figures are in {trained.out / NAME}"])
    return 0


TRAIN = Command(
    name="train",
    summary="train a process or outcome reward model on a run's labels",
    about=(
        "train: train a reward model on a run's labels. It scores the end of every step, and "
        "AutoModelForTokenClassification loads it. Start it again on the same `out` to continue."
    ),
    examples=(
        "train run_dir=out model=Qwen/Qwen2.5-Math-1.5B out=prm",
        "train run_dir=out model=embedded out=prm loss=hard epochs=1 layers=4",
        "train run_dir=out model=embedded out=orm target=outcome",
        "train run_dir=out model=org/name out=prm min_p_outcome=0.1 min_root_value=0.1",
    ),
    notes="""\
Prints a line an epoch, with figures on problems that are held out. It goes on from the last checkpoint; a finished model is
left as it is.
""",
    most_used=("run_dir", "model", "out", "target", "loss", "epochs", "learning_rate", "validation"),
    schema=TrainConfig,
    run=_train,
)
