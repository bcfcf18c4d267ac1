"""What consensus made of the labels of a run: which chains it kept, which it left out, and where Monte Carlo and witnesses
agree. Pure.

Everything is counted from columns of labels (`COLUMNS`), so it says the same of any `consensus.how`. Filtering by agreement
drops hard problems more often than easy ones, and long chains more often than short ones. So the chains left out are also
counted by outcome, by the place of Monte Carlo's first error, by subset and by difficulty.

A *place* is a number: k is a first error at step k, 0 is no error. It is unknown where Monte Carlo (or a witness that checks
steps) says nothing of a step before any bad one, and where no single place has the largest share of a witness's votes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.core.formatting import format_count, format_percent
from pipeline.data.layouts import subset_names

COLUMNS = (
    *("source_id", "outcome", "root_value", "root_n_rollouts", "n_rollouts"),
    *("label", "mc_label", "left_out", "opinions", "p_error_free"),
)
"""Columns of labels that are read."""
BANDS = 5
"""Bands of difficulty, of equal width: by the value of the bare problem, the share of all its rollouts that are correct."""
PARTS = ("first third", "middle third", "last third")
COUNTED_AT_ONCE = 4096
"""Chains that are counted together, because each count has costs of its own."""
NO_ERROR, UNKNOWN = "no error", "unknown"
NOT_CERTAIN = "not_certain"
"""The reason of a chain without a label of which `left_out` says nothing: no label of a step is certain enough."""
OUTCOME, PLACE, DIFFICULTY, SUBSET = "outcome", "first error by Monte Carlo", "value of the bare problem", "subset"
GROUPINGS = (OUTCOME, PLACE, DIFFICULTY, SUBSET)
_DIGITS = 9
"""Decimals of a share, so that 0.1 + 0.2 and 0.3 are equal despite rounding."""
_WITNESS, _AT = "witness", "place"
_VERDICTS = pl.List(pl.Struct({_WITNESS: pl.String, "refuted": pl.Int64, "holds": pl.Int64, "errors": pl.Float64}))
_PLACES = pl.List(pl.Struct({_WITNESS: pl.String, _AT: pl.Int32}))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGroup:
    """A group of chains, and how many of them have no labels."""

    name: str
    chains: int
    left_out: int

    @property
    def share(self) -> float:
        """The share that is left out."""
        return self.left_out / self.chains


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessAgreement:
    """How the place that a witness names most often compares with Monte Carlo's, in chains. `silent`: it says nothing of them.
    `unknown`: one of the two places is unknown. Of the others: both name none, the same step, or the witness an earlier or a
    later one, or only one of the two names a step."""

    name: str
    silent: int
    unknown: int
    both_none: int
    same_step: int
    earlier: int
    later: int
    witness_only: int
    mc_only: int

    @property
    def compared(self) -> int:
        """Chains of which both places are known."""
        return self.same + self.earlier + self.later + self.witness_only + self.mc_only

    @property
    def same(self) -> int:
        """Chains with the same place."""
        return self.both_none + self.same_step


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSteps:
    """What a witness that checks steps says of them: how many it refutes, and how many hold as a whole. `errors`: how many of
    the refuted ones have an error or follow one, by the consensus; None where it has no probabilities."""

    name: str
    refuted: int
    holds: int
    errors: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusSummary:
    """`reasons`: chains left out by reason, most frequent first. `disagree`: chains of which a witness names another place than
    Monte Carlo. `groups`: by grouping, those that have chains; no subset where ids name none. `checked`: of the witnesses that
    check steps.

    Steps by their labels: `mc_steps` have one by Monte Carlo, `steps` by consensus; `same` have the same by both, `other`
    another, `lost` only one by Monte Carlo, `won` only one by consensus.
    """

    chains: int
    left_out: int
    disagree: int
    reasons: Mapping[str, int]
    groups: Mapping[str, tuple[KeptGroup, ...]]
    witnesses: tuple[WitnessAgreement, ...]
    checked: tuple[CheckedSteps, ...]
    same: int
    other: int
    lost: int
    won: int

    @property
    def kept(self) -> int:
        return self.chains - self.left_out

    @property
    def mc_steps(self) -> int:
        return self.same + self.other + self.lost

    @property
    def steps(self) -> int:
        return self.same + self.other + self.won


def consensus_chains(labels: pl.DataFrame) -> pl.DataFrame:
    """One row per chain with what `consensus_summary` counts. `labels` has `COLUMNS`; frames of several files may be
    concatenated after this. Empty for labels without consensus, whose `mc_label` is null."""
    found = labels.select(*COLUMNS, mc_place()).filter(pl.col("mc_label").is_not_null()).with_row_index("chain")
    label, mc = pl.col("label").explode(), pl.col("mc_label").explode()
    steps = found.select("chain", "label", "mc_label").explode("label", "mc_label")
    by_chain = steps.group_by("chain", maintain_order=True).agg(
        same=(label == mc).sum(),
        other=(label != mc).sum(),
        lost=(label.is_null() & mc.is_not_null()).sum(),
        won=(label.is_not_null() & mc.is_null()).sum(),
    )
    rollouts = pl.max_horizontal("root_n_rollouts", pl.col("n_rollouts").list.max())
    return (
        found.select(
            "chain",
            "source_id",
            "outcome",
            pl.when(rollouts > 0).then("root_value").alias("root_value"),
            pl.when(pl.col("label").list.drop_nulls().list.len() == 0)
            .then(pl.col("left_out").fill_null(NOT_CERTAIN))
            .alias("reason"),
            pl.col("mc_label").list.len().alias("steps"),
            "mc_place",
        )
        .join(by_chain, on="chain", how="left", maintain_order="left")
        .join(_named_places(found), on="chain", how="left", maintain_order="left")
        .join(_step_verdicts(found), on="chain", how="left", maintain_order="left")
        .with_columns(
            pl.col("places").fill_null(pl.lit([], _PLACES)),
            pl.col("verdicts").fill_null(pl.lit([], _VERDICTS)),
            pl.col("disagree").fill_null(value=False),
        )
        .drop("chain")
    )


def mc_place() -> pl.Expr:
    """The place of Monte Carlo's first error, by the column `mc_label`: `mc_place`, null where it is unknown."""
    return _first_error("mc_label").alias("mc_place")


