"""The tables of a run directory. The columns of each are a fixed contract, declared in the record of its rows or in a class."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import pyarrow as pa

from pipeline.core.ids import critique_id
from pipeline.core.records import (
    GROWN,
    ChainText,
    Coded,
    Critique,
    Finish,
    InputRow,
    Int8,
    Int64,
    NumberedChain,
    Promotion,
    Reading,
    Reject,
    Rollout,
    RolloutOutcome,
    SampledSolution,
    StepEnds,
    Verdict,
)
from pipeline.core.table import Table

SCHEMA_VERSION = 5
"""The version of everything in the directory of a run of `label`. A run with another one is refused."""
TASK_SCHEMA_VERSION = 6
"""The same of a run of another command: since 6 its records count each kind of result by its own names."""

_Scores = tuple[float | None, ...]
_Counts = tuple[int | None, ...]


GIVEN_OUTCOME = "given_outcome"
"""The column of `inputs` in files with rows that say whether their solution's final answer is correct."""
INPUTS = Table(
    "inputs",
    InputRow,
    columns=(
        "problem_id",
        "problem",
        "gold_answers",
        "chain_id",
        "source_id",
        "solution",
        "step_ends",
        "file",
        "line",
        GIVEN_OUTCOME,
    ),
    extra=[[GIVEN_OUTCOME]],
)
TOKEN_IDS = "token_ids"
"""The column of `rollouts` in a run that stores their tokens (`sampling.store_tokens`)."""
ROLLOUTS = Table("rollouts", Rollout, key=("rollout_id",), ordered=True, extra=[[TOKEN_IDS]], read=RolloutOutcome)
OUTCOMES = ("rollout_id", *RolloutOutcome._fields)
"""The columns that `rollout_outcomes` reads."""
SOLUTIONS = Table("solutions", SampledSolution, key=("problem_id", "draw"))
PROMOTIONS = Table("promotions", Promotion, key=("chain_id",))


def rollout_outcomes(rollouts: pa.Table) -> dict[str, RolloutOutcome]:
    """Rollout id -> its outcome, from a table of rollouts."""
    return dict(zip(map(str, rollouts["rollout_id"].to_pylist()), ROLLOUTS.from_table(rollouts), strict=True))


class Allotment(NamedTuple):
    """What a growth may cost in a problem of a unit, in the unit of its budget. Problems without a row get nothing."""

    unit_id: str
    problem_id: str
    budget: Int64


ALLOTMENTS = Table("allotments", Allotment)


class RolloutVerdict(NamedTuple):
    """The verdict of `regrade` on a rollout."""

    rollout_id: str
    answer: str
    verdict: Verdict
    grader: Coded


VERDICTS = Table("verdicts", RolloutVerdict)
REJECTS = Table("rejects", Reject)


class KernelRow(NamedTuple):
    """What the estimator `pooled` has learned: see `estimators.pooled.kernel`."""

    prior: int
    chains: Int64
    start: tuple[float, ...]
    steps: tuple[tuple[float, ...], ...]
    last: tuple[tuple[float, ...], ...]
    reproduced: tuple[tuple[float, ...], ...] | None


KERNELS = Table("kernels", KernelRow)


class LearnedState(NamedTuple):
    """The state that an estimator has learned, as JSON."""

    estimator: str
    version: int
    chains: Int64
    state: str


STATES = Table("states", LearnedState)
LEARNED = (KERNELS.name, STATES.name)
"""Tables with the learned state of an estimator; a unit has at most one of them."""


class LearnedReliabilities(NamedTuple):
    """What consensus labels learned of Monte Carlo and the witnesses, as JSON: one row for an edition."""

    chains: Int64
    learned: str


RELIABILITIES = Table("reliabilities", LearnedReliabilities)


class Opinion(NamedTuple):
    """What a witness says of a chain; a witness that says nothing of it is absent. `first_error`: for each step, the share of
    the witness's votes (or its probability) that the chain's first error is there. `no_error`: the share that no step has one.
    Together they are at most 1: the rest says nothing. `steps`: of a witness that checks steps, 1 holds, 0 refuted, null
    unknown."""

    witness: str
    first_error: tuple[float, ...]
    no_error: float
    steps: tuple[Int8 | None, ...] | None


