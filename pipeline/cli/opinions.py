"""The commands that have others say what they think of the steps of chains: `score` a process reward model, `judge` a second
model in words, and `check` programs that prove or refute."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.cli.options import named_implementation, without_model
from pipeline.cli.workers import NOTHING_FOUND, Work, cost_lines, ending_lines, head_line
from pipeline.config.check import CheckRunConfig
from pipeline.config.judge import JudgeRunConfig
from pipeline.config.score import ScoreConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import WHY_NO_VERDICT, WHY_UNSCORED, format_count, format_percent
from pipeline.core.output import say
from pipeline.core.records import ReadingKind

if TYPE_CHECKING:
    from pipeline.core.progress import Summary
    from pipeline.runtime.chain_run.estimate import Estimate


def _score(config: ScoreConfig) -> int:
    from pipeline.runtime.scoring.files import is_file

    return _to_file(config) if is_file(config.out) and not config.estimate else SCORING(config)


def _scoring_estimated(_: ScoreConfig, plan: "Estimate") -> Iterator[str]:
    tokens, faults = (plan.column("scores", name) for name in ("n_tokens", "fault"))
    yield head_line(plan, "score")
    yield (
        f"tokens    {sum(tokens) / plan.sampled:,.0f} a chain on average, {max(tokens):,} at most, in a sample of "
        f"{plan.sampled:,}"
    )
    yield from cost_lines(plan)
    for fault, chains in Counter(filter(None, faults)).items():
        yield f"no score  {format_percent(chains / plan.sampled)} of the sample, because {WHY_UNSCORED.get(fault, fault)}"


def _to_file(config: ScoreConfig) -> int:
    from pipeline.runtime.scoring.files import score_to_file

    with interruptible():
        scored = score_to_file(config)
    steps, chains, unscored = scored.steps, scored.chains, scored.unscored
    lines = [*_score_lines(config, steps=steps, chains=chains, where=config.out, unscored=unscored)]
    if scored.left_out.rows:
        lines.append(f"left out: {format_count(scored.left_out.rows, 'row')}, the first: {scored.left_out.first}")
    write_lines(lines)
    return 0 if scored.steps else NOTHING_FOUND


def _scoring_ended(config: ScoreConfig, found: "Summary") -> bool:
    tally, chains, where = found.tally, found.added["chains"], f"{found.run_dir}/scores"
    unscored = {"too_long": tally["too_long"], "unreadable": tally["unreadable"], "failed": tally["engine_failed"]}
    lines = [*_score_lines(config, steps=tally["steps"], chains=tally["chains"], where=where, unscored=unscored)]
    lines += ending_lines(found, format_count(chains, "chain"), (chains, "{:,.1f} chains/s"))
    write_lines(lines)
    return tally["steps"] > 0


def _score_lines(
    config: ScoreConfig, *, steps: int, chains: int, where: str, unscored: Mapping[str, int]
) -> Iterator[str]:
    """What has scores, and where they are; `unscored`: chains with a step without a score, by reason."""
    yield f"scored {format_count(steps, 'step')} of {format_count(chains, 'chain')}: {where}"
    if config.calibration is not None:
        from pipeline.scorers.calibration_file import read_calibration

        made_from = read_calibration(config.calibration).made_from
        policy, other = made_from.policy, f" (made for scores of {made_from.model})" if config.other_model else ""
        yield (
            f"calibrated by {config.calibration}{other}: scores are V, P(correct final answer), under the policy {policy}; the "
            "model's own are in raw_step_scores"
        )
    for fault, count in unscored.items():
        if count:
            why = WHY_UNSCORED.get(fault, fault)
            yield f"no score, because {why}: {format_count(count, 'chain')} (n_scored: number of scored steps)"


SCORING: Work[ScoreConfig, "Summary"] = Work(
    run="pipeline.runtime.scoring.task:ScoreTask", ended=_scoring_ended, estimated=_scoring_estimated
)
SCORE = Command(
    name="score",
    summary="score the steps of chains with a process reward model",
    about=(
        "score: write a score of every step, and of every chain by its last, worst or mean step or their product, as "
        "Parquet or JSONL."
    ),
    examples=(
        "score model=prm run_dir=out out=scores.parquet",
        "score model=prm data=processbench data.path=cases.jsonl out=scores.jsonl",
        "score scorer=own model=prm run_dir=out out=scored --estimate",
        "score model=prm run_dir=out out=scored cluster.workers=2",
        "score model=prm run_dir=out out=scores.parquet calibration=cal.json",
    ),
    notes="""\
Rows need no known answer; where they have one, the column `outcome` says whether the chain is right. A file is written by this
process, as a whole. A folder is written by Ray workers, on all GPUs; the same command goes on there, and scores what is new.

--estimate counts the chains, scores a sample of them, says how long all would take, and writes nothing.

