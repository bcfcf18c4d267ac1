"""Schemas of everything under `conf/`: plain dataclasses whose fields state their ranges, see `fields`.

A section behind a door (`policy`, `estimator`, `grader`) has here what all its implementations share. Each implementation has a
subclass with its own settings in its own package. The base itself stands for the defaults of the implementation that it names.

Schemas are not frozen, because Hydra refuses overrides of frozen ones; nothing below `cli` writes to them.
"""

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

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
    Tracker,
)
from pipeline.config.fields import BY_GROUP, FREE, RELABEL, ChosenSettings, Settings, check


@dataclass(kw_only=True, slots=True)
class RunConfig(Settings):
    SECTION: ClassVar[str] = "run"
    unit_problems: Annotated[int, Range(ge=1, le=10_000)] = 32
    """Problems per unit: the grain of scheduling, retry and commit."""
    units_in_flight: Annotated[int, Range(ge=1, le=1000)] = 64
    """Units a worker holds at once at most. It takes another one when fewer requests wait for its engine than keep it busy."""
    flush_seconds: Annotated[float, Range(gt=0, le=86_400)] = 30.0
    """How long finished rollouts wait at most to be committed: what a crash can cost."""
    attempts: Annotated[int, Ge(1)] = 3
    """How often a unit is tried with others before it is taken apart to find the request that engines die of."""
    max_failures: Annotated[int, Ge(1)] = 100
    """Workers that may fail, and requests that may be written off, before the run gives up."""
    lock: bool = True
    """false: for a file system without `flock`; results are right with two drivers too, but work is done twice.

    Not so in an object store that refuses no name twice: there, see to it that one driver works."""
    start_timeout_seconds: Annotated[float, Gt(0)] = 1800.0
    """How long the cluster may take to give a worker its resources and the worker to load its model."""
    stall_seconds: Annotated[float, Gt(0)] = 600.0
    """A worker that generates no token for so long is taken for hung and replaced."""
    progress_seconds: Annotated[float, Gt(0)] = 5.0
    """Time between two updates of the progress that is shown."""
    show_chains: Annotated[int, Ge(0)] = 4
    """How many chains are printed at the end."""
    report: bool = True
    """Whether `label` writes report.html at the end."""
    track: Tracker = Tracker.none
    """Where the course of the run is sent too."""


@dataclass(kw_only=True, slots=True)
class ClusterConfig(Settings):
    SECTION: ClassVar[str] = "cluster"
    address: str | None = None
    """None: a private Ray on this machine, loopback only; `auto` or an address: join that cluster."""
    workers: Annotated[int | None, Ge(1)] = None
    """None: as many as the GPUs of the cluster have room for, for a GPU policy, else 1."""
    cpus_per_worker: Annotated[float | None, Gt(0)] = None
    """CPU cores that Ray reserves for a worker; null: what the policy needs."""
    gpus_per_worker: Annotated[float | None, Ge(0)] = None
    """GPUs that Ray reserves for a worker; null: what the policy needs."""


@dataclass(kw_only=True, slots=True)
class PlanConfig(Settings):
    """What `plan` measures and assumes; the price is for `label` too.

    A device is a GPU; of a worker without one, the worker itself; with policy=openai, what a URL stands for.
    """

    SECTION: ClassVar[str] = "plan"
    out: str = "plan.json"
    """The file that the plan is written to; `label budget=FILE` reads it."""
    gpu_hour_price: Annotated[float | None, Ge(0)] = None
    """What a device costs per hour, in any currency; null: money is not told."""
    gpus: Annotated[int | None, Ge(1)] = None
    """Devices that the wall time is told for; null: as many as `label` would take."""
    pilot: bool = True
    """false: no policy is loaded, and what a pilot would measure is taken from the three settings below."""
    pilot_problems: Annotated[int, Range(ge=2, le=10_000)] = 16
    """Problems, drawn at random, whose chains are labelled to see what they cost."""
    seed: int = 0
    """Of that draw, and of what is simulated."""
    completion_tokens: Annotated[int | None, Ge(1)] = None
    """Without a pilot: mean length of a completion; null: half of sampling.max_tokens."""
    success_rate: Annotated[float, Range(ge=0, le=1)] = 0.5
    """Without a pilot: mean success rate of all prefixes."""
    tokens_per_second: Annotated[float | None, Gt(0)] = None
    """Without a pilot: of one worker; null: half of what its device allows, where that is known."""

    def check(self) -> None:
        check(bool(self.out.strip()), "plan.out", repr(self.out), "the name of a file")


