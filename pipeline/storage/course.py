"""How a start of `label` went so far, in a bounded number of samples."""

from pipeline.core.progress import Status
from pipeline.storage.starts import Sample

MOST = 600
EVERY_SECONDS = 1.0
"""Between two samples at least; twice as much each time that there are too many."""


class Course:
    """`samples`, the last of which is always what was taken last. There are `MOST` at most: every other one goes when there
    would be more."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._every = EVERY_SECONDS

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(self._samples)

    def take(self, status: Status, seconds: float) -> None:
        """Note what a start has come to after so many seconds; they never go back."""
        sample = sample_of(status, seconds)
        if len(self._samples) > 1 and self._samples[-1].seconds - self._samples[-2].seconds < self._every:
            self._samples[-1] = sample
        else:
            self._samples.append(sample)
        if len(self._samples) > MOST:
            self._every *= 2
            self._samples = [*self._samples[:-1:2], sample]


def sample_of(status: Status, seconds: float) -> Sample:
    return Sample(
        seconds=round(seconds, 3),
        units_done=status.units_done,
        prefixes_decided=status.prefixes_decided,
        rollouts=status.rollouts,
        tokens=status.tokens,
        running=status.load.running,
        waiting=status.load.waiting,
        grading=status.load.grading,
        workers=status.workers,
        device_seconds=round(status.device_seconds, 3),
    )
