"""What an estimator of others answers is looked at before it is believed: a wrong length or number would be a wrong label."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.core.records import ChainShape, StepValue
from pipeline.estimators.tree import Tree

LABELS = (0, 1, 2, None)
_SHARES = ("value", "low", "high", "posterior_mean", "above")
"""Fields of a `StepValue` that are probabilities, or None."""
_SPREADS = ("posterior_sd", "advantage_sd")


def wrong_rollouts(found: Any, problems: Sequence[Tree], *_rest: object, **_named: object) -> str:
    """What is wrong with an answer of `next_rollouts`; empty: nothing."""
    if not isinstance(found, list) or len(found) != len(problems):
        return f"it has to give a list of {len(problems)} dicts, one for each problem, and gave {found!r:.200}"
    for tree, owed in zip(problems, found, strict=True):
        if not isinstance(owed, Mapping):
            return f"it has to give a dict for each problem, and gave {owed!r:.200}"
        prefixes = set(tree.prefix_ids)
        for prefix, count in owed.items():
            if prefix not in prefixes:
                return f"it asks for rollouts of {prefix!r:.60}, which is no prefix of that problem"
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                return f"it asks for {count!r:.60} rollouts of prefix {prefix}"
    return ""


def wrong_values(found: Any, chains: Sequence[ChainShape], *_rest: object, **_named: object) -> str:
    """What is wrong with an answer of `values`; empty: nothing."""
    if not isinstance(found, list) or len(found) != len(chains):
        return f"it has to give a list for each of {len(chains)} chains, and gave {found!r:.200}"
    for chain, values in zip(chains, found, strict=True):
        wanted = len(chain.prefix_ids)
        if not isinstance(values, Sequence) or len(values) != wanted:
            return f"it has to give {wanted} values of a chain of {wanted - 1} steps, and gave {values!r:.200}"
        for value in values:
            if not isinstance(value, StepValue):
                return f"it has to give values as StepValue, and gave {value!r:.200}"
            if wrong := _wrong_numbers(value):
                return wrong
    return ""


def wrong_labels(found: Any, chain: ChainShape, *_rest: object, **_named: object) -> str:
    """What is wrong with an answer of `labels`; empty: nothing."""
    steps = len(chain.prefix_ids) - 1
    if not isinstance(found, Sequence) or len(found) != steps or any(label not in LABELS for label in found):
        return f"it has to give {steps} labels that are 0, 1, 2 or None, and gave {found!r:.200}"
    return ""


def _wrong_numbers(value: StepValue) -> str:
    for name in _SHARES:
        share = getattr(value, name)
        if share is not None and not 0 <= share <= 1:
            return f"{name} has to be a probability or None, and is {share!r:.60}"
    for name in _SPREADS:
        spread = getattr(value, name)
        if spread is not None and not (spread >= 0 and math.isfinite(spread)):
            return f"{name} has to be a number of at least 0 or None, and is {spread!r:.60}"
    return ""


ANSWERS: Mapping[str, Callable[..., str]] = {
    "next_rollouts": wrong_rollouts,
    "values": wrong_values,
    "labels": wrong_labels,
}
