"""Chains with human labels: reads their rows as `label` does, so that steps are cut the same way, and matches them to the run.

Known answers are not needed. Pure.

| layout | human label |
|---|---|
| `rows`, `processbench` | the first wrong step or -1, or a list of ratings: column `label` or `first_error` |
| `prm800k` | the rating of each chosen completion |
| `math_shepherd` | its tags, `+` or `-`, which a machine set |
| `prmbench` | `error_steps`, counted from 1: these are bad, all others good |

A rating is 1 (good), 0 (neutral), -1 (bad) or null (unknown). Each step is then good (True), bad (False) or unknown (None).

A human chain matches the run's chain with the same problem and the same steps; white space is ignored. An equal id alone is no
match. The id only chooses between chains of the run with equal texts, for example of a problem with several known answers.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.analysis.settings import Neutral
from pipeline.config.choices import Layout
from pipeline.config.label import DataConfig
from pipeline.core.records import NumberedChain, Reject, RowLocation
from pipeline.data.layouts import (
    ORIGINAL_PROCESS,
    ORIGINAL_QUESTION,
    chosen_completions,
    column,
    column_names,
    subset_names,
)
from pipeline.data.problems import read_row
from pipeline.data.steps import STEP_TAG, step_texts

NO_ERROR = -1
OUTCOME_COLUMN = "final_answer_correct"
"""ProcessBench's column that says whether a chain's final answer is correct."""
FIRST_ERROR_COLUMNS = ("label", "first_error")
"""ProcessBench's column name and an alternative."""
ERROR_STEPS, ERROR_CLASS = "error_steps", "classification"
"""PRMBench's columns with the bad steps, counted from 1, and with the kind of error."""
UNMODIFIED = "correct"
"""What PRMBench's own code calls the class of original processes."""
NEUTRAL = {Neutral.good: True, Neutral.bad: False, Neutral.ignored: None}
_RATINGS = {1: True, -1: False, None: None}
_ANSWER = "(placeholder answer)"
_NO_FILE = RowLocation(file="", line=0)


def first_error(goods: Sequence[bool | None]) -> int | None:
    """The first bad step, counted from 0, or NO_ERROR. None where an unknown step comes before any bad one."""
    for index, good in enumerate(goods):
        if not good:
            return None if good is None else index
    return NO_ERROR


def goods_until(error: int, n_steps: int) -> tuple[bool | None, ...]:
    """The labels of `n_steps` steps that a first error implies: good before it, unknown after it. NO_ERROR: all are good."""
    if error == NO_ERROR:
        return (True,) * n_steps
    return (*[True] * error, False, *[None] * (n_steps - error - 1))


class _UnusableError(Exception):
    pass


