"""The Arrow schema of every table. A schema is a fixed contract: no writer adds columns to it."""

from typing import Any

import pyarrow as pa

from pipeline.core.records import GROWN

SCHEMA_VERSION = 5
"""The version of everything in a run directory. A run with another one is refused."""

_ENUM = pa.dictionary(pa.int8(), pa.string())
_STRINGS = pa.list_(pa.string())


def _required(name: str, kind: pa.DataType) -> "pa.Field[Any]":
    return pa.field(name, kind, nullable=False)


def _optional(name: str, kind: pa.DataType) -> "pa.Field[Any]":
    return pa.field(name, kind)


INPUTS = pa.schema(
    [
        _required("problem_id", pa.string()),
        _required("problem", pa.string()),
        _required("gold_answers", _STRINGS),
        _optional("chain_id", pa.string()),
        _optional("source_id", pa.string()),
        _optional("solution", pa.string()),
        _optional("step_ends", pa.list_(pa.int32())),
        _required("file", pa.string()),
        _required("line", pa.int64()),
    ]
)

GIVEN_OUTCOME = "given_outcome"
INPUTS_WITH_OUTCOMES = pa.schema([*INPUTS, _optional(GIVEN_OUTCOME, pa.bool_())])
"""The columns of `inputs` in files with rows that say whether their solution's final answer is correct."""

SOLUTIONS = pa.schema(
    [
        _required("chain_id", pa.string()),
        _required("problem_id", pa.string()),
        _optional("source_id", pa.string()),
        _required("draw", pa.int32()),
        _required("text", pa.string()),
        _required("token_ids", pa.list_(pa.int32())),
        _required("step_ends", pa.list_(pa.int32())),
        _required("token_ends", pa.list_(pa.int32())),
        _required("finish", _ENUM),
        _required("answer", pa.string()),
        _required("verdict", _ENUM),
    ]
)

ROLLOUTS = pa.schema(
    [
        _required("rollout_id", pa.string()),
        _required("prefix_id", pa.string()),
        _required("problem_id", pa.string()),
        _required("step_index", pa.int32()),
        _required("issue_index", pa.int32()),
        _required("round", pa.int32()),
        _optional("reached_prefix_id", pa.string()),
        _required("text", pa.string()),
        _required("finish", _ENUM),
        _required("n_tokens", pa.int32()),
        _required("answer", pa.string()),
        _required("verdict", _ENUM),
        _required("grader", _ENUM),
    ]
)

TOKEN_IDS = "token_ids"
ROLLOUTS_WITH_TOKENS = pa.schema([*ROLLOUTS, _required(TOKEN_IDS, pa.list_(pa.int32()))])
"""The columns of `rollouts` in a run that stores their tokens (`sampling.store_tokens`)."""

PROMOTIONS = pa.schema(
    [
        _required("chain_id", pa.string()),
        _required("problem_id", pa.string()),
        _required("growth", pa.int32()),
        _required("round", pa.int32()),
        _required("place", pa.int32()),
        _required("rollout_id", pa.string()),
        _required("prefix_id", pa.string()),
        _required("begin", pa.int32()),
        _required("text", pa.string()),
        _required("token_ids", pa.list_(pa.int32())),
        _required("step_ends", pa.list_(pa.int32())),
        _required("token_ends", pa.list_(pa.int32())),
        _required("rollouts", pa.int32()),
        _required("gain", pa.float64()),
        _required("cost", pa.float64()),
        _required("passed", _STRINGS),
    ]
)
"""One row for each prefix that `grow` has promoted: see `core.records.Promotion`."""

ALLOTMENTS = pa.schema(
    [
        _required("unit_id", pa.string()),
        _required("problem_id", pa.string()),
        _required("budget", pa.int64()),
    ]
)
"""What a growth may cost in each problem of a unit, in the unit of its budget. Problems without a row get nothing."""

