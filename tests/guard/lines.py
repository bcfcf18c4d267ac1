"""Command lines that users have, and what they are answered with. Nothing of them is run: `--cfg job` stands behind each.

LISTED holds those of documents and tests. What `each_key` and `each_group` make covers every setting there is.
"""

import contextlib
import io
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import yaml

from pipeline.__main__ import main
from pipeline.cli import COMMANDS as CLI
from pipeline.cli.reference import Setting, command_settings

KEYS_A_LINE = 40

COMMANDS = tuple(CLI)
REQUIRED = {
    "grow": "data.path=x",
    "plan": "data.path=x.jsonl", "label": "data.path=x.jsonl run_dir=out", "status": "run_dir=out", "relabel": "run_dir=out",
    "regrade": "run_dir=out", "audit": "run_dir=out", "report": "run_dir=out", "export": "run_dir=out format=trl out=y",
    "train": "run_dir=out model=m out=prm", "score": "model=prm out=s.parquet data.path=x.jsonl", "select": "scores=s.parquet",
    "agree": "run_dir=out data.path=x.jsonl", "grade": "", "doctor": "", "chains": "run_dir=out",
    "judge": "run_dir=out judge.name=strict policy.model=m", "check": "run_dir=out",
    "calibrate": "scores=s.parquet run_dir=fresh out=cal.json",
    "search": "data.path=x.jsonl run_dir=out scorer.model=prm",
}  # fmt: skip
GROUPS = {
    "data": "apps facts gsm8k math math_shepherd mbpp prm800k prmbench processbench rows sample",
    "policy": "embedded hf openai oracle",
    "sampling": "default",
    "estimator": "bisect first_success fixed pooled",
    "grader": "code default facts",
    "run": "default",
    "cluster": "local",
    "plan": "default",
    "grow": "errors omegaprm pairs uncertain",
    "judge": "model",
    "scorer": "fover math_shepherd own qwen rlhflow skywork",
    "search": "beam best_of_n dvts majority mcts particle regenerate weighted",
    "verifier": "algebra arithmetic code coq types z3",
}
OPENAI = "policy=openai policy.model=org/name policy.openai.urls=[http://127.0.0.1:8000/v1]"
WITH = {
    "policy.model": "policy=hf", "policy.tokenizer": OPENAI, "policy.openai.urls": "policy=openai policy.model=org/name",
    "policy.device.name": "policy=oracle", "policy.speculative_model": "policy.model=org/name policy.speculative_tokens=3",
    "data.splitter": "data.pattern=';'", "policy.prompt.template": "policy.prompt.style=plain",
    "estimator.name": "estimator.rule=any",
    "estimator.successes": "estimator=first_success", "estimator.batch": "estimator=first_success",
    "judge.show_answer": "judge.template=good_ok_bad", "judge.template_file": "judge.parser=boxed_index judge.index_base=1",
    "judge.parser": "judge.template_file=x.txt judge.index_base=1",
    "judge.index_base": "judge.template_file=x.txt judge.parser=boxed_index",
}  # fmt: skip
"""What has to be said beside a setting."""
VALUES = {
    "checks": "[arithmetic]", "judge.index_base": "0",
    "data.layout": "prm800k", "data.splitter": "regex", "data.pattern": "'[.;]'", "data.separator": "'; '",
    "policy.prompt.style": "plain", "policy.prompt.template": "'Q: {problem} A:'", "policy.prompt.instruction": "Think.",
    "policy.prompt.examples": "'[{problem: 1+1?, solution: It is 2.}]'", "policy.openai.urls": "[https://host/v1]",
    "policy.openai.api_key_env": "OTHER_KEY", "policy.device.name": "h100",
    "policy.memory_share": "0.5", "policy.max_model_len": "2048",
    "policy.enforce_eager": "true", "consensus.witnesses": "[judge:other]",
    "policy.device.bandwidth": "1e12",     "policy.device.flops": "1e14", "policy.device.memory": "8e10",
    "policy.tensor_parallel": "2", "policy.max_num_seqs": "64",
    "policy.max_num_batched_tokens": "4096", "policy.speculative_tokens": "3",
    "sampling.top_p": "0.9", "sampling.stop": "[END]", "sampling.stop_at_answer": "true", "sampling.keep": "mixed",
    "estimator.name": "first_success", "estimator.interval": "jeffreys", "estimator.rule": "threshold",
    "estimator.threshold": "0.25", "estimator.certainty": "0.9", "estimator.confidence": "0.9", "estimator.neutral": "0.2",
    "estimator.miss_rate": "0.05",
    "estimator.after_error": "uncertain", "estimator.successes": "2", "estimator.batch": "2", "estimator.target_sd": "0.2",
    "estimator.budget": "5000", "estimator.run_budget": "900000", "estimator.budget_unit": "rollouts",
    "grader.kind": "code", "grader.fallback": "last_number", "grader.answer_pattern": "'answer: (.+)'",
    "grader.relative_tolerance": "0.01", "grader.sandbox": "full", "grader.deadline_seconds": "3.5",
    "grader.memory_mib": "1024",     "grader.processes": "2", "grader.cpu_seconds": "3.5", "grader.suite_seconds": "30.5",
    "run.track": "tensorboard", "cluster.address": "auto", "cluster.workers": "2", "cluster.cpus_per_worker": "1.5",
    "cluster.gpus_per_worker": "0.5", "plan.gpu_hour_price": "2.5", "plan.gpus": "8", "plan.completion_tokens": "300",
    "plan.tokens_per_second": "1000.0", "plan.success_rate": "0.4", "data.limit": "7",
    "format": "qwen", "file": "json", "target": "soft", "soft": "value", "threshold": "0.4", "uncertain": "merge",
    "neutral": "negative", "after_error": "true", "balance": "steps", "validation": "0.05",
    "decontaminate.paths": "[a.jsonl,b.txt]",     "preference.reader": "step_dpo", "preference.span": "rest",
    "preference.margin": "0.1", "ppm.template": "'Q: {problem}'", "ppm.certainty": "0.8", "separator": "'\\n\\n'",
    "placeholder": "'<extra_0>'", "max_length": "2048", "invalid": "drop", "loss": "soft",
    "layers": "4", "checkpoint_steps": "50", "warmup_ratio": "0.2", "aggregation": "min", "n": "[1,2,4]",
    "thresholds": "[0.1,0.5]", "column": "value", "scores": "t.parquet",
    "push_to_hub": "me/steps", "planned": "plan.json", "json": "true",
}  # fmt: skip
"""Values that are legal and not the default; of other settings, `_another` finds one by what the reference says of them."""
_OF_KIND = {"whole number": "3", "number": "0.5"}
PER_COMMAND = {
    ("train", "target"): "outcome", ("agree", "neutral"): "bad",
    ("label", "run_dir"): "elsewhere",
    ("report", "run_dir"): "[old,new]", ("select", "searches"): "[a,b]",
}  # fmt: skip
INSTEAD_OF = {
    ("score", "run_dir"): "data.path",
    ("select", "searches"): "scores",
    **{("agree", key): "run_dir" for key in ("scores", "threshold", "dev", "page")},
}
"""What a setting takes the place of, itself or with what stands beside it."""
PER_COMMAND_WITH = {
    ("agree", "threshold"): "scores=t.parquet", ("agree", "page"): "scores=t.parquet",
    ("agree", "dev"): "scores=t.parquet threshold=dev",
}  # fmt: skip