class _OtherOriginError(_UnusableError):
    """The label names the first step beyond the chain, at the end where one lands who counts from the other number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanChain(NumberedChain):
    """`goods`: one per step. `error_class`: PRMBench's kind of error."""

    location: RowLocation
    goods: tuple[bool | None, ...]
    error_class: str | None = None

    @property
    def first_error(self) -> int | None:
        """A step counted from 0, -1 for no error, None where the ratings leave it open."""
        return first_error(self.goods)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A row without a chain or without a usable label. `detail` gives the reason."""

    location: RowLocation
    detail: str


class MiscountedRow(Unusable):
    """A row whose label fits if steps are counted from 1 where 0 is expected, or from 0 where 1 is."""

    __slots__ = ()


def human_chains(
    rows: Iterable[tuple[RowLocation, Mapping[str, object] | Reject]],
    data: DataConfig,
    name: str | None,
    neutral: Neutral,
) -> Iterator[HumanChain | Unusable]:
    """One result per row, in order. `name`: the column of the human labels. Bad rows give `Unusable` instead of an error."""
    unanswered = replace(
        data, columns=replace(data.columns, answer=_ANSWER, outcome=""), answer_in_text=False, answer_is_suite=False
    )
    for location, row in rows:
        found = row if isinstance(row, Reject) else _chain(row, location, unanswered, name, neutral)
        yield Unusable(location=location, detail=found.detail) if isinstance(found, Reject) else found


def original_chains(
    rows: Iterable[tuple[RowLocation, Mapping[str, object] | Reject]], data: DataConfig
) -> Iterator[HumanChain]:
    """PRMBench: the original process of each row, a chain without errors; each text once. Nothing for other layouts."""
    if data.layout is not Layout.prmbench:
        return
    columns = replace(data.columns, problem=ORIGINAL_QUESTION, steps=ORIGINAL_PROCESS)
    seen = set()
    for found in human_chains(rows, replace(data, columns=columns), None, Neutral.good):
        if isinstance(found, HumanChain) and (key := text_key(found)) not in seen:
            seen.add(key)
            yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChain(NumberedChain):
    """A row of `labels`, or of step scores, which are its `values`. `values` and `labels` have one entry per step; scores have
    no `labels`, and maybe no ids. `terminal`: the last step's value is the outcome itself, without rollouts.

    What labels by consensus are made of: `mc_labels`, those by Monte Carlo alone, None for labels by another rule; `places`,
    the first error that each witness names most often, 0 for none, None where it is unknown, see `consensus.kept`.

    Of scores: `raw`, the model's own, where these are calibrated, and `location` in their file.
    """

    values: tuple[float | None, ...]
    labels: tuple[int | None, ...] = ()
    terminal: bool = False
    mc_labels: tuple[int | None, ...] | None = None
    places: Mapping[str, int | None] = field(default_factory=dict)
    raw: tuple[float | None, ...] | None = None
    location: RowLocation = _NO_FILE

    @property
    def own(self) -> tuple[float | None, ...]:
        """The model's own scores."""
        return self.values if self.raw is None else self.raw


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPair:
    human: HumanChain
    labelled: ModelChain


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """What becomes of the `rows` with human labels. `contradicting`: repeated rows with another label than the first row of
    their chain. `other_text`: unmatched rows whose id is in the run, or in the scores."""

    rows: int
    unusable: int
    repeated: int
    contradicting: int
    unmatched: int
    other_text: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedChains:
    """`repeated`: human rows about the same chain as an earlier row; the first row counts. For the others see `RowCounts`."""

    pairs: tuple[ChainPair, ...]
    unmatched: tuple[HumanChain, ...]
    unmatched_labelled: int
    other_text: int
    repeated: int
    contradicting: int

    def counts(self, unusable: int) -> dict[str, int]:
        """The fields of `RowCounts`, if there are also `unusable` rows."""
        return {
            "rows": len(self.pairs) + len(self.unmatched) + self.repeated + unusable,
            "unusable": unusable,
            "repeated": self.repeated,
            "contradicting": self.contradicting,
            "unmatched": len(self.unmatched),
            "other_text": self.other_text,
        }


def match(humans: Iterable[HumanChain], labelled: Sequence[ModelChain]) -> MatchedChains:
    """Match human chains with the run's labels, in the order of the human data."""
    by_text: dict[tuple[str, ...], list[ModelChain]] = defaultdict(list)
    for chain in labelled:
        by_text[text_key(chain)].append(chain)
    ids = {chain.source_id for chain in labelled if chain.source_id is not None}
    first: dict[tuple[str, ...], HumanChain] = {}
    pairs = []
    unmatched = []
    repeated = contradicting = other_text = 0
    for human in humans:
        key = text_key(human)
        if key in first:
            repeated += 1
            contradicting += human.goods != first[key].goods
            continue
        first[key] = human
        if found := by_text.get(key):
            same_id = [chain for chain in found if chain.source_id == human.source_id]
            pairs.append(ChainPair(human=human, labelled=(same_id or found)[0]))
        else:
            unmatched.append(human)
            other_text += human.source_id in ids
    return MatchedChains(
        pairs=tuple(pairs),
        unmatched=tuple(unmatched),
        unmatched_labelled=len(labelled) - len(pairs),
        other_text=other_text,
        repeated=repeated,
        contradicting=contradicting,
    )


def subsets(pairs: Sequence[ChainPair]) -> list[str | None]:
    """The subset of each human row, see `subset_names`."""
    return subset_names(pair.human.source_id for pair in pairs)


def text_key(chain: NumberedChain) -> tuple[str, ...]:
    """The texts of a chain without differences in white space: what identifies it."""
    return key_of_texts(chain.problem, chain.steps)


def key_of_texts(problem: str, steps: Iterable[str]) -> tuple[str, ...]:
    """The same of a chain's texts."""
    return tuple(" ".join(text.split()) for text in (problem, *steps))


def _chain(
    row: Mapping[str, object], location: RowLocation, data: DataConfig, name: str | None, neutral: Neutral
) -> HumanChain | Unusable | Reject:
    read = read_row({**row, _ANSWER: "-"}, location, data, lambda _text: None)
    if isinstance(read, Reject):
        return read
    if read.solution is None:
        return Unusable(location=location, detail="The row has no chain, neither steps nor a solution.")
    steps = tuple(step_texts(read.solution.text, read.solution.ends))
    try:
        goods = _goods(row, data, name, len(steps), NEUTRAL[neutral])
    except _UnusableError as unusable:
        kind = MiscountedRow if isinstance(unusable, _OtherOriginError) else Unusable
        return kind(location=location, detail=str(unusable))
    outcome = column(row, OUTCOME_COLUMN)
    return HumanChain(
        location=location,
        chain_id=read.solution.chain_id,
        problem_id=read.problem.problem_id,
        source_id=read.source_id,
        problem=read.problem.text,
        steps=steps,
        goods=goods,
        outcome=outcome if isinstance(outcome, bool) else None,
        error_class=_error_class(row, data),
    )