calibration=FILE, as `calibrate` writes it, makes step scores probabilities that the policy ends the chain right. Scores of
whole chains follow from them. The model's own step scores are then in the column `raw_step_scores`.
""",
    most_used=("scorer.model", "scorer", "out", "run_dir", "data.path", "data", "aggregation"),
    schema=ScoreConfig,
    flags=("estimate",),
    short={"model": "scorer.model"},
    run=_score,
    work=SCORING,
)


def _judging_estimated(config: JudgeRunConfig, plan: "Estimate") -> Iterator[str]:
    written, read = (sum(plan.column("critiques", name)) / plan.sampled for name in ("n_tokens", "n_prompt_tokens"))
    yield f"{head_line(plan, 'judge')}, {format_count(config.judge.votes, 'vote')} each"
    yield (
        f"tokens    {written:,.0f} written and {read:,.0f} read for a chain on average, in a sample of {plan.sampled:,}"
    )
    yield from cost_lines(plan)
    yield from _silent(Counter(map(ReadingKind, plan.column("critiques", "reading"))))


def _judging_ended(config: JudgeRunConfig, found: "Summary") -> bool:
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
    run="pipeline.runtime.judging.task:JudgeTask", ended=_judging_ended, estimated=_judging_estimated
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


def _check(config: CheckRunConfig) -> int:
    config, missing = _possible(config)
    code = CHECKING(config)
    for name, why in missing.items():
        say(f"{name} has checked nothing: it {why}")
    return NOTHING_FOUND if missing else code


def _possible(config: CheckRunConfig) -> tuple[CheckRunConfig, Mapping[str, str]]:
    """The settings without the verifiers that lack something on this machine, and what those lack. Says that, and what to know
    of the inputs of the others. Raises UsageError where none is left, and UsageError and InputError where inputs cannot be
    used."""
    from pipeline.runtime.checking.task import checked_verifiers, missing_parts
    from pipeline.verifiers.registry import warnings_of

    verifiers = checked_verifiers(config)
    missing = missing_parts(verifiers)
    left = [each for each in verifiers if each.kind not in missing]
    if not left:
        raise UsageError("; ".join(f"checks=[{name}]: it {why}" for name, why in missing.items()))
    for name, why in missing.items():
        say(f"{name} is left out: it {why}")
    for verifier in left:
        for line in warnings_of(verifier):
            say(f"warning: {line}")
    return replace(config, checks=[each.kind for each in left]) if missing else config, missing


def _checking_estimate(config: CheckRunConfig) -> Iterator[str]:
    from pipeline.runtime.chain_run.estimate import estimate
    from pipeline.runtime.checking.task import CheckTask, checked_verifiers

    for verifier in checked_verifiers(config):
        plan = estimate(CheckTask(replace(config, verifier=verifier)))
        yield head_line(plan, "check")
        yield from cost_lines(plan)


def _checking_ended(config: CheckRunConfig, found: "Mapping[str, Summary]") -> bool:
    from pipeline.analysis.checks import check_summary
    from pipeline.storage.location import storage_at

    seen = 0
    with interruptible():
        for name, each in found.items():
            summary = check_summary(storage_at(config.run_dir), name, partial=config.partial)
            seen += summary.counts.seen
            write_lines(summary.lines())
            made = format_count(each.added["chains"], "chain")
            write_lines(ending_lines(each, made, (each.added["steps"], "{:,.0f} steps/s")))
    return seen > 0


def _named_verifier(written: Mapping[str, str]) -> dict[str, str]:
    """The verifier that the section `verifier` is about: the only one that `checks` names.

    Raises UsageError where it is none of them, and where they are several."""
    from pipeline.verifiers.registry import VERIFIERS

    names = [name.strip("'\" ") for name in written.get("checks", "").strip("[] ").split(",") if name.strip("'\" ")]
    if written.get("checks") in (None, "null") or not names:
        return {}
    own = [key for key in written if key.startswith("verifier.")]
    named = named_implementation("verifier", written)
    if named is not None and named not in names:
        raise UsageError(
            f"verifier={named} is none of checks=[{','.join(names)}]: name it there too, or leave verifier out"
        )
    if own and named is None and len(names) > 1:
        raise UsageError(f"{own[0]}: this is a setting of one verifier: say of which one, such as verifier={names[0]}")
    return {"verifier": names[0]} if named is None and names[0] in VERIFIERS.names() else {}


CHECKING: Work[CheckRunConfig, "Mapping[str, Summary]"] = Work(
    run="pipeline.runtime.checking.task:check_run", ended=_checking_ended, estimate=_checking_estimate
)
CHECK = Command(
    name="check",
    summary="have programs prove or refute the steps of chains",
    about=(
        "check: a verifier, such as `arithmetic`, says of each step that it is refuted, that it holds, or that this is "
        "unknown. It needs no rollouts."
    ),
    examples=(
        "check run_dir=out 'checks=[arithmetic,algebra]'",
        "check data.path=rows.jsonl run_dir=checked verifier=algebra",
        "check run_dir=out 'checks=[code]' --estimate",
        "check run_dir=out 'checks=[arithmetic,algebra]' verifier=algebra verifier.deadline_seconds=10",
        "check run_dir=out 'checks=[arithmetic]' processes=8 partial=true",
        "check run_dir=out 'checks=[facts]' verifier.table=facts.parquet",
    ),
    notes="""\
Findings go to RUN_DIR/checks/VERIFIER, a run directory of its own: the same command goes on after an interruption, and checks
what is new. Another verifier has its own folder. A verifier with other settings, or another version of it, is refused there:
move its folder away to check again.

A verifier is asked in processes of their own, with limits of time and memory. A step that passes them, or that kills its
process, is unknown; such steps are counted.

A part that holds says nothing of its step. At the end, the steps with a verdict are compared with the labels of the run.
""",
    most_used=("run_dir", "checks", "verifier", "data.path", "verifier.deadline_seconds", "processes", "partial"),
    schema=CheckRunConfig,
    run=_check,
    work=CHECKING,
    flags=("estimate",),
    implied=_named_verifier,
)
