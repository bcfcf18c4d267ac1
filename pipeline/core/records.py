"""The records of the pipeline, in the order in which data passes through them. Frozen, without behaviour."""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Annotated, NamedTuple, Self


class Column(NamedTuple):
    """What `core.table` does otherwise with a field. `name`: of its column. `type`: of its values: string, coded (a text of
    which there are few), int8 or int64. `null_if_empty`: an empty tuple is stored as null."""

    name: str = ""
    type: str = ""
    null_if_empty: bool = False


Coded = Annotated[str, Column(type="coded")]
Int8 = Annotated[int, Column(type="int8")]
Int64 = Annotated[int, Column(type="int64")]
Golds = Annotated[tuple[str, ...], Column(name="gold_answers")]
StepEnds = Annotated[tuple[int, ...], Column(name="step_ends")]

TOO_LONG = "too_long"
"""Why steps have no score: they do not fit into the model's context."""
UNREADABLE = "unreadable"
"""Why steps have no score: the model's answer names no verdict for them."""
FAILED = "failed"
"""Why steps have no score: the engine cannot answer for this chain."""


class Verdict(StrEnum):
    """The grader's result for one completion. The last four are *ungraded*: never counted as incorrect, always shown."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    NO_ANSWER = "no_answer"
    UNPARSEABLE = "unparseable"
    OVER_LIMIT = "over_limit"
    TIMEOUT = "timeout"
    CRASHED = "crashed"


GROWN = "grown"
"""The column of `labels` that says of a chain whether `grow` promoted it."""
UNGRADED = frozenset({Verdict.UNPARSEABLE, Verdict.OVER_LIMIT, Verdict.TIMEOUT, Verdict.CRASHED})


class Finish(StrEnum):
    """Why a completion ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    TOO_LONG = "too_long"
    ENGINE_FAILED = "engine_failed"


class Origin(StrEnum):
    """What the value of a step is based on."""

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
    BAD_OUTCOME = "bad_outcome"
    TOO_LARGE = "too_large"
    DUPLICATE = "duplicate"
    ID_CONFLICT = "id_conflict"
    CONTEXT = "context"
    FILTERED = "filtered"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLocation:
    """Where an input row is: the file and its line (JSONL) or row (Parquet, data sets), counted from 1.

    `file` is empty for the rows that a Python call gave; `line` is then their number in the call. `str()` is the place for
    messages.
    """

    file: str
    line: Int64

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else f"row {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """An input row that could not be used. `detail` says why, for the owner of the file.

    With a `step_index` the row was used, and only its prefix of `step_index` steps could not be measured.
    """

    location: RowLocation
    source_id: str | None = None
    step_index: int | None = None
    reason: Annotated[RejectReason, Column(type="string")]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A question with its known final answers; each of `golds` counts as correct."""

    problem_id: str
    text: Annotated[str, Column(name="problem")]
    golds: Golds


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A reasoning chain. `text[ends[i-1]:ends[i]]` is step i with its separator; the joined slices are `text`.

    `token_ids` and `token_ends` are set for chains that the policy sampled; their prefixes are cut between the policy's own
    tokens. `complete` is false for a sampled chain that the token limit cut, and for one that `grow` promoted: it goes on.
    `as_written`: its prefixes end as the policy wrote them, with the blanks there; always so with `token_ids`.
    """

    chain_id: str
    problem_id: str
    source_id: str | None
    text: Annotated[str, Column(name="solution")]
    ends: StepEnds
    token_ids: tuple[int, ...] = ()
    token_ends: tuple[int, ...] = ()
    complete: bool = True
    as_written: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRow:
    """A used row: a problem with a chain, or a problem without one, for which the policy samples chains.

    `given_outcome`: what the row says about whether the solution's final answer is correct; None if it says nothing. `again`:
    number of earlier units of a grown run that have chains of the problem. `mended`: whether backslashes were put back that
    JSON took.
    """

    location: RowLocation
    source_id: str | None
    problem: Problem
    solution: Solution | None
    given_outcome: bool | None = None
    again: int = 0
    mended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The first `step_index` steps of a chain, as the policy continues them (0: the bare problem).

    `text`: the part of the chain that the policy sees. For grading, the completion is appended to it. `prompt_ids`: the whole
    prompt, which is the problem in the policy's template and the steps after it.
    """

    prefix_id: str
    step_index: int
    text: str
    prompt_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One completion requested from an engine.

    `issue_index` counts the requests of one prefix from 0. `round` counts the decisions about the problem from 0; each decision
    sees the outcomes of all earlier rounds. An engine with a model reads only `prefix.prompt_ids`. `problem` is for the oracle
    engine, which knows the answers.

    `stop`: further texts at which this completion may end, besides those of the settings; it then ends with the text. An engine
    may also ignore them. `max_tokens`: its longest length, if less than that of the settings; None: that of the settings.
    """

    request_id: str
    issue_index: int
    problem: Problem
    prefix: Prefix
    round: int = 0
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The result of one request to an engine. `token_ids` are the generated tokens, `n_tokens` is their number."""

    request: Request
    text: str
    finish: Finish
    n_tokens: int
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """A verdict, the answer that was graded (empty if none was found) and the grading time in milliseconds.

    `by_machine`, of a timeout or a crash: a busy machine, or one without memory, may have caused it. It is not stored.
    """

    verdict: Verdict
    answer: str
    ms: float
    by_machine: bool = False


