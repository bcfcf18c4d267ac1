"""Checks the picks of a plug-in one by one, and says whose they are."""

from collections.abc import Iterator

from pipeline.config.grow import PickerConfig
from pipeline.core.errors import PluginError
from pipeline.pickers.base import Pick, Picker, Problem, wrong_pick
from pipeline.pickers.registry import PICKERS

_DOING = "picks"


class CheckedPicker(Picker):
    """A picker that is a plug-in. It works while its picks are taken, so each of them is guarded, and not the call alone."""

    def __init__(self, inner: Picker, settings: PickerConfig) -> None:
        super().__init__(settings)
        self._inner = inner
        self.comparable = inner.comparable

    def picks(self, problem: Problem) -> Iterator[Pick]:
        name, taken = self.settings.pick, set[int]()
        with PICKERS.blame(name, _DOING):
            found = iter(self._inner.picks(problem))
        while True:
            with PICKERS.blame(name, _DOING):
                try:
                    pick = next(found)
                except StopIteration:
                    return
                wrong = wrong_pick(pick, problem, taken)
            if wrong:
                raise PluginError(f"picker {name} of {PICKERS.plugin(name)} failed in {_DOING}: {wrong}")
            taken.add(pick.node)
            yield pick