NAMES_OF_OTHERS = ("policy.kind", "scorer.kind", "judge.kind", "verifier.kind", "search.method", "grow.pick")
"""Another name stands for other settings."""
WITHOUT_VALUE = {
    "search": ("sampling.rollouts", "sampling.solutions", "sampling.keep", "sampling.store_tokens"),
    "grow": ("run_dir",),
}
"""Of a command: settings that it refuses, and one whose value has to be a run that is there."""

WITHOUT_EFFECT = (
    "label data=sample estimator=fixed estimator.target_sd=0.2",
    "label data=sample estimator=fixed estimator.budget_unit=rollouts",
    "label data=sample estimator=fixed estimator.batch=4 estimator.successes=1",
    "label data=sample estimator=pooled estimator.batch=4 estimator.successes=2",
    "label data=sample estimator=bisect estimator.neutral=0.3 estimator.certainty=0.9",
    "label data=sample estimator=first_success estimator.target_sd=0.3",
    "label data=sample policy=oracle policy.openai.connections=3",
    "label data=sample policy=oracle policy.openai.retries=1 policy.kv_cache_gib=4",
    "label data=sample policy=oracle policy.prompt.system=Hello policy.memory_share=0.7",
    "label data=sample policy=embedded policy.oracle.seed=7 policy.openai.choices=2",
    f"label data=sample {OPENAI} policy.oracle.world=tree policy.enforce_eager=true",
    "label data=sample policy.model=org/name policy.openai.timeout_seconds=5",
    "label data=sample grader.cpu_seconds=2 grader.suite_seconds=9 grader.sandbox=limits",
    "label data=sample grader=code grader.fallback=none grader.relative_tolerance=0.001",
    "label data=sample plan.gpus=4 plan.success_rate=0.3 plan.pilot=false",
    "label data=sample data.pattern=x data.columns.solution=text",
    "plan data=sample run.attempts=9 run.show_chains=0 budget=other.json",
    "regrade run_dir=out grader.cpu_seconds=2 estimator.batch=3",
    "relabel run_dir=out estimator=pooled estimator.certainty=0.8 estimator.neutral=0.5",
    "export run_dir=out format=trl out=y preference.margin=0.2",
    "grade grader.cpu_seconds=2 grader.sandbox=full",
)
"""Settings that the chosen implementation does not look at are taken all the same."""