class RolloutOutcome(NamedTuple):
    """The part of a rollout that values are computed from: its prefix, its location in the order of issue, and its result.

    `reached_prefix_id`: the longest prefix of a chain of the problem that the rollout reproduced token for token, if any. It
    is only determined for estimators that use it.
    """

    prefix_id: str
    issue_index: int
    round: int
    reached_prefix_id: str | None
    finish: Finish
    n_tokens: int
    verdict: Verdict


class Rollout(NamedTuple):
    """A finished completion with its grade: one row of the log. See `Request` and `RolloutOutcome`."""

    rollout_id: str
    prefix_id: str
    problem_id: str
    step_index: int
    issue_index: int
    round: int
    reached_prefix_id: str | None
    text: str
    finish: Finish
    n_tokens: int
    answer: str
    verdict: Verdict
    grader: Coded
    token_ids: tuple[int, ...] = ()

    @property
    def outcome(self) -> RolloutOutcome:
        """What values are computed from."""
        return RolloutOutcome(
            prefix_id=self.prefix_id,
            issue_index=self.issue_index,
            round=self.round,
            reached_prefix_id=self.reached_prefix_id,
            finish=self.finish,
            n_tokens=self.n_tokens,
            verdict=self.verdict,
        )


class SampledSolution(NamedTuple):
    """The `draw`-th chain the policy sampled for a problem, graded."""

    chain_id: str
    problem_id: str
    source_id: str | None
    draw: int
    text: str
    token_ids: tuple[int, ...]
    ends: StepEnds
    token_ends: tuple[int, ...]
    finish: Finish
    answer: str
    verdict: Verdict

    @property
    def solution(self) -> Solution:
        """The chain."""
        return Solution(
            chain_id=self.chain_id,
            problem_id=self.problem_id,
            source_id=self.source_id,
            text=self.text,
            ends=self.ends,
            token_ids=self.token_ids,
            token_ends=self.token_ends,
            complete=self.finish is Finish.STOP,
        )


