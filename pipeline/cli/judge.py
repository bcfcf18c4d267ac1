"""The command `judge`: has a second model criticise the chains of a run."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pipeline.cli.chain_run import ending_lines, run_with_ray
from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.config.judge import JudgeRunConfig
from pipeline.core.formatting import WHY_NO_VERDICT, format_count, format_duration, format_percent
from pipeline.core.records import ReadingKind

if TYPE_CHECKING:
    from pipeline.core.progress import Summary
    from pipeline.runtime.worker_handle import Watcher

NOTHING_SAID = 1
"""Exit code where no critique has a verdict."""


def _judge(config: JudgeRunConfig) -> int:
    return _estimate(config) if config.estimate else _to_folder(config)


def _estimate(config: JudgeRunConfig) -> int:
    from pipeline.runtime.chain_run.chains import values
    from pipeline.runtime.chain_run.estimate import estimate
    from pipeline.runtime.judging.task import JudgeTask

    with interruptible():
        plan = estimate(JudgeTask(config))
    critiques = plan.tables["critiques"]
    written, read = (sum(values(critiques, name)) / plan.sampled for name in ("n_tokens", "n_prompt_tokens"))
    kinds = Counter(map(ReadingKind, values(critiques, "reading")))
    lines = [
        f"{format_count(plan.chains, 'chain')} with {format_count(plan.steps, 'step')} to judge by {plan.model}, "
        f"{format_count(config.judge.votes, 'vote')} each",
        f"tokens    {written:,.0f} written and {read:,.0f} read for a chain on average, in a sample of "
        f"{plan.sampled:,}",
        f"speed     {plan.sampled / plan.seconds_of_sample:,.2f} chains/s of one worker of this machine; the model took "
        f"{format_duration(plan.seconds_loading)} to load",
        f"time      about {format_duration(plan.seconds)} for all chains with one worker; several workers share it",
        *_silent(kinds),
    ]
    write_lines(lines)
    return 0


def _to_folder(config: JudgeRunConfig) -> int:
    from rich.console import Console

    from pipeline.analysis.report.terminal import LiveView
    from pipeline.storage.location import storage_at
    from pipeline.storage.stored_critiques import critique_counts, judge_at

    with LiveView(Console(highlight=False)) as view:
        found = judge_with_ray(config, view)
    counts = critique_counts(judge_at(storage_at(found.run_dir)))
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
    now = found.now
    lines += ending_lines(
        found,
        format_count(now.rollouts, "critique"),
        lambda seconds: f"{now.rollouts / seconds:,.1f} critiques/s, {now.tokens / seconds:,.0f} tokens/s",
    )
    if says:
        lines.append(
            f"labels with this opinion: relabel run_dir={config.run_dir} estimator.rule=consensus "
            f"'consensus.witnesses=[judge:{config.judge.name}]'"
        )
    write_lines(lines)
    return 0 if says else NOTHING_SAID


def judge_with_ray(config: JudgeRunConfig, watch: "Watcher") -> "Summary":
    """Judge with this machine's own Ray, or the cluster of the settings, until it is done or a signal comes.

    Raises what `pipeline.runtime.chain_run.run.run_task` raises.
    """
    from pipeline.runtime.judging.task import JudgeTask

    return run_with_ray(JudgeTask, config, watch)


def _silent(kinds: Mapping[ReadingKind, int]) -> Iterator[str]:
    """Lines about critiques without a verdict."""
    for kind, why in WHY_NO_VERDICT.items():
        if kinds.get(kind):
            yield f"no verdict, because {why}: {format_count(kinds[kind], 'critique')}"


def _implied(written: Mapping[str, str]) -> dict[str, str]:
    """A judge that writes with no model needs no policy."""
    from pipeline.cli.options import named_implementation
    from pipeline.judges.registry import JUDGES

    kind = named_implementation("judge", written)
    if kind is None or kind not in JUDGES.names() or any(key.partition(".")[0] == "policy" for key in written):
        return {}
    return {} if JUDGES.load(kind).writes else {"policy": "oracle"}


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
    run=_judge,
    implied=_implied,
    offers={"policy": ("hf", "openai")},
    refused={
        "policy=embedded": "is too small a model for a judge: give policy.model=NAME_OR_FOLDER, or policy=openai with servers"
    },
)
