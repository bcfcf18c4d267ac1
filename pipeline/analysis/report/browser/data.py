"""The data in the page as JSON: an index with a few numbers of every chain, and blocks with texts and rollouts. Pure.

The index has columns with one entry per chain. Values have three decimals.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from pipeline.analysis.report.browser.views import (
    ChainView,
    ConsensusView,
    Drop,
    FindingView,
    RolloutExample,
    StepView,
    largest_drop,
    uncertainty,
)
from pipeline.analysis.report.embedded import json_text, rounded

BLOCK = 128
"""Chains per block."""
STRIP = 48
"""The most bars of a chain's strip. In longer chains, a bar is the lowest value of several steps."""
_BEGINNING = 160
"""Characters of a problem that the list shows."""
_OUTCOMES = {True: "r", False: "w", None: "o"}
_DISAGREE, _LEFT_OUT = 1, 2
"""Marks of a chain in the index, which are added up."""


class Index:
    """The index; chains are added one by one."""

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._ids: list[str] = []
        self._sources: list[str] = []
        self._problem: list[int] = []
        self._outcomes: list[str] = []
        self._steps: list[int] = []
        self._strips: list[list[int | None]] = []
        self._drops: list[Drop | None] = []
        self._uncertainty: list[float | None] = []
        self._least: list[float | None] = []
        self._marks: list[int] = []
        self._by_consensus = False

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, chain: ChainView) -> None:
        """Chains of one problem must be added one after another."""
        beginning = chain.problem[:_BEGINNING]
        if not self._problems or self._problems[-1] != beginning:
            self._problems.append(beginning)
        values = [step.value for step in chain.steps]
        self._ids.append(chain.chain_id)
        self._sources.append(chain.source_id)
        self._problem.append(len(self._problems) - 1)
        self._outcomes.append(_OUTCOMES[chain.outcome])
        self._steps.append(len(chain.steps))
        self._strips.append([None if value is None else round(100 * value) for value in strip(values)])
        self._drops.append(largest_drop(chain))
        self._uncertainty.append(rounded(uncertainty(chain)))
        self._least.append(rounded(min((value for value in values if value is not None), default=None)))
        agreed = chain.consensus
        self._by_consensus |= agreed is not None
        left_out = all(step.label is None for step in chain.steps)
        self._marks.append(_DISAGREE * agreed.disagrees + _LEFT_OUT * left_out if agreed else 0)

    def json(self, confidence: float) -> str:
        """`confidence`: that of the intervals. Without labels by consensus, `consensus` is null."""
        return json_text(
            {
                "block": BLOCK,
                "confidence": confidence,
                "problems": self._problems,
                "ids": self._ids,
                "sources": self._sources,
                "problem": self._problem,
                "outcomes": "".join(self._outcomes),
                "steps": self._steps,
                "strips": self._strips,
                "drops": [rounded(drop.size) if drop else 0 for drop in self._drops],
                "dropped": [drop.step if drop else 0 for drop in self._drops],
                "uncertainty": self._uncertainty,
                "least": self._least,
                "consensus": "".join(map(str, self._marks)) if self._by_consensus else None,
            }
        )


def strip(values: Sequence[float | None]) -> list[float | None]:
    """At most `STRIP` values: the lowest known value of each of that many even parts, None if a part has none."""
    count = min(STRIP, len(values))
    bounds = [round(part * len(values) / count) for part in range(count + 1)] if count else []
    parts = (values[start:end] for start, end in pairwise(bounds))
    return [min((value for value in part if value is not None), default=None) for part in parts]


def prefix_numbers(chains: Sequence[ChainView]) -> dict[str, int]:
    """The number of each distinct prefix of a block, in order of first appearance."""
    numbers: dict[str, int] = {}
    for chain in chains:
        for prefix in (chain.root, *chain.steps):
            numbers.setdefault(prefix.prefix_id, len(numbers))
    return numbers


def texts_json(chains: Sequence[ChainView], numbers: Mapping[str, int]) -> str:
    """Texts and numbers of a block of chains."""
    problems: dict[str, int] = {}
    for chain in chains:
        problems.setdefault(chain.problem, len(problems))
    opinions = (each for chain in chains if chain.consensus for each in chain.consensus.opinions)
    witnesses = {name: number for number, name in enumerate(dict.fromkeys(each.witness for each in opinions))}
    return json_text(
        {
            "problems": list(problems),
            "witnesses": list(witnesses),
            "chains": [
                {
                    "problem": problems[chain.problem],
                    "gold": chain.gold,
                    "answer": chain.answer,
                    "p_outcome": rounded(chain.p_outcome),
                    "texts": [step.text for step in chain.steps],
                    "labels": [step.label for step in chain.steps],
                    **({"consensus": _opinions(chain.consensus, witnesses)} if chain.consensus else {}),
                    **({"findings": _findings(chain.findings)} if chain.findings else {}),
                    # The bare problem comes first.
                    **_columns([chain.root, *chain.steps], numbers),
                }
                for chain in chains
            ],
        }
    )


def examples_json(found: Mapping[str, Sequence[RolloutExample]], numbers: Mapping[str, int]) -> str:
    """Examples of the rollouts of a block, by prefix number."""
    return json_text(
        {
            str(numbers[prefix]): [
                [example.verdict, example.finish, example.n_tokens, example.answer, example.text] for example in shown
            ]
            for prefix, shown in found.items()
        }
    )


def _opinions(agreed: ConsensusView, witnesses: Mapping[str, int]) -> dict[str, object]:
    free = agreed.error_free
    return {
        "mc": list(agreed.mc_labels),
        "mc_place": agreed.mc_place,
        "free": None if free is None else [rounded(each) for each in free],
        "out": agreed.left_out,
        "opinions": [
            {
                "witness": witnesses[each.witness],
                "shares": [rounded(share) for share in each.shares],
                "none": rounded(each.no_error),
                "steps": None if each.steps is None else list(each.steps),
                "place": each.place,
            }
            for each in agreed.opinions
        ],
    }


def _findings(found: Mapping[int, Sequence[FindingView]]) -> dict[str, object]:
    return {
        str(step): [[each.verifier, each.verdict, each.whole, each.evidence] for each in of_step]
        for step, of_step in found.items()
    }


def _columns(prefixes: Sequence[StepView], numbers: Mapping[str, int]) -> dict[str, object]:
    return {
        "prefixes": [numbers[prefix.prefix_id] for prefix in prefixes],
        "values": [rounded(prefix.value) for prefix in prefixes],
        "low": [rounded(prefix.low) for prefix in prefixes],
        "high": [rounded(prefix.high) for prefix in prefixes],
        "correct": [prefix.n_correct for prefix in prefixes],
        "rollouts": [prefix.n_rollouts for prefix in prefixes],
        "ungraded": [prefix.n_ungraded for prefix in prefixes],
        "truncated": [prefix.n_truncated for prefix in prefixes],
        "origins": [prefix.origin for prefix in prefixes],
    }
