"""A search of your own: of n next steps the best-scored one is kept, until the chain ends.

    python -m pipeline.examples.search

solves two problems in the folder `searched`, and prints the first one's answer and the tree of its steps. The oracle stands in
for a policy and for a scorer.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pipeline import search
from pipeline.config.fields import BY_GROUP
from pipeline.config.search import SearchConfig
from pipeline.searches.base import Found, Node, Search, Steps, Task, sample, score, together


@dataclass(kw_only=True, slots=True)
class GreedyConfig(SearchConfig):
    method: Annotated[str, BY_GROUP] = "greedy"
    unscored: float = 0.0
    """The score of a step that has none."""


class Greedy(Search):
    Config = GreedyConfig
    settings: GreedyConfig

    def search(self, task: Task) -> Steps[Found]:
        at, best = task.root, 0.0
        while not at.ended:
            draws = yield from together([self._next(at, draw) for draw in range(self.settings.n)])
            best, _, at = max(draws, key=lambda drawn: drawn[:2])
        return Found(candidates=(at,), chosen=at, confidence=best)

    def _next(self, node: Node, draw: int) -> Steps[tuple[float, str, Node]]:
        (step,) = yield from sample(node, draw)
        found = yield from score(step)
        return (self.settings.unscored if found.score is None else found.score, step.node_id, step)


ROWS = [{"problem": "What is 2 + 3 + 4?", "answer": "9"}, {"problem": "What is 5 + 6?", "answer": "11"}]
TREE: dict[str, Any] = {"kind": "oracle", "oracle": {"world": "tree"}}


def main() -> None:
    """Solve the problems, and show what was found of the first one."""
    run = search(ROWS, policy=TREE, scorer=TREE, search=Greedy(GreedyConfig(n=3)), run_dir="searched")
    solved = run.solved()[0]
    print(solved)
    print(run.tree(solved.problem_id))


if __name__ == "__main__":
    main()