def label_place(labels: Sequence[int | None]) -> int | None:
    """The place of the first error by the labels of steps; None where it is unknown."""
    for number, label in enumerate(labels, start=1):
        if not label:
            return None if label is None else number
    return 0


def witness_places(opinions: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """The place that each witness names most often, by the column `opinions` of a chain; None where it is unknown."""
    return {
        opinion[_WITNESS]: top_place([opinion["no_error"], *opinion["first_error"]])
        if opinion["steps"] is None
        else label_place(opinion["steps"])
        for opinion in opinions
    }


def top_place(shares: Sequence[float]) -> int | None:
    """The place with the largest share; None for equal ones, and without any. `shares`: of no error, then of each step."""
    rounded = [round(share, _DIGITS) for share in shares]
    most = max(rounded, default=0.0)
    return rounded.index(most) if most > 0 and rounded.count(most) == 1 else None


def differs(mc: int | None, places: Mapping[str, int | None]) -> bool:
    """Whether a witness names another place than Monte Carlo. Unknown places differ from none."""
    return mc is not None and any(place is not None and place != mc for place in places.values())


def consensus_summary(chains: pl.DataFrame) -> ConsensusSummary | None:
    """The counts of a run. `chains`: of `consensus_chains`. None without a chain: labels without consensus."""
    if chains.is_empty():
        return None
    marked = chains.with_columns(left_out=pl.col("reason").is_not_null())
    named = marked.select("mc_place", "places").explode("places").drop_nulls("places").unnest("places")
    gone = marked.filter("left_out").group_by("reason").agg(chains=pl.len())
    counted = marked.select(pl.sum("left_out", "disagree", "same", "other", "lost", "won")).row(0, named=True)
    return ConsensusSummary(
        chains=chains.height,
        reasons=dict(gone.sort("chains", "reason", descending=[True, False]).iter_rows()),
        groups=dict(_groups(marked)),
        witnesses=tuple(_agreements(named, chains.height)),
        checked=tuple(_checked(marked.select("verdicts").explode("verdicts").drop_nulls().unnest("verdicts"))),
        **counted,
    )


class ConsensusCounter:
    """Counts labels by consensus that come in many small frames, many chains at a time."""

    def __init__(self) -> None:
        self._waiting: list[pl.DataFrame] = []
        self._chains: list[pl.DataFrame] = []

    def add(self, labels: pl.DataFrame) -> None:
        """Count the labels of a unit, with `COLUMNS`."""
        self._waiting.append(labels.select(COLUMNS))
        if sum(frame.height for frame in self._waiting) >= COUNTED_AT_ONCE:
            self._count()

    def summary(self) -> ConsensusSummary | None:
        """The counts of all. None without a chain that has labels by consensus."""
        if self._waiting:
            self._count()
        return consensus_summary(pl.concat(self._chains)) if self._chains else None

    def _count(self) -> None:
        self._chains.append(consensus_chains(pl.concat(self._waiting)))
        self._waiting = []


def summary_lines(found: ConsensusSummary) -> list[str]:
    """The summary as lines for a terminal."""
    kept = f"{found.kept:,} of {format_count(found.chains, 'chain')} have labels ({format_percent(found.kept / found.chains)})"
    reasons = " + ".join(f"{count:,} {reason_text(reason)}" for reason, count in found.reasons.items())
    total = f"{found.left_out:,} = " if len(found.reasons) > 1 else ""
    lines = [f"consensus {kept}" + (f"; left out: {total}{reasons}" if reasons else "")]
    for name, groups in found.groups.items():
        if found.left_out and len(groups) > 1:
            shares = ", ".join(f"{group.name} {format_percent(group.share)} of {group.chains:,}" for group in groups)
            lines.append(f"          left out by {name}: {shares}")
    of_steps = {each.name for each in found.checked}
    agreements = (
        f"          {witness.name}: {agreement_text(witness)}"
        for witness in found.witnesses
        if witness.compared or witness.name not in of_steps
    )
    checked = (f"          {witness.name}: {checked_text(witness)}" for witness in found.checked)
    return [*lines, f"          {steps_text(found)}", *agreements, *checked]


def steps_text(found: ConsensusSummary) -> str:
    """How the labels of steps have changed, as a clause."""
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (found.same, "have the same label by both"),
            (found.other, "another"),
            (found.lost, "one by Monte Carlo alone"),
            (found.won, "one by consensus alone"),
        )
        if count
    ]
    of = f": {', '.join(parts)}" if parts else ""
    return f"{format_count(found.steps, 'step')} labelled, {found.mc_steps:,} by Monte Carlo alone{of}"


