"""The browser of a run's labelled chains: each is a path, whose steps have values, labels and examples of rollouts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import polars as pl

from pipeline.analysis.browser.examples import (
    ROLLOUT_COLUMNS,
    Examples,
    Row,
    affordable,
    along,
    largest_drop,
    prefixes,
    rollout_examples,
)
from pipeline.analysis.browser.parts import (
    LIMITS,
    MARKS,
    OUTCOMES,
    Blocks,
    Browser,
    Chosen,
    Detail,
    Order,
    beginning,
    entry,
    nodes,
    short,
)
from pipeline.analysis.report.aggregates import BARS, bars_of
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import chosen_settings as settings_of
from pipeline.consensus.kept import differs, label_place, reason_text, witness_places
from pipeline.core.errors import UsageError
from pipeline.core.tables import LABELS, ROLLOUTS
from pipeline.display.document import Inset
from pipeline.display.embedded import data_element, json_text, rounded, shortened
from pipeline.estimators.registry import ESTIMATORS
from pipeline.storage.editions import VERDICTS, current_shards
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_findings import CHECK_RUNS, StoredCheck, verdict_frames
from pipeline.storage.stored_labels import has_consensus
from pipeline.storage.stored_run import StoredRun
from pipeline.storage.units import RowNames, UnitRef
from pipeline.verifiers.base import Covers

STRIP = 48
"""The most bars of a chain's strip. In longer chains, a bar is the lowest value of several steps."""
_PER_PREFIX = ("value", "value_sd", "low", "high", "n_correct", "n_rollouts", "n_ungraded", "n_truncated", "origin")
_COLUMNS = (
    *("chain_id", "problem_id", "source_id", "problem", "gold_answer", "steps", "root_prefix_id", "prefix_ids"),
    *("final_answer", "outcome", "p_outcome", "label", *_PER_PREFIX, *(f"root_{name}" for name in _PER_PREFIX)),
)
"""Columns of `labels` that are read."""
_OF_CONSENSUS = ("mc_label", "p_error_free", "left_out", "opinions")
"""Columns that are also read of labels by consensus."""
_OF_FINDINGS = ("chain_id", "step_index", "verdict", "covers", "evidence")
_CHARACTERS = 18_000_000
"""Of the chains of a page, with texts as short as they may be."""
_STEP_CHARACTERS = 40
"""Of a step's numbers."""
_FOR_TEXTS = 0.75
"""Share of a page that texts may use; examples get the rest."""
_LABEL_WORDS = {1: "+ good", 0: "− bad", 2: "o neutral", None: "? uncertain"}
_CHECKED = {1: "holds", 0: "refuted"}
_BROWSER = Browser(
    noun="chain",
    files="labels/*.parquet",
    intro="Each bar is a step. Its height is the step's value: the share of continuations that reach the correct answer. "
    "&#9660; is a chain's largest drop from one step to the next, where it is more than noise; &plusmn; is the uncertainty "
    "(standard deviation) of its values.",
    outcome="Outcome",
    menus=(
        (
            "opinions",
            "Witnesses",
            {"": "all chains", "differ": "they disagree", "kept": "with labels", "out": "left out"},
        ),
        ("bar", "Bar of a chart", {"": "any", **BARS}),
    ),
    orders={
        "drop": Order("largest drop first", "drops"),
        "uncertainty": Order("most uncertain first", "uncertainty"),
        "least": Order("lowest value first", "least", descending=False, unknown=2),
    },
)

Said = tuple[str, str, str, str]
"""Who says what of a step, the kind of statement, and the evidence for it."""
Findings = Mapping[str, Mapping[int, Sequence[Said]]]
"""What verifiers say of the steps of chains, by chain and step, from 1."""


