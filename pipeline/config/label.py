"""Schemas of everything under `conf/`: plain dataclasses whose fields state their ranges, see `fields`.

The sections `policy`, `estimator` and `grader` have several implementations (see `core.registry`). The classes here hold the
settings that all implementations share. Each implementation has a subclass with its own settings, in its own package. The base
class has the defaults of the implementation that it names.

Schemas are not frozen, because Hydra refuses overrides of frozen dataclasses. Only `cli` writes to them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt
from annotated_types import Interval as Range

from pipeline.config.choices import (
    AfterError,
    Interval,
    Keep,
    LabelRule,
    Layout,
    PromptStyle,
    Splitter,
    Thinking,
    TimeoutIs,
    Tracker,
)
from pipeline.config.fields import BY_GROUP, FREE, RELABEL, ChosenSettings, Settings, check, refuse_equal


@dataclass(kw_only=True, slots=True)
class RunConfig(Settings):
    SECTION: ClassVar[str] = "run"
    unit_problems: Annotated[int, Range(ge=1, le=10_000)] = 32
    """Problems per unit. A unit is the granularity of scheduling, retry and commit."""
    units_in_flight: Annotated[int, Range(ge=1, le=1000)] = 64
    """Most units that a worker holds at once. It takes another unit when too few requests wait to keep its engine busy."""
    flush_seconds: Annotated[float, Range(gt=0, le=86_400)] = 30.0
    """Longest time until finished rollouts are committed; a crash loses at most the rollouts of this time."""
    attempts: Annotated[int, Ge(1)] = 3
    """How often the worker of a unit may fail before the unit is split to find the request that kills the engine.

    Also how often in a row a worker may fail to start before the run goes on without it, and how often in a row workers may
    die at work on a GPU, or on a machine without GPUs, before the run goes on without that place."""
    max_failures: Annotated[int, Ge(1)] = 100
    """How many workers may fail after their start, and how many requests may stay unanswered, before the run stops.

    Failed starts, and deaths at a place after it is given up, do not count: run.attempts limits them."""
    lock: bool = True
    """false: take no lock, for a file system without `flock`. Two drivers then give correct results, but do the work twice.

    In an object store that does not refuse to create a name twice, make sure that only one driver works."""
    download_timeout_seconds: Annotated[float, Gt(0)] = 7200.0
    """Longest time for a worker to download the model to its machine. A worker that takes longer is started again."""
    start_timeout_seconds: Annotated[float, Gt(0)] = 1800.0
    """Longest time for a worker to load the model from its machine. A worker that takes longer is started again."""
    stall_seconds: Annotated[float, Gt(0)] = 600.0
    """A worker that makes no progress for this time counts as hung and is replaced."""
    progress_seconds: Annotated[float, Gt(0)] = 5.0
    """Time between two updates of the displayed progress."""
    show_chains: Annotated[int, Ge(0)] = 4
    """How many chains are printed at the end; in a run that goes on or has grown, of those that are new."""
    report: bool = True
    """Whether `label` and `search` write report.html at the end."""
    track: Tracker = Tracker.none
    """The experiment tracker that also receives the progress of the run."""


@dataclass(kw_only=True, slots=True)
class ClusterConfig(Settings):
    SECTION: ClassVar[str] = "cluster"
    address: str | None = None
    """The Ray cluster to join: `auto` or an address. null: start a private Ray on this machine, on loopback only."""
    workers: Annotated[int | None, Ge(1)] = None
    """Number of workers; null: as many as fit on the GPUs of the cluster if the policy uses GPUs, else 1."""
    cpus_per_worker: Annotated[float | None, Gt(0)] = None
    """CPU cores that Ray reserves for each worker; null: what the policy needs."""
    gpus_per_worker: Annotated[float | None, Ge(0)] = None
    """GPUs that Ray reserves for each worker; null: what the policy needs. Below 1, several workers share each GPU."""
    wait_seconds: Annotated[float, Gt(0)] = 600.0
    """Longest wait for resources: with an address, for nodes that are still to join; then for workers to get their share."""

    def check(self) -> None:
        gpus = self.gpus_per_worker
        whole = gpus is None or gpus < 1 or gpus == int(gpus)
        check(whole, "cluster.gpus_per_worker", gpus, "a whole number, or below 1 for workers that share a GPU")


@dataclass(kw_only=True, slots=True)
class PlanConfig(Settings):
    """What `plan` measures and assumes. `label` also uses the price.

    A device is a GPU. A worker without a GPU counts as one device. With policy=openai, the server of each URL is one device.
    """

    SECTION: ClassVar[str] = "plan"
    out: str = "plan.json"
    """The file that the plan is written to; `label budget=FILE` reads it."""
    gpu_hour_price: Annotated[float | None, Ge(0)] = None
    """Price of one device for one hour, in any currency; null: no cost in money is shown."""
    gpus: Annotated[int | None, Ge(1)] = None
    """Number of devices to estimate the wall time for; null: as many as `label` would use."""
    pilot: bool = True
    """false: load no policy, and assume the values of plan.completion_tokens, plan.success_rate and plan.tokens_per_second."""
    pilot_problems: Annotated[int, Range(ge=2, le=10_000)] = 16
    """Number of randomly drawn problems whose chains the pilot labels to measure the cost."""
    seed: int = 0
    """Random seed of that draw and of the simulation."""
    completion_tokens: Annotated[int | None, Ge(1)] = None
    """Without a pilot: mean length of a completion in tokens; null: half of sampling.max_tokens."""
    success_rate: Annotated[float, Range(ge=0, le=1)] = 0.5
    """Without a pilot: mean success rate over all prefixes."""
    tokens_per_second: Annotated[float | None, Gt(0)] = None
    """Without a pilot: tokens per second of one worker; null: half of its device's upper bound, if that is known."""

    def check(self) -> None:
        check(bool(self.out.strip()), "plan.out", repr(self.out), "the name of a file")


