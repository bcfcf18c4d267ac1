"""TensorBoard: event files, those of all starts in one folder, so that its curves go on."""

import json
from collections.abc import Mapping
from pathlib import Path

from tensorboardX import SummaryWriter


class TensorBoard:
    """See `tracked.Sink`."""

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        self._writer = SummaryWriter(logdir=str(folder))
        # Four blanks: as it is, in what TensorBoard shows of a text.
        text = json.dumps(settings, indent=1, ensure_ascii=False)
        self._writer.add_text("settings", "\n".join(f"    {line}" for line in text.splitlines()))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def end(self) -> None:
        self._writer.close()
