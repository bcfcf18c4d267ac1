"""What the process that labels is asked to do."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.runtime.objects import Packed


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`overrides`: settings of the command `label`. `objects`: those that the call gave; None without any."""

    overrides: Sequence[str]
    objects: "Packed | None" = None

    def offered(self) -> AbstractContextManager[None]:
        """The registries of this process resolve the names of the objects within the context. Raises UsageError."""
        if self.objects is None:
            return nullcontext()
        from pipeline.runtime.objects import offered

        return offered(self.objects.unpacked()[0])