def build_browser(storage: Storage, run: StoredRun, steps: pl.DataFrame, *, chains: int) -> Inset | None:
    """The browser of a run's current labels, with at most `chains` chains; None without any. `steps`: of all labels, see
    `aggregates.steps_of`. Raises StoreError for a damaged file."""
    total = sum(shard.rows for shards in current_shards(run.wholes, run.edition).values() for shard in shards)
    if not total or not chains:
        return None
    chosen = Chosen(total, min(chains, _capacity(run, total)))
    found = _findings(storage, run, chosen)
    data = _Chains(len(chosen.places), _confidence(run))
    by_consensus = has_consensus(run)
    columns = (*_COLUMNS, *(_OF_CONSENSUS if by_consensus else ()))
    later = current_shards(run.wholes, run.edition, VERDICTS)
    bars_of_chosen = map(bars_of(steps).__getitem__, chosen.places)
    names = RowNames(storage)
    for unit, frame in _frames(run, columns, chosen):
        rows = names.named(unit, frame).rows(named=True)
        rollouts = list(map(pl.DataFrame, run.of_unit(unit.unit_id, ROLLOUTS, ROLLOUT_COLUMNS)))
        verdicts = [pl.DataFrame(read_shard(run.storage, shard)) for shard in later[unit.unit_id]]
        of = {prefix for row in rows for prefix in prefixes(row)}
        examples = (
            rollout_examples(pl.concat(rollouts), pl.concat(verdicts) if verdicts else None, of) if rollouts else {}
        )
        for row in rows:
            data.add_chain(row, next(bars_of_chosen), found.get(row["chain_id"], {}), examples)
    listed = len(chosen.places)
    some = f"This page has {listed:,} of the run's {total:,} chains, chosen by hashes; labels/*.parquet has all."
    menus = _BROWSER.menus if by_consensus else _BROWSER.menus[1:]
    return _BROWSER._replace(menus=menus).inset(data, some if listed < total else "", "Chains")


def _capacity(run: StoredRun, total: int) -> int:
    """How many of all chains a page can hold with their steps; at least one."""
    lengths = pl.element().str.len_chars().clip(upper_bound=LIMITS[-1]) + _STEP_CHARACTERS
    of_frames = (frame["steps"].list.eval(lengths).list.sum().sum() for frame in run.frames(LABELS, ("steps",)))
    return max(1, int(_CHARACTERS * total / max(1, sum(of_frames))))


class _Chains(Blocks):
    """Blocks of chains, each with a block of examples: of the prefixes of its chains, by their numbers in the block."""

    def __init__(self, chains: int, confidence: float) -> None:
        super().__init__(chains)
        self._confidence = confidence
        self._rows: list[Row] = []
        self._numbers: dict[str, int] = {}
        self._found: dict[str, Any] = {}
        self._examples: list[bytes] = []

    def add_chain(self, row: Row, bars: str, findings: Mapping[int, Sequence[Said]], examples: Examples) -> None:
        """Add a row of `labels` with the marks of its `bars`."""
        for prefix in prefixes(row):
            self._numbers.setdefault(prefix, len(self._numbers))
        self._found |= {prefix: examples[prefix] for prefix in prefixes(row) if prefix in examples}
        self._rows.append(row)
        self.add(index_entry(row, bars), row["steps"], partial(chain_json, row, findings, self._numbers))

    def characters_left(self) -> float:
        return super().characters_left() * _FOR_TEXTS

    def pack(self) -> None:
        super().pack()
        shown = affordable(self._rows, self._found, super().characters_left())
        self._examples.append(
            self._compressed(json_text({str(self._numbers[prefix]): each for prefix, each in shown.items()}))
        )
        self._rows, self._numbers, self._found = [], {}, {}

    def elements(self, about: Mapping[str, object]) -> str:
        found = super().elements({**about, "confidence": self._confidence})
        examples = (data_element(f"browser-examples-{number}", each) for number, each in enumerate(self._examples))
        return "\n".join([found, *examples])