class Promotion(NamedTuple):
    """A prefix that a rollout wrote and that `grow` measures: steps of rollout `rollout_id` after the prefix `prefix_id`, which
    is the last one on its way that was measured before, or is measured in the same round.

    `growth`: the number of the growth, from 0; `round`: of the problem in it; `place`: among the promotions of the round.
    `begin`: tokens of the rollout before these steps. `text` and `token_ids`: of these steps; `ends`
    and `token_ends`: the end of each of them in both. `rollouts`: as many are issued at the prefix. `gain` and `cost`: what the
    picker expected, before any of them was issued. `passed`: ids of the rollouts that had passed through the prefix by then,
    token for token, and through no longer promoted one; empty where the estimator does not follow steps.
    """

    chain_id: str
    problem_id: str
    growth: int
    round: int
    place: int
    rollout_id: str
    prefix_id: str
    begin: int
    text: str
    token_ids: tuple[int, ...]
    ends: StepEnds
    token_ends: tuple[int, ...]
    rollouts: int
    gain: float
    cost: float
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Number of rollouts of one prefix: correct, graded, ungraded, and cut by the token limit (a subset of all), and their
    tokens."""

    correct: int = 0
    graded: int = 0
    ungraded: int = 0
    truncated: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The rollouts of one prefix in the order of issue, up to the first gap.

    `outcomes`: whether each rollout is correct; None if it was not graded. `rounds`: number of rollouts of each round; the sum
    is the number of outcomes. `reached`: `RolloutOutcome.reached_prefix_id` of each outcome. `promoted`: whether `grow` asked
    for them, whose number was fixed before any of them was issued, whatever the rule of the estimator.
    """

    outcomes: tuple[bool | None, ...] = ()
    rounds: tuple[int, ...] = ()
    reached: tuple[str | None, ...] = ()
    counts: Counts = field(default_factory=Counts)
    promoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainShape:
    """A chain of K steps as estimators see it: the ids of its K + 1 prefixes, the bare problem first, and its outcome.

    `prices`: the expected cost of a rollout of each prefix, in any unit; empty if nothing will be sampled. `grown`: whether
    `grow` promoted the chain, that is its last prefix.
    """

    prefix_ids: tuple[str, ...]
    outcome: bool | None
    prices: tuple[float, ...] = ()
    grown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepValue:
    """The estimate for one prefix; all probabilities are in [0, 1].

    `value`: the best estimate. `value_sd`: the posterior standard deviation of the true value. `p_above`: the posterior
    probability that the true value is above `estimator.threshold`. `p_lost`: that it is not above the threshold here and at all
    later steps of the chain; known for estimator.rule=first_error. `p_no_drop`: the probability that the step is good by the
    rule `lasting_drop`; `nothing_to_lose`: whether no value before it reaches that rule's floor. Both are None for the bare
    problem, and for an estimator without this rule. `unbiased_value`: an estimate that is unbiased for every single prefix,
    from `unbiased_rollouts` graded rollouts; None without such rollouts, and for an estimator that has none. `advantage`: the
    best estimate of V_k - V_(k-1), `advantage_sd`: its standard deviation; both are None for the bare problem.
    `p_outcome`: of a last step that states an answer, the probability of the chain's own outcome, given everything but that
    outcome; None where that is the value of the prefix before.
    """

    value: float | None
    value_sd: float | None = None
    low: float | None = None
    high: float | None = None
    p_above: float | None = None
    p_lost: float | None = None
    unbiased_value: float | None = None
    unbiased_rollouts: int = 0
    origin: Origin
    counts: Counts
    advantage: float | None = None
    advantage_sd: float | None = None
    p_no_drop: float | None = None
    nothing_to_lose: bool | None = None
    p_outcome: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedChain:
    """A chain of a run over chains. `row`: its number in the input, from 0. `gold_answer`: the known answer, if there is one.
    `final_answer`: what the chain states, `outcome`: whether that is correct."""

    row: Int64 = 0
    chain_id: str
    problem_id: str
    source_id: str | None = None
    problem: str
    gold_answer: str | None = None
    steps: tuple[str, ...]
    final_answer: str | None = None
    outcome: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainText(NumberedChain):
    """A chain as a scorer, a judge or a search reads it. `prefix_ids`: an id for each step, of the prefix that ends with it;
    equal prefixes have equal ids. `golds`: the known answers, of a search those that the grader can read. A scorer
    and a judge see neither answers nor the outcome, but for `golds` where the judge may."""

    prefix_ids: tuple[str, ...]
    golds: Golds = ()


class ReadingKind(StrEnum):
    """What a judge's critique says of a chain, as it was read.

    `error`: a step is the first one with an error. `no_error`: no step has one. The others say nothing: `unparseable` has no
    verdict in the wanted form, `out_of_range` names a step that the chain does not have, `cut` was ended by the token limit
    before its verdict, `too_long` was never written because the chain does not fit into the judge's context, and `failed`
    because the engine could not answer.
    """

    ERROR = "error"
    NO_ERROR = "no_error"
    UNPARSEABLE = "unparseable"
    OUT_OF_RANGE = "out_of_range"
    CUT = "cut"
    TOO_LONG = "too_long"
    FAILED = "failed"


