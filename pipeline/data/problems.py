"""Turns a row of any layout into a Problem with its Solution, or into a Reject that says why and what to do.

Everything that could fail later (in a tokenizer, in the grader or in writing Parquet) is checked here, before a model is
loaded. Whether an answer can be *graded* is checked elsewhere, see `graders`.
"""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from unicodedata import normalize

from pipeline.config.label import DataConfig
from pipeline.core.ids import ID_DIGITS, content_id
from pipeline.core.records import InputRow, Problem, Reject, RejectReason, RowLocation, Solution
from pipeline.data.jsonl import UnusableRowError
from pipeline.data.layouts import Extract, Fields, column, column_names, layout_hint, read_fields
from pipeline.data.lost_backslashes import mended
from pipeline.data.steps import join, split

MAX_INTEGER_BITS = 10_000
"""A longer integer is refused as an answer and ignored as an id. Python itself refuses to print much longer ones."""
MAX_ADJUSTED = 10_000
"""A decimal number with a larger power of ten keeps its exponent, because its digits could fill the memory."""
MAX_SHOWN_CHARS = 40
"""Most characters of a value that a message quotes."""
MAX_SHOWN_NUMBER = 10**15
"""A message says of a larger number only that it is one. Python refuses to print very long integers."""
_OUTCOME_TEXTS = {"true": True, "1": True, "false": False, "0": False}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def read_row(
    row: Mapping[str, object], location: RowLocation, data: DataConfig, final_answer: Extract, *, mends: bool = True
) -> InputRow | Reject:
    """The problem and the solution of a row. There is no solution if the row has neither steps nor a solution column.

    `final_answer` returns the answer that a text states. It is used for `data.answer_in_text` and for layouts that mark a
    chain's own answer as correct. A null counts as absent. If a row has both, `steps` take precedence over `solution`. Numeric
    answers are written without an exponent: 7.0 is `7`, 1e-7 is `0.0000001`. `mends`: backslashes that JSON took are put back,
    see `lost_backslashes`. Raises no errors of its own.
    """
    source_id: str | None = None
    try:
        source_id = _source_id(column(row, data.columns.id), data)
        given = read_fields(row, data, (lambda text: final_answer(mended(text))) if mends else final_answer)
        bare = given.answer_is_bare or not data.answer_in_text
        fields = given
        if mends:
            fields = replace(
                given,
                problem=mended(given.problem, "problem"),
                answer=given.answer if data.answer_is_suite else mended(given.answer, "answer", answer=bare),
                steps=mended(given.steps, "steps"),
                solution=mended(given.solution, "solution"),
            )
        problem = _problem(fields, row, data, final_answer)
        solution = _solution(fields, problem, source_id, data)
        outcome = _given_outcome(fields) if solution else None
        return InputRow(
            location=location,
            source_id=source_id,
            problem=problem,
            solution=solution,
            given_outcome=outcome,
            mended=fields != given,
        )
    except UnusableRowError as unusable:
        return Reject(location=location, reason=unusable.reason, detail=unusable.detail, source_id=source_id)


def plain_number(value: int | float | Decimal) -> str:
    """A number without exponent and trailing zeros: 7.0 is `7`, 1e-7 is `0.0000001`, infinity is `infinity`."""
    exact = Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or abs(exact.adjusted()) > MAX_ADJUSTED:
        return str(exact).lower()
    digits = format(exact, "f")
    plain = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if plain == "-0" else plain


def _problem(fields: Fields, row: Mapping[str, object], data: DataConfig, final_answer: Extract) -> Problem:
    if fields.problem is None:
        raise UnusableRowError(RejectReason.MISSING_PROBLEM, _no_column(row, data, "problem", "the problem"))
    if not isinstance(fields.problem, str) or _is_blank(fields.problem):
        detail = f"The problem is {_kind(fields.problem)}; it must be a text that is not blank."
        raise UnusableRowError(RejectReason.MISSING_PROBLEM, detail)
    _check_text(fields.problem, "problem", data)
    if fields.answer is None:
        raise UnusableRowError(RejectReason.MISSING_ANSWER, _no_column(row, data, "answer", "the known answer"))
    golds = _golds(fields.answer, data, final_answer if data.answer_in_text and not fields.answer_is_bare else None)
    return Problem(problem_id=content_id("problem", fields.problem, *golds), text=fields.problem, golds=golds)


