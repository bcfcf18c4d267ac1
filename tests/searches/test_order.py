"""A search is a pure state machine: its result does not depend on the order in which answers arrive, nor on how many of them a
log already has."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Aggregation
from pipeline.searches.base import Ask, Found, Search
from pipeline.searches.machine import Machine
from pipeline.searches.registry import SEARCHES
from pipeline.searches.settings import RegenerateFrom
from tests.searches.worlds import TreeWorld, WorldKind, in_order, problem_of, run, search_of, shuffled, task_of

pytestmark = pytest.mark.slow

OWN: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "best_of_n": {"round": st.integers(1, 4)},
    "majority": {"round": st.integers(1, 4)},
    "weighted": {"round": st.integers(1, 4)},
    "beam": {"width": st.integers(1, 2), "lookahead": st.integers(0, 2), "distinct": st.booleans()},
    "dvts": {"width": st.integers(1, 2), "lookahead": st.integers(0, 2), "round": st.integers(1, 2)},
    "particle": {"resample_below": st.floats(0, 1), "temperature": st.floats(0.01, 10)},
    "mcts": {
        "width": st.integers(1, 3),
        "parallel": st.integers(1, 4),
        "exploration": st.floats(0, 4),
        "rollout": st.booleans(),
    },
    "regenerate": {"chains": st.integers(1, 2), "start": st.sampled_from(RegenerateFrom)},
}


@st.composite
def searches(draw: st.DrawFn) -> Search:
    method = draw(st.sampled_from(sorted(OWN)))
    own = {name: draw(values) for name, values in OWN[method].items()}
    accept = draw(st.sampled_from([None, 0.3, 0.95]))
    reliability = draw(st.sampled_from([None, 0.5])) if accept and method != "majority" else None
    return search_of(
        method,
        n=draw(st.integers(2, 9)),
        seed=draw(st.integers(0, 3)),
        aggregation=draw(st.sampled_from(Aggregation)),
        accept=accept,
        reliability=reliability,
        **own,
    )


KINDS = st.builds(
    WorldKind,
    seed=st.integers(0, 3),
    depth=st.integers(1, 4),
    branching=st.integers(2, 3),
    early=st.sampled_from([0.0, 0.4]),
    unscored=st.sampled_from([0.0, 0.3, 1.0]),
    auc=st.just(0.8),
)


@dataclass(slots=True, eq=False)
class Logged:
    """Answers of a world, those of a log first. `answers`: all, in the order in which they were given."""

    world: TreeWorld
    log: dict[str, object]
    answers: dict[str, object]

    def answer(self, ask: Ask) -> object:
        assert ask.key not in self.answers, "each question is asked once"
        found = self.log.pop(ask.key, None) or self.world.answer(ask)
        self.answers[ask.key] = found
        return found


def summary(found: Found) -> tuple[object, ...]:
    return (
        [node.node_id for node in found.candidates],
        found.chosen and found.chosen.node_id,
        found.confidence,
        found.stopped,
    )


def test_every_method_is_tried() -> None:
    assert set(OWN) == set(SEARCHES.our_settings())


@given(searches(), KINDS, st.integers(0, 99), st.integers(0, 2**32), st.floats(0, 1))
def test_neither_order_nor_log_change_a_result(
    search: Search, kind: WorldKind, number: int, order: int, share: float
) -> None:
    def logged(log: dict[str, object]) -> Logged:
        world = TreeWorld(kind, problem_of(number), newest_only=search.newest_only)
        return Logged(world, log, {})

    first, other = logged({}), logged({})

    def machine(on: Logged) -> Machine[Found]:
        return Machine(search.search(task_of(on.world, search.settings)))

    found = run(machine(first), first.answer, in_order)
    assert summary(run(machine(other), other.answer, shuffled(order))) == summary(found)
    assert set(other.answers) == set(first.answers)
    # What was answered before a kill is in the log, in the order of that start.
    kept = dict(list(other.answers.items())[: round(share * len(other.answers))])
    again = logged(dict(kept))
    assert summary(run(machine(again), again.answer, shuffled(order + 1))) == summary(found)
    assert not again.log, "a search asks again for all that its log has"
