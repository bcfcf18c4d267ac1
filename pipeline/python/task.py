"""What the process that works for a Python call is asked to do."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.storage.run_record import LABEL

if TYPE_CHECKING:
    from pipeline.runtime.objects import Packed


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`command`: `label`, `grow`, `judge`, `check` or `search`. `overrides`: its settings. `objects`: those that the call gave;
    None without any."""

    overrides: Sequence[str]
    objects: "Packed | None" = None
    command: str = LABEL

    def offered(self) -> AbstractContextManager[None]:
        """The registries of this process resolve the names of the objects within the context. Raises UsageError."""
        if self.objects is None:
            return nullcontext()
        from pipeline.runtime.objects import offered

        return offered(self.objects.unpacked()[0])