LISTED = (
    "label data=sample",
    "label data=sample data.limit=24 run_dir=demo run.show_chains=24",
    "label data=sample policy=oracle run_dir=a estimator=fixed cluster.workers=1 run.units_in_flight=1",
    "label data=sample policy=oracle run.stall_seconds=1 cluster.workers=2",
    "label data=sample policy=oracle policy.oracle.world=tree sampling.rollouts=200 estimator=fixed",
    "label data=sample policy=oracle run.track=mlflow run.progress_seconds=0.1 run.flush_seconds=0.05",
    "label data=gsm8k data.path=train.jsonl policy.model=Qwen/Qwen2.5-Math-1.5B-Instruct sampling.rollouts=16",
    "label data=math data.path=math.jsonl policy=hf policy.model=/models/qwen policy.tensor_parallel=2",
    "label data=prm800k data.path=phase2.jsonl policy=oracle estimator=fixed run_dir=s3://bucket/runs/prm",
    "label data=math_shepherd data.path=shepherd.jsonl policy=oracle run_dir=gs://bucket/runs/s",
    "label data=processbench data.path=bench.jsonl policy=oracle data.limit=50 estimator=bisect",
    "label data=processbench data.path=bench.jsonl estimator=fixed sampling.rollouts=8 estimator.rule=threshold "
    "estimator.threshold=0.125",
    "label data=rows data.path=x.jsonl data.columns.problem=question data.columns.answer=gold data.columns.id=meta.id",
    "label data.path=x.parquet data.splitter=blank_line data.max_steps=40",
    "label data.path=x.jsonl data.splitter=regex data.pattern='Step [0-9]+:' run_dir=out",
    "label data.path=hf://openai/gsm8k/main:train data=gsm8k run_dir=out",
    "label data=mbpp data.path=mbpp.jsonl grader=code policy=oracle sampling.solutions=8 sampling.keep=mixed",
    "label data=apps data.path=apps.jsonl grader=code grader.sandbox=limits grader.processes=4",
    "label data.path=/shared/problems.jsonl policy.model=org/name cluster.address=auto run_dir=/shared/out",
    "label data.path=/data/problems.jsonl policy=hf policy.model=org/name cluster.address=auto cluster.workers=8 "
    "run_dir=/data/run",
    "label data=sample run_dir=/data/run",
    f"label data.path=x.jsonl {OPENAI} policy.tokenizer=org/other policy.openai.choices=8 run_dir=out",
    f"label data.path=x.jsonl {OPENAI} policy.openai.extensions=false sampling.temperature=0.6 sampling.top_p=0.95",
    "label data.path=x.jsonl policy.model=org/base policy.prompt.style=plain sampling.stop_at_answer=true",
    "label data.path=x.jsonl policy.model=org/base sampling.stop=['\\n\\n','Problem:'] sampling.max_tokens=512",
    "label data.path=x.jsonl policy.model=org/name policy.quantization=fp8 policy.kv_cache_dtype=fp8 policy.max_model_len=4096",
    "label data.path=x.jsonl policy.model=org/name policy.speculative_tokens=4 policy.revision=main policy.dtype=bfloat16",
    "label data.path=x.jsonl policy.model=org/name sampling.top_k=20 sampling.min_p=0.05",
    "label data.path=x.jsonl estimator=pooled estimator.target_sd=0.08 estimator.budget=4000 estimator.budget_unit=tokens",
    "label data.path=x.jsonl estimator=pooled estimator.run_budget=1000000",
    "label data.path=x.jsonl estimator=first_success estimator.batch=4 estimator.successes=2 sampling.rollouts=32",
    "label data.path=x.jsonl estimator=bisect sampling.rollouts=16 estimator.batch=8",
    "label data.path=x.jsonl estimator=fixed estimator.interval=jeffreys estimator.confidence=0.9",
    "label data.path=x.jsonl estimator=fixed estimator.rule=relative estimator.threshold=0.8",
    "label data.path=x.jsonl estimator=fixed estimator.rule=three_class estimator.threshold=0.2 estimator.neutral=0.3",
    "label data.path=x.jsonl estimator=fixed estimator.rule=posterior estimator.certainty=0.9 estimator.after_error=uncertain",
    "label data.path=x.jsonl estimator.name=fixed estimator.rule=any",
    "label data.path=x.jsonl grader.fallback=last_number grader.relative_tolerance=0.001 grader.answer_pattern='answer: (.+)'",
    "label data.path=x.jsonl policy.model=org/name plan.gpu_hour_price=2.5 budget=plan.json run_dir=out",
    "label data.path=x.jsonl run.report=false run.lock=false run.attempts=5 run.max_failures=10 run.unit_problems=8",
    "plan data.path=my.jsonl policy.model=org/name plan.gpus=8 plan.gpu_hour_price=2.5",
    "plan data=sample policy=oracle plan.pilot=false plan.tokens_per_second=1000 plan.completion_tokens=200",
    "plan data.path=my.jsonl policy.model=org/name policy.device.name=h100 plan.pilot_problems=32 plan.out=other.json",
    "status run_dir=out",
    "status run_dir=out json=true",
    "audit run_dir=out",
    "audit --prune run_dir=out",
    "audit run_dir=out prune=true lock=false",
    "relabel run_dir=out estimator.rule=threshold estimator.threshold=0.3",
    "relabel run_dir=out estimator=pooled",
    "relabel run_dir=out estimator.name=bisect estimator.interval=posterior lock=false",
    "regrade run_dir=out grader.fallback=none",
    "regrade run_dir=out grader.answer_pattern='answer: (.+)' grader.processes=4 estimator.rule=any",
    "regrade run_dir=out grader=default grader.relative_tolerance=0.01",
    "report run_dir=out",
    "report run_dir=s3://bucket/run out=report.html planned=plan.json",
    "report run_dir=[old,new]",
    "report run_dir=out chains=100",
    "export run_dir=out format=trl out=data/trl tokenizer=org/name validation=0.05",
    "export run_dir=out format=axolotl out=data/axolotl tokenizer=org/name max_length=2048",
    "export run_dir=out format=qwen target=soft out=data/qwen",
    "export run_dir=out format=preference out=data/step_dpo preference.reader=step_dpo",
    "export run_dir=out format=parquet target=counts out=data/counts",
    "export run_dir=out format=openr out=y balance=steps uncertain=drop neutral=negative overwrite=true partial=true",
    "export run_dir=out format=trl out=y decontaminate.paths=[math500.jsonl,gsm.txt] decontaminate.ngram=8",
    "train run_dir=out model=org/name out=prm",
    "train run_dir=out model=org/name out=orm target=outcome",
    "train run_dir=out model=org/name out=prm loss=soft epochs=1 batch=4 learning_rate=1e-5 max_length=1024",
    "score model=prm run_dir=out out=scores.parquet",
    "score model=prm data.path=my.jsonl out=scores.parquet aggregation=min",
    "select scores=prm.parquet outcome_scores=orm.parquet run_dir=heldout out=select.json best=chosen.jsonl",
    "select scores=prm.parquet n=[1,4,16] aggregation=product seed=3",
    "agree data=processbench data.path=bench.jsonl run_dir=out out=agreement.json",
    "agree data=prm800k data.path=phase2.jsonl run_dir=out column=value thresholds=[0.25,0.5] resamples=100",
    "grade input=cases.jsonl",
    "grade input=cases.jsonl output=graded.jsonl grader.processes=4 grader.fallback=last_number",
    "grade grader=code input=programs.jsonl grader.deadline_seconds=20",
)
"""Realistic: of these, what was given stands in the settings that are printed."""

