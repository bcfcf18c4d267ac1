"""The data in the page as JSON: an index with a few numbers of every chain, and blocks with texts and rollouts. Pure.

The index has columns with one entry per chain. Values have three decimals.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pipeline.analysis.report.browser.views import (
    RolloutExample,
    Row,
    along,
    is_consensus,
    largest_drop,
    prefixes,
    uncertainty,
)
from pipeline.consensus.kept import differs, label_place
from pipeline.display.embedded import json_text, rounded

BLOCK = 128
"""Chains per block."""
STRIP = 48
"""The most bars of a chain's strip. In longer chains, a bar is the lowest value of several steps."""
_BEGINNING = 160
"""Characters of a problem that the list shows."""
_OUTCOMES = {True: "r", False: "w", None: "o"}
_COLUMNS = (
    *("ids", "sources", "problem", "outcomes", "steps", "strips"),
    *("drops", "dropped", "uncertainty", "least", "consensus"),
)
"""Of the index, with an entry for each chain. `outcomes` and `consensus` are texts of one character for each."""
_DISAGREE, _LEFT_OUT = 1, 2
"""Marks of a chain in the index, which are added up."""


class Index:
    """The index; chains are added one by one."""

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._by_consensus = False

    def __len__(self) -> int:
        return len(self._columns["ids"])

    def add(self, chain: Row) -> None:
        """Chains of one problem must be added one after another."""
        beginning = chain["problem"][:_BEGINNING]
        if not self._problems or self._problems[-1] != beginning:
            self._problems.append(beginning)
        values, drop = chain["value"], largest_drop(chain)
        self._by_consensus |= is_consensus(chain)
        entry = (
            chain["chain_id"],
            chain["source_id"],
            len(self._problems) - 1,
            _OUTCOMES[chain["outcome"]],
            len(values),
            [None if value is None else round(100 * value) for value in strip(values)],
            rounded(drop.size) if drop else 0,
            drop.step if drop else 0,
            rounded(uncertainty(chain)),
            rounded(min((value for value in values if value is not None), default=None)),
            _marks(chain) if is_consensus(chain) else 0,
        )
        for column, value in zip(self._columns.values(), entry, strict=True):
            column.append(value)

    def json(self, confidence: float) -> str:
        """`confidence`: that of the intervals. Without labels by consensus, `consensus` is null."""
        of_chains: dict[str, object] = {
            **self._columns,
            "outcomes": "".join(self._columns["outcomes"]),
            "consensus": "".join(map(str, self._columns["consensus"])) if self._by_consensus else None,
        }
        return json_text({"block": BLOCK, "confidence": confidence, "problems": self._problems, **of_chains})


def strip(values: Sequence[float | None]) -> list[float | None]:
    """At most `STRIP` values: the lowest known value of each of that many even parts, None if a part has none."""
    count = min(STRIP, len(values))
    bounds = [round(part * len(values) / count) for part in range(count + 1)] if count else []
    parts = (values[start:end] for start, end in pairwise(bounds))
    return [min((value for value in part if value is not None), default=None) for part in parts]


def prefix_numbers(chains: Sequence[Row]) -> dict[str, int]:
    """The number of each distinct prefix of a block, in order of first appearance."""
    numbers: dict[str, int] = {}
    for chain in chains:
        for prefix in prefixes(chain):
            numbers.setdefault(prefix, len(numbers))
    return numbers


def texts_json(chains: Sequence[Row], numbers: Mapping[str, int]) -> str:
    """Texts and numbers of a block of chains."""
    problems: dict[str, int] = {}
    witnesses: dict[str, int] = {}
    for chain in chains:
        problems.setdefault(chain["problem"], len(problems))
        for each in chain["opinions"] if is_consensus(chain) else ():
            witnesses.setdefault(each["witness"], len(witnesses))
    return json_text(
        {
            "problems": list(problems),
            "witnesses": list(witnesses),
            "chains": [
                {
                    "problem": problems[chain["problem"]],
                    "gold": chain["gold_answer"],
                    "answer": chain["final_answer"],
                    "p_outcome": rounded(chain["p_outcome"]),
                    "texts": chain["steps"],
                    "labels": chain["label"],
                    **({"consensus": _opinions(chain, witnesses)} if is_consensus(chain) else {}),
                    **({"findings": chain["findings"]} if chain["findings"] else {}),
                    # The bare problem comes first.
                    "prefixes": [numbers[prefix] for prefix in prefixes(chain)],
                    "values": [rounded(value) for value in along(chain, "value")],
                    "low": [rounded(value) for value in along(chain, "low")],
                    "high": [rounded(value) for value in along(chain, "high")],
                    "correct": along(chain, "n_correct"),
                    "rollouts": along(chain, "n_rollouts"),
                    "ungraded": along(chain, "n_ungraded"),
                    "truncated": along(chain, "n_truncated"),
                    "origins": along(chain, "origin"),
                }
                for chain in chains
            ],
        }
    )


def examples_json(found: Mapping[str, Sequence[RolloutExample]], numbers: Mapping[str, int]) -> str:
    """Examples of the rollouts of a block, by prefix number."""
    return json_text({str(numbers[prefix]): shown for prefix, shown in found.items()})


def _marks(chain: Row) -> int:
    """Whether a witness names another first error than Monte Carlo, or only one of them names one; and whether the chain has no
    labels."""
    disagree = differs(label_place(chain["mc_label"]), {each["witness"]: each["place"] for each in chain["opinions"]})
    return _DISAGREE * disagree + _LEFT_OUT * all(label is None for label in chain["label"])


def _opinions(chain: Row, witnesses: Mapping[str, int]) -> dict[str, object]:
    free = chain["p_error_free"]
    return {
        "mc": chain["mc_label"],
        "mc_place": label_place(chain["mc_label"]),
        "free": None if free is None else [rounded(each) for each in free],
        "out": chain["left_out"],
        "opinions": [
            {
                "witness": witnesses[each["witness"]],
                "shares": [rounded(share) for share in each["first_error"]],
                "none": rounded(each["no_error"]),
                "steps": each["steps"],
                "place": each["place"],
            }
            for each in chain["opinions"]
        ],
    }