def agreement_text(witness: WitnessAgreement) -> str:
    """What a witness and Monte Carlo agree on, as a clause."""
    known = witness.compared
    if not known:
        return "no chain of which its first error and Monte Carlo's are both known"
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (witness.earlier, "earlier"),
            (witness.later, "later"),
            (witness.witness_only, "with an error by it alone"),
            (witness.mc_only, "with an error by Monte Carlo alone"),
        )
        if count
    ]
    return (
        f"the first error of Monte Carlo, or none, in {witness.same:,} of {format_count(known, 'chain')} "
        f"({format_percent(witness.same / known)}; {witness.both_none:,} none)"
        + (f"; {', '.join(parts)}" if parts else "")
    )


def checked_text(witness: CheckedSteps) -> str:
    """What a witness says of steps, as a clause."""
    text = f"{format_count(witness.refuted, 'step')} refuted"
    if witness.refuted and witness.errors is not None:
        share = format_percent(witness.errors / witness.refuted)
        text += f", of which {share} have an error or follow one, by the consensus"
        if witness.errors < witness.refuted / 2:
            text += " (it contradicts this witness: look at these steps before you use the labels)"
    return text + (f"; {witness.holds:,} hold as a whole" if witness.holds else "")


def reason_text(reason: str) -> str:
    """A reason in words."""
    return reason.replace("_", " ")


def _first_error(column: str) -> pl.Expr:
    """Like `label_place`, for each row of a column of labels."""
    ends = ((pl.element() == 0) | pl.element().is_null()).cast(pl.Int8)
    first = pl.col(column).list.eval(ends).list
    known = pl.col(column).list.get(first.arg_max(), null_on_oob=True).is_not_null()
    none = first.max().fill_null(0) == 0
    return pl.when(none).then(0).when(known).then(first.arg_max() + 1).cast(pl.Int32)


def _named_places(found: pl.DataFrame) -> pl.DataFrame:
    """By `chain`: the `places` that its witnesses name most often, and whether one of them is another than Monte Carlo's."""
    each = found.select("chain", "mc_place", "opinions").explode("opinions").drop_nulls("opinions").unnest("opinions")
    shares = pl.concat_list("no_error", "first_error").list.eval(pl.element().round(_DIGITS))
    largest = pl.col("shares").list.eval(pl.element() == pl.element().max()).list.sum()
    voted = pl.when((pl.col("shares").list.max() > 0) & (largest == 1)).then(pl.col("shares").list.arg_max())
    place = pl.when(pl.col("steps").is_null()).then(voted.cast(pl.Int32)).otherwise(_first_error("steps"))
    placed = each.with_columns(shares=shares).with_columns(place.alias(_AT))
    return placed.group_by("chain", maintain_order=True).agg(
        places=pl.struct(_WITNESS, _AT), disagree=(pl.col(_AT) != pl.col("mc_place")).any()
    )


