"""The tree of a problem against a slow, independent count of its samples, and the path and the weakest step of small cases."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.searches.trees import ProblemTree, tree_of
from pipeline.core.records import Finish
from pipeline.core.tables import SampleAnswer
from pipeline.searches.log import FAILED_DRAW, first_nodes, node_id, prefix_id, root_id
from tests.searches.trees import chain_of, ends_of, sample_of, score_of

PROBLEM = "p"
OF = chain_of(PROBLEM)
Steps = tuple[str, ...]


@dataclass
class Log:
    """Samples, each with the whole chain of steps to which it leads. `paths`: of each node id."""

    rows: list[SampleAnswer] = field(default_factory=list)
    ends: list[Steps] = field(default_factory=list)
    paths: dict[str, Steps] = field(default_factory=lambda: {root_id(PROBLEM): ()})
    step_tokens: list[list[tuple[Steps, int]]] = field(default_factory=list)

    def add(
        self, after: str, steps: list[str], *, ended: bool, finish: Finish = Finish.STOP, extra: int = 0
    ) -> list[str]:
        sample_id = f"sample-{len(self.rows)}"
        path, ids, own = self.paths[after], [], []
        for index, text in enumerate(steps):
            path = (*path, text.strip()) if text.strip() else path
            ids.append(node_id(sample_id, index))
            self.paths[ids[-1]] = path
            own.append((path, len(text)))
        self.rows.append(sample_of(sample_id, after, len(self.rows), steps, ended=ended, finish=finish, extra=extra))
        self.ends.append(path)
        self.step_tokens.append(own)
        return ids


texts = st.sampled_from(["a\n", " a", "b\n", "c c\n", "é\n"])


@st.composite
def logs(draw: st.DrawFn) -> Log:
    log = Log()
    open_nodes = [root_id(PROBLEM)]
    for _ in range(draw(st.integers(0, 12))):
        steps = draw(st.lists(texts, min_size=1, max_size=3))
        ended = draw(st.booleans())
        ids = log.add(draw(st.sampled_from(open_nodes)), steps, ended=ended, extra=draw(st.integers(0, 3)))
        open_nodes += ids[:-1] if ended else ids
    return log


def by_path(tree: ProblemTree) -> dict[Steps, Any]:
    paths: list[Steps] = []
    for node in tree.nodes:
        paths.append(() if node.parent is None else (*paths[node.parent], node.text))
    assert len(set(paths)) == len(paths)
    return dict(zip(paths, tree.nodes, strict=True))


@given(logs(), st.randoms())
def test_a_tree_counts_what_a_slow_count_finds(log: Log, random: Any) -> None:
    rows = list(log.rows)
    random.shuffle(rows)
    found = by_path(tree_of(OF, rows))
    prefixes = {path[:length] for path in log.ends for length in range(len(path) + 1)} | {()}
    tokens: defaultdict[Steps, int] = defaultdict(int)
    for own in log.step_tokens:
        for path, count in own:
            tokens[path] += count
    ends = Counter(path for path, row in zip(log.ends, log.rows, strict=True) if row.ended)
    assert found.keys() == prefixes
    for path, node in found.items():
        assert node.visits == sum(end[: len(path)] == path for end in log.ends)
        assert (node.depth, node.tokens, node.ends) == (len(path), tokens[path], ends[path])
        assert node.prefix_id == prefix_id(PROBLEM, path)
        assert (node.answer, node.verdict) == (("7", "correct") if ends[path] else (None, None))


@given(logs())
def test_a_tree_counts_all_generated_tokens(log: Log) -> None:
    tree = tree_of(OF, log.rows)
    assert sum(node.tokens for node in tree.nodes) + tree.discarded == sum(row.n_tokens for row in log.rows)


@given(logs(), st.data())
def test_the_path_leads_to_the_chosen_node_and_its_weakest_step_has_the_lowest_score(
    log: Log, data: st.DataObject
) -> None:
    chosen = data.draw(st.sampled_from(sorted(log.paths)))
    prefixes = sorted({path[:length] for path in log.ends for length in range(1, len(path) + 1)})
    score = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])
    known = {path: data.draw(score) for path in prefixes}
    scores = [score_of(prefix_id(PROBLEM, path), value) for path, value in known.items()]
    tree = tree_of(OF, log.rows, scores, ends_of(chosen))
    steps = log.paths[chosen]
    assert tuple(tree.nodes[at].text for at in tree.path) == steps
    assert [at for at, node in enumerate(tree.nodes) if node.on_path] == sorted(tree.path)
    scored = [value for length in range(len(steps)) if (value := known[steps[: length + 1]]) is not None]
    if scored:
        assert tree.weakest in tree.path
        assert tree.nodes[tree.weakest].score == min(scored)
        before = tree.path[: tree.path.index(tree.weakest)]
        assert all(tree.nodes[at].score != min(scored) for at in before)
    else:
        assert tree.weakest is None


def test_a_chain_that_ended_at_once_ends_at_its_parent() -> None:
    log = Log()
    (first,) = log.add(root_id(PROBLEM), ["a\n"], ended=False)
    log.rows.append(sample_of("blank", first, 9, [], ended=True))
    tree = tree_of(OF, log.rows, (), ends_of(node_id("blank", 0)))
    assert [(node.text, node.ends, node.visits) for node in tree.nodes] == [("", 0, 2), ("a", 1, 2)]
    assert (tree.path, tree.discarded) == ((1,), 1)


def test_a_cut_chain_is_marked_where_it_ends() -> None:
    log = Log()
    log.add(root_id(PROBLEM), ["a\n", "b\n"], ended=True, finish=Finish.LENGTH)
    assert [(node.ends, node.cut) for node in tree_of(OF, log.rows).nodes] == [(0, 0), (0, 0), (1, 1)]


def test_a_given_chain_is_part_of_the_tree() -> None:
    problem = chain_of(PROBLEM, ("a", "b"), "5")
    _, first, last = first_nodes(problem)
    log = Log(paths={first.node_id: ("a",), root_id(PROBLEM): ()})
    log.add(first.node_id, ["c\n"], ended=True)
    tree = tree_of(problem, log.rows, (), ends_of(last.node_id, "incorrect"))
    assert [(node.text, node.visits, node.answer, node.verdict, node.given) for node in tree.nodes] == [
        ("", 1, None, None, False),
        ("a", 1, None, None, True),
        ("b", 0, "5", "incorrect", True),
        ("c", 1, "7", "correct", False),
    ]
    assert [tree.nodes[at].text for at in tree.path] == ["a", "b"]


@pytest.mark.parametrize("lost", ["another", ""])
def test_samples_that_follow_no_known_node_are_counted(lost: str) -> None:
    log = Log()
    log.add(root_id(PROBLEM), ["a\n"], ended=True)
    log.rows.append(log.rows[0]._replace(sample_id="stray", node_id=lost))
    tree = tree_of(OF, log.rows)
    assert len(tree.nodes) == 2


def test_the_answer_that_a_problem_kills_engines_is_no_node() -> None:
    log = Log()
    log.add(root_id(PROBLEM), [], ended=True)
    log.rows[0] = log.rows[0]._replace(draw=FAILED_DRAW)
    tree = tree_of(OF, log.rows)
    assert [(node.visits, node.ends) for node in tree.nodes] == [(0, 0)]