class LabelColumns:
    """One row per chain. List columns have one entry per step; `root_*` are those of the bare problem.

    Labels of `estimator.rule=consensus` have more: `mc_label` are the labels by Monte Carlo alone. `p_error_free`: for each
    step, P(neither it nor an earlier step has an error), given Monte Carlo and all witnesses; null unless
    consensus.how=posterior. `left_out`: why the chain has no labels; null where it has."""

    chain_id: str
    problem_id: str
    source_id: str | None
    problem: str
    gold_answer: str
    gold_answers: tuple[str, ...]
    solution: str
    steps: tuple[str, ...]
    ends: StepEnds
    root_prefix_id: str
    prefix_ids: tuple[str, ...]
    final_answer: str | None
    outcome: bool | None
    p_outcome: float | None
    value: _Scores
    value_sd: _Scores
    low: _Scores
    high: _Scores
    p_above: _Scores
    unbiased_value: _Scores
    unbiased_rollouts: _Counts
    n_correct: _Counts
    n_rollouts: _Counts
    n_ungraded: _Counts
    n_truncated: _Counts
    origin: tuple[str, ...]
    advantage: _Scores
    advantage_sd: _Scores
    p_no_drop: _Scores
    nothing_to_lose: tuple[bool | None, ...]
    label: tuple[Int8 | None, ...]
    root_value: float | None
    root_value_sd: float | None
    root_low: float | None
    root_high: float | None
    root_p_above: float | None
    root_unbiased_value: float | None
    root_unbiased_rollouts: int | None
    root_n_correct: int | None
    root_n_rollouts: int | None
    root_n_ungraded: int | None
    root_n_truncated: int | None
    root_origin: str | None
    estimator: str
    label_rule: str
    policy: str
    rollout_tokens: Int64
    grown: bool
    mc_label: tuple[Int8 | None, ...]
    p_error_free: _Scores | None
    left_out: str | None
    opinions: tuple[Opinion, ...]


PER_STEP = (
    *("steps", "prefix_ids", "value", "value_sd", "low", "high", "p_above", "unbiased_value", "unbiased_rollouts"),
    *("n_correct", "n_rollouts", "n_ungraded", "n_truncated", "origin", "advantage", "advantage_sd", "p_no_drop"),
    *("nothing_to_lose", "label"),
)
"""The columns of labels with an entry for each step."""
CONSENSUS = ("mc_label", "p_error_free", "left_out", "opinions")
"""The columns that labels of `estimator.rule=consensus` have besides those of `labels`."""
DROPS = ("p_no_drop", "nothing_to_lose")
"""Columns that labels made before the rule `lasting_drop` do not have."""
LABELS = Table("labels", LabelColumns, extra=[[GROWN], CONSENSUS], late=DROPS)
LABELS_GROWN = LABELS.with_extra(GROWN)
LABELS_CONSENSUS = LABELS.with_extra(*CONSENSUS)


GOLD_ANSWERS = "gold_answers"
"""The column of `chains` for a judge that is shown the known answers (`judge.show_answer`), and for searches."""
CHAINS = Table("chains", ChainText, extra=[[GOLD_ANSWERS]])
CHAINS_WITH_ANSWERS = CHAINS.with_extra(GOLD_ANSWERS)


class _ScoreColumns(NumberedChain):
    step_scores: _Scores
    step_positions: _Counts
    reliability: _Scores | None
    n_scored: int
    fault: str | None
    n_tokens: Int64
    score_min: float | None
    score_product: float | None
    score_mean: float | None
    score_last: float | None
    score: float | None
    model: str


class ScoreColumns(_ScoreColumns):
    """One row per chain. `step_scores` has one score in [0, 1] per step, null for a step without one; `fault` says why (see
    `scorers.base.StepScores`, also for `step_positions` and `reliability`). The chain scores are null unless all steps have a
    score. `score` is the chain score that the settings choose. `n_tokens`: tokens that the model read and wrote for the chain.

    With a calibration, `step_scores` are calibrated, and the chain scores follow from them; `raw_step_scores` are the model's
    own."""

    raw_step_scores: _Scores


RAW_STEP_SCORES = "raw_step_scores"
SCORES = Table("scores", ScoreColumns, key=("row",), extra=[[RAW_STEP_SCORES]])
CALIBRATED_SCORES = SCORES.with_extra(RAW_STEP_SCORES)


class CritiqueRow(NamedTuple):
    """A vote of a judge. `row`: that of the chain in `chains`. `vote`: from 0. `text`: all turns joined; `turn_ends`: the end
    of each turn in it, in characters. `n_tokens`: written, `n_prompt_tokens`: read, in all turns."""

    critique_id: str
    row: Int64
    judge: str
    chain_id: str
    problem_id: str
    vote: int
    reading: Reading
    text: str
    turn_ends: tuple[int, ...]
    finish: Finish
    n_tokens: int
    n_prompt_tokens: int
    model: str


CRITIQUES = Table("critiques", CritiqueRow, key=("row", "vote"))


def critiques_table(judged: Sequence[tuple[int, ChainText, Sequence[Critique]]], *, judge: str, model: str) -> pa.Table:
    """The critiques of chains, one row per vote. `judged`: row, chain and votes of each; `judge`: the judge's name."""
    return CRITIQUES.to_table(
        [
            CritiqueRow(
                critique_id=critique_id(judge, chain.chain_id, vote),
                row=row,
                judge=judge,
                chain_id=chain.chain_id,
                problem_id=chain.problem_id,
                vote=vote,
                reading=each.reading,
                text="".join(each.turns),
                turn_ends=tuple(accumulate(map(len, each.turns))),
                finish=each.finish,
                n_tokens=each.n_tokens,
                n_prompt_tokens=each.n_prompt_tokens,
                model=model,
            )
            for row, chain, votes in judged
            for vote, each in enumerate(votes)
        ]
    )


