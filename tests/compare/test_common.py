"""What two runs have in common: each distinct prefix once, and chains with different ids matched by their words."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.compare.frames import Frames, common, frames
from tests.compare.synthetic import label_frame, label_row

Chains = list[tuple[int, list[str]]]

words = st.lists(st.sampled_from("xyz"), min_size=1, max_size=4)
chains = st.lists(st.tuples(st.integers(0, 2), words), min_size=1, max_size=8, unique_by=str)


def made(chains: Chains, tokens: str = "") -> Frames:
    """Frames of chains whose prefix ids are made from problem and words; `tokens` makes them different."""
    rows = []
    for problem, steps in chains:
        ids = [f"{tokens}{problem}:{''.join(steps[:end])}" for end in range(1, len(steps) + 1)]
        ids[-1] += "."
        rows.append(label_row(f"{tokens}{problem}{steps}", f"p{problem}", ids, steps=steps))
    found = frames([label_frame(rows)])
    assert found is not None
    return found


@given(chains, chains)
def test_counts_are_those_of_sets(first: Chains, second: Chains) -> None:
    found = common(made(first), made(second))
    a, b = ({(problem, *steps) for problem, steps in side} for side in (first, second))
    overlap = found.overlap
    assert (overlap.chains, overlap.chains_only_a, overlap.chains_only_b) == (len(a & b), len(a - b), len(b - a))
    prefixes = [{(problem, *steps[:end]) for problem, *steps in side for end in range(len(steps))} for side in (a, b)]
    both = prefixes[0] & prefixes[1]
    assert overlap.prefixes == len(both) == len(found.prefixes)
    assert overlap.prefixes_only_a == len(prefixes[0] - both)
    assert overlap.prefixes_only_b == len(prefixes[1] - both)
    assert found.prefixes["prefix_id"].n_unique() == len(both)
    assert len(found.steps) == sum(len(chain) - 1 for chain in a & b)
    assert overlap.by_words == 0


@given(chains)
def test_chains_that_a_policy_sampled_are_found_by_their_words(given_chains: Chains) -> None:
    plain, by_tokens = made(given_chains), made(given_chains, "tokens ")
    both = common(plain, plain)
    for a, b in ((plain, by_tokens), (by_tokens, plain)):
        found = common(a, b)
        assert found.overlap.by_words == found.overlap.chains == len(given_chains)
        assert (found.overlap.prefixes_only_a, found.overlap.prefixes_only_b) == (0, 0)
        assert len(found.prefixes) == len(both.prefixes)
        assert len(found.steps) == len(both.steps)
        assert set(found.prefixes["prefix_id"]) <= {*a.prefixes["prefix_id"]}


def test_ends_of_chains_and_what_is_unmeasured_are_no_prefixes() -> None:
    row = label_row("c", "p", ["1", "2", "3"], origin=["implied", "unmeasured", "terminal"])
    found = frames([label_frame([row])])
    assert found is not None
    assert found.prefixes["prefix_id"].to_list() == ["root of p", "1"]
    assert found.steps["terminal"].to_list() == [False, False, True]


def test_no_labels_are_no_frames() -> None:
    assert frames([label_frame([label_row("c", "p", ["1"])]).clear()]) is None
