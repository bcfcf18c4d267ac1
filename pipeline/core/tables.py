"""Converts records to Arrow tables and back, with the schemas of `core.schemas`."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import pyarrow as pa

from pipeline.core.ids import critique_id
from pipeline.core.records import (
    GROWN,
    Chain,
    ChainText,
    ChainValues,
    Critique,
    Finish,
    Grade,
    InputRow,
    Problem,
    Promotion,
    Reading,
    ReadingKind,
    Reject,
    Rollout,
    RolloutOutcome,
    RowLocation,
    SampledSolution,
    Solution,
    StepOpinion,
    StepValue,
    Verdict,
)
from pipeline.core.schemas import (
    CRITIQUES,
    GIVEN_OUTCOME,
    INPUTS,
    INPUTS_WITH_OUTCOMES,
    LABELS,
    LABELS_GROWN,
    LOG_KEYS,
    PER_PREFIX,
    PER_STEP,
    PROMOTIONS,
    READINGS,
    REJECTS,
    ROLLOUTS,
    ROLLOUTS_WITH_TOKENS,
    SOLUTIONS,
    TOKEN_IDS,
    VERDICTS,
)


def rollouts_table(rollouts: Sequence[Rollout], grader: str, *, with_tokens: bool = False) -> pa.Table:
    """The table of rollouts, one row per completion, sorted by `rollout_id` so that equal content gives equal bytes.

    `with_tokens`: with the column for their tokens.
    """
    ordered = sorted(rollouts, key=lambda rollout: rollout.completion.request.request_id)
    completions = [rollout.completion for rollout in ordered]
    requests = [completion.request for completion in completions]
    return _table(
        ROLLOUTS_WITH_TOKENS if with_tokens else ROLLOUTS,
        {
            "rollout_id": [request.request_id for request in requests],
            "prefix_id": [request.prefix.prefix_id for request in requests],
            "problem_id": [request.problem.problem_id for request in requests],
            "step_index": [request.prefix.step_index for request in requests],
            "issue_index": [request.issue_index for request in requests],
            "round": [request.round for request in requests],
            "reached_prefix_id": [rollout.reached_prefix_id for rollout in ordered],
            "text": [storable(completion.text) for completion in completions],
            "finish": [completion.finish.value for completion in completions],
            "n_tokens": [completion.n_tokens for completion in completions],
            "answer": [storable(rollout.grade.answer) for rollout in ordered],
            "verdict": [rollout.grade.verdict.value for rollout in ordered],
            "grader": [grader] * len(ordered),
            TOKEN_IDS: [list(completion.token_ids) for completion in completions],
        },
    )


OUTCOMES = (
    "rollout_id",
    "prefix_id",
    "issue_index",
    "round",
    "reached_prefix_id",
    "finish",
    "n_tokens",
    "verdict",
)
"""The columns that `rollout_outcomes` reads."""


def rollout_outcomes(rollouts: pa.Table) -> dict[str, RolloutOutcome]:
    """Rollout id -> its outcome, from a table of rollouts."""
    return {
        rollout: RolloutOutcome(
            prefix_id=prefix,
            issue_index=issue,
            round=number,
            reached_prefix_id=reached,
            finish=Finish(finish),
            n_tokens=tokens,
            verdict=Verdict(verdict),
        )
        for rollout, prefix, issue, number, reached, finish, tokens, verdict in zip(
            *(rollouts[name].to_pylist() for name in OUTCOMES), strict=True
        )
    }


def verdicts_table(grades: Mapping[str, Grade], grader: str) -> pa.Table:
    """The grades of `regrade` by rollout id, sorted by rollout id."""
    ordered = sorted(grades.items())
    return _table(
        VERDICTS,
        {
            "rollout_id": [rollout for rollout, _ in ordered],
            "answer": [storable(grade.answer) for _, grade in ordered],
            "verdict": [grade.verdict.value for _, grade in ordered],
            "grader": [grader] * len(ordered),
        },
    )


def row_ids(table_name: str, table: pa.Table) -> list[tuple[object, ...]]:
    """The key of each row of a table of the log, see `LOG_KEYS`."""
    return list(zip(*(table[key].to_pylist() for key in LOG_KEYS[table_name]), strict=True))


def in_order(table_name: str, tables: Sequence[pa.Table]) -> pa.Table:
    """Tables of the log as one table, sorted by the keys of its rows."""
    one = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    return one.sort_by([(key, "ascending") for key in LOG_KEYS[table_name]])


def solutions_table(solutions: Sequence[SampledSolution]) -> pa.Table:
    """All chains that the policy sampled, kept or not, with their tokens."""
    return _table(
        SOLUTIONS,
        {
            "chain_id": [drawn.solution.chain_id for drawn in solutions],
            "problem_id": [drawn.solution.problem_id for drawn in solutions],
            "source_id": [drawn.solution.source_id for drawn in solutions],
            "draw": [drawn.draw for drawn in solutions],
            "text": [drawn.solution.text for drawn in solutions],
            "token_ids": [list(drawn.solution.token_ids) for drawn in solutions],
            "step_ends": [list(drawn.solution.ends) for drawn in solutions],
            "token_ends": [list(drawn.solution.token_ends) for drawn in solutions],
            "finish": [drawn.finish.value for drawn in solutions],
            "answer": [storable(drawn.grade.answer) for drawn in solutions],
            "verdict": [drawn.grade.verdict.value for drawn in solutions],
        },
    )


def sampled_solutions(table: pa.Table) -> list[SampledSolution]:
    """The inverse of `solutions_table`. The grading time is not stored, so it is 0."""
    return [
        SampledSolution(
            solution=Solution(
                chain_id=row["chain_id"],
                problem_id=row["problem_id"],
                source_id=row["source_id"],
                text=row["text"],
                ends=tuple(row["step_ends"]),
                token_ids=tuple(row["token_ids"]),
                token_ends=tuple(row["token_ends"]),
                complete=row["finish"] == Finish.STOP,
            ),
            draw=row["draw"],
            finish=Finish(row["finish"]),
            grade=Grade(verdict=Verdict(row["verdict"]), answer=row["answer"], ms=0.0),
        )
        for row in table.to_pylist()
    ]


_LISTS = "token_ids", "step_ends", "token_ends", "passed"


def promotions_table(promotions: Sequence[Promotion]) -> pa.Table:
    """Prefixes that `grow` promoted, in their order."""
    columns: dict[str, list[object]] = {
        name: [getattr(each, name) for each in promotions] for name in PROMOTIONS.names if name not in _LISTS
    }
    return _table(
        PROMOTIONS,
        columns
        | {
            "token_ids": [list(each.token_ids) for each in promotions],
            "step_ends": [list(each.ends) for each in promotions],
            "token_ends": [list(each.token_ends) for each in promotions],
            "passed": [list(each.passed) for each in promotions],
        },
    )


def promotions_of(table: pa.Table) -> list[Promotion]:
    """The inverse of `promotions_table`."""
    return [
        Promotion(
            **{name: value for name, value in row.items() if name not in _LISTS},
            token_ids=tuple(row["token_ids"]),
            ends=tuple(row["step_ends"]),
            token_ends=tuple(row["token_ends"]),
            passed=tuple(row["passed"]),
        )
        for row in table.to_pylist()
    ]


def inputs_table(rows: Sequence[InputRow], *, with_outcomes: bool = False) -> pa.Table:
    """The used rows of one unit: each is a problem with a chain, or a problem for which the policy samples chains.

    `with_outcomes`: with the column for outcomes that the rows give.
    """
    chains = [row.solution for row in rows]
    return _table(
        INPUTS_WITH_OUTCOMES if with_outcomes else INPUTS,
        {
            GIVEN_OUTCOME: [row.given_outcome for row in rows],
            "problem_id": [row.problem.problem_id for row in rows],
            "problem": [row.problem.text for row in rows],
            "gold_answers": [list(row.problem.golds) for row in rows],
            "chain_id": [chain and chain.chain_id for chain in chains],
            "source_id": [row.source_id for row in rows],
            "solution": [chain and chain.text for chain in chains],
            "step_ends": [chain and list(chain.ends) for chain in chains],
            "file": [row.location.file for row in rows],
            "line": [row.location.line for row in rows],
        },
    )


def input_rows(table: pa.Table) -> list[InputRow]:
    """The inverse of `inputs_table`."""
    return [
        InputRow(
            location=RowLocation(file=row["file"], line=row["line"]),
            source_id=row["source_id"],
            problem=Problem(problem_id=row["problem_id"], text=row["problem"], golds=tuple(row["gold_answers"])),
            solution=None
            if row["chain_id"] is None
            else Solution(
                chain_id=row["chain_id"],
                problem_id=row["problem_id"],
                source_id=row["source_id"],
                text=row["solution"],
                ends=tuple(row["step_ends"]),
            ),
            given_outcome=row.get(GIVEN_OUTCOME),
        )
        for row in table.to_pylist()
    ]


def rejects_table(rejects: Sequence[Reject]) -> pa.Table:
    """Rows that were not used, and single prefixes that could not be measured (with a `step_index`)."""
    return _table(
        REJECTS,
        {
            "file": [reject.location.file for reject in rejects],
            "line": [reject.location.line for reject in rejects],
            "source_id": [None if reject.source_id is None else storable(reject.source_id) for reject in rejects],
            "step_index": [reject.step_index for reject in rejects],
            "reason": [reject.reason.value for reject in rejects],
            "detail": [storable(reject.detail) for reject in rejects],
        },
    )


def critiques_table(judged: Sequence[tuple[int, ChainText, Sequence[Critique]]], *, judge: str, model: str) -> pa.Table:
    """The critiques of chains, one row per vote. `judged`: row, chain and votes of each; `judge`: the judge's name."""
    votes = [(row, chain, vote, each) for row, chain, votes in judged for vote, each in enumerate(votes)]
    return _table(
        CRITIQUES,
        {
            "critique_id": [critique_id(judge, chain.chain_id, vote) for _, chain, vote, _ in votes],
            "row": [row for row, *_ in votes],
            "judge": [judge] * len(votes),
            "chain_id": [chain.chain_id for _, chain, _, _ in votes],
            "problem_id": [chain.problem_id for _, chain, _, _ in votes],
            "vote": [vote for _, _, vote, _ in votes],
            **_reading_columns([each.reading for *_, each in votes]),
            "text": ["".join(map(storable, each.turns)) for *_, each in votes],
            "turn_ends": [list(accumulate(map(len, each.turns))) for *_, each in votes],
            "finish": [each.finish.value for *_, each in votes],
            "n_tokens": [each.n_tokens for *_, each in votes],
            "n_prompt_tokens": [each.n_prompt_tokens for *_, each in votes],
            "model": [model] * len(votes),
        },
    )