@dataclass(kw_only=True, slots=True)
class Columns(Settings):
    """Names of the input columns; a dot descends into a nested field. Empty: the column is not read."""

    SECTION: ClassVar[str] = "data.columns"
    id: str = "id"
    """An id of the row, kept as `source_id`."""
    problem: str = "problem"
    """The text of the problem."""
    answer: str = "answer"
    """The known answer: a text, a number, or a list of answers of which any counts."""
    steps: str = "steps"
    """A list of steps."""
    solution: str = "solution"
    """A solution as one text, which `data.splitter` cuts into steps."""


@dataclass(kw_only=True, slots=True)
class DataConfig(Settings):
    SECTION: ClassVar[str] = "data"
    path: Annotated[str, FREE] = "???"
    """A file, a folder, a pattern, `sample`, or `hf://OWNER/NAME`; in a run's identity, the hash of its content."""
    layout: Layout = Layout.rows
    """The data set whose rows these are; `rows`: columns as `data.columns` names them."""
    columns: Columns = field(default_factory=Columns)
    answer_in_text: bool = False
    """The answer column holds a text that states the final answer (GSM8K's `#### 72`, MATH's `\\boxed{}`)."""
    answer_is_suite: bool = False
    """grader=code: the answer column holds a test suite, so a list or an object in it is one suite, kept as JSON."""
    splitter: Splitter = Splitter.newline
    """How a solution text is cut into steps."""
    pattern: str | None = None
    """With splitter=regex: each match ends a step."""
    separator: str = "\n"
    """Joins given `steps` into the solution text."""
    limit: Annotated[int | None, Ge(1)] = None
    """Use only the first so many rows."""
    max_chars: Annotated[int, Ge(1)] = 100_000
    """A longer field is rejected."""
    max_steps: Annotated[int, Range(ge=1, le=10_000)] = 500
    """A chain with more steps is rejected."""

    def check(self) -> None:
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
    """A problem."""
    solution: str = "???"
    """Its solution, as the policy is to write one."""


@dataclass(kw_only=True, slots=True)
class PromptConfig(Settings):
    SECTION: ClassVar[str] = "policy.prompt"
    style: PromptStyle = PromptStyle.chat
    """chat: the model's own chat template. plain: `template`, for base models."""
    system: str = ""
    """What the system says to a chat model; empty: nothing."""
    instruction: str = ""
    """Put after the problem, on a line of its own."""
    template: str = "Problem: {problem}\nSolution:\n"
    """style=plain only; `{problem}` is replaced."""
    examples: list[Example] = field(default_factory=list)
    """Worked examples that stand before the problem, each with `problem` and `solution`."""

    def check(self) -> None:
        check(
            "{problem}" in self.template, "policy.prompt.template", repr(self.template), "a text with {problem} in it"
        )


@dataclass(kw_only=True, slots=True)
class SamplingConfig(Settings):
    SECTION: ClassVar[str] = "sampling"
    rollouts: Annotated[int, Range(ge=1, le=99_999), FREE] = 8
    """Completions per prefix."""
    temperature: Annotated[float, Ge(0)] = 1.0
    """Of every rollout; 0 always takes the likeliest token."""
    top_p: Annotated[float, Range(gt=0, le=1)] = 1.0
    """Tokens are drawn from the likeliest ones that together have this probability."""
    top_k: Annotated[int, Ge(0)] = 0
    """0: all tokens."""
    min_p: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Tokens less likely than this share of the likeliest one's probability are not drawn."""
    max_tokens: Annotated[int, Ge(1)] = 1024
    """Longest completion; one that reaches it is truncated."""
    stop: list[str] = field(default_factory=list)
    """Texts at which a completion ends."""
    stop_at_answer: Annotated[bool | None, FREE] = None
    """A completion ends with the line in which it has stated its final answer, see `graders.math.answered`.

    null: on with policy.prompt.style=plain and no grader.answer_pattern, unless policy=openai. A base model does not end there
    by itself: it goes on with a problem of its own making, whose answer would be taken for this one's. A chat model ends by
    itself, and may take its answer back first; and of a pattern nobody knows whether its first match is its last. It changes
    what the policy says: what it comes down to is part of a run's identity."""
    solutions: Annotated[int, Range(ge=1, le=1000)] = 4
    """Chains the policy samples for a problem that comes without any."""
    keep: Keep = Keep.all
    """Problems that go on after the policy has sampled their chains: all, or only those with right and wrong chains (mixed)."""