class NewReading(NamedTuple):
    """A new reading of a stored critique, as `regrade` writes them in the order of `critiques`."""

    critique_id: str
    reading: Reading


READINGS = Table("readings", NewReading)


def readings_of(table: pa.Table) -> list[Reading]:
    """The readings of a table of critiques or of readings, as they stand there."""
    return [each.reading for each in READINGS.from_table(table)]


def turns_of(text: str, turn_ends: Sequence[int]) -> tuple[str, ...]:
    """The turns of a stored critique."""
    return tuple(text[begin:end] for begin, end in pairwise((0, *turn_ends)))


class StepFinding(NamedTuple):
    """What a verifier says of a step of a chain. `row`: that of the chain in `chains`. `step_index`: from 1. `verdict`,
    `covers`, `evidence`: as in `verifiers.base.Finding`. `fault`: why the verifier has not looked at the step
    (`verifiers.base.Fault`); null if it has."""

    row: Int64
    chain_id: str
    problem_id: str
    step_index: int
    verifier: str
    verdict: Coded
    covers: Coded
    evidence: str
    fault: str | None


FINDINGS = Table("findings", StepFinding, key=("row", "step_index"))


class SampleAnswer(NamedTuple):
    """An answer of the policy in a run of `search`. `node_id`: what it continues, `draw` and `steps` as in
    `searches.base.Sample`. `number`: steps before it. `text`: its steps, without what was generated after them; `step_ends` and
    `token_ends`: the end of each step in it, in characters and in `token_ids`. `ended`: the chain ends with it. `answer`: the
    final answer that the chain then states, `verdict`: what the grader says of it; null without a known answer. `n_tokens`: all
    tokens that were generated for it, also those after its steps; `n_prompt_tokens`: tokens before it. `seconds`: of work on
    the problem until it came; `took`: since it was asked for."""

    row: Int64
    sample_id: str
    node_id: str
    draw: int
    steps: int
    number: int
    text: str
    token_ids: tuple[int, ...]
    step_ends: tuple[int, ...]
    token_ends: tuple[int, ...]
    finish: Finish
    ended: bool
    answer: str | None = None
    verdict: Verdict | None = None
    n_tokens: int = 0
    n_prompt_tokens: int = 0
    seconds: float = 0.0
    took: float = 0.0


SAMPLES = Table("samples", SampleAnswer, key=("row", "sample_id"))


class ScoreAnswer(NamedTuple):
    """An answer of the scorer in a run of `search`, for one prefix of a problem. `step`: its number of steps. `raw_score`: the
    scorer's own, `score`: calibrated where the settings say so. `n_tokens`: tokens of the request that gave it, `n_computed`:
    those of them that were not in a cache; 0 for a prefix that another one's request also gave. `seconds`, `took`: as in
    `SampleAnswer`."""

    row: Int64
    prefix_id: str
    step: int
    score: float | None
    raw_score: float | None
    reliability: float | None = None
    fault: str | None = None
    n_tokens: Int64 = 0
    n_computed: Int64 = 0
    seconds: float = 0.0
    took: float = 0.0


STEP_SCORES = Table("stepscores", ScoreAnswer, key=("row", "prefix_id"))


class CandidateColumns(_ScoreColumns):
    """A candidate of a run of `search`: `scores` with more columns. `raw_step_scores`: null without a calibration. `node_ids`:
    for each step. `candidate`: its number among those of its problem. `chosen`: whether the search chose it. `cut`: a limit
    ended it. `policy_tokens`: tokens of its own steps."""

    raw_step_scores: _Scores | None
    prefix_ids: tuple[str, ...]
    node_ids: tuple[str, ...]
    candidate: int
    chosen: bool
    cut: bool
    verdict: Verdict | None
    policy_tokens: Int64


CANDIDATES = Table("candidates", CandidateColumns)


class SearchColumns:
    """A problem of a run of `search`. `chosen`: number of the chosen candidate, null if there is none; `final_answer`,
    `outcome`, `verdict` and `score` are its own. `confidence`: see `searches.base.Found`. `trusted`: whether it reaches
    `search.accept`; null without that setting. `weakest_step`: the number of its step with the lowest score, from 1. `stopped`:
    a `searches.base.Stop`. `steps`: sampled steps; `scored` and `unscored`: prefixes with and without a score. `policy_tokens`:
    all generated tokens; `policy_prompt_tokens`: all prompts added up; `scorer_tokens` and `scorer_computed` as in
    `stepscores`."""

    row: Int64
    problem_id: str
    source_id: str | None
    problem: str
    gold_answer: str | None
    method: str
    n: int
    candidates: int
    chosen: int | None
    final_answer: str | None
    outcome: bool | None
    verdict: Verdict | None
    score: float | None
    confidence: float | None
    trusted: bool | None
    weakest_step: int | None
    stopped: Coded
    steps: int
    scored: int
    unscored: int
    policy_tokens: Int64
    policy_prompt_tokens: Int64
    scorer_tokens: Int64
    scorer_computed: Int64
    seconds: float


SEARCHES = Table("searches", SearchColumns)