VERDICTS = pa.schema(
    [
        _required("rollout_id", pa.string()),
        _required("answer", pa.string()),
        _required("verdict", _ENUM),
        _required("grader", _ENUM),
    ]
)

REJECTS = pa.schema(
    [
        _required("file", pa.string()),
        _required("line", pa.int64()),
        _optional("source_id", pa.string()),
        _optional("step_index", pa.int32()),
        _required("reason", pa.string()),
        _required("detail", pa.string()),
    ]
)

KERNELS = pa.schema(
    [
        _required("prior", pa.int32()),
        _required("chains", pa.int64()),
        _required("start", pa.list_(pa.float64())),
        _required("steps", pa.list_(pa.list_(pa.float64()))),
        _required("last", pa.list_(pa.list_(pa.float64()))),
        _optional("reproduced", pa.list_(pa.list_(pa.float64()))),
    ]
)

PER_PREFIX: list[tuple[str, pa.DataType]] = [
    ("value", pa.float64()),
    ("value_sd", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("p_above", pa.float64()),
    ("unbiased_value", pa.float64()),
    ("unbiased_rollouts", pa.int32()),
    ("n_correct", pa.int32()),
    ("n_rollouts", pa.int32()),
    ("n_ungraded", pa.int32()),
    ("n_truncated", pa.int32()),
    ("origin", pa.string()),
]
PER_STEP: list[tuple[str, pa.DataType]] = [
    ("advantage", pa.float64()),
    ("advantage_sd", pa.float64()),
    ("p_no_drop", pa.float64()),
    ("nothing_to_lose", pa.bool_()),
]

LABELS = pa.schema(
    [
        _required("chain_id", pa.string()),
        _required("problem_id", pa.string()),
        _optional("source_id", pa.string()),
        _required("problem", pa.string()),
        _required("gold_answer", pa.string()),
        _required("gold_answers", _STRINGS),
        _required("solution", pa.string()),
        _required("steps", _STRINGS),
        _required("step_ends", pa.list_(pa.int32())),
        _required("root_prefix_id", pa.string()),
        _required("prefix_ids", _STRINGS),
        _optional("final_answer", pa.string()),
        _optional("outcome", pa.bool_()),
        _optional("p_outcome", pa.float64()),
        *(_required(name, pa.list_(kind)) for name, kind in (*PER_PREFIX, *PER_STEP)),
        _required("label", pa.list_(pa.int8())),
        *(_optional(f"root_{name}", kind) for name, kind in PER_PREFIX),
        _required("estimator", pa.string()),
        _required("label_rule", pa.string()),
        _required("policy", pa.string()),
        _required("rollout_tokens", pa.int64()),
    ]
)

LABELS_GROWN = pa.schema([*LABELS, _required(GROWN, pa.bool_())])
"""The columns of `labels` in a run that has grown."""

OPINIONS = pa.list_(
    pa.struct(
        [
            _required("witness", pa.string()),
            _required("first_error", pa.list_(pa.float64())),
            _required("no_error", pa.float64()),
            _optional("steps", pa.list_(pa.int8())),
        ]
    )
)
"""What witnesses say of a chain; a witness that says nothing of it is absent. `first_error`: for each step, the share of the
witness's votes (or its probability) that the chain's first error is there. `no_error`: the share that no step has one. Together
they are at most 1: the rest says nothing. `steps`: of a witness that checks steps, 1 holds, 0 refuted, null unknown."""
CONSENSUS = pa.schema(
    [
        _required("mc_label", pa.list_(pa.int8())),
        _optional("p_error_free", pa.list_(pa.float64())),
        _optional("left_out", pa.string()),
        _required("opinions", OPINIONS),
    ]
)
"""The columns that labels of `estimator.rule=consensus` have besides those of `labels`. `mc_label`: the labels by Monte Carlo
alone. `p_error_free`: for each step, P(neither it nor an earlier step has an error), given Monte Carlo and all witnesses; null
unless consensus.how=posterior. `left_out`: why the chain has no labels; null where it has."""
DROPS = ("p_no_drop", "nothing_to_lose")
"""Columns that labels made before the rule `lasting_drop` do not have."""
LABELS_CONSENSUS = tuple(pa.schema([*labels, *CONSENSUS]) for labels in (LABELS, LABELS_GROWN))
"""The columns of `labels` by consensus, in any run."""
RELIABILITIES = pa.schema(
    [
        _required("chains", pa.int64()),
        _required("learned", pa.string()),
    ]
)
"""What consensus labels learned of Monte Carlo and the witnesses, as JSON: one row for an edition."""

STATES = pa.schema(
    [
        _required("estimator", pa.string()),
        _required("version", pa.int32()),
        _required("chains", pa.int64()),
        _required("state", pa.string()),
    ]
)
"""The state that an estimator has learned, as JSON."""

_SCORED_CHAIN = [
    _required("row", pa.int64()),
    _required("chain_id", pa.string()),
    _required("problem_id", pa.string()),
    _optional("source_id", pa.string()),
    _required("problem", pa.string()),
    _optional("gold_answer", pa.string()),
    _required("steps", _STRINGS),
    _optional("final_answer", pa.string()),
    _optional("outcome", pa.bool_()),
]
CHAINS = pa.schema([*_SCORED_CHAIN, _required("prefix_ids", _STRINGS)])
"""Chains to score. `row`: the number of the chain in its input, from 0. `prefix_ids`: for each step an id of the prefix that
ends with it, which is equal for equal prefixes."""

SCORES = pa.schema(
    [
        *_SCORED_CHAIN,
        _required("step_scores", pa.list_(pa.float64())),
        _required("step_positions", pa.list_(pa.int32())),
        _optional("reliability", pa.list_(pa.float64())),
        _required("n_scored", pa.int32()),
        _optional("fault", pa.string()),
        _required("n_tokens", pa.int64()),
        _optional("score_min", pa.float64()),
        _optional("score_product", pa.float64()),
        _optional("score_mean", pa.float64()),
        _optional("score_last", pa.float64()),
        _optional("score", pa.float64()),
        _required("model", pa.string()),
    ]
)
"""One row per chain. `step_scores` has one score in [0, 1] per step, null for a step without one; `fault` says why (see
`scorers.base.StepScores`, also for `step_positions` and `reliability`). The chain scores are null unless all steps have a
score. `score` is the chain score that the settings choose. `n_tokens`: tokens that the model read and wrote for the chain."""

RAW_STEP_SCORES = "raw_step_scores"
CALIBRATED_SCORES = pa.schema([*SCORES, _required(RAW_STEP_SCORES, pa.list_(pa.float64()))])
"""The same with a calibration. `step_scores` are calibrated, and the chain scores follow from them; `raw_step_scores` are the
model's own."""

CHAINS_WITH_ANSWERS = pa.schema([*CHAINS, _required("gold_answers", _STRINGS)])
"""Chains for a judge that is shown the known answers (`judge.show_answer`)."""

_READING = [
    _required("reading", _ENUM),
    _optional("first_error", pa.int32()),
    _optional("step_opinions", _STRINGS),
]
"""`core.records.Reading`: its kind, the first step with an error from 1, and what it says of each step: a list with nulls where
it skips a step, null where it does not ask for steps."""
CRITIQUES = pa.schema(
    [
        _required("critique_id", pa.string()),
        _required("row", pa.int64()),
        _required("judge", pa.string()),
        _required("chain_id", pa.string()),
        _required("problem_id", pa.string()),
        _required("vote", pa.int32()),
        *_READING,
        _required("text", pa.string()),
        _required("turn_ends", pa.list_(pa.int32())),
        _required("finish", _ENUM),
        _required("n_tokens", pa.int32()),
        _required("n_prompt_tokens", pa.int32()),
        _required("model", pa.string()),
    ]
)
"""One row per vote. `row`: that of the chain in `chains`. `vote`: from 0. `text`: all turns joined; `turn_ends`: the end of
each turn in it, in characters. `n_tokens`: written, `n_prompt_tokens`: read, in all turns."""
READINGS = pa.schema([_required("critique_id", pa.string()), *_READING])
"""New readings of stored critiques, as `regrade` writes them: one row per critique, in the order of `critiques`."""

FINDINGS = pa.schema(
    [
        _required("row", pa.int64()),
        _required("chain_id", pa.string()),
        _required("problem_id", pa.string()),
        _required("step_index", pa.int32()),
        _required("verifier", pa.string()),
        _required("verdict", _ENUM),
        _required("covers", _ENUM),
        _required("evidence", pa.string()),
        _optional("fault", pa.string()),
    ]
)
"""What a verifier says of the steps of chains: one row per step. `row`: that of the chain in `chains`. `step_index`: from 1.
`verdict`, `covers`, `evidence`: as in `verifiers.base.Finding`. `fault`: why the verifier has not looked at the step
(`verifiers.base.Fault`); null if it has."""

SAMPLES = pa.schema(
    [
        _required("row", pa.int64()),
        _required("sample_id", pa.string()),
        _required("node_id", pa.string()),
        _required("draw", pa.int32()),
        _required("steps", pa.int32()),
        _required("number", pa.int32()),
        _required("text", pa.string()),
        _required("token_ids", pa.list_(pa.int32())),
        _required("step_ends", pa.list_(pa.int32())),
        _required("token_ends", pa.list_(pa.int32())),
        _required("finish", _ENUM),
        _required("ended", pa.bool_()),
        _optional("answer", pa.string()),
        _optional("verdict", _ENUM),
        _required("n_tokens", pa.int32()),
        _required("n_prompt_tokens", pa.int32()),
        _required("seconds", pa.float64()),
        _required("took", pa.float64()),
    ]
)
"""The answers of the policy in a run of `search`: one row for each sample. `node_id`: what it continues, `draw` and `steps` as
in `searches.base.Sample`. `number`: steps before it. `text`: its steps, without what was generated after them; `step_ends` and
`token_ends`: the end of each step in it, in characters and in `token_ids`. `ended`: the chain ends with it. `answer`: the final
answer that the chain then states, `verdict`: what the grader says of it; null without a known answer. `n_tokens`: all tokens
that were generated for it, also those after its steps; `n_prompt_tokens`: tokens before it. `seconds`: of work on the
problem until it came; `took`: since it was asked for."""

STEP_SCORES = pa.schema(
    [
        _required("row", pa.int64()),
        _required("prefix_id", pa.string()),
        _required("step", pa.int32()),
        _optional("score", pa.float64()),
        _optional("raw_score", pa.float64()),
        _optional("reliability", pa.float64()),
        _optional("fault", pa.string()),
        _required("n_tokens", pa.int64()),
        _required("n_computed", pa.int64()),
        _required("seconds", pa.float64()),
        _required("took", pa.float64()),
    ]
)
"""The answers of the scorer in a run of `search`: one row for each prefix of a problem. `step`: its number of steps.
`raw_score`: the scorer's own, `score`: calibrated where the settings say so. `n_tokens`: tokens of the request that gave it,
`n_computed`: those of them that were not in a cache; 0 for a prefix that another one's request also gave. `seconds`: as in
`samples`."""

CANDIDATES = pa.schema(
    [
        *SCORES,
        _optional(RAW_STEP_SCORES, pa.list_(pa.float64())),
        _required("prefix_ids", _STRINGS),
        _required("node_ids", _STRINGS),
        _required("candidate", pa.int32()),
        _required("chosen", pa.bool_()),
        _required("cut", pa.bool_()),
        _optional("verdict", _ENUM),
        _required("policy_tokens", pa.int64()),
    ]
)
"""The candidates of a run of `search`: `scores` with more columns. `raw_step_scores`: null without a calibration. `node_ids`:
for each step. `candidate`: its number among those of its problem. `chosen`: whether the search chose it. `cut`: a limit ended
it. `policy_tokens`: tokens of its own steps."""

SEARCHES = pa.schema(
    [
        _required("row", pa.int64()),
        _required("problem_id", pa.string()),
        _optional("source_id", pa.string()),
        _required("problem", pa.string()),
        _optional("gold_answer", pa.string()),
        _required("method", pa.string()),
        _required("n", pa.int32()),
        _required("candidates", pa.int32()),
        _optional("chosen", pa.int32()),
        _optional("final_answer", pa.string()),
        _optional("outcome", pa.bool_()),
        _optional("verdict", _ENUM),
        _optional("score", pa.float64()),
        _optional("confidence", pa.float64()),
        _optional("trusted", pa.bool_()),
        _optional("weakest_step", pa.int32()),
        _required("stopped", _ENUM),
        _required("steps", pa.int32()),
        _required("scored", pa.int32()),
        _required("unscored", pa.int32()),
        _required("policy_tokens", pa.int64()),
        _required("policy_prompt_tokens", pa.int64()),
        _required("scorer_tokens", pa.int64()),
        _required("scorer_computed", pa.int64()),
        _required("seconds", pa.float64()),
    ]
)
"""One row for each problem of a run of `search`. `chosen`: number of the chosen candidate, null if there is none;
`final_answer`, `outcome`, `verdict` and `score` are its own. `confidence`: see `searches.base.Found`. `trusted`: whether it
reaches `search.accept`; null without that setting. `weakest_step`: the number of its step with the lowest score, from 1.
`stopped`: a `searches.base.Stop`. `steps`: sampled steps; `scored` and `unscored`: prefixes with and without a score.
`policy_tokens`: all generated tokens; `policy_prompt_tokens`: all prompts added up; `scorer_tokens` and `scorer_computed` as in
`stepscores`."""

SCHEMAS = {
    "inputs": INPUTS,
    "solutions": SOLUTIONS,
    "rollouts": ROLLOUTS,
    "promotions": PROMOTIONS,
    "allotments": ALLOTMENTS,
    "verdicts": VERDICTS,
    "rejects": REJECTS,
    "labels": LABELS,
    "kernels": KERNELS,
    "states": STATES,
    "reliabilities": RELIABILITIES,
    "chains": CHAINS,
    "scores": SCORES,
    "critiques": CRITIQUES,
    "readings": READINGS,
    "findings": FINDINGS,
    "samples": SAMPLES,
    "stepscores": STEP_SCORES,
    "candidates": CANDIDATES,
    "searches": SEARCHES,
}
OTHER_SCHEMAS: dict[str, tuple[pa.Schema, ...]] = {
    "inputs": (INPUTS_WITH_OUTCOMES,),
    "labels": (
        *(every := (LABELS_GROWN, *LABELS_CONSENSUS)),
        *(pa.schema([field for field in each if field.name not in DROPS]) for each in (LABELS, *every)),
    ),
    "rollouts": (ROLLOUTS_WITH_TOKENS,),
    "chains": (CHAINS_WITH_ANSWERS,),
    "scores": (CALIBRATED_SCORES,),
}
"""What tables may also have as columns: marks of promoted chains, outcomes that the data give, tokens of rollouts, and known
answers for a judge."""
LEARNED = ("kernels", "states")
"""Tables with the learned state of an estimator; a unit has at most one of them."""

LOG_KEYS = {
    "rollouts": ("rollout_id",),
    "solutions": ("problem_id", "draw"),
    "promotions": ("chain_id",),
    "scores": ("row",),
    "critiques": ("row", "vote"),
    "findings": ("row", "step_index"),
    "samples": ("row", "sample_id"),
    "stepscores": ("row", "prefix_id"),
}
"""The key columns of the log's tables. They identify a row and define the order."""