@dataclass(kw_only=True, slots=True)
class PolicyConfig(ChosenSettings):
    """What every policy has. See `engines.registry`."""

    SECTION: ClassVar[str] = "policy"
    CHOSEN_BY: ClassVar[str] = "kind"
    kind: Annotated[str, BY_GROUP] = "embedded"
    """Which policy it is; written as policy=NAME."""
    max_model_len: Annotated[int | None, Ge(16)] = None
    """Context in tokens; null: what the model has."""
    prompt: PromptConfig = field(default_factory=PromptConfig)

    def check_complete(self, sampling: SamplingConfig) -> None:
        """Raise ValueError where something lacks that a run needs, or does not go with how is sampled."""


@dataclass(kw_only=True, slots=True)
class EstimatorConfig(ChosenSettings):
    """What every estimator has: its interval, and the rule that makes labels of values. See `estimators.registry`."""

    SECTION: ClassVar[str] = "estimator"
    CHOSEN_BY: ClassVar[str] = "name"
    name: Annotated[str, RELABEL] = "fixed"
    """Which estimator it is; `estimator=NAME` brings its interval and rule too."""
    interval: Annotated[Interval, RELABEL] = Interval.clopper_pearson
    """Which interval `value_low` and `value_high` are."""
    confidence: Annotated[float, Range(gt=0, lt=1), RELABEL] = 0.95
    """What the interval is to cover."""
    rule: Annotated[LabelRule, RELABEL] = LabelRule.any
    """Which rule makes labels of values."""
    threshold: Annotated[float, Range(ge=0, lt=1), RELABEL] = 0.5
    """The value above which a step counts as good; rule=relative: the share of the root's value."""
    certainty: Annotated[float, Range(gt=0.5, lt=1), RELABEL] = 0.95
    """rule=posterior: a step is labelled when P(V > threshold) is at least this, or at most 1 minus this."""
    neutral: Annotated[float, Range(ge=0, le=1), RELABEL] = 0.1
    """rule=three_class: a step above the threshold is neutral if it lost more than this against the step before."""
    after_error: Annotated[AfterError, RELABEL] = AfterError.keep
    """What the labels of steps after a chain's first bad step become."""

    def check_complete(self, sampling: SamplingConfig) -> None:
        """Raise ValueError for settings that do not go with how is sampled."""


@dataclass(kw_only=True, slots=True)
class GraderConfig(ChosenSettings):
    """What every checker has. See `graders.registry`."""

    SECTION: ClassVar[str] = "grader"
    CHOSEN_BY: ClassVar[str] = "kind"
    kind: Annotated[str, RELABEL] = "math"
    """Which grader it is; `grader=NAME` brings its settings too."""
    deadline_seconds: Annotated[float, Range(gt=0, le=600), RELABEL] = 1.0
    """Wall time per answer; kind=code: per run of a program."""
    memory_mib: Annotated[int, Ge(512), FREE, RELABEL] = 2048
    """Memory of a child process that grades."""
    processes: Annotated[int, Range(ge=1, le=256), FREE, RELABEL] = 1
    """Child processes that grade at once, for each worker."""


@dataclass(kw_only=True, slots=True)
class LabelConfig:
    """Everything `label` needs."""

    run_dir: str | None = None
    """A folder, or the URL of an object store: `s3://BUCKET/NAME`, `gs://BUCKET/NAME`. None: a folder under `runs/` named after
    what the run is the result of, so that the same command resumes it."""
    budget: str | None = None
    """`label`: the plan.json of a plan of this run; its `limit` ends the run before it costs more."""
    data: DataConfig = field(default_factory=DataConfig)
    """The layout of the rows."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    """What writes the completions."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    estimator: EstimatorConfig = field(default_factory=EstimatorConfig)
    """What decides which prefix gets rollouts, and turns them into values."""
    grader: GraderConfig = field(default_factory=GraderConfig)
    """What checks the answers."""
    run: RunConfig = field(default_factory=RunConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    plan: PlanConfig = field(default_factory=PlanConfig)

    def __post_init__(self) -> None:
        if self.run_dir is not None and not self.run_dir.strip():
            raise ValueError("run_dir is empty: give run_dir=FOLDER, or leave it out for one under runs/")
        self.estimator.check_complete(self.sampling)
        self.policy.check_complete(self.sampling)


@dataclass(kw_only=True, slots=True)
class GradeConfig:
    """Everything `grade` needs. `-` stands for standard input and standard output."""

    input: str = "-"
    """A file of JSON lines, also .gz and .zst."""
    output: str = "-"
    """The file that the verdicts go to."""
    grader: GraderConfig = field(default_factory=GraderConfig)
    """What checks the answers."""

    def __post_init__(self) -> None:
        for key, path in (("input", self.input), ("output", self.output)):
            if not path.strip():
                raise ValueError(f"{key} is empty: give {key}=FILE, or leave it out for standard {key}")
