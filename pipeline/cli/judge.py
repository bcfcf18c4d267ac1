"""The command `judge`: has a second model criticise the chains of a run."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, write_lines
from pipeline.cli.options import without_model
from pipeline.cli.workers import Work, cost_lines, ending_lines, head_line
from pipeline.config.judge import JudgeRunConfig
from pipeline.core.formatting import WHY_NO_VERDICT, format_count, format_percent
from pipeline.core.records import ReadingKind

if TYPE_CHECKING:
    from pipeline.core.progress import Summary
    from pipeline.runtime.chain_run.estimate import Estimate


def _estimated(config: JudgeRunConfig, plan: "Estimate") -> Iterator[str]:
    from pipeline.runtime.chain_run.chain_task import values

    critiques = plan.tables["critiques"]
    written, read = (sum(values(critiques, name)) / plan.sampled for name in ("n_tokens", "n_prompt_tokens"))
    yield f"{head_line(plan, 'judge')}, {format_count(config.judge.votes, 'vote')} each"
    yield (
        f"tokens    {written:,.0f} written and {read:,.0f} read for a chain on average, in a sample of {plan.sampled:,}"
    )
    yield from cost_lines(plan)
    yield from _silent(Counter(map(ReadingKind, values(critiques, "reading"))))


def _ended(config: JudgeRunConfig, found: "Summary") -> bool:
    from pipeline.storage.location import storage_at
    from pipeline.storage.stored_critiques import JUDGE_RUNS, critique_counts

    counts = critique_counts(JUDGE_RUNS.read(storage_at(config.run_dir), config.judge.name))
    says = counts.kinds[ReadingKind.ERROR] + counts.kinds[ReadingKind.NO_ERROR]
    lines = [
        f"judged {format_count(counts.chains, 'chain')} with {format_count(counts.critiques, 'critique')}: "
        f"{found.run_dir}/critiques",
        f"verdicts: {counts.kinds[ReadingKind.ERROR]:,} name an error, {counts.kinds[ReadingKind.NO_ERROR]:,} find none",
        *_silent(counts.kinds),
    ]
    if counts.votes > 1:
        share = format_percent(counts.unanimous / counts.chains)
        lines.append(f"all votes agree on {share} of the chains")
    added = found.added
    lines += ending_lines(
        found,
        format_count(added["critiques"], "critique"),
        (added["critiques"], "{:,.1f} critiques/s"),
        (added["tokens"], "{:,.0f} tokens/s"),
    )
    if says:
        lines.append(
            f"labels with this opinion: relabel run_dir={config.run_dir} estimator.rule=consensus "
            f"'consensus.witnesses=[judge:{config.judge.name}]'"
        )
    write_lines(lines)
    return says > 0


def _silent(kinds: Mapping[ReadingKind, int]) -> Iterator[str]:
    """Lines about critiques without a verdict."""
    for kind, why in WHY_NO_VERDICT.items():
        if kinds.get(kind):
            yield f"no verdict, because {why}: {format_count(kinds[kind], 'critique')}"


JUDGING: Work[JudgeRunConfig, "Summary"] = Work(
    run="pipeline.runtime.judging.task:JudgeTask", ended=_ended, estimated=_estimated
)
JUDGE = Command(
    name="judge",
    summary="have a second model criticise the chains of a run",
    about=(
        "judge: a model reads each chain of a run and says, several times, where its first error is: a second opinion, from "
        "which `relabel` makes consensus labels."
    ),
    examples=(
        "judge run_dir=out judge.name=qwq policy.model=Qwen/QwQ-32B",
        "judge run_dir=out judge.name=qwq policy.model=Qwen/QwQ-32B --estimate",
        "judge run_dir=out judge.name=served policy=openai policy.model=QwQ \\\n"
        "  policy.openai.urls=[http://HOST:8000/v1]",
        "judge run_dir=out judge.name=dry judge=oracle",
    ),
    notes="""\
Critiques go to RUN_DIR/judges/NAME, a run directory of its own: the same command goes on after an interruption, and judges
what is new. A run may have several judges. The same name with other settings is refused. All settings of the policy may
also be written with `judge.` before them.

A critique is read as its template says. One without a verdict in that form is kept and counted. `regrade` reads all critiques
again, and `audit` proves them with the run.

--estimate counts the chains, judges a sample of them, says how long all would take, and writes nothing.
""",
    most_used=(
        "run_dir",
        "judge.name",
        "policy.model",
        "policy",
        "judge.votes",
        "judge.template",
        "judge.show_answer",
        "judge",
    ),
    schema=JudgeRunConfig,
    flags=("estimate",),
    run=JUDGING,
    work=JUDGING,
    # A judge that writes with no model needs no policy.
    implied=without_model("judge", "writes", "policy"),
    offers={"policy": ("hf", "openai")},
    refused={
        "policy=embedded": "is too small a model for a judge: give policy.model=NAME_OR_FOLDER, or policy=openai with servers"
    },
)
