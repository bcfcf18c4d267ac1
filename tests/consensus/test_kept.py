"""What is counted of labels by consensus equals what plain loops over the same rows count."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.consensus.kept import (
    COLUMNS,
    DIFFICULTY,
    NO_ERROR,
    NOT_CERTAIN,
    OUTCOME,
    PARTS,
    PLACE,
    SUBSET,
    UNKNOWN,
    ConsensusSummary,
    consensus_chains,
    consensus_summary,
    differs,
    summary_lines,
    top_place,
    witness_places,
)
from pipeline.core.tables import LABELS_CONSENSUS
from tests.consensus_labels import Row, Votes, consensus_row, first_error, majority

pytestmark = pytest.mark.slow

SCHEMA = pa.schema(map(LABELS_CONSENSUS.schema.field, COLUMNS))
WITNESSES = ("judge:a", "scores:b")


def always(votes: Votes | None) -> Callable[[Row], Votes | None]:
    return lambda _row: votes


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    def row(number: int) -> dict[str, Any]:
        steps = draw(st.integers(1, 5))
        votes = st.lists(st.integers(-1, steps), min_size=1, max_size=4)
        said = {name: draw(st.none() | votes) for name in WITNESSES}
        labels = draw(st.lists(st.sampled_from([1, 1, 1, 0, 2, None]), min_size=steps, max_size=steps))
        own = {
            "source_id": draw(st.sampled_from([f"gsm8k-{number}", f"math-{number}", "other", None])),
            "outcome": draw(st.sampled_from([True, False, None])),
            "root_value": draw(st.none() | st.floats(0, 1)),
            "root_n_rollouts": draw(st.sampled_from([0, 4])),
            "n_rollouts": [draw(st.sampled_from([0, 0, 4]))] * steps,
        }
        made = consensus_row({"label": labels}, {name: always(votes) for name, votes in said.items()})
        return {**own, **made, "said": said}

    return [row(number) for number in range(draw(st.integers(0, 12)))]


def frame(found: list[dict[str, Any]]) -> pl.DataFrame:
    table = pa.Table.from_pylist([{name: row.get(name) for name in COLUMNS} for row in found], schema=SCHEMA)
    return pl.DataFrame(table)


def summary_of(found: list[dict[str, Any]]) -> ConsensusSummary | None:
    return consensus_summary(consensus_chains(frame(found)))


def place_name(row: dict[str, Any]) -> str:
    place, steps = first_error(row["mc_label"]), len(row["mc_label"])
    if place is None:
        return UNKNOWN
    return NO_ERROR if place == 0 else next(PARTS[part] for part in range(3) if place * 3 <= (part + 1) * steps)


@given(rows())
def test_chains_are_counted_by_reason_and_in_every_grouping(found: list[dict[str, Any]]) -> None:
    summary = summary_of(found)
    if not found:
        assert summary is None
        return
    assert summary is not None
    for row in found:
        if row["left_out"] is None and set(row["label"]) == {None}:
            row["left_out"] = NOT_CERTAIN
    out = [row for row in found if row["left_out"]]
    assert (summary.chains, summary.left_out, summary.kept) == (len(found), len(out), len(found) - len(out))
    assert dict(summary.reasons) == Counter(row["left_out"] for row in out)
    assert list(summary.reasons.values()) == sorted(summary.reasons.values(), reverse=True)
    for name, groups in summary.groups.items():
        assert sum(group.chains for group in groups) == len(found), name
        assert sum(group.left_out for group in groups) == len(out), name
        assert all(group.chains for group in groups), name
    by_place = {group.name: (group.chains, group.left_out) for group in summary.groups[PLACE]}
    names = [place_name(row) for row in found]
    assert by_place == {name: (names.count(name), [place_name(row) for row in out].count(name)) for name in set(names)}
    by_outcome = {group.name: group.chains for group in summary.groups[OUTCOME]}
    assert by_outcome == Counter({True: "right", False: "wrong", None: "open"}[row["outcome"]] for row in found)


@given(rows())
def test_difficulty_is_unknown_without_rollouts_and_else_a_fifth(found: list[dict[str, Any]]) -> None:
    def band(row: dict[str, Any]) -> str:
        if row["root_value"] is None or not (row["root_n_rollouts"] or any(row["n_rollouts"])):
            return UNKNOWN
        at = min(4, int(row["root_value"] * 5))
        return f"{at / 5:.1f} to {(at + 1) / 5:.1f}"

    summary = summary_of(found)
    groups = summary.groups[DIFFICULTY] if summary else ()
    assert {group.name: group.chains for group in groups} == Counter(map(band, found))


@given(rows())
def test_subsets_are_named_by_ids(found: list[dict[str, Any]]) -> None:
    summary = summary_of(found)
    names = [(row["source_id"] or "").rpartition("-")[0] for row in found]
    if any(names):
        assert summary is not None
        assert {each.name: each.chains for each in summary.groups[SUBSET]} == Counter(name or UNKNOWN for name in names)
    else:
        assert summary is None or SUBSET not in summary.groups


@given(rows())
def test_witnesses_are_compared_where_both_places_are_known(found: list[dict[str, Any]]) -> None:
    summary = summary_of(found)
    by_name = {witness.name: witness for witness in summary.witnesses} if summary else {}
    assert set(by_name) == {name for row in found for name in WITNESSES if row["said"][name] is not None}
    for name, witness in by_name.items():
        pairs = [
            (first_error(row["mc_label"]), majority(row["said"][name], len(row["label"])))
            for row in found
            if row["said"][name] is not None
        ]
        known = [(mc, place) for mc, place in pairs if mc is not None and place is not None]
        assert witness.silent == len(found) - len(pairs)
        assert witness.unknown == len(pairs) - len(known)
        assert witness.compared == len(known)
        assert witness.same == sum(mc == place for mc, place in known)
        assert witness.both_none == known.count((0, 0))
        assert witness.earlier == sum(0 < place < mc for mc, place in known)
        assert witness.later == sum(0 < mc < place for mc, place in known)
        assert witness.witness_only == sum(mc == 0 < place for mc, place in known)
        assert witness.mc_only == sum(place == 0 < mc for mc, place in known)


@given(rows())
def test_disagreement_needs_two_known_places_that_differ(found: list[dict[str, Any]]) -> None:
    summary = summary_of(found)
    expected = 0
    for row in found:
        mc = first_error(row["mc_label"])
        places = {name: majority(votes, len(row["label"])) for name, votes in row["said"].items() if votes is not None}
        assert witness_places(row["opinions"]) == places
        other = mc is not None and any(place not in (None, mc) for place in places.values())
        assert differs(mc, places) == other
        expected += other
    assert (summary.disagree if summary else 0) == expected


@given(rows())
def test_steps_add_up(found: list[dict[str, Any]]) -> None:
    summary = summary_of(found)
    if summary is not None:
        assert summary.steps == sum(label is not None for row in found for label in row["label"])
        assert summary.mc_steps == sum(label is not None for row in found for label in row["mc_label"])
        assert (summary.other, summary.won) == (0, 0)


@given(rows(), st.integers(0, 12))
def test_files_of_a_run_may_be_read_one_by_one(found: list[dict[str, Any]], at: int) -> None:
    parts = [consensus_chains(frame(part)) for part in (found[:at], found[at:])]
    assert consensus_summary(pl.concat(parts)) == summary_of(found)


@given(st.lists(st.sampled_from([1, 0, None]), min_size=1, max_size=5))
def test_a_witness_that_checks_steps_names_the_first_refuted_one(steps: list[int | None]) -> None:
    says = {"witness": "check", "first_error": [0.0] * len(steps), "no_error": 0.0, "steps": steps}
    row = {
        "root_n_rollouts": 0,
        "n_rollouts": [],
        "label": [1] * len(steps),
        "mc_label": [1] * len(steps),
        "opinions": [says],
    }
    place = first_error(steps)
    assert witness_places([says]) == {"check": place}
    summary = summary_of([row])
    assert summary is not None
    (witness,) = summary.witnesses
    assert (witness.unknown, witness.both_none, witness.witness_only) == (place is None, place == 0, bool(place))


@given(st.lists(st.lists(st.sampled_from([1, 0, None]), min_size=1, max_size=4), min_size=1, max_size=6), st.booleans())
def test_what_is_refuted_is_counted_with_what_the_consensus_says_of_it(
    chains: list[list[int | None]], probable: bool
) -> None:
    rows: list[dict[str, Any]] = [
        {
            "root_n_rollouts": 0,
            "n_rollouts": [],
            "label": [1] * len(steps),
            "mc_label": [1] * len(steps),
            "opinions": [
                {"witness": name, "first_error": [0.0] * len(steps), "no_error": 0.0, "steps": own}
                for name, own in (("checks:a", steps), ("checks:b", [None] * len(steps)))
            ],
            "p_error_free": [1 / (2 + at) for at in range(len(steps))] if probable else None,
        }
        for steps in chains
    ]
    summary = summary_of(rows)
    assert summary is not None
    first, silent = summary.checked
    refuted = [at for steps in chains for at, step in enumerate(steps) if step == 0]
    assert (silent.name, silent.refuted, silent.holds) == ("checks:b", 0, 0)
    assert (first.refuted, first.holds) == (len(refuted), sum(steps.count(1) for steps in chains))
    if probable or not refuted:
        assert first.errors == pytest.approx(sum(1 - 1 / (2 + at) for at in refuted))
    else:
        assert first.errors is None
    assert any("checks:a" in line and "refuted" in line for line in summary_lines(summary))


def test_labels_without_consensus_have_no_summary() -> None:
    plain = frame([]).clear(2)
    assert plain["mc_label"].null_count() == 2
    assert consensus_summary(consensus_chains(plain)) is None


def test_equal_shares_name_no_place_even_if_their_sums_are_rounded() -> None:
    assert top_place([0.0, 0.3, 0.1 + 0.2]) is None
    assert top_place([0.5, 0.25, 0.25]) == 0
    assert top_place([0.0, 0.0]) is None
    assert top_place([]) is None


def test_lines_say_what_is_lost_where() -> None:
    hard = {"root_value": 0.1, "label": [None], "left_out": "first_error_differs", "outcome": False}
    easy = {"root_value": 0.9, "label": [1], "left_out": None, "outcome": True}
    shared = {"source_id": None, "root_n_rollouts": 4, "n_rollouts": [4], "mc_label": [1]}
    says = {"witness": "judge:a", "first_error": [0.75], "no_error": 0.25, "steps": None}
    agrees = {"witness": "judge:a", "first_error": [0.0], "no_error": 1.0, "steps": None}
    found = [{**shared, **hard, "opinions": [says]}, *[{**shared, **easy, "opinions": [agrees]}] * 3]
    summary = summary_of(found)
    assert summary is not None
    lines = "\n".join(summary_lines(summary))
    assert "3 of 4 chains have labels (75 %); left out: 1 first error differs" in lines
    assert "0.0 to 0.2 100 % of 1, 0.8 to 1.0 0.0 % of 3" in lines
    assert (
        "3 steps labelled, 4 by Monte Carlo alone: 3 have the same label by both, 1 one by Monte Carlo alone" in lines
    )
    assert "judge:a: the first error of Monte Carlo, or none, in 3 of 4 chains (75 %; 3 none)" in lines
