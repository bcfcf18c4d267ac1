"""The search of one problem with its log: answers that the log has are given at once, and what is left is asked.

What a plug-in raises, asks wrongly or ends with wrongly is a PluginError, which names it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from pipeline.core.errors import PluginError
from pipeline.core.records import ChainText
from pipeline.core.tables import CHAINS, SampleAnswer, ScoreAnswer
from pipeline.graders.answer_groups import answer_groups
from pipeline.searches.base import (
    Ask,
    Found,
    Node,
    Sample,
    Score,
    Search,
    StepScore,
    Stop,
    Task,
    path_of,
    wrong_ask,
    wrong_found,
)
from pipeline.searches.log import FAILED_DRAW, first_nodes, nodes_of
from pipeline.searches.machine import Machine
from pipeline.searches.registry import SEARCHES

_DOING = "search"
"""The method of a search that runs."""
_UNKNOWN = StepScore()


def search_problems(chains: pa.Table, separator: str) -> list[ChainText]:
    """The problems of staged chains, whose steps are joined by `separator`. One without steps has no chain of its own."""
    return [replace(chain, steps=_joined(chain.steps, separator)) for chain in CHAINS.from_table(chains)]


def _joined(steps: Sequence[str], separator: str) -> tuple[str, ...]:
    return tuple(f"{step}{separator}" for step in steps[:-1]) + tuple(steps[-1:])


class ProblemSearch:
    """See the module. `open`: questions without an answer, by key. `nodes`: all known nodes, by id. `given`: those of the chain
    that the input has. `tokens`: those of each node's last step."""

    def __init__(self, problem: ChainText, search: Search) -> None:
        self.problem = problem
        self.samples: dict[str, SampleAnswer] = {}
        self.scores: dict[str, ScoreAnswer] = {}
        self.open: dict[str, Ask] = {}
        self.failed = False
        self._search = search
        self._start()

    @property
    def found(self) -> Found | None:
        """The result; None while the search goes on."""
        if self.failed:
            return Found(candidates=(), chosen=None, stopped=Stop.FAILED)
        return self._machine.result if self._machine.done else None

    def replay(self, samples: Iterable[SampleAnswer], scores: Iterable[ScoreAnswer]) -> None:
        """Start from the beginning, with these answers and no others.

        Answers that the search does not ask for are left out. A log may have such samples: those that follow a lost one, which
        is another text now. Raises PluginError as all methods do that go on with the search."""
        self.samples, self.scores, self.open, self.failed = {}, {}, {}, False
        self._start()
        known = {each.sample_id: each for each in samples}
        self.answered(self.begin(), known, {each.prefix_id: each for each in scores})
        for each in known.values():
            if each.draw == FAILED_DRAW:
                self.fail(each)

    def answered(
        self, asks: Sequence[Ask], samples: Mapping[str, SampleAnswer], scores: Mapping[str, ScoreAnswer]
    ) -> list[Ask]:
        """Go on with the answers that are here, by sample and by prefix. Returns the questions that are left."""
        due, left = [*reversed(asks)], list[Ask]()
        while due:
            ask = due.pop()
            wanted = [] if isinstance(ask, Sample) else [node.prefix_id for node in self.to_score(ask)]
            if isinstance(ask, Sample) and ask.key in samples:
                due += reversed(self.take_sample(ask, samples[ask.key]))
            elif isinstance(ask, Score) and all(prefix_id in scores for prefix_id in wanted):
                due += reversed(self.take_scores(ask, [scores[prefix_id] for prefix_id in wanted]))
            else:
                left.append(ask)
        return left

    def begin(self) -> list[Ask]:
        """The first questions."""
        return self._advanced(self._machine.begin)

    def fail(self, answer: SampleAnswer) -> None:
        """End the search because the problem kills engines: `log.failure`."""
        self.samples[answer.sample_id] = answer
        self.failed, self.open = True, {}

    def take_sample(self, ask: Sample, answer: SampleAnswer) -> list[Ask]:
        """Go on with an answer of the policy. Returns the questions that are new."""
        self.samples[answer.sample_id] = answer
        nodes = nodes_of(self.problem.problem_id, ask.node, answer)
        begin = 0
        for node, end in zip(nodes, answer.token_ends or (0,), strict=True):
            self.nodes[node.node_id] = node
            self.tokens[node.node_id] = answer.token_ids[begin:end]
            begin = end
        del self.open[ask.key]
        return self._advanced(partial(self._machine.take, ask, nodes))

    def to_score(self, ask: Score) -> list[Node]:
        """The prefixes that have no score yet and get one with this question: the newest, or all of the chain."""
        newest = self._search.newest_only and ask.node.text.strip()
        wanted = [ask.node] if newest else path_of(ask.node)[-1 if self._search.newest_only else 0 :]
        return [node for node in wanted if node.prefix_id not in self.scores]

    def take_scores(self, ask: Score, answers: Sequence[ScoreAnswer]) -> list[Ask]:
        """Go on with the scores of `to_score`. Returns the questions that are new."""
        for each in answers:  # The first score of a prefix counts: chains that share it may be scored side by side.
            if each.prefix_id not in self.scores:
                self.scores[each.prefix_id] = each
                self._step_scores[each.prefix_id] = StepScore(
                    score=each.score, reliability=each.reliability, fault=each.fault or ""
                )
        del self.open[ask.key]
        found = tuple([self._step_scores.get(node.prefix_id, _UNKNOWN) for node in path_of(ask.node)])
        return self._advanced(partial(self._machine.take, ask, found))

    def _start(self) -> None:
        problem = self.problem
        root, *given = first_nodes(problem)
        self.given = tuple(given)
        self._step_scores: dict[str, StepScore] = {}
        self.tokens: dict[str, tuple[int, ...]] = {}
        self.nodes: dict[str, Node] = {node.node_id: node for node in (root, *given)}
        task = Task(
            problem_id=problem.problem_id,
            root=root,
            given=self.given,
            groups=answer_groups,
            settings=self._search.settings,
        )
        self._machine: Machine[Found] = Machine(self._search.search(task))

    def _advanced(self, advance: Callable[[], list[Ask]]) -> list[Ask]:
        """Run the search until it waits, and keep its new questions. Errors of a plug-in become PluginErrors."""
        method = self._search.settings.method
        try:
            asked = advance()
        except Exception:
            with SEARCHES.blame(method, _DOING):
                raise
        wrong = ""
        for ask in asked:
            wrong = wrong or self._wrong(ask)
        if not wrong and self._machine.done:
            wrong = wrong_found(self._machine.result)
        if wrong:
            plugin = SEARCHES.plugin(method)
            if plugin is None:
                raise ValueError(f"search={method}: {wrong}")
            raise PluginError(f"search {method} of {plugin} failed in {_DOING}: {wrong}")
        for ask in asked:
            self.open[ask.key] = ask
        return asked

    def _wrong(self, ask: Ask) -> str:
        """What is wrong with a question, or an empty text."""
        if wrong := wrong_ask(ask):
            return wrong
        if self.nodes.get(ask.node.node_id) is not ask.node:
            return f"it asks about a node that is not of problem {self.problem.problem_id}"
        if not self._search.scores and isinstance(ask, Score):
            return "it asks for a score, but its `scores` is False"
        return ""
