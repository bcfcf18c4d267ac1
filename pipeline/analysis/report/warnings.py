"""What a user of the labels should know before training on them: a policy that solves nothing or everything, labels 0 that only
repeat outcomes or say that a problem is too hard, and rollouts whose grading depends on the answer. Pure; `steps` is the table
of `aggregates.steps_of`."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.analysis.comparison import jackknife, ratio, sums_of
from pipeline.core.formatting import format_count, format_percent
from pipeline.core.records import Origin
from pipeline.core.statistics import Floats, Interval
from pipeline.estimators.target_places import EXTREME, LEAST_TARGETS, MORE_ZEROS, mostly_ends
from pipeline.estimators.target_places import HALF as MOSTLY

LARGE_SHARE = 0.1
"""Where more rollouts than this share are ungraded, values are uncertain even if the share does not depend on them."""
LEAST_DIFFERENCE = 0.02
"""A smaller difference between shares of ungraded rollouts biases values by less than rollouts can show."""
HALF = 0.5
"""Values up to this are low."""
LEAST_ROLLOUTS = 100
"""Of fewer rollouts nothing is said about the policy."""
_GRADE_AGAIN = (
    "See their verdicts: for `timeout` raise grader.deadline_seconds, for `unparseable` change how answers are found "
    "(grader.answer_pattern), and `regrade`"
)
LONG = 64
"""Tokens from which on two independent rollouts hardly ever have the same text: at 0.05 nats a token, 4 % of pairs do. The last
steps of a chain, which policies often repeat, are shorter."""
REPEATED = 0.2
"""The share of such rollouts above which the policy, or what serves it, does not draw them independently."""
UNSOLVED = 0.1
"""A problem whose value is at most this is hardly ever solved, whatever its steps are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UngradedRollouts:
    """Shares of ungraded rollouts of prefixes with low and with other values, their difference with its interval, and the mean
    of c/n over prefixes as graded, and if all ungraded rollouts were incorrect or correct."""

    low: float
    high: float
    difference: Interval
    mean: float
    all_wrong: float
    all_right: float

    @property
    def depends_on_values(self) -> bool:
        """Whether rollouts of prefixes with low values are ungraded more often, or less often, than others."""
        wide = self.difference.value is not None and abs(self.difference.value) >= LEAST_DIFFERENCE
        return wide and self.difference.has_value


def zeros_at_ends(steps: pl.DataFrame) -> tuple[int, int]:
    """The number of labels 0 at ends of chains, which only repeat the outcome, and of all labels 0."""
    zeros = steps.filter(pl.col("label") == 0)
    return zeros.filter(pl.col("origin") == Origin.TERMINAL.value).height, zeros.height


def zeros_of_unsolved(steps: pl.DataFrame) -> tuple[int, int]:
    """Of the labels 0 before the ends of chains: those in chains whose bare problem has a value up to `UNSOLVED`, and all."""
    zeros = steps.filter((pl.col("label") == 0) & (pl.col("origin") != Origin.TERMINAL.value))
    unsolved = steps.filter((pl.col("step") == 0) & (pl.col("value") <= UNSOLVED))
    return zeros.join(unsolved.select("chain"), on="chain", how="semi").height, zeros.height


def ungraded_rollouts(steps: pl.DataFrame) -> UngradedRollouts | None:
    """None where no rollout is ungraded, or where no prefix has a low value, or none another one.

    The interval is that of the jackknife over chains (`analysis.comparison`): rollouts of one problem are ungraded
    together, for example if its known answer is slow to compare.
    """
    sampled = steps.filter(pl.col("counts") & (_issued() > 0)).drop_nulls("value")
    if not sampled["n_ungraded"].sum():
        return None
    columns = sampled.select(pl.col("value") <= HALF, "n_ungraded", _issued(), "n_correct").cast(pl.Float64)
    low, ungraded, issued, correct = (each.to_numpy() for each in columns)
    if not 0 < low.sum() < len(low):
        return None
    chains = np.unique(sampled["chain"].to_numpy(), return_inverse=True)[1]
    sums = sums_of(chains, [low * ungraded, low * issued, (1 - low) * ungraded, (1 - low) * issued])

    def difference(sums: Floats) -> Floats:
        return ratio(sums[..., :2]) - ratio(sums[..., 2:])

    total = sums.sum(axis=0)
    graded = issued > ungraded
    return UngradedRollouts(
        low=float(total[0] / total[1]),
        high=float(total[2] / total[3]),
        difference=jackknife(sums, difference),
        mean=float((correct[graded] / (issued - ungraded)[graded]).mean()) if graded.any() else float("nan"),
        all_wrong=float((correct / issued).mean()),
        all_right=float(((correct + ungraded) / issued).mean()),
    )


