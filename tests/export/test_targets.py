"""The exported part of a chain: labels keep their meaning, and steps are removed only if a setting says so."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.export.example import TrainingExample, count_labels
from pipeline.export.formats.base import Format, FormatError
from pipeline.export.settings import ExportConfig, NeutralSteps, TargetKind, UncertainSteps
from pipeline.export.targets import LeftOutChains, TargetChoice, target_choice, training_example
from tests.export.rows import label_lists, label_row, settings


def nothing(*_: object) -> Iterator[FormatError]:
    yield from ()


def layout(**changes: Any) -> Format:
    known: dict[str, Any] = {
        "targets": tuple(TargetKind),
        "row": lambda example, marks: {},
        "schema": lambda target: pa.schema([]),
        "offences": nothing,
        "token_offences": nothing,
        "ignores": True,
        "neutral": True,
    }
    return Format(**known | changes)


def choice(**changes: Any) -> TargetChoice:
    return target_choice(settings(**changes), layout())


def example(labels: list[int | None], changes: dict[str, Any] | None = None, **asked: Any) -> TrainingExample:
    made = training_example(label_row(labels, **(changes or {})), choice(**asked))
    assert isinstance(made, TrainingExample)
    return made


def test_labels_are_exported_up_to_the_first_bad_step() -> None:
    made = example([1, None, 0, 1])
    assert made.targets == [1, None, 0]
    assert made.steps == ("Step text 1.", "Step text 2.", "Step text 3.")
    assert example([1, 0, 1], after_error=True).targets == [1, 0, 1]


def test_values_and_counts_go_on_behind_a_bad_step() -> None:
    assert example([1, 0, 1], target=TargetKind.soft).targets == [0.9, 0.05, 0.9]
    assert example([1, 0], target=TargetKind.counts).targets == [(18, 20), (1, 20)]
    assert example([1, 0, 1], target=TargetKind.soft, after_error=False).targets == [0.9, 0.05]


def test_the_last_step_of_a_finished_chain_counts_as_one_trial() -> None:
    row = {"origin": ["measured", "terminal"], "n_rollouts": [8, 0], "n_correct": [2, 0], "outcome": False}
    assert example([1, 0], row, target=TargetKind.counts).targets == [(2, 8), (0, 1)]


def test_soft_values_are_best_estimates_unless_unbiased_ones_are_asked_for() -> None:
    row = {"value": [0.7], "unbiased_value": [1.0]}
    for estimator in ("fixed", "pooled"):
        assert example([1], row | {"estimator": estimator}, target=TargetKind.soft).targets == [0.7]
    assert example([1], row, target=TargetKind.soft, soft=ValueColumn.unbiased_value).targets == [1.0]


def test_a_threshold_makes_new_labels() -> None:
    row = {"value": [0.3, 0.1, None]}
    assert example([0, 1, 1], row, threshold=0.2, after_error=True).targets == [1, 0, None]
    assert example([1, 1, 1], row, threshold=0.3, after_error=True, uncertain=UncertainSteps.positive).targets == [
        0,
        0,
        1,
    ]


def test_neutral_steps_have_to_be_spoken_for() -> None:
    with pytest.raises(
        UsageError, match=r"chain s, step 2.*no class for them: choose neutral=positive, negative or uncertain"
    ):
        training_example(label_row([1, 2]), target_choice(settings(), layout(neutral=False)))
    assert example([1, 2]).targets == [1, 2]
    assert example([1, 2, 1], neutral=NeutralSteps.positive).targets == [1, 1, 1]
    assert example([1, 2, 1], neutral=NeutralSteps.negative).targets == [1, 0]
    assert example([1, 2, 1], neutral=NeutralSteps.uncertain).targets == [1, None, 1]


def test_uncertain_steps_stay_go_or_are_joined_to_the_next() -> None:
    labels = [None, 1, None, 0]
    merged = example(labels, uncertain=UncertainSteps.merge)
    assert merged.targets == [1, 0]
    assert merged.steps == ("Step text 1. Step text 2.", "Step text 3. Step text 4.")
    assert example([1, None], uncertain=UncertainSteps.merge).steps == ("Step text 1.",)
    assert example([1, 1, None, 0], uncertain=UncertainSteps.cut).targets == [1, 1]
    assert example(labels, uncertain=UncertainSteps.negative, after_error=True).targets == [0, 1, 0, 0]
    dropped = training_example(label_row(labels), choice(uncertain=UncertainSteps.drop))
    assert dropped == LeftOutChains(kind="uncertain_step", detail="step 1 of 4 has no label")


def test_a_chain_without_any_label_is_left_out() -> None:
    assert isinstance(training_example(label_row([None, None]), choice()), LeftOutChains)
    assert isinstance(training_example(label_row([None, 1]), choice(uncertain=UncertainSteps.cut)), LeftOutChains)
    whole = training_example(label_row([None]), target_choice(settings(), layout(whole=True)))
    assert isinstance(whole, TrainingExample)


@pytest.mark.parametrize(
    ("asked", "known", "shown"),
    [
        (
            settings(target=TargetKind.soft),
            layout(targets=(TargetKind.hard,)),
            "target=soft: format=trl takes target=hard",
        ),
        (settings(uncertain=UncertainSteps.ignore), layout(ignores=False), "choose merge, cut or drop"),
        (settings(neutral=NeutralSteps.keep), layout(neutral=False), "choose positive, negative or uncertain"),
        (settings(after_error=False), layout(whole=True), "whole chains"),
        (settings(uncertain=UncertainSteps.cut), layout(whole=True), "whole chains"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(asked: ExportConfig, known: Format, shown: str) -> None:
    with pytest.raises(UsageError, match=shown):
        target_choice(asked, known)


@given(
    label_lists,
    st.sampled_from(TargetKind),
    st.sampled_from(UncertainSteps),
    st.sampled_from(NeutralSteps),
    st.booleans(),
)
def test_a_step_that_is_exported_keeps_its_place_and_its_target(
    labels: list[int | None], target: TargetKind, uncertain: UncertainSteps, neutral: NeutralSteps, after_error: bool
) -> None:
    asked = choice(target=target, uncertain=uncertain, neutral=neutral, after_error=after_error)
    row = label_row(labels)
    made = training_example(row, asked)
    if isinstance(made, LeftOutChains):
        return
    assert len(made.steps) == len(made.targets) > 0
    # However steps were joined, the text is that of the chain's first steps.
    said = " ".join(made.steps)
    assert " ".join(row.steps).startswith(said)
    if uncertain is not UncertainSteps.ignore:
        assert None not in made.targets
    if not after_error and target is TargetKind.hard and uncertain is not UncertainSteps.negative:
        assert 0 not in made.targets[:-1]
    if target is TargetKind.soft and uncertain in (UncertainSteps.merge, UncertainSteps.ignore):
        ends = {" ".join(row.steps[: end + 1]): value for end, value in enumerate(row.value)}
        for end, value in enumerate(made.targets):
            assert ends[" ".join(made.steps[: end + 1])] == value


@given(
    label_lists,
    st.sampled_from(TargetKind),
    st.sampled_from([UncertainSteps.merge, UncertainSteps.cut, UncertainSteps.ignore]),
)
def test_labels_are_those_of_the_steps_that_are_left(
    labels: list[int | None], target: TargetKind, uncertain: UncertainSteps
) -> None:
    made = training_example(label_row(labels), choice(target=target, uncertain=uncertain, after_error=True))
    if isinstance(made, LeftOutChains):
        return
    assert len(made.labels) == len(made.steps)
    if target is TargetKind.hard:
        assert made.labels == made.targets
    found = count_labels(made.labels)
    assert found.total == len(made.labels)
    assert (found.good, found.bad, found.neutral) == tuple(made.labels.count(kind) for kind in (1, 0, 2))


def test_neutral_steps_need_no_word_where_values_are_the_target() -> None:
    made = training_example(
        label_row([1, 2, 0]), target_choice(settings(target=TargetKind.soft), layout(neutral=False))
    )
    assert isinstance(made, TrainingExample)
    assert (made.targets, made.labels) == ([0.9, 0.6, 0.05], [1, 2, 0])
