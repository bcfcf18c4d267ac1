"""Methods that keep the best of several next steps: beam search, and diverse verifier tree search.

Both follow search-and-learn (Beeching et al. 2024), but for the end of a beam; see `Beam`.
"""

from pipeline.searches.base import Found, Search, Steps, Task, sample, together
from pipeline.searches.choice import Candidates, Scored, distinct, next_step, rank, scored_after
from pipeline.searches.settings import BeamConfig, DvtsConfig


class Beam(Search):
    """n next steps of the problem are sampled. Then, again and again, the best n / width (rounded down) of all beams stay, and
    `width` next steps of each are sampled.

    A chain that has ended is a candidate. It also keeps competing with the beams: as long as it is among the best n / width, it
    takes the place of one of them. The search ends when all of these have ended. So n / width chains at most are kept, and a
    beam that is worse than all ended ones is not sampled further."""

    Config = BeamConfig
    settings: BeamConfig

    def search(self, task: Task) -> Steps[Found]:
        own = self.settings
        keep = own.n // own.width
        made = Candidates(own)
        beams, draws = [Scored(node=task.root)], own.n
        for _ in range(own.max_steps):
            steps = [_rival(task, own, beam, draw) for beam in beams for draw in range(draws)]
            grown = yield from together(steps)
            draws = own.width
            made.add(grown)
            if made.accepted:
                break
            rivals = [*made.chains, *(each for each in grown if not each.node.ended)]
            best = sorted(distinct(rivals) if own.distinct else rivals, key=rank)[:keep]
            beams = [each for each in best if not each.node.ended]
            if not beams:
                break
        return made.found()


class Dvts(Search):
    """n / width (rounded down) subtrees that do not compete. In each, `width` next steps are sampled, and the best one is
    followed until it ends a chain. All chains that ended are candidates.

    With `search.accept`, the subtrees grow in rounds of `search.round`."""

    Config = DvtsConfig
    settings: DvtsConfig

    def search(self, task: Task) -> Steps[Found]:
        own = self.settings
        made = Candidates(own)
        subtrees = own.n // own.width
        size = subtrees if own.accept is None else own.round
        for first in range(0, subtrees, size):
            numbers = range(first, min(subtrees, first + size))
            for ended in (yield from together([self._subtree(task, number) for number in numbers])):
                made.add(ended)
            if made.accepted:
                break
        return made.found()

    def _subtree(self, task: Task, number: int) -> Steps[list[Scored]]:
        """The chains that ended in a subtree."""
        own = self.settings
        ended: list[Scored] = []
        best = Scored(node=task.root)
        first = number * own.width
        for _ in range(own.max_steps):
            grown = yield from together([_rival(task, own, best, first + draw) for draw in range(own.width)])
            first = 0
            ended += [each for each in grown if each.node.ended]
            best = min(grown, key=rank)
            if best.node.ended:
                break
        return ended


def _rival(task: Task, own: BeamConfig | DvtsConfig, before: Scored, draw: int) -> Steps[Scored]:
    """A next step with the score that it competes by: its own, or with `search.lookahead` that of where it leads."""
    here = yield from next_step(task, before, draw)
    if here.node.ended or not own.lookahead:
        return here
    # Draws below n are those of steps that may become part of a chain.
    ahead = yield from sample(here.node, own.n, own.lookahead)
    there = yield from scored_after(here, ahead[-1], task.aggregation)
    return here._replace(score=there.score, reliability=there.reliability)
