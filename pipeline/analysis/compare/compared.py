"""What a comparison of two runs came to."""

from dataclasses import dataclass

from pipeline.analysis.compare.common import Overlap
from pipeline.analysis.compare.differing import Difference
from pipeline.analysis.compare.flips import Flips
from pipeline.analysis.compare.noise import Noise
from pipeline.analysis.compare.shift import Shift


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the runs. `soft`: the column that its labels are made of. `rollouts` and `tokens` are those of its whole units,
    chains that the policy sampled left out; `on_common`: graded rollouts of common prefixes.
    `counts_are_shares`: see `estimators.base`."""

    run_dir: str
    policy: str
    estimator: str
    label_rule: str
    soft: str
    units: int
    owed: int
    chains: int
    prefixes: int
    rollouts: int
    tokens: int
    on_common: int
    counts_are_shares: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one run says of a prefix."""

    value: float | None
    mean: float
    sd: float
    correct: int
    rollouts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A prefix whose posterior moved far for what is known of it: `distance` is in standard deviations of both together.

    `last`: its last step; `None` for the bare problem. `name`: of its chain.
    """

    problem: str
    name: str
    position: int
    last: str | None
    a: Seen
    b: Seen
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """How many prefixes have which values in a and in b: `counts[i][j]` those in the i-th bin of a and the j-th of b, of as
    many bins of equal width over 0 to 1."""

    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that is told. `other_answers`: problems of the same words in both whose known answers differ."""

    a: Side
    b: Side
    differing: tuple[Difference, ...]
    overlap: Overlap
    other_answers: int
    shift: Shift
    noise: Noise
    flips: Flips
    bins: Bins
    moved: tuple[Moved, ...]