REFUSED = (
    "lable data=sample",
    "--verbose",
    "label",
    "label run_dir=x",
    "label sampling.rolouts=3",
    "label rollouts=3",
    "label samplng=default",
    "label zzzzzz=1",
    "label sampling.rollouts=many",
    "label sampling.rollouts=1.5",
    "label data.splitter=words",
    "label policy.enforce_eager=maybe",
    "label data=sample run_dir=x sampling.rollouts=0",
    "label data=sample run_dir=x estimator.confidence=95",
    "label data=sample run_dir=x policy.prompt.template=x",
    "label data=sample run_dir=x data.splitter=regex data.pattern='('",
    "label data=sample run_dir=x data.splitter=regex",
    "label policy=gpt",
    "label data=foo",
    "label sampling=null",
    "label data=sample run_dir=",
    "label data=sample policy=hf policy.kind=oracle",
    "label data=sample policy=hf",
    "label data=sample policy=oracle policy.model=x",
    "label data=sample policy=openai policy.model=x",
    "label data=sample policy.openai.urls=[http://h/v1]",
    "label data=sample policy=openai policy.model=x policy.openai.urls=[ftp://h/v1]",
    "label data=sample estimator=fixed estimator.budget=5",
    "label data=sample estimator=first_success estimator.successes=9",
    "label data=sample estimator=bisect estimator.rule=threshold",
    "label data=sample estimator=bisect estimator.successes=2",
    "label data=sample estimator=best",
    "label data=sample estimator.rule=best",
    "label data=sample estimator.target_sd=0.6",
    "label data=sample grader=code sampling.stop_at_answer=true",
    "label data=sample policy.device.name=abacus",
    "label data=sample run.units_in_flight=0",
    "label data=sample cluster.workers=0",
    "label +x=1",
    "label sampling.rollouts=1,2",
    "label word",
    "label --multirun",
    "audit --purne",
    "audit",
    "relabel run_dir=x grader=code",
    "relabel run_dir=x estimator.rul=any",
    "relabel run_dir=x estimator.threshold=1",
    "relabel run_dir=x estimator.target_sd=0.2",
    "regrade run_dir=x grader.processes=0",
    "export run_dir=x format=lightgbm out=y",
    "export run_dir=x format=trl out=y validation=1",
    "export run_dir=x format=qwen out=y target=soft soft=mean",
    "train run_dir=x model=m",
    "grade input=",
    "grade data=sample",
    "status run_dir=x jsn=true",
)