@dataclass(kw_only=True, slots=True)
class LimitConfig(Settings):
    """Where `label` stops, beside the limit of budget=FILE. What came in is kept, and a larger limit continues the run."""

    SECTION: ClassVar[str] = "limit"
    device_hours: Annotated[float | None, Gt(0)] = None
    """Device hours of work of all starts; the time that workers take to start is not counted. null: no limit."""
    money: Annotated[float | None, Gt(0)] = None
    """The same in money, at plan.gpu_hour_price. null: no limit."""


@dataclass(kw_only=True, slots=True)
class Columns(Settings):
    """Names of the input columns. A dot descends into a nested field. An empty name: the column is not read."""

    SECTION: ClassVar[str] = "data.columns"
    id: str = "id"
    """Column with the id of the row, kept as `source_id`."""
    problem: str = "problem"
    """Column with the text of the problem."""
    answer: str = "answer"
    """Column with the known answer: a text, a number, or a list of answers, each of which is correct."""
    steps: str = "steps"
    """Column with the list of steps."""
    solution: str = "solution"
    """Column with the solution as one text, which `data.splitter` cuts into steps."""
    outcome: str = ""
    """Column that says whether the solution's final answer is correct, as true and false or 1 and 0; null where nobody knows.

    It counts where the solution states no answer. Empty: it is not read."""


def steps_setting(splitter: str, pattern: str | None) -> str:
    """How a text is divided into steps, in words of the command line."""
    return f"data.splitter={splitter}" + ("" if pattern is None else f" data.pattern={pattern!r}")


@dataclass(kw_only=True, slots=True)
class DataConfig(Settings):
    SECTION: ClassVar[str] = "data"
    path: Annotated[str, FREE] = "???"
    """A file, folder, glob, `sample` or `hf://OWNER/NAME`. The run's first input is part of its identity; rows may be added."""
    layout: Layout = Layout.rows
    """The public data set whose row format is read; `rows`: the columns that `data.columns` names."""
    columns: Columns = field(default_factory=Columns)
    answer_in_text: bool = False
    """true: the answer column holds a text that states the final answer (GSM8K's `#### 72`, MATH's `\\boxed{}`)."""
    answer_is_suite: bool = False
    """true, for grader=code: a list or an object in the answer column is one test suite and is kept as JSON."""
    splitter: Splitter = Splitter.newline
    """Where a solution text is cut into steps."""
    pattern: str | None = None
    """With splitter=regex: the regular expression; each match ends a step."""
    separator: str = "\n"
    """The text between two items of `steps` when they are joined into the solution text."""
    limit: Annotated[int | None, Ge(1)] = None
    """Number of rows to read from the start of the input; null: all. A later start may raise it."""
    max_chars: Annotated[int, Ge(1)] = 100_000
    """Rows with a field of more characters are rejected."""
    max_steps: Annotated[int, Range(ge=1, le=10_000)] = 500
    """Chains with more steps are rejected."""

    @property
    def steps(self) -> str:
        """How a text is divided into steps, in words of the command line."""
        return steps_setting(self.splitter.value, self.pattern)

    def check(self) -> None:
        if self.splitter is Splitter.regex:
            if not self.pattern:
                raise ValueError("data.splitter=regex needs data.pattern")
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"data.pattern is not a regular expression: {error}") from error


