"""What each method does, on problems that are written by hand; what it does with hard input: chains without scores, of one
step, of none, without an end; and what its settings refuse."""

from collections import Counter

import pytest

from pipeline.config.choices import Aggregation
from pipeline.searches.base import Ask, Sample, Stop
from pipeline.searches.log import first_nodes
from pipeline.searches.machine import Machine
from pipeline.searches.registry import SEARCHES
from pipeline.searches.settings import RegenerateFrom
from tests.searches.scripted import PROBLEM, Scripted, chosen, whole_chains, written
from tests.searches.trees import chain_of
from tests.searches.worlds import TreeWorld, WorldKind, found_by, problem_of, run, search_of, shuffled, task_of

METHODS = sorted(SEARCHES.our_settings())
SCORED = [method for method in METHODS if method != "majority"]
FORK = {"": ["a", "b"], "a": ["1", "2"], "b": ["3", "4"]}
"""Two first steps, and two chains from each."""
FORK_SCORES = {"a": 0.6, "b": 0.4, "a 1": 0.2, "a 2": 0.3, "b 3": 0.9, "b 4": 0.1}
"""The first step that seems better leads to the worse chains."""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unscored", [0.5, 1.0])
def test_missing_scores_rank_last_and_stop_nothing(method: str, unscored: float) -> None:
    kind = WorldKind(seed=5, depth=3, unscored=unscored)
    for number in range(20):
        search = search_of(method, n=8)
        world = TreeWorld(kind, problem_of(number), newest_only=search.newest_only)
        found = found_by(search, world, shuffled(number))
        assert found.chosen is not None
        if method == "majority":
            continue
        paths = {node: world.path(node) for node in found.candidates}
        scored = {
            node for node, path in paths.items() if None not in [world.score(path[:at]).score for at in range(1, 4)]
        }
        assert (found.chosen in scored) == (found.confidence is not None)
        if method != "weighted":
            assert found.chosen in scored or not scored


@pytest.mark.parametrize("method", METHODS)
def test_a_chain_of_one_step(method: str) -> None:
    world = Scripted({"": ["5", "6"]}, {"5": 0.2, "6": 0.8})
    found = world.found(search_of(method, n=4))
    assert found.stopped is Stop.DONE
    assert chosen(found) in (["5", "6"] if method == "majority" else ["6"])


@pytest.mark.parametrize("method", METHODS)
def test_a_policy_that_writes_no_step(method: str) -> None:
    found = Scripted({"": [""]}).found(search_of(method, n=4))
    assert found.chosen is not None
    assert found.chosen.depth == 0
    assert not found.confidence


@pytest.mark.parametrize("method", METHODS)
def test_a_policy_that_ends_a_chain_after_a_step_of_it(method: str) -> None:
    world = Scripted({"": ["a", "b"], "a": ["", "c"], "b": [""]}, {"a": 0.5, "b": 0.4, "a c": 0.1})
    found = world.found(search_of(method, n=4))
    if method != "majority":
        assert chosen(found) == "a"
        assert found.confidence == 0.5


@pytest.mark.parametrize("method", METHODS)
def test_a_runtime_that_ends_no_chain_ends_the_search(method: str) -> None:
    world = Scripted({}, endless=True)
    found = world.found(search_of(method, n=4, max_steps=10))
    assert (found.candidates, found.chosen, found.stopped) == ((), None, Stop.NO_CHAIN)
    assert len(world.asked) < 4 * 4 * 10 * 10


@pytest.mark.parametrize("method", METHODS)
def test_chains_without_answers(method: str) -> None:
    world = Scripted(FORK, FORK_SCORES, silent=frozenset("1234"))
    found = world.found(search_of(method, n=4))
    if method == "majority":
        assert (found.chosen, found.confidence) == (found.candidates[0], 0.0)
    elif method == "weighted":
        assert chosen(found) == "b 3"