def index_entry(chain: Row, bars: str) -> dict[str, object]:
    """What the index says of a chain. `drops` has the size of its largest drop, and `dropped` the step, where that is sure."""
    values, drop = chain["value"], largest_drop(chain)
    known = [value for value in values if value is not None]
    return {
        **beginning(chain["chain_id"], chain["source_id"], chain["problem"], chain["outcome"], LABELS.name),
        "steps": len(values),
        "strips": [None if value is None else round(100 * value) for value in strip(values)],
        "drops": rounded(drop.size) if drop else 0,
        "dropped": _sure_drop(chain) or 0,
        "uncertainty": rounded(uncertainty(chain)),
        "least": rounded(min(known, default=None)),
        "marks": f"{bars} {_marks(chain)}" if "mc_label" in chain else bars,
    }


def chain_json(chain: Row, findings: Mapping[int, Sequence[Said]], numbers: Mapping[str, int], characters: int) -> str:
    """A chain with texts cut at `characters`. `numbers`: those of its prefixes."""
    texts = [shortened(text, characters, LABELS.name) for text in chain["steps"]]
    origins, drop, sure = along(chain, "origin"), largest_drop(chain), _sure_drop(chain)
    path = nodes(
        texts=["bare problem (before step 1)", *texts],
        values=along(chain, "value"),
        # The outcome of a chain has no interval.
        low=[None if each == "terminal" else low for low, each in zip(along(chain, "low"), origins, strict=True)],
        high=along(chain, "high"),
        labels=" " + "".join(MARKS[label] for label in chain["label"]),
        correct=along(chain, "n_correct"),
        rollouts=along(chain, "n_rollouts"),
        ungraded=along(chain, "n_ungraded"),
        truncated=along(chain, "n_truncated"),
        origins=origins,
        prefixes=[numbers[prefix] for prefix in prefixes(chain)],
        weak=sure,
        notes={sure: [(f"▼ {drop.size:.2f} largest drop", "differs")]} if sure and drop else {},
        said=_said(chain, findings),
    )
    return entry(shortened(chain["problem"], characters, LABELS.name), _details(chain), [path])


def strip(values: Sequence[float | None]) -> list[float | None]:
    """At most `STRIP` values: the lowest known value of each of that many even parts, None if a part has none."""
    count = min(STRIP, len(values))
    bounds = [round(part * len(values) / count) for part in range(count + 1)] if count else []
    parts = (values[start:end] for start, end in pairwise(bounds))
    return [min((value for value in part if value is not None), default=None) for part in parts]


def uncertainty(chain: Row) -> float | None:
    """Root mean square of the posterior standard deviations of the steps; None if none is known."""
    known = [sd for sd in chain["value_sd"] if sd is not None]
    return math.sqrt(sum(sd * sd for sd in known) / len(known)) if known else None


def _sure_drop(chain: Row) -> int | None:
    """The step of the largest drop, if the whole interval of its value is below the interval before it."""
    if (drop := largest_drop(chain)) is None:
        return None
    low, high = along(chain, "low")[drop.before], along(chain, "high")[drop.step]
    return drop.step if low is not None and high is not None and high < low else None


def _is_consensus(chain: Row) -> bool:
    return chain.get("mc_label") is not None


def _marks(chain: Row) -> str:
    """Whether a witness names another first error than Monte Carlo, or only one of them names one; and whether the chain has
    labels."""
    disagree = _is_consensus(chain) and differs(label_place(chain["mc_label"]), witness_places(chain["opinions"]))
    left_out = all(label is None for label in chain["label"])
    return f"{'differ ' if disagree else ''}{'out' if left_out else 'kept'}"


def _details(chain: Row) -> list[Detail]:
    answer = chain["final_answer"]
    sure = "" if (p := chain["p_outcome"]) is None else f", probability {p:.2f} by the value before the last step"
    return [
        ("correct answer", short(chain["gold_answer"], LABELS.name), "answer"),
        ("chain's answer", "none stated")
        if answer is None
        else ("chain's answer", short(answer, LABELS.name), "answer"),
        ("outcome", f"{OUTCOMES[chain['outcome']]}{sure}"),
        *(_agreed(chain) if _is_consensus(chain) else ()),
        ("chain_id", chain["chain_id"], "code"),
    ]


