"""Schemas of everything under `conf/`: plain dataclasses with range checks. Hydra fills them; nothing here imports it.

They are not frozen, because Hydra refuses overrides of frozen schemas; nothing below `__main__` writes to them.
"""

import re
from dataclasses import dataclass, field

from pipeline.config.choices import (
    AfterError,
    BudgetUnit,
    EstimatorName,
    Fallback,
    GraderKind,
    Interval,
    Keep,
    LabelRule,
    Layout,
    PolicyKind,
    PromptStyle,
    Sandbox,
    Splitter,
)
from pipeline.config.engines import DeviceConfig, OpenAiConfig, OracleConfig, check_ending, check_guessing
from pipeline.config.ranges import check as _check
from pipeline.config.run import ClusterConfig, PlanConfig, RunConfig


@dataclass(kw_only=True, slots=True)
class Columns:
    """Names of the input columns; a dot descends into a nested field. Empty: the column is not read."""

    id: str = "id"
    problem: str = "problem"
    answer: str = "answer"
    steps: str = "steps"
    solution: str = "solution"


@dataclass(kw_only=True, slots=True)
class DataConfig:
    path: str = "???"
    layout: Layout = Layout.rows
    columns: Columns = field(default_factory=Columns)
    answer_in_text: bool = False
    """The answer column holds a text that states the final answer (GSM8K's `#### 72`, MATH's `\\boxed{}`)."""
    answer_is_suite: bool = False
    """grader=code: the answer column holds a test suite, so a list or an object in it is one suite, kept as JSON."""
    splitter: Splitter = Splitter.newline
    pattern: str | None = None
    """With splitter=regex: each match ends a step."""
    separator: str = "\n"
    """Joins given `steps` into the solution text."""
    limit: int | None = None
    """Use only the first so many rows."""
    max_chars: int = 100_000
    """A longer field is rejected."""
    max_steps: int = 500

    def __post_init__(self) -> None:
        _check(self.limit is None or self.limit >= 1, "data.limit", self.limit, "at least 1")
        _check(self.max_chars >= 1, "data.max_chars", self.max_chars, "at least 1")
        _check(1 <= self.max_steps <= 10_000, "data.max_steps", self.max_steps, "1 to 10000")
        if self.splitter is Splitter.regex:
            if not self.pattern:
                raise ValueError("data.splitter=regex needs data.pattern")
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"data.pattern is not a regular expression: {error}") from error


@dataclass(kw_only=True, slots=True)
class Example:
    """A worked example shown to the policy before the problem."""

    problem: str = "???"
    solution: str = "???"


@dataclass(kw_only=True, slots=True)
class PromptConfig:
    style: PromptStyle = PromptStyle.chat
    system: str = ""
    instruction: str = ""
    """Put behind the problem, on a line of its own."""
    template: str = "Problem: {problem}\nSolution:\n"
    """style=plain only; `{problem}` is replaced."""
    examples: list[Example] = field(default_factory=list)

    def __post_init__(self) -> None:
        _check(
            "{problem}" in self.template, "policy.prompt.template", repr(self.template), "a text with {problem} in it"
        )


@dataclass(kw_only=True, slots=True)
class PolicyConfig:
    kind: PolicyKind = PolicyKind.embedded
    model: str = ""
    """policy=hf: a Hugging Face name or a local folder. policy=openai: the name under which the servers know the model."""
    tokenizer: str | None = None
    """policy=openai: the model's tokenizer, a Hugging Face name or a local folder; null: policy.model is one."""
    revision: str | None = None
    dtype: str = "auto"
    quantization: str | None = None
    tensor_parallel: int | None = None
    """GPUs of one worker, on one node. None: as few as the model needs."""
    max_model_len: int | None = None
    memory_share: float | None = None
    """Share of the GPU's memory that vLLM may take; null: by device, see `engines.defaults`."""
    kv_cache_gib: float = 2.0
    """On a CPU: memory for the KV cache."""
    max_num_seqs: int | None = None
    """Requests that run at once; null: by device."""
    max_num_batched_tokens: int | None = None
    """Tokens of one forward pass, prompts included; null: by device."""
    kv_cache_dtype: str | None = None
    """Null: the model's own type. Fewer bits (`fp8`) change the policy a little."""
    speculative_tokens: int | None = None
    """Tokens that are guessed ahead and then checked by the policy; null: none."""
    speculative_model: str | None = None
    """The draft model that guesses; null: guesses are copied from what the prompt and completion say already."""
    enforce_eager: bool | None = None
    load_format: str = "auto"
    prompt: PromptConfig = field(default_factory=PromptConfig)
    oracle: OracleConfig = field(default_factory=OracleConfig)
    device: DeviceConfig = field(default_factory=DeviceConfig)
    openai: OpenAiConfig = field(default_factory=OpenAiConfig)

    def __post_init__(self) -> None:
        parts = self.tensor_parallel
        _check(parts is None or parts >= 1, "policy.tensor_parallel", parts, "at least 1")
        _check(
            self.memory_share is None or 0 < self.memory_share <= 1,
            "policy.memory_share",
            self.memory_share,
            "above 0 and at most 1",
        )
        _check(self.kv_cache_gib > 0, "policy.kv_cache_gib", self.kv_cache_gib, "above 0")
        for key, count in (
            ("policy.max_num_seqs", self.max_num_seqs),
            ("policy.max_num_batched_tokens", self.max_num_batched_tokens),
            ("policy.speculative_tokens", self.speculative_tokens),
        ):
            _check(count is None or count >= 1, key, count, "at least 1")
        _check(
            self.max_model_len is None or self.max_model_len >= 16,
            "policy.max_model_len",
            self.max_model_len,
            "at least 16",
        )
        if self.kind is PolicyKind.hf and not self.model:
            raise ValueError("policy=hf needs policy.model=NAME_OR_FOLDER")
        if self.kind not in (PolicyKind.hf, PolicyKind.openai) and self.model:
            raise ValueError(
                f"policy.model={self.model} needs policy=hf: policy={self.kind.value} has a model of its own"
            )
        if self.kind is PolicyKind.openai:
            self.openai.check_complete(self.model)
        elif self.tokenizer or self.openai.urls:
            raise ValueError(f"policy.openai.urls and policy.tokenizer need policy=openai, not {self.kind.value}")


