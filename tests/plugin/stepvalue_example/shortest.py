"""A search without a scorer: the shortest of n whole chains."""

from dataclasses import dataclass
from typing import Annotated

from pipeline.config.fields import BY_GROUP
from pipeline.config.search import SearchConfig
from pipeline.searches.base import WHOLE, Found, Node, Search, Steps, Task, path_of, sample, together


@dataclass(kw_only=True, slots=True)
class ShortestConfig(SearchConfig):
    method: Annotated[str, BY_GROUP] = "shortest"
    torn: str = ""
    """What it does wrongly, which the tests want to see refused: `root` chooses a chain that is none, `after` goes on after the
    end of one, `raises` raises."""


class Shortest(Search):
    Config = ShortestConfig
    scores = False
    settings: ShortestConfig

    def search(self, task: Task) -> Steps[Found]:
        found = yield from together([sample(task.root, draw, WHOLE) for draw in range(self.settings.n)])
        ends = [nodes[-1] for nodes in found]
        chosen = min(ends, key=lambda node: (sum(each.n_tokens for each in path_of(node)), node.node_id))
        match self.settings.torn:
            case "root":
                chosen = task.root
            case "after":
                yield from sample(chosen, 0)
            case "raises":
                yield from together([self._torn(task.root)])
        return Found(candidates=tuple(ends), chosen=chosen)

    def _torn(self, root: Node) -> Steps[None]:
        yield from sample(root, self.settings.n // 0)