def _golds(answer: object, data: DataConfig, extract: Extract | None) -> tuple[str, ...]:
    """The known answers in order, without repetition. `extract`: finds the answer in a text, if the column holds texts."""
    if data.answer_is_suite and isinstance(answer, list | tuple | dict) and answer:
        try:
            answer = json.dumps(answer, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            detail = f"The test suite cannot be written as JSON ({error}); store it as a text."
            raise UnusableRowError(RejectReason.MISSING_ANSWER, detail) from error
    listed = answer if isinstance(answer, list | tuple) else [answer]
    if not listed:
        detail = "The list of answers is empty; it must contain at least one."
        raise UnusableRowError(RejectReason.MISSING_ANSWER, detail)
    return tuple(dict.fromkeys(_gold(value, data, extract) for value in listed))


def _gold(value: object, data: DataConfig, extract: Extract | None) -> str:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _number(value)
    if not isinstance(value, str) or _is_blank(value):
        detail = f"The answer is {_kind(value)}; it must be a text or a number, or a list of those."
        raise UnusableRowError(RejectReason.MISSING_ANSWER, detail)
    _check_text(value, "answer", data)
    if extract is None:
        return value.strip()
    stated = extract(value)
    if stated is None or not stated.strip():
        detail = (
            "The text in the answer column states no readable final answer ('#### 72', '\\boxed{72}'); "
            "if the column holds the bare answer, set data.answer_in_text=false."
        )
        raise UnusableRowError(RejectReason.MISSING_ANSWER, detail)
    return stated.strip()


def _number(value: int | float | Decimal) -> str:
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        raise UnusableRowError(RejectReason.TOO_LARGE, "The answer is an integer with thousands of digits.")
    exact = Decimal(value)
    if not exact.is_finite():
        detail = "The answer is not a finite number; write it as a text, such as '\\infty'."
        raise UnusableRowError(RejectReason.MISSING_ANSWER, detail)
    if abs(exact.adjusted()) > MAX_ADJUSTED:
        raise UnusableRowError(RejectReason.TOO_LARGE, "The answer is a number with thousands of digits.")
    return plain_number(value)


def _solution(fields: Fields, problem: Problem, source_id: str | None, data: DataConfig) -> Solution | None:
    if fields.steps is not None:
        steps = _given_steps(fields.steps)
        _check_size(sum(map(len, steps)), "steps", data)  # before they are joined, which takes their memory once more
        text, ends = join(steps, data.separator)
        _check_text(text, "steps", data)
    elif fields.solution is not None:
        if not isinstance(fields.solution, str):
            remedy = "it must be a text. For a list of steps, set data.columns.steps to the name of its column."
            raise UnusableRowError(RejectReason.BAD_STEPS, f"The solution is {_kind(fields.solution)}; {remedy}")
        text = fields.solution
        if _is_blank(text):
            detail = "The solution is blank; for problems without solutions omit it or set data.columns.solution=''."
            raise UnusableRowError(RejectReason.NO_STEPS, detail)
        _check_text(text, "solution", data)
        ends = split(text, data.splitter, data.pattern)
    else:
        return None
    if len(ends) > data.max_steps:
        detail = f"The solution has {len(ends)} steps, more than data.max_steps={data.max_steps}; raise that limit to keep it."
        raise UnusableRowError(RejectReason.TOO_LARGE, detail)
    chain_id = content_id("chain", problem.problem_id, text, ",".join(map(str, ends)))
    return Solution(chain_id=chain_id, problem_id=problem.problem_id, source_id=source_id, text=text, ends=ends)


def _given_outcome(fields: Fields) -> bool | None:
    outcome = fields.outcome
    if outcome is None or (isinstance(outcome, float) and math.isnan(outcome)):  # NaN is how pandas writes null
        return None
    if isinstance(outcome, str):  # CSV has texts only
        outcome = _OUTCOME_TEXTS.get(outcome.strip().lower(), outcome)
    if isinstance(outcome, int | float) and outcome in (0, 1):
        return bool(outcome)
    found = f"The outcome in the column '{fields.outcome_column}' is {_shown(outcome)}"
    wanted = "it must be true or false, 1 or 0, or null where nobody knows it"
    raise UnusableRowError(RejectReason.BAD_OUTCOME, f"{found}; {wanted}.")


def _shown(value: object) -> str:
    """A value for a message: a text is quoted and cut, and a number is given unless it is long."""
    if isinstance(value, str) and not _is_blank(value):
        return repr(value[:MAX_SHOWN_CHARS])
    short = isinstance(value, int | float) and abs(value) < MAX_SHOWN_NUMBER
    return repr(value) if short else _kind(value)


def _given_steps(steps: object) -> list[str]:
    if isinstance(steps, str) and steps.startswith("["):  # a list in a cell of CSV
        with suppress(ValueError, RecursionError):
            steps = json.loads(steps)
    if not isinstance(steps, list | tuple):
        detail = f"The steps are {_kind(steps)}, not a list of texts"
        remedy = "; if the column holds a solution as one text, set data.columns.solution to its name."
        raise UnusableRowError(RejectReason.BAD_STEPS, detail + remedy)
    if not steps:
        detail = "The list of steps is empty; for problems without solutions omit it or set data.columns.steps=''."
        raise UnusableRowError(RejectReason.NO_STEPS, detail)
    for number, step in enumerate(steps, start=1):
        if not isinstance(step, str) or _is_blank(step):
            detail = f"Step {number} of {len(steps)} is {_kind(step)}; every step must be a text that is not blank."
            raise UnusableRowError(RejectReason.BAD_STEPS, detail)
    return list(steps)


def _source_id(value: object, data: DataConfig) -> str | None:
    if isinstance(value, str):
        _check_text(value, "id", data)
        return value
    whole = isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= MAX_INTEGER_BITS
    return str(value) if whole or isinstance(value, float) else None


def _is_blank(text: str) -> bool:
    """As `not text.strip()`, without a copy of the text."""
    return not text or text.isspace()


def _check_size(characters: int, field: str, data: DataConfig) -> None:
    if characters > data.max_chars:
        size = f"{characters:,} characters, more than data.max_chars={data.max_chars}"
        raise UnusableRowError(RejectReason.TOO_LARGE, f"The {field} has {size}; raise that limit to keep it.")


def _check_text(text: str, field: str, data: DataConfig) -> None:
    _check_size(len(text), field, data)
    if bad := _UNSTORABLE.search(text):
        name = "NUL" if bad.group() == "\x00" else f"half of a surrogate pair (U+{ord(bad.group()):04X})"
        detail = f"Character {bad.start()} of the {field}, counted from 0, is {name}; remove or repair it."
        raise UnusableRowError(RejectReason.BAD_TEXT, detail)


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "blank" if _is_blank(value) else "a text"
    return "null" if value is None else f"of type {type(value).__name__}"


def _no_column(row: Mapping[str, object], data: DataConfig, key: str, wanted: str) -> str:
    column = f"The row has no value in a column '{getattr(data.columns, key)}' for {wanted}"
    remedy = f"Name the correct column with data.columns.{key}=NAME.{layout_hint(row)}"
    return f"{column}; its columns are: {column_names(row)}. {remedy}"


def in_validation(problem: str, share: float, seed: int) -> bool:
    """Whether a problem, with all its chains, belongs to the validation split: the `share` (0 to 1) of problems held out.

    Texts that differ only in white space, case or the encoding of accents are in the same split. A larger share contains every
    problem of a smaller one. Another `seed` gives another split.
    """
    asked = " ".join(normalize("NFC", problem).split()).lower()
    return int(content_id("validation", str(seed), asked), 16) < share * (1 << 4 * ID_DIGITS)