def turns_of(text: str, turn_ends: Sequence[int]) -> tuple[str, ...]:
    """The turns of a stored critique."""
    return tuple(text[begin:end] for begin, end in pairwise((0, *turn_ends)))


def readings_table(critique_ids: Sequence[str], readings: Sequence[Reading]) -> pa.Table:
    """New readings of critiques, in their order."""
    return _table(READINGS, {"critique_id": list(critique_ids), **_reading_columns(readings)})


def readings_of(table: pa.Table) -> list[Reading]:
    """The readings of a table of critiques or of readings, as they stand there."""
    columns = (table[name].to_pylist() for name in ("reading", "first_error", "step_opinions"))
    return [
        Reading(
            kind=ReadingKind(kind),
            first_error=first_error,
            steps=tuple(None if step is None else StepOpinion(step) for step in steps or ()),
        )
        for kind, first_error, steps in zip(*columns, strict=True)
    ]


def _reading_columns(readings: Sequence[Reading]) -> dict[str, list[object]]:
    return {
        "reading": [each.kind.value for each in readings],
        "first_error": [each.first_error for each in readings],
        "step_opinions": [[step and step.value for step in each.steps] if each.steps else None for each in readings],
    }


def labels_table(
    chains: Sequence[Chain],
    values: Sequence[ChainValues],
    steps: Sequence[Sequence[str]],
    *,
    estimator: str,
    label_rule: str,
    policy: str,
) -> pa.Table:
    """One row per chain; list columns have one entry per step. `steps`: the trimmed step texts of each chain.

    The chains of a unit are either all marked (`Chain.grown`) or none of them.
    """
    per_step: dict[str, list[object]] = {name: [] for name, _ in (*PER_PREFIX, *PER_STEP)}
    root: dict[str, list[object]] = {f"root_{name}": [] for name, _ in PER_PREFIX}
    for found in values:
        for name, column in per_step.items():
            column.append([_entry(step, name) for step in found.steps])
        for name, _ in PER_PREFIX:
            root[f"root_{name}"].append(_entry(found.root, name))
    grown: list[object] = [chain.grown for chain in chains]
    return _table(
        LABELS if None in grown or not grown else LABELS_GROWN,
        {
            GROWN: grown,
            "chain_id": [chain.solution.chain_id for chain in chains],
            "problem_id": [chain.problem.problem_id for chain in chains],
            "source_id": [chain.solution.source_id for chain in chains],
            "problem": [chain.problem.text for chain in chains],
            "gold_answer": [chain.problem.golds[0] for chain in chains],
            "gold_answers": [list(chain.problem.golds) for chain in chains],
            "solution": [chain.solution.text for chain in chains],
            "steps": [list(texts) for texts in steps],
            "step_ends": [list(chain.solution.ends) for chain in chains],
            "root_prefix_id": [chain.root_prefix_id for chain in chains],
            "prefix_ids": [list(chain.prefix_ids) for chain in chains],
            "final_answer": [None if chain.final_answer is None else storable(chain.final_answer) for chain in chains],
            "outcome": [chain.outcome for chain in chains],
            "p_outcome": [found.p_outcome for found in values],
            **per_step,
            "label": [list(found.labels) for found in values],
            **root,
            "estimator": [estimator] * len(chains),
            "label_rule": [label_rule] * len(chains),
            "policy": [policy] * len(chains),
            "rollout_tokens": [
                found.root.counts.tokens + sum(step.counts.tokens for step in found.steps) for found in values
            ],
        },
    )


def storable(text: str) -> str:
    """The text with lone surrogates replaced by `?`. Model output may contain them, and Parquet cannot store them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _entry(step: StepValue, name: str) -> object:
    counts = step.counts
    match name:
        case "n_correct":
            return counts.correct
        case "n_rollouts":
            return counts.graded
        case "n_ungraded":
            return counts.ungraded
        case "n_truncated":
            return counts.truncated
        case "origin":
            return step.origin.value
        case _:
            return getattr(step, name)


def _table(schema: pa.Schema, columns: dict[str, list[object]]) -> pa.Table:
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
