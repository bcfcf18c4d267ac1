"""Adapters for public step data sets: each layout turns a raw row into the same fields.

The README lists the layouts. Each reads the id from `data.columns`; ProcessBench, Math-Shepherd and PRMBench also the answer,
and without one they take the chain's own where it is known to be correct.

The outcome is read from the column `data.columns.outcome`, if it names one. `data=processbench` and `data=math_shepherd` name
the places of these data sets (`OWN_OUTCOMES`), which rows may lack. PRM800K says nothing of the labelled chain's answer: its
`pre_generated_answer` is that of the solution from which labelling began.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pipeline.config.choices import Layout
from pipeline.config.label import DataConfig
from pipeline.core.records import RejectReason
from pipeline.data.jsonl import UnusableRowError
from pipeline.data.steps import STEP_TAG, join

Extract = Callable[[str], str | None]
"""Returns the final answer that a text states, or None."""

MAX_NAMES = 20
"""Most column names that a message lists."""
MAX_NAME_CHARS = 60
MAX_SUBSETS = 12
"""With more distinct id prefixes than this, ids do not define subsets."""
_SUBSET = re.compile(r"(.*\D)[-_/:]\d+")
_MISSING = object()
ORIGINAL_QUESTION, ORIGINAL_PROCESS = "original_question", "original_process"
"""PRMBench's columns with a correct chain, from which the judged one was made."""
_FINAL_ANSWER_CORRECT = "final_answer_correct"
_LABEL = "label"
_NOT_CORRECT = "its own final answer is not marked as correct"
_COLUMNS = {
    "prm800k": {"question", "label"}, "processbench": {"problem", "steps", _FINAL_ANSWER_CORRECT},
    "math_shepherd": {"input", "label", "task"}, "prmbench": {"modified_question", "modified_process"},
    "gsm8k": {"question", "answer"}, "math": {"problem", "solution", "level"}, "mbpp": {"prompt", "test_list"},
    "apps": {"question", "input_output"},
}  # fmt: skip
"""The columns by which a row of a public data set is known, by the option of `data` that reads it."""
MESSAGES = "messages"
"""The column of a conversation, which is read where the row has no column of the problem."""
_FIRST_STEP = re.compile(r"(?<!\S)Step 1:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields of a row, independent of its layout and not yet checked. None: the row does not have the field."""

    problem: object = None
    answer: object = None
    answer_is_bare: bool = False
    """Whether the answer was already extracted from a text."""
    steps: object = None
    solution: object = None
    outcome: object = None
    """Whether the final answer of the solution is correct."""
    outcome_column: str = ""
    """The column that says so."""


def read_fields(row: Mapping[str, object], data: DataConfig, final_answer: Extract) -> Fields:
    """The fields of a row in the layout `data.layout`. Raises UnusableRowError if the row does not have that layout."""
    fields = _READERS[data.layout](row, data, final_answer)
    name = data.columns.outcome
    if not name:
        return fields
    own, read = OWN_OUTCOMES.get(data.layout, ("", None))
    read = read if own == name else None
    outcome = column(row, name, None if read else _MISSING)
    if outcome is _MISSING:
        raise UnusableRowError(
            RejectReason.BAD_OUTCOME,
            f"The row has no column '{name}' for the outcome; its columns are: {column_names(row)}. Name the correct column "
            "with data.columns.outcome=NAME, or write null where the outcome is unknown.",
        )
    return replace(fields, outcome=read(outcome) if read else outcome, outcome_column=name)


def column(row: object, name: str, missing: object = None) -> object:
    """The value of a column; `missing` if the row has none. A dot in `name` descends into a nested field, unless a column has
    exactly that name."""
    if not name or not isinstance(row, Mapping):
        return missing
    if name in row:
        return row[name]
    head, _, rest = name.partition(".")
    return column(row.get(head), rest, missing)


def chosen_completions(steps: Sequence[object]) -> list[object]:
    """PRM800K: the continuation of the chain at each of its `steps`, either a record with text and rating or a human text.

    If labelling ended at an error, no completion is chosen at that step. The chain then ends with the step's first completion,
    which is the chain's own. A step of an unknown form gives None.
    """
    found: list[object] = []
    for step in steps:
        chosen, human = column(step, "chosen_completion"), column(step, "human_completion")
        completions, index = column(step, "completions"), 0 if chosen is None else chosen
        if chosen is None and human is not None:
            found.append(human)
        elif isinstance(completions, Sequence) and isinstance(index, int) and 0 <= index < len(completions):
            found.append(completions[index] if isinstance(completions[index], Mapping) else None)
        else:
            found.append(None)
        if chosen is None and human is None:
            break
    return found


def subset_names(ids: Iterable[str | None]) -> list[str | None]:
    """The part before the number of each id, such as `gsm8k` in `gsm8k-40`; None for an id of another form. None for all with
    more than MAX_SUBSETS distinct parts."""
    shapes = [_SUBSET.fullmatch(each or "") for each in ids]
    names = [shape[1] if shape else None for shape in shapes]
    return names if len(set(names)) <= MAX_SUBSETS else [None] * len(names)


def column_names(row: Mapping[str, object]) -> str:
    """The names of a row's columns for a message, shortened and without unprintable characters."""
    names = ["".join(c if c.isprintable() else "?" for c in name[:MAX_NAME_CHARS]) for name in islice(row, MAX_NAMES)]
    return ", ".join(names) + (", ..." if len(row) > MAX_NAMES else "") if names else "none"


def layout_hint(row: Mapping[str, object]) -> str:
    """A sentence on the public data set that has such rows; empty for none."""
    found = (f" data={name} reads such rows." for name, columns in _COLUMNS.items() if columns <= row.keys())
    return next(found, "")


def _named_columns(row: Mapping[str, object], data: DataConfig, _final_answer: Extract) -> Fields:
    names = data.columns
    problem, messages = column(row, names.problem), row.get(MESSAGES)
    if problem is None and messages is not None:
        return _conversation(messages, column(row, names.answer))
    return Fields(
        problem=problem,
        answer=column(row, names.answer),
        steps=column(row, names.steps),
        solution=column(row, names.solution),
    )


def _conversation(messages: object, answer: object) -> Fields:
    """A problem and its solution as messages: the text of `system`, where there is one, stands before that of `user`."""
    said: list[tuple[object, object]] = []
    for message in messages if isinstance(messages, Sequence) else ():
        content = column(message, "content")
        if isinstance(content, list) and all(column(part, "type") == "text" for part in content):
            content = "".join(str(column(part, "text")) for part in content)
        said.append((column(message, "role"), content))
    roles = [role for role, _ in said]
    wanted = ["system"] * ("system" in roles) + ["user"] + ["assistant"] * ("assistant" in roles)
    if roles != wanted or not all(isinstance(content, str) for _, content in said):
        found = ", ".join(str(role)[:MAX_NAME_CHARS] for role in roles[:MAX_NAMES]) or "none"
        raise UnusableRowError(
            RejectReason.BAD_STEPS,
            f"The messages are of {found}; a row has one of user, before it one of system or none, and after it the solution "
            "as one of assistant or none, all of them texts. Turns of tools and further turns are no steps.",
        )
    asked = "\n\n".join(str(content) for role, content in said if role != "assistant")
    return Fields(problem=asked, answer=answer, solution=dict(said).get("assistant"))


def _prm800k(row: Mapping[str, object], data: DataConfig, _final_answer: Extract) -> Fields:
    steps = _wanted(row, "label.steps", data, RejectReason.NO_STEPS)
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        detail = "label.steps is not a list, but data.layout=prm800k expects a list."
        raise UnusableRowError(RejectReason.BAD_STEPS, detail)
    return Fields(
        problem=_wanted(row, "question.problem", data, RejectReason.MISSING_PROBLEM),
        answer=_wanted(row, "question.ground_truth_answer", data, RejectReason.MISSING_ANSWER),
        steps=[column(found, "text") if isinstance(found, Mapping) else found for found in chosen_completions(steps)],
    )


def _processbench(row: Mapping[str, object], data: DataConfig, final_answer: Extract) -> Fields:
    problem = _wanted(row, "problem", data, RejectReason.MISSING_PROBLEM)
    steps = _wanted(row, "steps", data, RejectReason.NO_STEPS)
    wrong = "" if column(row, _FINAL_ANSWER_CORRECT) is True else _NOT_CORRECT
    return _answered(row, data, final_answer, problem, steps, wrong)


def _math_shepherd(row: Mapping[str, object], data: DataConfig, final_answer: Extract) -> Fields:
    text = _wanted(row, "input", data, RejectReason.MISSING_PROBLEM)
    starts = [match.start() for match in _FIRST_STEP.finditer(text)] if isinstance(text, str) else []
    if not isinstance(text, str) or len(starts) != 1:
        found = f"The input contains 'Step 1:' {len(starts)} times"
        detail = f"{found}, so the end of the problem is unclear; it must occur exactly once."
        raise UnusableRowError(RejectReason.BAD_STEPS, detail)
    *steps, rest = STEP_TAG.split(text[starts[0] :])
    if rest.strip():
        detail = "The input does not end with the tag ки; put the tag after every step."
        raise UnusableRowError(RejectReason.BAD_STEPS, detail)
    wrong = "" if _last_tag(column(row, _LABEL)) else _NOT_CORRECT
    problem, steps = text[: starts[0]].strip(), [step.strip() for step in steps]
    return _answered(row, data, final_answer, problem, steps, wrong)


def _last_tag(label: object) -> bool | None:
    """Math-Shepherd: the last step's label, which for the last step is the outcome."""
    end = label.rstrip()[-1:] if isinstance(label, str) else ""
    return {"+": True, "-": False}.get(end)


def _prmbench(row: Mapping[str, object], data: DataConfig, final_answer: Extract) -> Fields:
    problem = _wanted(row, data.columns.problem, data, RejectReason.MISSING_PROBLEM)
    steps = _wanted(row, data.columns.steps, data, RejectReason.NO_STEPS)
    other = problem != column(row, ORIGINAL_QUESTION)  # a question that was modified may have another answer
    wrong = f"its question is not '{ORIGINAL_QUESTION}'" if other else ""
    return _answered(row, data, final_answer, problem, steps, wrong, ORIGINAL_PROCESS)


def _answered(
    row: Mapping[str, object],
    data: DataConfig,
    extract: Extract,
    problem: object,
    steps: object,
    wrong: str,
    chain: str = "",
) -> Fields:
    """The fields with the row's answer, or else with the final one of its correct solution: the steps, or those in the column
    `chain`. `wrong`: why that is not known to be correct; empty if it is."""
    answer = column(row, data.columns.answer)
    if answer is not None:
        return Fields(problem=problem, answer=answer, steps=steps)
    given = column(row, chain) if chain else steps
    texts = [step for step in given if isinstance(step, str)] if isinstance(given, Sequence) else []
    answer = None if wrong else extract(join(texts, data.separator)[0])
    if answer is None:
        said = f"'{chain}'" if chain else "solution is marked as correct but"
        why = wrong or f"its {said} states no readable answer"
        remedy = f"add the known answer as the column '{data.columns.answer or 'answer'}'"
        raise UnusableRowError(RejectReason.MISSING_ANSWER, f"The row has no answer, and {why}: {remedy}.")
    return Fields(problem=problem, answer=answer, answer_is_bare=True, steps=steps)


def _wanted(row: Mapping[str, object], name: str, data: DataConfig, reason: RejectReason) -> object:
    value = column(row, name)
    if value is None:
        detail = (
            f"The row has no '{name}', which data.layout={data.layout.value} reads; its columns are: {column_names(row)}. "
            f"For another layout set data.layout.{layout_hint(row)}"
        )
        raise UnusableRowError(reason, detail)
    return value


_READERS: dict[Layout, Callable[[Mapping[str, object], DataConfig, Extract], Fields]] = {
    Layout.rows: _named_columns,
    Layout.prm800k: _prm800k,
    Layout.processbench: _processbench,
    Layout.math_shepherd: _math_shepherd,
    Layout.prmbench: _prmbench,
}


OWN_OUTCOMES: dict[Layout, tuple[str, Callable[[object], object]]] = {
    Layout.processbench: (_FINAL_ANSWER_CORRECT, lambda value: value),
    Layout.math_shepherd: (_LABEL, _last_tag),
}
"""The column where a public data set says whether a solution is right, and how its value is read."""