def answer(line: str) -> tuple[int, str, str]:
    """The exit code, and what is printed on standard output and standard error. `--cfg job` is added to what has none."""
    words = shlex.split(line)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def composed(line: str) -> tuple[int, str, str]:
    """As `answer`, of a command that prints its settings instead of running."""
    return answer(f"{line} --cfg job")


def dotted(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Settings under their dotted names."""
    if not isinstance(settings, dict):
        return {prefix[:-1]: settings}
    return {name: value for key, inner in settings.items() for name, value in dotted(inner, f"{prefix}{key}.").items()}


def _another(value: Any, setting: Setting | None) -> str:
    """A value other than the default. A default that is null says nothing of the kind of the setting."""
    if setting and not isinstance(value, bool):
        for choice in setting.choices:
            if choice not in (str(value), "null"):
                return choice
        kind = setting.values.partition(",")[0]
        if value is None and kind in _OF_KIND:
            return _OF_KIND[kind]
    match value:
        case bool():
            return str(not value).lower()
        case int():
            return str(value + 1)
        case float():
            return str(value + 0.25)
        case _:
            return "other"


def _printed(line: str) -> str:
    code, out, said = composed(line)
    if code:
        raise ValueError(f"{line}: {said}")
    return out


OPTIONS = (
    "policy=oracle",
    "policy=hf policy.model=x",
    "policy=openai policy.model=x policy.openai.urls=[http://h/v1]",
    "estimator=fixed",
    "estimator=first_success",
    "estimator=pooled",
    "grader=code",
    "format=preference",
)
"""Implementations of which each has settings of its own."""
SECTIONS = {
    "label": ("policy", "estimator", "grader"),
    "plan": ("policy", "estimator", "grader"),
    "grade": ("grader",),
    "score": ("grader",),
    "export": ("format",),
}


@cache
def every_key(command: str) -> Sequence[str]:
    """The dotted names of a command's settings."""
    return list(dotted(yaml.safe_load(_printed(f"{command} {REQUIRED[command]}"))))


@cache
def keys_of_options(command: str) -> frozenset[str]:
    """As `every_key`, with those of the other implementations where they are chosen."""
    chosen = [option for option in OPTIONS if option.partition("=")[0] in SECTIONS.get(command, ())]
    lines = [f"{command} {REQUIRED[command]} {option}".strip() for option in chosen]
    return frozenset(every_key(command)).union(*(dotted(yaml.safe_load(_printed(line))) for line in lines))


def keys_that_were(command: str, earlier: Sequence[str]) -> list[str]:
    """Of `earlier` names of settings those that are still known, and the names that are new."""
    kept = [key for key in earlier if key in keys_of_options(command)]
    return [*kept, *(key for key in every_key(command) if key not in kept)]


def each_key(command: str) -> Iterator[str]:
    """Each setting of a command with a value that is not its default, as many in a line as go together."""
    by_context: dict[tuple[str, ...], list[str]] = {}
    said = {setting.key: setting for _, found in command_settings(CLI[command]) for setting in found}
    for key, value in dotted(yaml.safe_load(_printed(f"{command} {REQUIRED[command]}"))).items():
        if key in (*NAMES_OF_OTHERS, *WITHOUT_VALUE.get(command, ())):
            continue
        given = PER_COMMAND.get((command, key)) or VALUES.get(key) or _another(value, said.get(key))
        left_out = {key, INSTEAD_OF.get((command, key))}
        beside = [word for word in REQUIRED[command].split() if word.partition("=")[0] not in left_out]
        beside += PER_COMMAND_WITH.get((command, key), "").split()
        if command in ("label", "plan", "doctor", "grow") or key.startswith("judge.") or key == "data.splitter":
            beside += WITH.get(key, "").split()
        by_context.setdefault((command, *beside), []).append(f"{key}={given}")
    for context, words in by_context.items():
        yield from _together(context, words)


def _together(context: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    """Lines that are accepted, with all the words: in one line if it is, else in two halves."""
    line = " ".join([*context, *words])
    if len(words) == 1 or (len(words) <= KEYS_A_LINE and composed(line)[0] == 0):
        yield line
    else:
        half = len(words) // 2
        yield from _together(context, words[:half])
        yield from _together(context, words[half:])


def each_group(command: str) -> Iterator[str]:
    """Each option of each group that a command knows and takes."""
    out = _printed(f"{command} {REQUIRED[command]}")
    known = yaml.safe_load(out)
    for group, options in GROUPS.items():
        if isinstance(known.get(group), dict):
            for option in options.split():
                beside = {"hf": "policy.model=x", "openai": OPENAI.partition(" ")[2]}.get(option, "")
                line = " ".join(f"{command} {REQUIRED[command]} {group}={option} {beside}".split())
                if composed(line)[0] == 0:
                    yield line


def accepted() -> dict[str, list[str]]:
    """All command lines that are accepted. Raises ValueError for one that is not."""
    found = {
        "keys": [line for command in COMMANDS for line in each_key(command)],
        "groups": [line for command in COMMANDS if command != "plan" for line in each_group(command)],
        "without effect": list(WITHOUT_EFFECT),
        "realistic": list(LISTED),
    }
    for lines in found.values():
        for line in lines:
            _printed(line)
    return found


def refusal(line: str) -> str:
    """What a command line that is wrong is answered with. Nothing runs."""
    code, _, said = composed(line)
    if code == 2:
        return said.strip()
    code, _, said = answer(line)
    if code != 2:
        raise ValueError(f"{line} is accepted")
    return said.strip()


def answered() -> list[tuple[str, str]]:
    """Each refused line with its message."""
    return [(line, refusal(line)) for line in REFUSED]