def _goods(
    row: Mapping[str, object], data: DataConfig, name: str | None, n_steps: int, neutral: bool | None
) -> tuple[bool | None, ...]:
    layout = data.layout
    if name is None and layout is Layout.prmbench:
        return (True,) * n_steps if data.columns.steps == ORIGINAL_PROCESS else _of_error_steps(row, n_steps)
    if name is None and layout is Layout.prm800k:
        steps = column(row, "label.steps")
        assert isinstance(steps, Sequence)
        return _of_ratings([column(step, "rating") for step in chosen_completions(steps)], n_steps, neutral)
    if name is None and layout is Layout.math_shepherd:
        return _of_ratings(_tags(row), n_steps, neutral)
    value = _named(row, FIRST_ERROR_COLUMNS if name is None else (name,))
    if isinstance(value, list | tuple):
        return _of_ratings(value, n_steps, neutral)
    index = _whole(value)
    if index is None:
        raise _UnusableError(f"The label is {value!r:.40}; it must be a step counted from 0, -1, or a list of ratings.")
    if not -1 <= index < n_steps:
        kind = _OtherOriginError if index == n_steps else _UnusableError
        raise kind(f"The label names step {index}, counted from 0, but the chain has {n_steps} steps.")
    return goods_until(index, n_steps)


def _named(row: Mapping[str, object], names: Sequence[str]) -> object:
    for name in names:
        value = column(row, name)
        if value is not None and value == value:  # NaN is how pandas writes null
            return value
    raise _UnusableError(
        f"The row has no human label in {' or '.join(map(repr, names))}; its columns are: {column_names(row)}. "
        "Name the right one with column=NAME."
    )


def _of_ratings(ratings: Sequence[object], n_steps: int, neutral: bool | None) -> tuple[bool | None, ...]:
    if len(ratings) != n_steps:
        raise _UnusableError(f"The row has {len(ratings)} ratings for {n_steps} steps.")
    wholes = [None if rating is None else _whole(rating) for rating in ratings]
    known = {**_RATINGS, 0: neutral}
    for rating, whole in zip(ratings, wholes, strict=True):
        if whole not in known or (whole is None) != (rating is None):
            raise _UnusableError(f"A rating is {rating!r:.40}; it must be 1, 0, -1 or null.")
    if not any(whole is not None for whole in wholes):
        raise _UnusableError("No step of the row is rated.")
    return tuple(known[whole] for whole in wholes)


def _of_error_steps(row: Mapping[str, object], n_steps: int) -> tuple[bool | None, ...]:
    listed = column(row, ERROR_STEPS)
    if not isinstance(listed, list | tuple):
        raise _UnusableError(f"The row has no list '{ERROR_STEPS}'; its columns are: {column_names(row)}.")
    steps = set()
    for value in listed:
        step = _whole(value)
        if step is None or not 1 <= step <= n_steps:
            kind = _OtherOriginError if step == 0 else _UnusableError
            raise kind(f"'{ERROR_STEPS}' names step {value!r:.40}, counted from 1, but the chain has {n_steps} steps.")
        steps.add(step)
    return tuple(step not in steps for step in range(1, n_steps + 1))


def _error_class(row: Mapping[str, object], data: DataConfig) -> str | None:
    if data.layout is not Layout.prmbench:
        return None
    if data.columns.steps == ORIGINAL_PROCESS:
        return UNMODIFIED
    named = column(row, ERROR_CLASS)
    return named if isinstance(named, str) and named else None


def _whole(value: object) -> int | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _tags(row: Mapping[str, object]) -> list[int]:
    """One rating per tag. Math-Shepherd's `label` is its `input` with `+` or `-` in place of each tag."""
    text, label = column(row, "input"), column(row, "label")
    assert isinstance(text, str)
    if not isinstance(label, str):
        raise _UnusableError("The row has no 'label', the text of 'input' with + or - in place of each tag.")
    ratings = []
    at = 0
    *pieces, _rest = STEP_TAG.split(text)
    for piece in pieces:
        at += len(piece)
        sign = label[at : at + 1] if label.startswith(piece, at - len(piece)) else ""
        if sign not in ("+", "-"):
            raise _UnusableError("The 'label' is not the text of 'input' with + or - in place of each tag.")
        ratings.append(1 if sign == "+" else -1)
        at += 1
    return ratings