@dataclass(kw_only=True, slots=True)
class FewShotExample:
    """A worked example that the policy sees before the problem."""

    problem: str = "???"
    """The problem of the example."""
    solution: str = "???"
    """The solution of the example, in the form that the policy should write."""


@dataclass(kw_only=True, slots=True)
class PromptConfig(Settings):
    SECTION: ClassVar[str] = "policy.prompt"
    style: PromptStyle = PromptStyle.chat
    """chat: use the model's own chat template; plain: use `policy.prompt.template`, for base models."""
    system: str = ""
    """The system message; with style=plain, the first paragraph of the prompt. Empty: none."""
    instruction: str = ""
    """Text after the problem, on a line of its own."""
    template: str = "Problem: {problem}\nSolution:\n"
    """With style=plain: the prompt of a problem; `{problem}` is replaced."""
    examples: list[FewShotExample] = field(default_factory=list)
    """Worked examples before the problem, each with `problem` and `solution`."""
    thinking: Thinking | None = None
    """Where steps stand if the prompt opens a tag of thinking, as chat templates of reasoning models do. close: after it, for
    the prompt closes it. inside: in it; a completion without a closing tag has no answer. null: such a prompt is refused."""
    template_arguments: dict[str, Any] = field(default_factory=dict)
    """What the chat template gets besides the messages, such as `{enable_thinking: false}`."""

    def check(self) -> None:
        check(
            "{problem}" in self.template,
            "policy.prompt.template",
            repr(self.template),
            "a text that contains {problem}",
        )


@dataclass(kw_only=True, slots=True)
class SamplingConfig(Settings):
    SECTION: ClassVar[str] = "sampling"
    rollouts: Annotated[int, Range(ge=1, le=99_999), FREE] = 8
    """Rollouts (sampled completions) per prefix; estimator=pooled: the most that prefixes get on average."""
    temperature: Annotated[float, Ge(0)] = 1.0
    """Sampling temperature; 0: greedy decoding, which writes one rollout of a prefix, and one chain of a row without a chain:
    more would be equal."""
    top_p: Annotated[float, Range(gt=0, le=1)] = 1.0
    """Nucleus sampling: only the most likely tokens that together have this probability are sampled; 1: all tokens."""
    top_k: Annotated[int, Ge(0)] = 0
    """Only this number of most likely tokens is sampled from; 0: all tokens."""
    min_p: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Tokens with less than this share of the most likely token's probability are not sampled."""
    max_tokens: Annotated[int, Ge(1)] = 1024
    """Longest completion in tokens; a longer one is truncated."""
    stop: list[str] = field(default_factory=list)
    """Texts at which a completion ends."""
    stop_at_answer: Annotated[bool | None, FREE] = None
    """true: a completion ends after the line that states its final answer, in a form that the grader reads.

    null: true with policy.prompt.style=plain and without grader.answer_pattern, except with policy=openai. A base model does
    not stop after its answer. It goes on with a problem of its own, whose answer would be taken for the answer to this problem.
    A chat model stops by itself and may correct its answer first. With an answer pattern, the first match may not be the last.
    The setting changes what the policy writes, so its effective value is part of a run's identity."""
    solutions: Annotated[int, Range(ge=1, le=1000)] = 4
    """Number of chains that the policy samples for each row without a chain."""
    keep: Keep = Keep.all
    """Which problems with sampled chains are kept: all, or only those with right and wrong chains (mixed)."""
    store_tokens: bool = False
    """Whether the log has the tokens of each rollout, besides its text. Tokens of sampled chains are always stored."""


