"""The nouns of the pipeline, in the order in which data passes through them. Frozen, without behaviour."""

from dataclasses import dataclass, field, fields
from enum import StrEnum


class Verdict(StrEnum):
    """What the checker says of one completion. The last four are *ungraded*: never counted as wrong, always shown."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    NO_ANSWER = "no_answer"
    UNPARSEABLE = "unparseable"
    OVER_LIMIT = "over_limit"
    TIMEOUT = "timeout"
    CRASHED = "crashed"


UNGRADED = frozenset({Verdict.UNPARSEABLE, Verdict.OVER_LIMIT, Verdict.TIMEOUT, Verdict.CRASHED})


class Finish(StrEnum):
    """Why a completion ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    TOO_LONG = "too_long"
    ENGINE_FAILED = "engine_failed"


class Origin(StrEnum):
    """What a step's value rests on."""

    MEASURED = "measured"
    IMPLIED = "implied"
    TERMINAL = "terminal"
    UNMEASURED = "unmeasured"


class RejectReason(StrEnum):
    """Why an input row was not used."""

    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    NOT_A_ROW = "not_a_row"
    MISSING_PROBLEM = "missing_problem"
    MISSING_ANSWER = "missing_answer"
    UNPARSEABLE_ANSWER = "unparseable_answer"
    NO_STEPS = "no_steps"
    BAD_STEPS = "bad_steps"
    BAD_TEXT = "bad_text"
    TOO_LARGE = "too_large"
    DUPLICATE = "duplicate"
    ID_CONFLICT = "id_conflict"
    CONTEXT = "context"
    FILTERED = "filtered"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLocation:
    """Where an input row stands: the file and its line (JSONL) or row (Parquet, data sets), counted from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """An input row that could not be used, and why, in words for the person who owns the file.

    With a `step_index` the row was used, and only its prefix of so many steps could not be measured.
    """

    place: RowLocation
    reason: RejectReason
    detail: str
    source_id: str | None = None
    step_index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A question with its known final answers; any of `golds` counts as right."""

    problem_id: str
    text: str
    golds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A reasoning chain. `text[ends[i-1]:ends[i]]` is step i with its separator; the slices joined are `text`.

    `token_ends` and `token_ids` are set for chains the policy sampled itself: prefixes are then cut on its own tokens.
    `complete` is false for one of them that the token limit cut.
    """

    chain_id: str
    problem_id: str
    source_id: str | None
    text: str
    ends: tuple[int, ...]
    token_ids: tuple[int, ...] = ()
    token_ends: tuple[int, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRow:
    """A used row: a problem with a chain, or, without one, a problem for which the policy is to sample chains."""

    place: RowLocation
    source_id: str | None
    problem: Problem
    solution: Solution | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The first `step_index` steps of a chain, as the policy will continue them (0: the bare problem).

    `text` is what the policy sees of the chain, and what its completion is joined to for grading. `prompt_ids` is the whole
    prompt: the problem in the policy's template and the steps behind it.
    """

    prefix_id: str
    step_index: int
    text: str
    prompt_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One completion asked of an engine. `issue_index` counts the requests of one prefix from 0, `round` the decisions of its
    problem, each of which saw the outcomes of all earlier ones.

    An engine that serves a model reads `prefix.prompt_ids` only; `problem` is there for the oracle, which knows the answers.
    """

    request_id: str
    issue_index: int
    problem: Problem
    prefix: Prefix
    round: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What an engine gave back for one request. `token_ids` are the generated tokens, `n_tokens` their number."""

    request: Request
    text: str
    finish: Finish
    n_tokens: int
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """A verdict, the answer it is about (empty when none was found) and how long the checker took, in milliseconds."""

    verdict: Verdict
    answer: str
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A finished completion with its grade: one row of the log. `reached_prefix_id`: see `RolloutOutcome`."""

    completion: Completion
    grade: Grade
    reached_prefix_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOutcome:
    """What of a rollout counts for values: its prefix, its place in the order of issue, and what became of it.

    `reached_prefix_id` names the longest prefix of a chain of its problem that it reproduced token for token, if any; only
    estimators that make use of it look for one.
    """

    prefix_id: str
    issue_index: int
    round: int
    reached_prefix_id: str | None
    finish: Finish
    n_tokens: int
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSolution:
    """The `draw`-th chain the policy sampled for a problem, graded."""

    solution: Solution
    draw: int
    finish: Finish
    grade: Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rollouts of one prefix: graded right, graded in all, not gradable, and cut by the token limit (a subset of all)."""

    correct: int = 0
    graded: int = 0
    ungraded: int = 0
    truncated: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The rollouts of one prefix in the order of issue, without a gap.

    `outcomes`: whether each was right, None where it was not graded. `rounds`: how many each decision asked for; they add
    up to the number of outcomes. `reached`: as in `RolloutOutcome`, one per outcome.
    """

    outcomes: tuple[bool | None, ...] = ()
    rounds: tuple[int, ...] = ()
    reached: tuple[str | None, ...] = ()
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainShape:
    """A chain of K steps as estimators see it: the ids of its K + 1 prefixes, the bare problem first, and its outcome.

    `prices`: what a rollout of each prefix may cost, in any unit; empty where nothing is to be sampled.
    """

    prefix_ids: tuple[str, ...]
    outcome: bool | None
    prices: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepValue:
    """The estimate for one prefix; probabilities lie in [0, 1].

    `value` is the unbiased estimate, from the first `value_rollouts` graded rollouts; None where there is none. `above` is
    the posterior probability that the true value is above `estimator.threshold`. `advantage` is the posterior mean of
    V_k - V_(k-1), `advantage_sd` its standard deviation; None for the bare problem.
    """

    value: float | None
    value_rollouts: int
    low: float | None
    high: float | None
    posterior_mean: float | None
    posterior_sd: float | None
    above: float | None
    origin: Origin
    counts: Counts
    advantage: float | None = None
    advantage_sd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A chain of K steps: its problem and its text, and the ids of its K + 1 prefixes.

    What its own answer came to, and whose rollouts value it, is not known of every chain.
    """

    problem: Problem
    solution: Solution
    root_prefix_id: str
    prefix_ids: tuple[str, ...]
    final_answer: str | None = None
    outcome: bool | None = None
    policy: str = ""

    @property
    def shape(self) -> ChainShape:
        """The chain as estimators see it."""
        return ChainShape(prefix_ids=(self.root_prefix_id, *self.prefix_ids), outcome=self.outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainValues:
    """Of a chain of K steps: the value of the bare problem, K values and K labels."""

    root: StepValue
    steps: tuple[StepValue, ...]
    labels: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTarget:
    """What is asked for of a unit: `rollouts` per prefix, or values known to `target_sd` (0: the estimator has none).

    A chain may cost `budget` of `budget_unit`, and all chains of the unit together `unit_budget`; None: the latter have no
    limit, and 0: the former none but `rollouts` for each of its prefixes.
    """

    rollouts: int = 0
    target_sd: float = 0.0
    budget: int = 0
    unit_budget: int | None = None
    budget_unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What became of some units' work; totals of several units add up field by field.

    `spent` chains had their budget spent before their estimator was done. `aborted` rollouts were stopped because they no
    longer counted.
    """

    rows: int = 0
    used: int = 0
    rejected: int = 0
    problems: int = 0
    chains: int = 0
    prefixes: int = 0
    rollouts: int = 0
    tokens: int = 0
    correct: int = 0
    incorrect: int = 0
    no_answer: int = 0
    ungraded: int = 0
    aborted: int = 0
    truncated: int = 0
    too_long: int = 0
    engine_failed: int = 0
    spent: int = 0
    solution_tokens: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(**{part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(self)})