def repeated_texts(log: pl.DataFrame) -> tuple[int, int]:
    """Of the rollouts with at least `LONG` tokens: those with the text of an earlier one of their prefix, and all."""
    texts = log.filter(pl.col("n_tokens") >= LONG).select("prefix_id", "text")
    return texts.height - texts.unique().height, texts.height


def warning_lines(steps: pl.DataFrame, repeats: tuple[int, int] = (0, 0)) -> Iterator[str]:
    """Sentences for the terminal and the page; nothing where there is nothing to warn of. `repeats`: see `repeated_texts`."""
    repeated, long = repeats
    if long >= LEAST_ROLLOUTS and repeated > REPEATED * long:
        yield (
            f"{repeated:,} of {format_count(long, 'rollout')} with at least {LONG} tokens repeat an earlier text of their "
            "prefix, so they are hardly drawn each time, and intervals are too narrow. Turn off the server's cache of "
            "answers, and sample at a higher sampling.temperature"
        )
    issued = steps.filter("counts")
    if issued["n_ungraded"].sum() and not issued["n_rollouts"].sum():
        rollouts = format_count(int(issued["n_ungraded"].sum()), "rollout")
        yield (
            f"none of {rollouts} could be graded, so no value rests on a rollout. rollouts/ has the verdict of each. Change "
            "settings of the grader and `regrade`"
        )
    correct, graded, ungraded = (int(issued[name].sum()) for name in ("n_correct", "n_rollouts", "n_ungraded"))
    found = ungraded_rollouts(steps)
    if found is not None and found.depends_on_values:
        yield (
            f"{format_percent(found.low)} of the rollouts of prefixes with values up to {HALF:g} are ungraded, but "
            f"{format_percent(found.high)} of the others: whether a rollout can be graded depends on its answer, and values "
            f"are biased. Their mean is {found.mean:.2f}; it would be {found.all_wrong:.2f} if all ungraded rollouts were "
            f"incorrect, and {found.all_right:.2f} if all were correct. {_GRADE_AGAIN}"
        )
    elif ungraded <= LARGE_SHARE * (graded + ungraded):
        yield from _policy_lines(correct, graded)
    elif graded:
        shares = (correct / (graded + ungraded), (correct + ungraded) / (graded + ungraded))
        yield (
            f"{format_percent(ungraded / (graded + ungraded))} of {format_count(graded + ungraded, 'rollout')} are ungraded. "
            f"The share of correct rollouts is {format_percent(correct / graded)} of the others, and would be "
            f"{format_percent(shares[0])} if all of them were incorrect and {format_percent(shares[1])} if all were correct. "
            f"{_GRADE_AGAIN}"
        )
    later = steps.filter(pl.col("step") > 0)
    if later.height and (later["origin"] == Origin.TERMINAL.value).all():
        yield "no chain has a step before its last one: all labels only repeat outcomes. Label chains of several steps"
    elif words := mostly_ends(*zeros_at_ends(steps)):
        yield f"{words}. Train on values instead (target=soft), or {MORE_ZEROS}"
    unsolved, zeros = zeros_of_unsolved(steps)
    if zeros >= LEAST_TARGETS and unsolved > MOSTLY * zeros:
        yield (
            f"{unsolved:,} of {format_count(zeros, 'label')} 0 before last steps are in chains whose bare problem has a value "
            f"of at most {UNSOLVED:g}: they say that the policy cannot solve the problem, and not that the step is wrong. "
            "The column nothing_to_lose marks them; min_root_value of `export` and `train` leaves out such chains"
        )


def _policy_lines(correct: int, graded: int) -> Iterator[str]:
    if graded < LEAST_ROLLOUTS or EXTREME < correct / graded < 1 - EXTREME:
        return
    share = f"{correct:,} of {format_count(graded, 'graded rollout')} ({format_percent(correct / graded)}) are correct"
    if correct <= EXTREME * graded:
        yield (
            f"only {share}: nearly all values are close to 0, whether a step is right or wrong, and teach nothing about steps. "
            "Use a policy that solves more of these problems, or easier problems"
        )
    else:
        yield (
            f"{share}: nearly all values are close to 1, also after wrong steps, and teach nothing about steps. Use harder "
            "problems, or chains with more errors"
        )


def _issued() -> pl.Expr:
    return pl.col("n_rollouts") + pl.col("n_ungraded")