@dataclass(kw_only=True, slots=True)
class PolicyConfig(ChosenSettings):
    """The settings that all policies share; see `engines.registry`."""

    SECTION: ClassVar[str] = "policy"
    CHOSEN_BY: ClassVar[str] = "kind"
    MADE_UP: ClassVar[str] = ""
    """Of a policy without a model, for demonstrations and tests: a clause that says where its rollouts come from. What shows
    labels of such a policy says that their values are made up."""
    kind: Annotated[str, BY_GROUP] = "embedded"
    """The policy, given as policy=NAME."""
    max_model_len: Annotated[int | None, Ge(16)] = None
    """Context length in tokens; null: the context length of the model."""
    prompt: PromptConfig = field(default_factory=PromptConfig)

    def check_complete(self, sampling: SamplingConfig) -> None:
        """Raise ValueError if a setting that a run needs is missing, or if a setting conflicts with `sampling`."""


_OF_A_PATH = (LabelRule.first_error, LabelRule.lasting_drop)


@dataclass(kw_only=True, slots=True)
class EstimatorConfig(ChosenSettings):
    """The settings that all estimators share: the interval, and the rule that turns values into labels.

    See `estimators.registry`."""

    SECTION: ClassVar[str] = "estimator"
    CHOSEN_BY: ClassVar[str] = "name"
    name: Annotated[str, RELABEL] = "fixed"
    """The estimator. `estimator=NAME` also sets its default interval and label rule."""
    interval: Annotated[Interval, RELABEL] = Interval.clopper_pearson
    """The kind of interval in the columns `low` and `high`."""
    confidence: Annotated[float, Range(gt=0, lt=1), RELABEL] = 0.95
    """The coverage of the interval."""
    rule: Annotated[LabelRule, RELABEL] = LabelRule.any
    """How values become labels."""
    threshold: Annotated[float, Range(ge=0, lt=1), RELABEL] = 0.5
    """A step counts as good if its value is above this; rule=relative: this share of the value of the bare problem."""
    certainty: Annotated[float | None, Range(gt=0.5, lt=1), RELABEL] = None
    """The least probability of a label; a less certain step is uncertain. posterior: of V > threshold or V <= threshold.
    lasting_drop: of no drop for good, or of one. consensus: of no error so far, or of the first error. null: 0.95, and no limit
    with rule=lasting_drop."""
    neutral: Annotated[float, Range(ge=0, le=1), RELABEL] = 0.1
    """rule=three_class: a step above the threshold is neutral if its value fell by more than this from the step before."""
    after_error: Annotated[AfterError, RELABEL] = AfterError.keep
    """The labels of the steps after a chain's first bad step."""
    miss_rate: Annotated[float, Range(ge=0, lt=1), RELABEL] = 0.0
    """The share of right answers that the grader does not find correct: `value` is then the probability of a right answer,
    graded so or not. Measure it with `grade` on answers that are known to be right."""

    OPTION: ClassVar[Mapping[str, object]] = {"interval": "clopper_pearson", "rule": "any", "threshold": 0.5}
    """What `estimator=NAME` sets besides the name, for an estimator of ours: as the file of the option has it."""
    RULES: ClassVar[frozenset[LabelRule]] = frozenset()
    """The rules about a whole chain that the estimator has: `lasting_drop` if it gives `p_no_drop`, `first_error` if it knows
    how the values of a chain depend on each other."""
    MISSES: ClassVar[bool] = False
    """Whether the estimator uses `miss_rate`."""

    @property
    def good_above(self) -> float:
        """The value above which a step is labelled good: 0 with rule=any, for which one correct rollout is enough. For
        rule=relative a bare problem of value 1 is meant."""
        return 0.0 if self.rule is LabelRule.any else self.threshold

    @property
    def least_certainty(self) -> float:
        """`certainty`, or its default for labels that are probabilities."""
        return 0.95 if self.certainty is None else self.certainty

    def check(self) -> None:
        if self.miss_rate and not self.MISSES:
            raise ValueError(f"estimator.miss_rate is not known to estimator.name={self.name}: leave it at 0")
        if self.rule in _OF_A_PATH and self.rule not in self.RULES:
            raise ValueError(
                f"estimator.rule={self.rule.value} needs the values of a whole chain together, which "
                f"estimator.name={self.name} does not know: take estimator=pooled, in `relabel` too, or estimator.rule=any"
            )

    def check_complete(self, sampling: SamplingConfig) -> None:
        """Raise ValueError for settings that conflict with `sampling`."""
        if self.rule is LabelRule.consensus:
            raise ValueError(
                "estimator.rule=consensus needs the opinions of witnesses on finished chains: label with another rule, then "
                "`judge`, then `relabel estimator.rule=consensus`"
            )