@pytest.mark.parametrize(
    ("method", "settings", "key"),
    [
        ("beam", {"n": 3}, "search.width"),
        ("dvts", {"n": 3}, "search.width"),
        ("regenerate", {"n": 1}, "search.chains"),
        ("majority", {"accept": 0.9, "reliability": 0.5}, "search.reliability"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(method: str, settings: dict[str, object], key: str) -> None:
    with pytest.raises(ValueError, match=key):
        search_of(method, **settings)


@pytest.mark.parametrize("method", SCORED)
def test_a_chain_that_is_good_enough_ends_the_search(method: str) -> None:
    steps = {"": ["a", "0", "b"], "a": ["1", "2"], "b": ["3", "4"]}
    scores = {"a": 0.9, "0": 0.96, "b": 0.1, "a 1": 0.2, "a 2": 0.1, "b 3": 0.99, "b 4": 0.1}
    all_of_it = Scripted(steps, scores)
    assert all_of_it.found(search_of(method, n=16)).stopped is Stop.DONE
    world = Scripted(steps, scores)
    found = world.found(search_of(method, n=16, accept=0.95))
    if method == "weighted":  # The share of an answer that few chains state is less.
        assert found.confidence is not None
        assert found.confidence < 0.95
        return
    assert found.stopped is Stop.ACCEPTED
    assert found.confidence is not None
    assert found.confidence >= 0.95
    assert len(world.samples) < len(all_of_it.samples)


@pytest.mark.parametrize("method", [method for method in SCORED if method != "weighted"])
def test_a_scorer_that_is_not_sure_ends_no_search(method: str) -> None:
    world = Scripted(FORK, dict.fromkeys(FORK_SCORES, 0.97), {"b 3": 0.9, "a 1": 0.2})
    found = world.found(search_of(method, n=16, accept=0.95, reliability=0.5))
    if any(written(node) == "b 3" for node in found.candidates):
        assert (chosen(found), found.stopped) == ("b 3", Stop.ACCEPTED)
    else:
        assert found.stopped is Stop.DONE
    unsure = Scripted(FORK, dict.fromkeys(FORK_SCORES, 0.97))
    assert unsure.found(search_of(method, n=16, accept=0.95, reliability=0.5)).stopped is Stop.DONE


def test_best_of_n_samples_in_rounds_until_one_suffices() -> None:
    world = Scripted({"": [*"abcdefgh"]}, {"f": 0.95, "g": 0.99})
    found = world.found(search_of("best_of_n", n=16, round=2, accept=0.9))
    assert (len(found.candidates), chosen(found), found.confidence) == (6, "f", 0.95)


def test_best_of_n_aggregates_step_scores() -> None:
    scores = {"a": 0.6, "b": 0.4, "a 1": 0.7, "b 3": 0.95}
    for aggregation, best in [(Aggregation.last, "b 3"), (Aggregation.min, "a 1"), (Aggregation.product, "a 1")]:
        world = Scripted({"": ["a", "b"], "a": ["1"], "b": ["3"]}, scores)
        assert chosen(world.found(search_of("best_of_n", n=4, aggregation=aggregation))) == best


def test_a_majority_needs_no_scores_and_counts_equal_answers_as_one() -> None:
    world = Scripted({"": ["0.5", "7", "1/2", "8"]})
    found = world.found(search_of("majority", n=4))
    assert chosen(found) in ("0.5", "1/2")
    assert found.confidence == 0.5
    assert len(world.asked) == len(world.samples) == 4


def test_few_votes_are_not_sure() -> None:
    found = Scripted({"": ["5"]}).found(search_of("majority", n=2))
    assert found.confidence == pytest.approx(0.875)
    long = Scripted({"": ["5"]})
    assert long.found(search_of("majority", n=64, accept=0.99)).stopped is Stop.ACCEPTED
    # 1 - 2 ** -(votes + 1) reaches .99 with six votes, so after the second round of four.
    assert whole_chains(long) == 8


def test_votes_are_weighted_by_scores() -> None:
    world = Scripted({"": ["5", "6", "5", "7"]}, {"5": 0.3, "6": 0.9, "7": 0.1})
    found = world.found(search_of("weighted", n=4))
    assert chosen(found) == "6"
    assert found.confidence == pytest.approx(0.9 / 1.6)
    counted = Scripted({"": ["5", "6", "5", "7"]}, {"5": 0.3, "6": 0.5, "7": 0.1})
    found = counted.found(search_of("weighted", n=4))
    assert chosen(found) == "5"
    assert found.confidence == pytest.approx(0.3)


def test_a_beam_follows_what_seems_best() -> None:
    world = Scripted(FORK, FORK_SCORES)
    found = world.found(search_of("beam", n=2, width=2))
    assert chosen(found) == "a 2"
    assert {written(node) for node in found.candidates} == {"a 1", "a 2"}


def test_lookahead_sees_further_and_stays_outside_of_chains() -> None:
    world = Scripted(FORK, FORK_SCORES)
    found = world.found(search_of("beam", n=2, width=2, lookahead=1))
    assert chosen(found) == "b 3"
    draws = {(sample.node.node_id, sample.draw) for sample in world.samples}
    assert len(draws) == len(world.samples), "a lookahead has draws of its own"
    assert len(found.candidates) == 2


def test_equal_beams_are_one_unless_they_count() -> None:
    steps = {"": ["a", "a", "a", "b"], "a": ["1", "2"], "b": ["3"]}
    scores = {"a": 0.9, "b": 0.5, "a 1": 0.1, "a 2": 0.1, "b 3": 0.4}
    assert chosen(Scripted(steps, scores).found(search_of("beam", n=4, width=2))) == "b 3"
    found = Scripted(steps, scores).found(search_of("beam", n=4, width=2, distinct=False))
    assert {written(node) for node in found.candidates} == {"a 1", "a 2"}


def test_an_ended_chain_takes_the_place_of_a_beam_and_keeps_it() -> None:
    steps = {"": ["9", "a", "b"], "a": ["c"], "a c": ["1"], "b": ["d"], "b d": ["2"]}
    scores = {"9": 0.5, "a": 0.8, "b": 0.7, "a c": 0.4, "b d": 0.3, "a c 1": 0.9, "b d 2": 0.9}
    one = Scripted(steps, scores).found(search_of("beam", n=3, width=3))
    assert chosen(one) == "9", "both beams are worse than it"
    two = Scripted(steps, scores).found(search_of("beam", n=6, width=3))
    assert chosen(two) == "a c 1"


def test_subtrees_do_not_compete() -> None:
    steps = {"": ["a", "b"], "a": ["1"], "b": ["2"]}
    world = Scripted(steps, {"a": 0.9, "b": 0.1, "a 1": 0.3, "b 2": 0.6})
    found = world.found(search_of("dvts", n=2, width=1))
    assert chosen(found) == "b 2"
    assert {written(node) for node in found.candidates} == {"a 1", "b 2"}
    assert chosen(Scripted(steps, world.scores).found(search_of("beam", n=2, width=2))) == "a 1"


def test_subtrees_come_in_rounds_where_a_chain_may_suffice() -> None:
    world = Scripted({"": ["a"], "a": ["1"]}, {"a": 0.5, "a 1": 0.99})
    found = world.found(search_of("dvts", n=8, width=2, accept=0.9))
    assert found.stopped is Stop.ACCEPTED
    assert len(world.samples) == 4


def test_particles_gather_where_scores_are_high() -> None:
    steps = {"": ["a", "b"], "a": ["1", "2"], "b": ["3", "4"]}
    scores = {"a": 0.999, "b": 0.001, "a 1": 0.5, "a 2": 0.5, "b 3": 0.9, "b 4": 0.9}
    world = Scripted(steps, scores)
    found = world.found(search_of("particle", n=8, resample_below=0.9))
    assert {written(node) for node in found.candidates} == {"a 1", "a 2"}
    spread = Scripted(steps, scores).found(search_of("particle", n=8, resample_below=0.0))
    assert chosen(spread).startswith("b")
    copies = Counter(sample.node.node_id for sample in world.samples)
    assert max(copies[node] for node in copies if node != world.root.node_id) > 1, "a particle was copied"
    assert len({sample.key for sample in world.samples}) == 16


def test_particles_with_scores_too_small_for_powers_go_on() -> None:
    world = Scripted(FORK, {name: score * 1e-9 for name, score in FORK_SCORES.items()})
    found = world.found(search_of("particle", n=4, temperature=0.01, resample_below=1.0))
    assert {written(node)[0] for node in found.candidates} == {"a"}


def test_a_tree_search_goes_back_to_what_it_left() -> None:
    world = Scripted(FORK, FORK_SCORES)
    assert chosen(world.found(search_of("mcts", n=1, width=2))) == "a 2"
    back = Scripted(FORK, FORK_SCORES)
    found = back.found(search_of("mcts", n=2, width=2))
    assert chosen(found) == "b 3"
    more = Scripted(FORK, FORK_SCORES)
    more.found(search_of("mcts", n=64, width=2))
    assert len(more.samples) == len(back.samples), "nothing is left to sample"


def test_simulations_of_a_wave_go_different_ways() -> None:
    steps = {"": ["a", "b", "c"], **{first: [f"{first}1", f"{first}2"] for first in "abc"}}
    scores = {"a": 0.9, "b": 0.8, "c": 0.7}
    world = Scripted(steps, scores)
    world.found(search_of("mcts", n=3, width=3, parallel=2))
    continued = Counter(written(sample.node) for sample in world.samples)
    assert continued == {"": 3, "a": 3, "b": 3, "c": 3}


@pytest.mark.parametrize(("exploration", "second"), [(0.01, "a q"), (1.0, "b")])
def test_exploration_draws_a_tree_search_to_what_it_has_not_visited(exploration: float, second: str) -> None:
    steps = {"": ["a", "b"], "a": ["p", "q"], **{before: ["1", "2"] for before in ("a p", "a q", "b")}}
    world = Scripted(steps, {"a": 0.5, "b": 0.4, "a p": 0.5, "a q": 0.45, "a p 1": 0.5})
    world.found(search_of("mcts", n=2, width=2, exploration=exploration))
    assert written(world.samples[6].node) == second


def test_rollouts_are_candidates() -> None:
    steps = {"": ["a", "b"], "a": ["c"], "a c": ["1"], "b": ["d"], "b d": ["2"]}
    world = Scripted(steps, {"a": 0.9, "b": 0.2, "a c": 0.5, "a c 1": 0.7})
    found = world.found(search_of("mcts", n=1, width=2, rollout=True))
    assert chosen(found) == "a c 1"
    assert whole_chains(world) == 1


def test_a_chain_is_written_again_from_where_it_falls() -> None:
    steps = {"": ["a"], "a": ["b"], "a b": ["1", "2", "3"]}
    world = Scripted(steps, {"a": 0.8, "a b": 0.7, "a b 1": 0.2, "a b 2": 0.1, "a b 3": 0.9})
    found = world.found(search_of("regenerate", n=2, chains=1))
    assert [written(sample.node) for sample in world.samples] == ["", "a b", "a b"]
    assert (chosen(found), found.confidence) == ("a b 3", 0.9)


def test_a_chain_that_is_as_good_keeps_the_old_one() -> None:
    steps = {"": ["a"], "a": ["1", "2"]}
    world = Scripted(steps, {"a": 0.8, "a 1": 0.5, "a 2": 0.5})
    world.found(search_of("regenerate", n=3, chains=1))
    assert [written(sample.node) for sample in world.samples] == ["", "a", "a", "a"]


def test_the_weakest_step_is_another_start() -> None:
    steps = {"": ["a", "c"], "a": ["b"], "a b": ["1"], "c": ["2"]}
    scores = {"a": 0.1, "a b": 0.9, "a b 1": 0.2, "c": 0.5, "c 2": 0.6}
    weakest = Scripted(steps, scores)
    weakest.found(search_of("regenerate", n=1, chains=1, start=RegenerateFrom.weakest))
    assert [written(sample.node) for sample in weakest.samples] == ["", ""]
    drop = Scripted(steps, scores)
    drop.found(search_of("regenerate", n=1, chains=1))
    assert [written(sample.node) for sample in drop.samples] == ["", "a b"]


def test_the_chain_of_the_input_is_the_first() -> None:
    steps = {"": ["a"], "a": ["1"], "x": ["2"]}
    world = Scripted(steps, {"a": 0.5, "a 1": 0.5, "x": 0.8, "x 9": 0.1, "x 2": 0.95})
    _, *given = first_nodes(chain_of(PROBLEM, ("x", "9"), "9"))
    found = world.found(search_of("regenerate", n=1, chains=1), given=tuple(given))
    assert [written(sample.node) for sample in world.samples] == ["x"]
    assert [written(node) for node in found.candidates] == ["x 9", "x 2"]
    assert chosen(found) == "x 2"


@pytest.mark.parametrize("method", METHODS)
def test_no_draw_of_a_node_is_asked_for_twice(method: str) -> None:
    """A sample of one step and one to the end would begin alike if an engine drew by (node, draw)."""
    for number in range(10):
        search = search_of(method, n=8)
        world = TreeWorld(WorldKind(seed=6, early=0.2), problem_of(number), newest_only=search.newest_only)
        samples: list[Sample] = []

        def answer(ask: Ask, world: TreeWorld = world, samples: list[Sample] = samples) -> object:
            if isinstance(ask, Sample):
                samples.append(ask)
            return world.answer(ask)

        run(Machine(search.search(task_of(world, search.settings))), answer)
        draws = {(sample.node.node_id, sample.draw) for sample in samples}
        assert len(draws) == len(samples)