def _agreed(chain: Row) -> Iterator[Detail]:
    """The first errors that Monte Carlo and each witness name, and what consensus made of the chain."""
    if (reason := chain["left_out"]) is not None:
        yield "consensus", f"left out: {short(reason_text(reason), LABELS.name)}", "differs"
    else:
        yield "consensus", "no step has a label" if all(label is None for label in chain["label"]) else "has labels"
    ours, places = label_place(chain["mc_label"]), witness_places(chain["opinions"])
    yield "first error, Monte Carlo", _place_text(ours)
    for each in chain["opinions"]:
        place = places[each["witness"]]
        shares = [each["no_error"], *each["first_error"]]
        share = "" if place is None or each["steps"] is not None else f", {100 * shares[place]:.0f} %"
        name, text = f"first error, {short(each['witness'], LABELS.name)}", f"{_place_text(place)}{share}"
        yield (name, text, "differs") if ours is not None and place is not None and place != ours else (name, text)
    if not chain["opinions"]:
        yield "witnesses", "say nothing of this chain"


def _place_text(place: int | None) -> str:
    return "not known" if place is None else f"step {place}" if place else "none"


def _said(chain: Row, findings: Mapping[int, Sequence[Said]]) -> dict[int, list[Said]]:
    """What Monte Carlo, witnesses and verifiers say of each step, and how sure consensus is that no error is before its end."""
    if not _is_consensus(chain):
        return {step: list(found) for step, found in findings.items()}
    places, free = witness_places(chain["opinions"]), chain["p_error_free"]
    said: dict[int, list[Said]] = {}
    for step, label in enumerate(chain["mc_label"], start=1):
        named = [("Monte Carlo", _LABEL_WORDS[label], "", "")]
        for each in chain["opinions"]:
            if (checked := each["steps"]) is not None:
                text, accuses = _CHECKED.get(checked[step - 1], "not checked"), checked[step - 1] == 0
            else:
                share = each["first_error"][step - 1] or 0.0
                text, accuses = f"first error {100 * share:.0f} %" if share else "0 %", share > 0
            kind = "accuses named" if places[each["witness"]] == step else "accuses" if accuses else ""
            named.append((short(each["witness"], LABELS.name), text, kind, ""))
        if free is not None:
            named.append(("no error so far", f"{free[step - 1]:.2f}", "", ""))
        said[step] = [*named, *findings.get(step, ())]
    return said


def _findings(storage: Storage, run: StoredRun, chosen: Chosen) -> Findings:
    """What verifiers say of the steps of some chains, where they have a verdict."""
    checks: list[StoredCheck] = [CHECK_RUNS.read(storage, name, partial=True) for name in CHECK_RUNS.names(storage)]
    found: dict[str, dict[int, list[Said]]] = {}
    chains = (
        {each for _, frame in _frames(run, ("chain_id",), chosen) for each in frame["chain_id"]} if checks else set()
    )
    for check in checks:
        for frame in verdict_frames(check, _OF_FINDINGS, chains):
            for chain_id, step, verdict, covers, evidence in frame.iter_rows():
                # A part that holds says nothing of its step.
                part = " in part" if verdict == "holds" and covers != Covers.WHOLE else ""
                kind = "finding accuses" if verdict == "refuted" else "finding"
                view = (short(check.name, "findings"), f"{verdict}{part}: ", kind, short(evidence, "findings"))
                found.setdefault(chain_id, {}).setdefault(step, []).append(view)
    return found


def _frames(run: StoredRun, columns: Sequence[str], chosen: Chosen) -> Iterator[tuple[UnitRef, pl.DataFrame]]:
    """The chosen rows of `labels` of each unit that has any."""
    start = 0
    for unit, frame in run.unit_frames(LABELS, columns):
        places = chosen.within(start, len(frame))
        start += len(frame)
        if places:
            yield unit, frame[places]


def _confidence(run: StoredRun) -> float:
    try:
        return settings_of(run.settings, EstimatorConfig, ESTIMATORS).confidence
    except UsageError:
        # The run can be read without the plug-in that made its labels.
        return float(str(run.settings.get("estimator.confidence", EstimatorConfig().confidence)))
