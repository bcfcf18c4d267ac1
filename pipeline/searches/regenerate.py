"""Writes a chain again from the step where it turned bad, and keeps the better one."""

from collections.abc import Sequence

from pipeline.searches.base import WHOLE, Found, Node, Search, Steps, StepScore, Task, path_of, sample, together
from pipeline.searches.choice import Candidates, Scored, scored_chain
from pipeline.searches.settings import RegenerateConfig, RegenerateFrom

PRIOR = 0.5
"""Counts as one more score of a first step. With a single chain whose first step is bad, the mean would be as bad, and the
chain would never be written again from the beginning."""


class Regenerate(Search):
    """Begins with `chains` whole chains; the first is the one that the input has, if any. n / chains times (rounded down), each
    is written again from the step that `start` names, and replaced if the new one has a better score. The best one of all is
    chosen. With `search.accept` the search ends as soon as one suffices.

    All steps of a chain are scored at once. The scorer computes whole chains, also the steps that they share."""

    Config = RegenerateConfig
    newest_only = False
    uses_given = True
    settings: RegenerateConfig

    def search(self, task: Task) -> Steps[Found]:
        own = self.settings
        made = Candidates(own)
        best = yield from together([self._first(task, number) for number in range(own.chains)])
        made.add(best)
        firsts = [PRIOR, *first_scores(best)]
        for time in range(1, own.n // own.chains + 1):
            if made.accepted:
                break
            steps = [start_step(each.steps, own.start, firsts) for each in best]
            again = yield from together(
                [
                    self._whole(task, before(each.node, step), time * own.chains + number)
                    for number, (each, step) in enumerate(zip(best, steps, strict=True))
                ]
            )
            made.add(again)
            firsts += first_scores([each for each, step in zip(again, steps, strict=True) if step == 0])
            best = [new if is_better(new, old) else old for new, old in zip(again, best, strict=True)]
        return made.found()

    def _first(self, task: Task, number: int) -> Steps[Scored]:
        if number == 0 and task.given:
            return (yield from scored_chain(task.given[-1], task.aggregation))
        return (yield from self._whole(task, task.root, number))

    def _whole(self, task: Task, node: Node, draw: int) -> Steps[Scored]:
        nodes = yield from sample(node, draw, WHOLE)
        return (yield from scored_chain(nodes[-1], task.aggregation))


def is_better(new: Scored, old: Scored) -> bool:
    """Whether a chain replaces another one: not if both are equally good."""
    return new.score is not None and (old.score is None or new.score > old.score)


def first_scores(chains: Sequence[Scored]) -> list[float]:
    """The known scores of the first steps."""
    return [each.steps[0].score for each in chains if each.steps and each.steps[0].score is not None]


def start_step(steps: Sequence[StepScore], start: RegenerateFrom, firsts: Sequence[float]) -> int:
    """The number, from 0, of the step from which a chain is written again; the earliest of equals.

    `firsts`: scores of first steps of chains of the problem, and `PRIOR`. Their mean estimates the score of the problem without
    a step, which a scorer does not give, and the drop of the first step is against it. A step without a score is not looked
    at. Without any score, the chain is written again from the beginning."""
    known = [(number, step.score) for number, step in enumerate(steps) if step.score is not None]
    if not known:
        return 0
    if start is RegenerateFrom.weakest:
        return min(known, key=lambda each: (each[1], each[0]))[0]
    before_it = sum(firsts) / len(firsts) if firsts else known[0][1]
    drops = []
    for number, score in known:
        drops.append((score - before_it, number))
        before_it = score
    return min(drops)[1]


def before(node: Node, step: int) -> Node:
    """The node of a chain before its step with this number, from 0."""
    path = path_of(node)
    first = path[0].parent if path else node.parent
    found = path[step - 1] if step else first
    assert found is not None
    return found