def _step_verdicts(found: pl.DataFrame) -> pl.DataFrame:
    """By `chain`: what its witnesses that check steps say of them."""
    each = (
        found.select("chain", "p_error_free", "opinions").explode("opinions").drop_nulls("opinions").unnest("opinions")
    )
    nulls = pl.col("steps").list.eval(pl.when(pl.lit(value=False)).then(pl.element()).cast(pl.Float64))
    each = each.filter(pl.col("steps").is_not_null()).with_columns(pl.coalesce("p_error_free", nulls))
    refuted = pl.col("steps") == 0
    errors = (1 - pl.col("p_error_free")).filter(refuted)
    counted = (
        each.select("chain", _WITNESS, "steps", "p_error_free")
        .explode("steps", "p_error_free")
        .group_by("chain", _WITNESS, maintain_order=True)
        .agg(
            refuted=refuted.sum().cast(pl.Int64),
            holds=(pl.col("steps") == 1).sum().cast(pl.Int64),
            errors=pl.when(errors.null_count() == 0).then(errors.sum()),
        )
    )
    return counted.group_by("chain", maintain_order=True).agg(
        verdicts=pl.struct(_WITNESS, "refuted", "holds", "errors")
    )


def _checked(verdicts: pl.DataFrame) -> Iterator[CheckedSteps]:
    refuted = pl.col("refuted") > 0
    errors = pl.col("errors").filter(refuted)
    found = verdicts.group_by(_WITNESS).agg(
        pl.sum("refuted", "holds"), errors=pl.when(errors.null_count() == 0).then(errors.sum())
    )
    for name, *counts in found.sort(_WITNESS).select(_WITNESS, "refuted", "holds", "errors").iter_rows():
        yield CheckedSteps(name=name, refuted=counts[0], holds=counts[1], errors=counts[2])


def _groups(chains: pl.DataFrame) -> Iterator[tuple[str, tuple[KeptGroup, ...]]]:
    outcome = pl.col("outcome").cast(pl.Int8).replace_strict([1, 0], ["right", "wrong"], default="open")
    part = ((pl.col("mc_place") * len(PARTS) + pl.col("steps") - 1) // pl.col("steps") - 1).cast(pl.Int64)
    place = (
        pl.when(pl.col("mc_place").is_null())
        .then(pl.lit(UNKNOWN))
        .when(pl.col("mc_place") == 0)
        .then(pl.lit(NO_ERROR))
        .otherwise(part.replace_strict(list(range(len(PARTS))), PARTS, default=None))
    )
    bands = [f"{band / BANDS:.1f} to {(band + 1) / BANDS:.1f}" for band in range(BANDS)]
    band = (pl.col("root_value") * BANDS).floor().clip(0, BANDS - 1).cast(pl.Int64)
    difficulty = band.replace_strict(list(range(BANDS)), bands, default=UNKNOWN)
    orders = {
        OUTCOME: (outcome, ["right", "wrong", "open"]),
        PLACE: (place, [NO_ERROR, *PARTS, UNKNOWN]),
        DIFFICULTY: (difficulty, [*bands, UNKNOWN]),
    }
    for name, (group, order) in orders.items():
        yield name, _counted(chains.with_columns(group=group), order)
    subsets = subset_names(chains["source_id"])
    known = sorted({subset for subset in subsets if subset is not None})
    if known:
        names = pl.Series("group", [UNKNOWN if subset is None else subset for subset in subsets])
        yield SUBSET, _counted(chains.with_columns(names), [*known, UNKNOWN])


def _counted(chains: pl.DataFrame, order: Sequence[str]) -> tuple[KeptGroup, ...]:
    found = chains.group_by("group").agg(chains=pl.len(), left_out=pl.sum("left_out"))
    counts = {name: (count, out) for name, count, out in found.iter_rows()}
    return tuple(
        KeptGroup(name=name, chains=counts[name][0], left_out=counts[name][1]) for name in order if name in counts
    )


def _agreements(named: pl.DataFrame, chains: int) -> Iterator[WitnessAgreement]:
    mc, place = pl.col("mc_place"), pl.col(_AT)
    both = (mc > 0) & (place > 0)
    found = named.group_by(_WITNESS).agg(
        opinions=pl.len(),
        unknown=(mc.is_null() | place.is_null()).sum(),
        both_none=((mc == 0) & (place == 0)).sum(),
        same_step=(both & (mc == place)).sum(),
        earlier=(both & (place < mc)).sum(),
        later=(both & (place > mc)).sum(),
        witness_only=((mc == 0) & (place > 0)).sum(),
        mc_only=((mc > 0) & (place == 0)).sum(),
    )
    for row in found.sort(_WITNESS).iter_rows(named=True):
        opinions = row.pop("opinions")
        yield WitnessAgreement(name=row.pop(_WITNESS), silent=chains - opinions, **row)
