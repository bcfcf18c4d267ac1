"""A comparison in a sentence. Pure.

A shift is told where its interval leaves 0 out, and so are movements both ways that cancel out: more prefixes beyond noise than
chance explains. What is not told may still be there: how large a shift could be is told instead.
"""

from pipeline.analysis.compare.flips import Flips
from pipeline.analysis.compare.noise import Noise
from pipeline.analysis.compare.shift import Shift
from pipeline.core.statistics import Estimated
from pipeline.core.words import percent


def verdict(shift: Shift, noise: Noise, flips: Flips) -> str:
    if not _same_values(shift):
        return "; ".join([_shift(shift), *_moved(noise), *_flipped(flips)])
    unlike = sum(number for i, row in enumerate(flips.table) for j, number in enumerate(row) if i != j)
    where = f"on all of {shift.prefixes:,} common prefixes"
    if not unlike:
        return f"the same values and labels, {where}"
    return f"the same values, {where}; {unlike:,} of {sum(map(sum, flips.table)):,} labels differ, as they are made otherwise"


def _same_values(shift: Shift) -> bool:
    alike = shift.pearson.value is None or shift.pearson.value == 1
    return 0 < shift.prefixes == shift.equal and alike


def _shift(shift: Shift) -> str:
    found = shift.shift
    if found.value is None:
        return "no common prefix has an unbiased value in both runs: of a shift nothing can be said"
    if found.low is None or found.high is None:
        return f"values of b differ by {found.value:+.3f}, of a single problem: of a shift nothing can be said"
    if not found.told:
        most = max(abs(found.low), abs(found.high))
        told = f"b - a {interval(found)}: at 95 %, no more than {most:.3f}"
        return f"no mean shift that {shift.prefixes:,} prefixes could show ({told})"
    way = "lower" if found.value < 0 else "higher"
    low, high = sorted((abs(found.low), abs(found.high)))
    return f"values of b are {way} by {abs(found.value):.3f} ({low:.3f} to {high:.3f})"


def _moved(noise: Noise) -> list[str]:
    if noise.beyond is None or noise.by_chance is None or noise.excess.value is None:
        return []
    beyond, chance = percent(noise.beyond), percent(noise.by_chance)
    if noise.excess.told and noise.excess.value > 0:
        return [f"{beyond} of prefixes differ by more than noise, where chance makes it {chance}"]
    return [f"single prefixes differ no more than by noise ({beyond}, chance {chance})"]


def _flipped(flips: Flips) -> list[str]:
    if flips.flipped.value is None:
        return []
    chance = "" if flips.by_chance is None else f" (chance alone: {percent(flips.by_chance)})"
    return [f"{percent(flips.flipped.value)} of labels flip{chance}"]


def interval(figure: Estimated, sign: str = "+") -> str:
    """A figure with its interval, if it has one; `sign`: `+` for differences, else empty."""
    if figure.value is None:
        return "-"
    value = f"{figure.value:{sign}.3f}"
    return value if figure.low is None else f"{value} ({figure.low:{sign}.3f} to {figure.high:{sign}.3f})"
