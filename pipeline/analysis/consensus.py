"""Consensus labels of a run: what Monte Carlo says of the chains of a unit, what the witnesses say, and the labels of both.

Where reliabilities are learned (consensus.how=posterior), the labels of a chain depend on the whole run. So there are two
passes: `Consensus.measure` for each unit, then `Consensus.learn` from the evidence of all of them, then `Consensus.labels` for
each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from pipeline.analysis.agree.human import NO_ERROR, text_key
from pipeline.analysis.agree.read import read_humans, refuse_miscounted
from pipeline.analysis.settings import AgreeConfig
from pipeline.config.choices import ConsensusHow, LabelRule
from pipeline.config.consensus import (
    ABOUT,
    CAPPED,
    DIGEST,
    HOW,
    MADE_UP,
    MC_RULE,
    RECALIBRATE,
    RULE,
    SECTION,
    USUAL,
    WITNESSES,
    ConsensusChange,
    cap_text,
    is_consensus,
    witness_names,
)
from pipeline.config.label import Columns, DataConfig, EstimatorConfig
from pipeline.config.recorded_settings import Settings, chosen_settings, given_settings, settings_section
from pipeline.consensus.evidence import ChainEvidence, PositionClaim
from pipeline.consensus.filters import exact, side
from pipeline.consensus.learning import SHARED, UNSURE, Learned, learn
from pipeline.consensus.monte_carlo import monte_carlo_claim
from pipeline.consensus.posterior import claims, posterior, posterior_labels, supported
from pipeline.core.errors import InputError, UsageError
from pipeline.core.records import Chain, ChainText, ChainValues, Trials
from pipeline.core.statistics import Floats
from pipeline.core.tables import CONSENSUS, LABELS, RELIABILITIES, LearnedReliabilities
from pipeline.data.rows import input_digest
from pipeline.data.steps import step_texts
from pipeline.estimators import intervals
from pipeline.estimators.base import Estimator
from pipeline.estimators.labelling import chain_values, valued_labels
from pipeline.estimators.labels import after_error
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun
from pipeline.witnesses import registry
from pipeline.witnesses.base import Witness, family
from pipeline.witnesses.registry import witness_names_of, witnesses_of

TABLE = RELIABILITIES.name
"""The table of an edition that holds what was learned."""


def settled(
    storage: Storage, run: StoredRun, now: Settings, change: ConsensusChange
) -> tuple[Settings, Sequence[Witness]]:
    """The settings of an edition, with those of its consensus, and its witnesses. `now`: of the current labels, with what
    `relabel` changes.

    Raises UsageError for a consensus without witnesses, for witnesses that cannot be used, and for settings of a consensus
    where the labels are made by another rule."""
    before = run.settings
    own = {key: value for key, value in now.items() if not key.startswith(f"{SECTION}.")}
    given = given_settings(SECTION, change)
    if not is_consensus(now):
        if given:
            raise UsageError(
                f"{next(iter(given))} has no effect without estimator.rule=consensus: add it, or leave this out"
            )
        return own, []
    found = {key: given.get(key, before.get(key)) for key in (HOW, WITNESSES, MC_RULE)}
    rule = before.get(RULE, LabelRule.any.value)
    found[HOW] = found[HOW] or USUAL.value
    found[MC_RULE] = found[MC_RULE] or rule
    names = witness_names_of(storage.run_dir) if found[WITNESSES] is None else witness_names(found)
    if not names and found[WITNESSES] is not None and found[HOW] != ConsensusHow.posterior.value:
        raise UsageError(
            f"{HOW}={found[HOW]} needs a witness, and consensus.witnesses is empty: name one, as in "
            "consensus.witnesses=[judge:NAME]"
        )
    if not names and found[WITNESSES] is None:
        raise UsageError(
            f"{storage.run_dir} has no judge and no checks, and a consensus needs a second opinion: start `judge "
            f"run_dir={storage.run_dir} judge.name=NAME policy.model=MODEL` or `check run_dir={storage.run_dir}`, or name "
            "witnesses, as in consensus.witnesses=[scores:scores.parquet]"
        )
    certain = found[HOW] == ConsensusHow.posterior.value
    if given.get(RECALIBRATE) and not certain:
        raise UsageError(
            f"{RECALIBRATE} has no effect with {HOW}={found[HOW]}, which states no certainty: leave it out"
        )
    gold = str(given.get(RECALIBRATE, before.get(RECALIBRATE)) or "")
    witnesses = witnesses_of(storage.run_dir, names)
    settings: dict[str, object] = {
        **own,
        **found,
        WITNESSES: names,
        **{f"{ABOUT}{each.source.name}": registry.about(each) for each in witnesses},
        **{f"{DIGEST}{each.source.name}": registry.digest(each) for each in witnesses},
        **{f"{MADE_UP}{each.source.name}": text for each in witnesses if (text := each.made_up())},
        **(_limited(gold, run.identity, witnesses) if certain else {}),
    }
    return settings, witnesses


def _limited(gold: str, policy: Settings, witnesses: Sequence[Witness]) -> Settings:
    """The settings that say why the certainty has limits, see `cap_text`."""
    if gold:
        why = f"no certainty is above what people's labels in {PurePath(gold).name} support"
        return {RECALIBRATE: gold, f"{DIGEST}{RECALIBRATE}": input_digest(gold, RECALIBRATE), CAPPED: why}
    kin = ", ".join(each.source.name for each in witnesses if family(policy) & family(each.writer()))
    why = (
        f"no certainty is above {SHARED[0][-1]:g}, of a first error {SHARED[2][-1]:g}, because {kin} and the policy are of one "
        f"family and may err alike; {RECALIBRATE}=FILE with people's labels finds what can be claimed"
    )
    return {CAPPED: why} if kin else {}


def _human_places(path: str, identity: Settings) -> dict[tuple[str, ...], int]:
    """The places of the first errors that people name, by the texts of their chains. Raises UsageError for a file that has no
    such labels in the layout of the input of the run with this identity."""
    columns = settings_section(identity, Columns.SECTION, Columns)
    data = settings_section(identity, DataConfig.SECTION, DataConfig)
    config = AgreeConfig(run_dir="-", data=replace(data, path=path, limit=None, columns=columns))
    try:
        humans, unusable = read_humans(config)
        refuse_miscounted(config, humans, unusable)
    except InputError as error:
        raise UsageError(str(error).replace("data.path", RECALIBRATE)) from error
    # As `agree` does, the first row of a chain counts.
    firsts = [(each, each.first_error) for each in reversed(humans)]
    return {text_key(each): len(each.steps) if at == NO_ERROR else at for each, at in firsts if at is not None}


class Consensus:
    """See the module. `values`: the estimator that computes values, and learns."""

    def __init__(self, settings: Settings, witnesses: Sequence[Witness], identity: Settings) -> None:
        """`identity`: of the run. Raises UsageError for settings that contradict each other, and for an estimator or a witness
        that is not installed."""
        self.how = ConsensusHow(settings[HOW])
        self.witnesses = witnesses
        self._recorded, gold = settings, settings.get(RECALIBRATE)
        self._humans = _human_places(str(gold), identity) if gold else {}
        alone = {**settings, RULE: settings[MC_RULE]}
        self._ruler = estimator_for(chosen_settings(alone, EstimatorConfig, ESTIMATORS))
        self._settings = chosen_settings(settings, EstimatorConfig, ESTIMATORS)
        joint = {**settings, RULE: LabelRule.first_error.value}
        self._joint = LabelRule.first_error in self._settings.RULES
        self.values: Estimator = (
            estimator_for(chosen_settings(joint, EstimatorConfig, ESTIMATORS)) if self._joint else self._ruler
        )

    @property
    def rule(self) -> str:
        """The rule, as in the column `label_rule`."""
        sure = f"@{self._settings.least_certainty:g}" if self.how is ConsensusHow.posterior else ""
        return f"consensus:{self.how.value}{sure}({','.join(each.source.name for each in self.witnesses)})"

    @property
    def advice(self) -> str:
        """What would make better labels; empty for nothing."""
        if self.how is not ConsensusHow.posterior or self._joint:
            return ""
        return (
            f"estimator.name={self._settings.name} takes the prefixes of a chain as independent: "
            "estimator.name=pooled knows more of the place of an error, and makes other labels of the same rollouts"
        )

    def cap_lines(self, learned: Learned | None) -> list[str]:
        """Why and how far the certainty is limited, as lines for a terminal."""
        if learned is None or not (why := cap_text(self._recorded)):
            return []
        free, lost, first = (f"{max(UNSURE, each[-1]):.2f}" for each in learned.limits)
        most = f"{free} of no error so far, {lost} of one, {first} of the first error; a label needs"
        return [f"certainty {why}", f"          at most {most} estimator.certainty={self._settings.least_certainty:g}"]

    def measure(
        self, chains: Sequence[Chain], trials: Mapping[str, Trials], state: Any
    ) -> tuple[pa.Table, Sequence[ChainEvidence]]:
        """What is known of the chains of a unit, each by itself: their labels by Monte Carlo alone, and what Monte Carlo and
        the witnesses say."""
        found = chain_values([chain.shape for chain in chains], trials, self.values, state, ruler=self._ruler)
        evidence = [self._evidence(chain, values) for chain, values in zip(chains, found, strict=True)]
        return valued_labels(chains, found, self._settings), evidence

    def learn(self, evidence: Sequence[ChainEvidence]) -> Learned | None:
        """How reliable Monte Carlo and the witnesses are, and what may be claimed by it. None where the labels do not depend on
        it. Raises InputError for people's labels of other chains."""
        if self.how is not ConsensusHow.posterior:
            return None
        learned, truths = learn(evidence), [each.truth for each in evidence]
        if not self._humans:
            return replace(learned, limits=SHARED) if CAPPED in self._recorded else learned
        if set(truths) <= {None}:
            raise InputError(f"{RECALIBRATE}={self._recorded[RECALIBRATE]}: none of its chains is in the run")
        return replace(learned, limits=supported(posterior(evidence, learned), truths))

    def places(self, evidence: Sequence[ChainEvidence], learned: Learned | None) -> Sequence[Floats] | None:
        """For each chain, the probabilities of the places of its first error. None where nothing was learned. It takes less
        time for many chains at once."""
        return None if learned is None else posterior(evidence, learned)

    def labels(
        self,
        by_mc: pa.Table,
        evidence: Sequence[ChainEvidence],
        places: Sequence[Floats] | None,
        learned: Learned | None,
    ) -> pa.Table:
        """The labels of a unit, with the columns of `tables.CONSENSUS`. `by_mc` and `evidence`: as measured. `places`: of its
        chains, see `places`."""
        alone: list[Any] = by_mc["label"].to_pylist()
        if places is None or learned is None:
            filtering = exact if self.how is ConsensusHow.exact else side
            kept = [filtering(mc, each.witnesses) for mc, each in zip(alone, evidence, strict=True)]
            found = [each.labels for each in kept]
            left_out = [None if each.left_out is None else each.left_out.value for each in kept]
            free: list[list[float] | None] = [None] * len(kept)
        else:
            found = [posterior_labels(each, self._settings.least_certainty, learned.limits) for each in places]
            left_out = [None] * len(places)
            free = [claims(each, learned.limits)[0].tolist() for each in places]
        computed: dict[str, list[Any]] = {
            "label": [list(after_error(labels, self._settings)) for labels in found],
            "label_rule": [self.rule] * len(found),
            "mc_label": alone,
            "p_error_free": free,
            "left_out": left_out,
            "opinions": [self._opinions(each) for each in evidence],
        }
        table = LABELS.with_extra(*by_mc.column_names, *CONSENSUS)
        return table.of_columns({**{name: by_mc[name] for name in by_mc.column_names}, **computed})

    def _evidence(self, chain: Chain, values: ChainValues) -> ChainEvidence:
        solution = chain.solution
        read = ChainText(
            chain_id=solution.chain_id,
            problem_id=solution.problem_id,
            problem=chain.problem.text,
            steps=tuple(step_texts(solution.text, solution.ends)),
            prefix_ids=chain.prefix_ids,
        )
        claims = {each.source.name: each.claim(read) for each in self.witnesses}
        return ChainEvidence(
            steps=len(values.steps),
            outcome=chain.outcome,
            monte_carlo=_place(chain, values, self._settings.threshold),
            witnesses={name: claim for name, claim in claims.items() if claim is not None},
            truth=self._humans.get(text_key(read)) if self._humans else None,
        )

    def _opinions(self, evidence: ChainEvidence) -> list[dict[str, object]]:
        """The rows of the column `opinions`."""
        rows: list[dict[str, object]] = []
        for each in self.witnesses:
            name, claim = each.source.name, evidence.witnesses.get(each.source.name)
            if isinstance(claim, PositionClaim):
                most = max(each.most_votes(), sum(claim.votes))
                *errors, none = (vote / most for vote in claim.votes)
                rows.append({"witness": name, "first_error": errors, "no_error": none, "steps": None})
            elif claim is not None:
                steps = list(claim.steps)
                rows.append({"witness": name, "first_error": [0.0] * len(steps), "no_error": 0.0, "steps": steps})
        return rows


def _place(chain: Chain, values: ChainValues, threshold: float) -> tuple[float, ...] | None:
    """What Monte Carlo says of the place of the first error of a chain."""
    along = (values.root, *values.steps)
    above, lost = [each.p_above for each in along], [each.p_lost for each in along]
    return monte_carlo_claim(chain.outcome, above, lost, intervals.above(0, 0, threshold))


def learned_table(learned: Learned, chains: int) -> pa.Table:
    """What was learned, as a row of `tables.RELIABILITIES`."""
    return RELIABILITIES.to_table([LearnedReliabilities(chains, json.dumps(learned.as_dict(), sort_keys=True))])


def learned_from(table: pa.Table) -> Learned:
    """The inverse of `learned_table`."""
    return Learned.from_dict(json.loads(table["learned"][0].as_py()))