class StepOpinion(StrEnum):
    """What a critique says of one step, where its template asks for each step. `ok`: neither a help nor an error."""

    GOOD = "good"
    OK = "ok"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The verdict of a critique. `first_error`: number of the first step with an error, from 1; only with the kind ERROR.
    `steps`: what it says of each step; empty where the template asks for the first error alone, None where it skips a step."""

    kind: Annotated[ReadingKind, Column(name="reading")]
    first_error: int | None = None
    steps: Annotated[
        tuple[Annotated[StepOpinion, Column(type="string")] | None, ...],
        Column(name="step_opinions", null_if_empty=True),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Critique:
    """One vote of a judge on a chain: what it wrote, and how that was read.

    `turns`: its texts in order: one, or one for each turn of a conversation. `finish`: how the last of them ended. `n_tokens`:
    tokens written, `n_prompt_tokens`: tokens read, in all turns.
    """

    turns: tuple[str, ...]
    finish: Finish
    reading: Reading
    n_tokens: int = 0
    n_prompt_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A chain of K steps: its problem, its text and the ids of its K + 1 prefixes.

    `final_answer` is the answer that the chain states, `outcome` whether it is correct, `policy` the model whose rollouts value
    the chain. They are not known for every chain. `grown`: whether `grow` promoted it; None in a unit that has not grown.
    """

    problem: Problem
    solution: Solution
    root_prefix_id: str
    prefix_ids: tuple[str, ...]
    final_answer: str | None = None
    outcome: bool | None = None
    policy: str = ""
    grown: bool | None = None

    @property
    def shape(self) -> ChainShape:
        """The chain as estimators see it."""
        return ChainShape(
            prefix_ids=(self.root_prefix_id, *self.prefix_ids),
            outcome=self.outcome,
            grown=bool(self.grown),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainValues:
    """The estimates for a chain of K steps: the value of the bare problem, K step values and K labels.

    `p_outcome`: the probability of the chain's own outcome, given everything but that outcome; None if one is unknown.
    """

    root: StepValue
    steps: tuple[StepValue, ...]
    labels: tuple[int | None, ...]
    p_outcome: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTarget:
    """What is required of a unit: `rollouts` per prefix, or values known to `target_sd` (0: the estimator has no such target).

    `budget`: limit per chain, in `budget_unit`; 0: the only limit is `rollouts` for each prefix of the chain. `unit_budget`:
    limit for all chains of the unit together; None: no limit. `growths`: the growths of the run that the unit has had.
    """

    rollouts: int = 0
    target_sd: float = 0.0
    budget: int = 0
    unit_budget: int | None = None
    budget_unit: str = ""
    growths: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedRecord:
    """Base of records of numbers that are added field by field, and subtracted so."""

    def __add__(self, other: Self) -> Self:
        return type(self)(**{part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(self)})

    def __sub__(self, other: Self) -> Self:
        return type(self)(**{part.name: getattr(self, part.name) - getattr(other, part.name) for part in fields(self)})


class Tally(dict[str, int]):
    """Counts by name: of the rows of a kind of run, or of the input. A name that is not there counts 0. The counts of several
    units are added name by name, and subtracted so. Not to be changed."""

    def __missing__(self, name: str) -> int:
        return 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally({name: self[name] + other[name] for name in {**self, **other}})

    def __sub__(self, other: "Tally") -> "Tally":
        return Tally({name: self[name] - other[name] for name in {**self, **other}})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and all(self[name] == other[name] for name in {**self, **other})

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset((name, count) for name, count in self.items() if count))

    @property
    def totals(self) -> "Totals":
        """Those of a run of `label`, or of an input."""
        return Totals(**{part.name: self[part.name] for part in fields(Totals)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals(SummedRecord):
    """The tally of a run of `label`, over one or more units, and of an input.

    `promoted`: the chains that `grow` promoted. `spent`: chains whose budget was spent before the estimator reached its target.
    `aborted`: rollouts that were stopped because they no longer counted. `mended`: rows in which backslashes were put back.
    """

    rows: int = 0
    used: int = 0
    rejected: int = 0
    problems: int = 0
    chains: int = 0
    promoted: int = 0
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
    mended: int = 0

    @property
    def tally(self) -> Tally:
        """The same by name."""
        counts = {part.name: getattr(self, part.name) for part in fields(self)}
        if not self.mended:
            # A record from before it was counted stays as it was written.
            del counts["mended"]
        return Tally(counts)
