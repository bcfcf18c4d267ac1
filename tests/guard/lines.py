"""Command lines that users have, and what they are answered with. Nothing of them is run: `--cfg job` stands behind each.

Lines of documents and tests are listed where they are stored alone. `each_key` and `each_group` cover every setting there is.
"""

import contextlib
import io
import shlex
from collections.abc import Iterator, Mapping, Sequence
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


def accepted(listed: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """All command lines that are accepted: those listed by hand, and made ones. Raises ValueError for one that is not."""
    found = {
        **listed,
        "keys": [line for command in COMMANDS for line in each_key(command)],
        "groups": [line for command in COMMANDS if command != "plan" for line in each_group(command)],
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
