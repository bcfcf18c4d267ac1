"""Chains on which Monte Carlo and witnesses agree keep their labels; the others are left out with the right reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.consensus.evidence import Claim, PositionClaim, StepClaim
from pipeline.consensus.filters import Filtered, LeftOut, exact, first_error, side

Labels = tuple[int | None, ...]
GOOD, BAD_2, UNCERTAIN = (1, 1, 1), (1, 0, None), (1, None, 0)

labels_of = st.lists(st.sampled_from([1, 0, None]), min_size=1, max_size=6).map(tuple)


def votes(*counts: float) -> PositionClaim:
    return PositionClaim(votes=counts)


NONE, AT_2, AT_3 = votes(0, 0, 0, 4), votes(0, 4, 0, 0), votes(0, 0, 4, 0)


@pytest.mark.parametrize(
    ("labels", "claims", "left_out"),
    [
        (GOOD, [NONE], None),
        (BAD_2, [AT_2], None),
        (BAD_2, [votes(1, 2, 1, 0)], None),
        (BAD_2, [AT_2, AT_2], None),
        (BAD_2, [AT_2, votes(0, 0, 0, 0)], None),
        (BAD_2, [AT_2, StepClaim((1, 0, None))], None),
        (BAD_2, [AT_2, StepClaim((None, 0, None))], None),
        (UNCERTAIN, [AT_2], LeftOut.MC_UNCERTAIN),
        ((1, 1, None), [NONE], LeftOut.MC_UNCERTAIN),
        (BAD_2, [], LeftOut.NO_WITNESS),
        (BAD_2, [votes(0, 0, 0, 0)], LeftOut.NO_WITNESS),
        (BAD_2, [votes(0, 2, 2, 0)], LeftOut.NO_MAJORITY),
        (BAD_2, [AT_2, votes(0, 2, 2, 0)], LeftOut.NO_MAJORITY),
        (BAD_2, [AT_3], LeftOut.OTHER_STEP),
        (BAD_2, [NONE], LeftOut.MC_ALONE),
        (GOOD, [AT_3], LeftOut.WITNESS_ALONE),
        (BAD_2, [AT_2, AT_3], LeftOut.WITNESSES_DIFFER),
        (BAD_2, [AT_2, StepClaim((1, 1, 1))], LeftOut.WITNESSES_DIFFER),
    ],
)
def test_exact_keeps_chains_with_the_same_first_error(
    labels: Labels, claims: list[Claim], left_out: LeftOut | None
) -> None:
    kept = exact(labels, dict(zip("abc", claims, strict=False)))
    assert kept == Filtered(labels if left_out is None else (None,) * 3, left_out)


@pytest.mark.parametrize(
    ("labels", "claims", "kept"),
    [
        (GOOD, [NONE], GOOD),
        (BAD_2, [AT_2], (1, 0, None)),
        (BAD_2, [AT_3], (1, None, None)),
        ((0, None, None), [AT_2], LeftOut.NO_STEP),
        ((1, 0, 1), [AT_2], (1, 0, None)),
        ((1, None, 0), [AT_3], (1, None, 0)),
        (BAD_2, [votes(0, 1, 1, 0)], (1, None, None)),
        (BAD_2, [votes(0, 1, 1, 1)], (1, None, None)),
        (BAD_2, [AT_2, StepClaim((1, 0, None))], (1, 0, None)),
        (BAD_2, [AT_2, StepClaim((0, 0, None))], (None, 0, None)),
        (BAD_2, [StepClaim((None, None, 1))], LeftOut.NO_WITNESS),
        (BAD_2, [votes(0, 2, 0, 2)], LeftOut.NO_MAJORITY),
        (BAD_2, [NONE], LeftOut.MC_ALONE),
        (GOOD, [AT_3], LeftOut.WITNESS_ALONE),
        (BAD_2, [AT_2, NONE], LeftOut.WITNESSES_DIFFER),
        ((1, None, 1), [NONE], LeftOut.MC_UNCERTAIN),
    ],
)
def test_side_keeps_steps_that_all_judge_alike(labels: Labels, claims: list[Claim], kept: Labels | LeftOut) -> None:
    expected = Filtered((None,) * 3, kept) if isinstance(kept, LeftOut) else Filtered(kept)
    assert side(labels, dict(zip("abc", claims, strict=False))) == expected


@given(st.data(), labels_of)
def test_what_is_kept_was_said_by_monte_carlo_and_by_the_witness(data: st.DataObject, labels: Labels) -> None:
    counts = st.lists(st.integers(0, 4), min_size=len(labels) + 1, max_size=len(labels) + 1)
    claim = PositionClaim(votes=tuple(map(float, data.draw(counts))))
    strict, loose = exact(labels, {"judge": claim}), side(labels, {"judge": claim})
    most = max(claim.votes)
    if strict.left_out is None:
        first = first_error(labels)
        assert first is not None
        assert strict.labels == labels
        assert [at for at, count in enumerate(claim.votes) if count == most] == [first]
    else:
        assert set(strict.labels) == {None}
    assert all(kept in (None, label) for kept, label in zip(loose.labels, labels, strict=True))
    assert (loose.left_out is None) == any(label is not None for label in loose.labels)