@dataclass(kw_only=True, slots=True)
class GraderConfig(ChosenSettings):
    """The settings that all graders share; see `graders.registry`."""

    SECTION: ClassVar[str] = "grader"
    CHOSEN_BY: ClassVar[str] = "kind"
    kind: Annotated[str, RELABEL] = "math"
    """The grader. `grader=NAME` also sets its defaults."""
    deadline_seconds: Annotated[float, Range(gt=0, le=600), RELABEL] = 1.0
    """Longest wall time to grade one answer; grader=code: for one run of a program."""
    memory_mib: Annotated[int, Ge(512), FREE, RELABEL] = 2048
    """Memory limit of a grading process in MiB."""
    processes: Annotated[int, Range(ge=1, le=256), FREE, RELABEL] = 1
    """Number of grading processes of each worker."""
    timeout_is: Annotated[TimeoutIs, RELABEL] = TimeoutIs.ungraded
    """The verdict on an answer that does not end in time or crashes its checker, twice. wrong: incorrect, unless the machine
    was busy or out of memory. ungraded: timeout or crashed."""


@dataclass(kw_only=True, slots=True)
class LabelConfig:
    """The settings of `label` and `plan`."""

    run_dir: str | None = None
    """The run directory: a folder, or a URL such as `s3://BUCKET/NAME` or `gs://BUCKET/NAME`. null: a folder under
    `runs/`, named by a hash of the run's identity, so that the same command resumes the run."""
    budget: str | None = None
    """For `label`: the plan.json that `plan` made for this run. The run stops at the `limit` in that file."""
    data: DataConfig = field(default_factory=DataConfig)
    """The layout of the rows."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    """What writes the completions."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    """How completions and solutions are sampled."""
    estimator: EstimatorConfig = field(default_factory=EstimatorConfig)
    """What decides how many rollouts each prefix gets. It also computes the values."""
    grader: GraderConfig = field(default_factory=GraderConfig)
    """What checks the answers."""
    run: RunConfig = field(default_factory=RunConfig)
    """How the run is divided into units, retried, stored and shown."""
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """The Ray cluster and the workers."""
    plan: PlanConfig = field(default_factory=PlanConfig)
    """What the estimate of the cost measures and assumes."""
    limit: LimitConfig = field(default_factory=LimitConfig)
    """What the run may cost."""

    @property
    def most_hours(self) -> float | None:
        """The device hours at which `label` stops. None: no limit."""
        price = self.plan.gpu_hour_price
        of_money = None if self.limit.money is None or not price else self.limit.money / price
        return min((hours for hours in (self.limit.device_hours, of_money) if hours is not None), default=None)

    def __post_init__(self) -> None:
        if self.limit.money is not None and not self.plan.gpu_hour_price:
            raise ValueError("limit.money needs the price of a device for an hour: give plan.gpu_hour_price=...")
        if self.run_dir is not None and not self.run_dir.strip():
            raise ValueError("run_dir is empty: give run_dir=FOLDER, or leave it out to use a folder under runs/")
        refuse_equal("sampling.rollouts", self.sampling.rollouts, "rollouts", self.sampling.temperature)
        self.estimator.check_complete(self.sampling)
        self.policy.check_complete(self.sampling)


@dataclass(kw_only=True, slots=True)
class GradeConfig:
    """The settings of `grade`. `-` means standard input or standard output."""

    input: str = "-"
    """A file of JSON lines, also .gz and .zst; `-`: standard input."""
    output: str = "-"
    """The file for the verdicts; `-`: standard output."""
    grader: GraderConfig = field(default_factory=GraderConfig)
    """What checks the answers."""

    def __post_init__(self) -> None:
        for key, path in (("input", self.input), ("output", self.output)):
            if not path.strip():
                raise ValueError(f"{key} is empty: give {key}=FILE, or leave it out for standard {key}")