@dataclass(kw_only=True, slots=True)
class SamplingConfig:
    rollouts: int = 8
    """Completions per prefix."""
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0: all tokens."""
    min_p: float = 0.0
    max_tokens: int = 1024
    stop: list[str] = field(default_factory=list)
    stop_at_answer: bool | None = None
    """A completion ends with the line in which it has stated its final answer, see `graders.math.answered`.

    null: on with policy.prompt.style=plain and no grader.answer_pattern, unless policy=openai. A base model does not end there
    by itself: it goes on with a problem of its own making, whose answer would be taken for this one's. A chat model ends by
    itself, and may take its answer back first; and of a pattern nobody knows whether its first match is its last. It changes
    what the policy says, so it is part of a run's identity."""
    solutions: int = 4
    """Chains the policy samples for a problem that comes without any."""
    keep: Keep = Keep.all

    def __post_init__(self) -> None:
        _check(1 <= self.rollouts <= 99_999, "sampling.rollouts", self.rollouts, "1 to 99999")
        _check(self.temperature >= 0, "sampling.temperature", self.temperature, "0 or more")
        _check(0 < self.top_p <= 1, "sampling.top_p", self.top_p, "above 0 and at most 1")
        _check(self.top_k >= 0, "sampling.top_k", self.top_k, "0 or more")
        _check(0 <= self.min_p <= 1, "sampling.min_p", self.min_p, "between 0 and 1")
        _check(self.max_tokens >= 1, "sampling.max_tokens", self.max_tokens, "at least 1")
        _check(1 <= self.solutions <= 1000, "sampling.solutions", self.solutions, "1 to 1000")


@dataclass(kw_only=True, slots=True)
class EstimatorConfig:
    name: EstimatorName = EstimatorName.fixed
    interval: Interval = Interval.clopper_pearson
    confidence: float = 0.95
    rule: LabelRule = LabelRule.any
    threshold: float = 0.5
    """The value above which a step counts as good; rule=relative: the share of the root's value."""
    certainty: float = 0.95
    """rule=posterior: a step is labelled when P(V > threshold) is at least this, or at most 1 minus this."""
    neutral: float = 0.1
    """rule=three_class: a step above the threshold is neutral if it lost more than this against the step before."""
    after_error: AfterError = AfterError.keep
    successes: int = 1
    """name=first_success: a prefix is done at so many right rollouts."""
    batch: int = 1
    """name=first_success and name=bisect: rollouts of a prefix that are sampled at a time. Those still under way when enough
    are right are aborted; labels do not depend on it."""
    target_sd: float = 0.1
    """name=pooled: a chain is done when the root mean square of its posterior_sd is at most this."""
    budget: int | None = None
    """name=pooled: what a chain may cost, in budget_unit; null: as many rollouts as name=fixed would take."""
    run_budget: int | None = None
    """name=pooled: what all rollouts of the run may cost, in budget_unit."""
    budget_unit: BudgetUnit = BudgetUnit.tokens

    def __post_init__(self) -> None:
        _check(0 < self.confidence < 1, "estimator.confidence", self.confidence, "between 0 and 1, exclusive")
        _check(0 <= self.threshold < 1, "estimator.threshold", self.threshold, "at least 0 and below 1")
        _check(0.5 < self.certainty < 1, "estimator.certainty", self.certainty, "between 0.5 and 1, exclusive")
        _check(0 <= self.neutral <= 1, "estimator.neutral", self.neutral, "between 0 and 1")
        _check(1 <= self.successes <= 1000, "estimator.successes", self.successes, "1 to 1000")
        _check(1 <= self.batch <= 1000, "estimator.batch", self.batch, "1 to 1000")
        _check(0 < self.target_sd <= 0.5, "estimator.target_sd", self.target_sd, "above 0, at most 0.5")
        for key, budget in (("estimator.budget", self.budget), ("estimator.run_budget", self.run_budget)):
            _check(budget is None or budget >= 1, key, budget, "at least 1")
        if self.name is EstimatorName.bisect:
            _check(self.successes == 1, "estimator.successes", self.successes, "1 with estimator.name=bisect")
            if self.rule is not LabelRule.any:
                raise ValueError(
                    f"estimator.rule={self.rule.value} needs the values of all steps, which estimator.name=bisect does not "
                    "measure: use estimator.rule=any, or another estimator"
                )


