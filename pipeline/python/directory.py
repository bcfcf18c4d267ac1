"""What every run directory has in Python: its path, its page, its audit, and the lines that are shown of it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.cli.command import Here, named_function
from pipeline.core.errors import StepvalueError, first_line
from pipeline.core.shown import Shown
from pipeline.python.overrides import Setting, objects_of, offered_here, overrides_of, settings_with, with_options
from pipeline.storage.location import storage_at

if TYPE_CHECKING:
    from pipeline.analysis.audit.run import AuditReport
    from pipeline.runtime.objects import Given


class RunDirectory(Shown, ABC):
    """A directory that is read again by each call."""

    def __init__(self, run_dir: str | Path, objects: "tuple[Given, ...]" = ()) -> None:
        """`objects`: those that the call gave."""
        self._storage = storage_at(str(run_dir))
        self._objects = objects
        self._stored()

    @property
    def run_dir(self) -> str:
        """Path or address of the directory."""
        return self._storage.run_dir

    def report(self, **settings: Any) -> str:
        """Write the page of the run, `report.html`, and return its path. Settings as for the command `report`."""
        self._here("report", settings, do="pipeline.analysis.report.run:report")
        return f"{self.run_dir}/report.html"

    def audit(self, **settings: Any) -> "AuditReport":
        """Prove every invariant of the run again. Settings as for the command `audit`."""
        found: AuditReport = self._here("audit", settings)
        return found

    @abstractmethod
    def _stored(self) -> Any:
        """What is stored now. Raises UsageError where there is no such run, and StoreError for a damaged file."""

    @abstractmethod
    def _outline(self) -> tuple[int, int, list[str]]:
        """The numbers of unfinished units and of all, and the important lines. Raises as `_stored` does."""

    def _shown_lines(self) -> Iterator[str]:
        named = f"{type(self).__name__}({self.run_dir!r}"
        try:
            unfinished, units, lines = self._outline()
        except StepvalueError as error:  # what shows an object does not expect that this fails
            yield f"{named}): {first_line(error)}"
            return
        yield f"{named}, {f'{unfinished} of {units} units unfinished' if unfinished else 'finished'})"
        yield from lines

    def _here(self, name: str, settings: dict[str, Any], *arguments: Setting, of_run: bool = True, do: str = "") -> Any:
        """Do the command of this name on this run in this process: what it finds, or `do`, module and name of another function
        of its settings. Without `of_run`, it needs no run. The objects of the run, and those among the settings, are known
        meanwhile."""
        from pipeline.cli import COMMANDS
        from pipeline.cli.compose import compose

        command, objects = COMMANDS[name], objects_of(settings)
        with offered_here((*self._objects, *objects)):
            asked = self._asked(arguments, objects, settings, of_run=of_run)
            config = compose(command, overrides_of(with_options(asked, command))).settings()
            if not do:
                assert isinstance(command.run, Here)
                do = command.run.finds
            return named_function(do)(config)

    def _asked(
        self, named: Iterable[Setting], objects: "tuple[Given, ...]", given: Mapping[str, Any], *, of_run: bool = True
    ) -> list[Setting]:
        """The settings of a command on this run: its named arguments, and those of the objects and settings that are given."""
        here = Setting(key="run_dir", value=self.run_dir if of_run else None, said="the directory of this run")
        return [here, *named, *settings_with(objects, given)]