@dataclass(kw_only=True, slots=True)
class GraderConfig:
    kind: GraderKind = GraderKind.math
    fallback: Fallback = Fallback.closing_statement
    """What counts as the answer of a text without `\\boxed{}`, `####` or "the answer is": what its closing line comes down to
    (its last formula, number, choice or bold words), the last number anywhere, or nothing, which is the verdict no_answer."""
    answer_pattern: str | None = None
    """A regular expression whose last match's first group is the final answer, before any built-in marker."""
    relative_tolerance: float = 0.0
    """For decimal numbers; 0: exact."""
    deadline_seconds: float = 1.0
    """Wall time per answer; kind=code: per run of a program."""
    memory_mib: int = 2048
    processes: int = 1
    cpu_seconds: float = 4.0
    """kind=code: processor time that a program may use on one test of standard input, or on one suite of calls."""
    suite_seconds: float = 60.0
    """kind=code: wall time after which no further test of a suite is begun."""
    sandbox: Sandbox = Sandbox.standard
    """kind=code."""

    def __post_init__(self) -> None:
        _check(0 <= self.relative_tolerance < 0.1, "grader.relative_tolerance", self.relative_tolerance, "0 to 0.1")
        _check(
            0 < self.deadline_seconds <= 600, "grader.deadline_seconds", self.deadline_seconds, "above 0, at most 600"
        )
        _check(self.memory_mib >= 512, "grader.memory_mib", self.memory_mib, "at least 512")
        _check(1 <= self.processes <= 256, "grader.processes", self.processes, "1 to 256")
        _check(0 < self.cpu_seconds <= 600, "grader.cpu_seconds", self.cpu_seconds, "above 0, at most 600")
        _check(0 < self.suite_seconds <= 3600, "grader.suite_seconds", self.suite_seconds, "above 0, at most 3600")
        if self.answer_pattern is not None:
            try:
                groups = re.compile(self.answer_pattern).groups
            except re.error as error:
                raise ValueError(f"grader.answer_pattern is not a regular expression: {error}") from error
            _check(
                groups >= 1, "grader.answer_pattern", repr(self.answer_pattern), "a pattern with a group for the answer"
            )


@dataclass(kw_only=True, slots=True)
class LabelConfig:
    """Everything `label` needs."""

    run_dir: str | None = None
    """A folder, or the URL of an object store: `s3://BUCKET/NAME`, `gs://BUCKET/NAME`. None: a folder under `runs/` named after
    what the run is the result of, so that the same command resumes it."""
    budget: str | None = None
    """`label`: the plan.json of a plan of this run; its `limit` ends the run before it costs more."""
    data: DataConfig = field(default_factory=DataConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    estimator: EstimatorConfig = field(default_factory=EstimatorConfig)
    grader: GraderConfig = field(default_factory=GraderConfig)
    run: RunConfig = field(default_factory=RunConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    plan: PlanConfig = field(default_factory=PlanConfig)

    def __post_init__(self) -> None:
        if self.run_dir is not None and not self.run_dir.strip():
            raise ValueError("run_dir is empty: give run_dir=FOLDER, or leave it out for one under runs/")
        _check_together(self.estimator, self.sampling)
        if self.policy.kind is PolicyKind.openai:
            self.policy.openai.check_sampling(self.sampling.top_k, self.sampling.min_p)
        check_ending(self.sampling.stop_at_answer, self.policy.kind, self.grader.kind)
        check_guessing(self.policy.speculative_tokens, self.policy.speculative_model, self.sampling.min_p)


def _check_together(estimator: EstimatorConfig, sampling: SamplingConfig) -> None:
    name, most = estimator.name, sampling.rollouts
    for key, budget in (("budget", estimator.budget), ("run_budget", estimator.run_budget)):
        if budget is not None and name is not EstimatorName.pooled:
            raise ValueError(
                f"estimator.{key}={budget} is for estimator=pooled: what estimator={name.value} takes is set by "
                "sampling.rollouts"
            )
    if name is EstimatorName.first_success and estimator.successes > most:
        raise ValueError(
            f"estimator.successes={estimator.successes} cannot be reached with sampling.rollouts={most}: lower the one or "
            "raise the other"
        )


@dataclass(kw_only=True, slots=True)
class GradeConfig:
    """Everything `grade` needs. `-` stands for standard input and standard output."""

    input: str = "-"
    output: str = "-"
    grader: GraderConfig = field(default_factory=GraderConfig)

    def __post_init__(self) -> None:
        for key, path in (("input", self.input), ("output", self.output)):
            if not path.strip():
                raise ValueError(f"{key} is empty: give {key}=FILE, or leave it out for standard {key}")
