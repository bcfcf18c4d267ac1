"""`agree scores=...`: reads step scores and a file of human labels, matches their chains and judges the scores.

A chain with a step without a score, because it is longer than the model, is counted apart: it is in no figure but the one
that counts it as missed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.analysis.agree.classes import Classes, error_classes
from pipeline.analysis.agree.human import (
    ChainPair,
    HumanChain,
    MatchedChains,
    ModelChain,
    RowCounts,
    Unusable,
    match,
    subsets,
)
from pipeline.analysis.agree.judged import (
    Judged,
    MethodResult,
    SubsetResult,
    at_best_thresholds,
    at_dev_threshold,
    at_threshold,
    baseline_results,
    best_on,
    undefined,
)
from pipeline.analysis.agree.read import StepScores, read_humans, read_originals, read_step_scores, refuse_miscounted
from pipeline.analysis.agree.steps import (
    LengthFigures,
    LowestOnLast,
    PositionFigures,
    StepFigures,
    Trends,
    by_length,
    by_position,
    length_groups,
    lowest_on_last,
    step_figures,
    trends,
)
from pipeline.analysis.comparison import CONFIDENCE
from pipeline.analysis.settings import BINS, FIXED_THRESHOLD, AgreeConfig
from pipeline.core.errors import InputError
from pipeline.core.formatting import first_of, format_count
from pipeline.core.records import RowLocation

MAX_LISTED = 100
"""The most rows of a kind that the JSON report lists."""
MAX_CHARS = 80
"""Characters of a problem in that list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """A row of the human labels, or of the scores, whose chain the other file lacks."""

    location: RowLocation
    source_id: str | None
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCounts(RowCounts):
    """`rows` of human labels = `unusable` + `repeated` + `unmatched` + `judged` + `cut`; `scored` chains = `judged` + `cut` +
    `originals_judged` + `not_by_people`.

    `cut`: chains with a step without a score, `cut_steps` such steps in them. `repeated_scores`: rows of scores that repeat
    an earlier one. `originals`: PRMBench's distinct original processes, `originals_judged` those among them with a score for
    every step. `open`: judged chains whose human ratings leave the first error open.
    """

    judged: int
    cut: int
    cut_steps: int
    cut_by_subset: dict[str, int]
    originals: int
    originals_judged: int
    open: int
    scored: int
    not_by_people: int
    repeated_scores: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAgreement:
    """The whole report, with the keys of the JSON file.

    `calibrated`: whether a calibration made the scores estimates of V. `methods`: thresholds and baselines, the one that the
    settings name first. `undefined`: subsets without an F1, with the reason. `cut_as_missed`: the first method on all chains,
    those with missing scores too. `classes`: PRMBench's, None for other data.
    """

    scores: str
    files: tuple[str, ...]
    model: str | None
    calibrated: bool
    data: str
    neutral: str
    confidence: float
    resamples: int
    dev: str | None
    counts: ScoreCounts
    unusable: tuple[Unusable, ...]
    unmatched: tuple[Unmatched, ...]
    not_by_people: tuple[Unmatched, ...]
    undefined: dict[str, str]
    methods: tuple[MethodResult, ...]
    cut_as_missed: SubsetResult | None
    steps: StepFigures
    steps_by_subset: dict[str, StepFigures]
    by_position: tuple[PositionFigures, ...]
    by_length: tuple[LengthFigures, ...]
    results_by_length: dict[str, SubsetResult]
    trends: Trends
    lowest_on_last: LowestOnLast
    classes: Classes | None

    @property
    def main(self) -> MethodResult:
        """The method with the threshold that the settings name."""
        return self.methods[0]


def judge(config: AgreeConfig) -> ScoreAgreement:
    """Judge the scores by the human labels.

    Raises InputError for scores or labels that cannot be read or cannot be meant as they are, that share no chain, or whose
    subset `dev` does not exist or has no F1.
    """
    assert config.scores is not None
    scores = read_step_scores(config.scores)
    humans, unusable = read_humans(config)
    refuse_miscounted(config, humans, unusable)
    matched = match(humans, scores.chains)
    originals = read_originals(config, humans)
    of_originals = match(originals, scores.chains).pairs
    if not matched.pairs and not of_originals:
        raise InputError(_no_overlap(config, scores, matched))
    pairs, original_pairs = (list(map(_with_outcome, each)) for each in (matched.pairs, of_originals))
    cut = [pair for pair in pairs if not _is_whole(pair)]
    whole_originals = list(filter(_is_whole, original_pairs))
    whole = [*filter(_is_whole, pairs), *whole_originals]
    if not whole:
        raise InputError(
            f"scores={config.scores}: none of the {format_count(len(pairs), 'chain')} with a human label has a score for every "
            "step; score them with a model that takes longer texts"
        )
    names = _subsets([*whole, *cut])
    used = {id(pair.labelled) for pair in (*matched.pairs, *of_originals)}
    not_by_people = [chain for chain in scores.chains if id(chain) not in used]
    judged = Judged(
        pairs=tuple(whole),
        subsets=tuple(_subsets(whole)),
        resamples=config.resamples,
        dev=config.dev if config.fixed_threshold is None else None,
    )
    methods = _methods(config, judged)
    threshold = methods[0].total.threshold
    assert threshold is not None
    with_cut = Judged(pairs=(*whole, *cut), subsets=(None,) * len(names), resamples=config.resamples)
    by_lengths = replace(judged, subsets=tuple(length_groups(whole)))
    return ScoreAgreement(
        scores=config.scores,
        files=scores.files,
        model=scores.model,
        calibrated=scores.calibrated,
        data=config.data.path,
        neutral=config.neutral.value,
        confidence=CONFIDENCE,
        resamples=config.resamples,
        dev=config.dev,
        counts=ScoreCounts(
            **matched.counts(len(unusable)),
            judged=len(whole) - len(whole_originals),
            cut=len(cut),
            cut_steps=sum(pair.labelled.values.count(None) for pair in cut),
            cut_by_subset=dict(Counter(name or "" for name in names[len(whole) :])),
            originals=len(originals),
            originals_judged=len(whole_originals),
            open=sum(pair.human.first_error is None for pair in whole),
            scored=len(scores.chains),
            not_by_people=len(not_by_people),
            repeated_scores=scores.repeated,
        ),
        unusable=tuple(unusable[:MAX_LISTED]),
        unmatched=_listed(matched.unmatched),
        not_by_people=_listed(not_by_people),
        undefined=undefined(judged),
        methods=tuple(methods),
        cut_as_missed=at_threshold(with_cut, threshold).total if cut else None,
        steps=step_figures(judged.pairs, BINS, config.resamples),
        steps_by_subset={name: step_figures(judged.of(name), BINS, config.resamples) for name in judged.names},
        by_position=tuple(by_position(judged.pairs)),
        by_length=tuple(by_length(judged.pairs)),
        results_by_length=at_threshold(by_lengths, threshold).by_subset,
        trends=trends(judged.pairs),
        lowest_on_last=lowest_on_last(judged.pairs, config.resamples),
        classes=error_classes(judged.pairs, threshold, config.resamples),
    )


def _listed(chains: Sequence[HumanChain | ModelChain]) -> tuple[Unmatched, ...]:
    return tuple(
        Unmatched(location=chain.location, source_id=chain.source_id, problem=chain.problem[:MAX_CHARS])
        for chain in chains[:MAX_LISTED]
    )


def _methods(config: AgreeConfig, judged: Judged) -> list[MethodResult]:
    bound = at_best_thresholds(judged)
    fixed = config.fixed_threshold
    if fixed is not None:
        return [at_threshold(judged, fixed), bound, *baseline_results(judged)]
    dev = config.dev
    assert dev is not None
    if dev not in judged.names:
        known = ", ".join(judged.names) or "none: the ids name no subset, such as gsm8k in gsm8k-40"
        raise InputError(f"dev={dev}: {config.data.path} has no such subset; its subsets are {known}")
    found = best_on(judged.of(dev))
    if found is None:
        raise InputError(
            f"dev={dev}: no threshold can be chosen on this subset, because it has {undefined(judged)[dev]}; name another "
            "subset, or give threshold=0.5"
        )
    chosen, usual = at_dev_threshold(judged, dev, found), at_threshold(judged, FIXED_THRESHOLD)
    return [chosen, usual, bound, *baseline_results(judged)]


def _subsets(pairs: Sequence[ChainPair]) -> list[str | None]:
    """PRMBench's classes, else what the ids name."""
    classes = [pair.human.error_class for pair in pairs]
    return classes if any(classes) else subsets(pairs)


def _with_outcome(pair: ChainPair) -> ChainPair:
    """With the outcome that the human data state, if they do."""
    stated = pair.human.outcome
    return pair if stated is None else replace(pair, labelled=replace(pair.labelled, outcome=stated))


def _is_whole(pair: ChainPair) -> bool:
    return None not in pair.labelled.values


def _no_overlap(config: AgreeConfig, scores: StepScores, matched: MatchedChains) -> str:
    first = matched.unmatched[0]
    place = f"the first is line {first.location.line} of {first.location.file}"
    remedy = (
        f"{matched.other_text} of their ids are in the scores with other texts: read this file with the data settings that "
        "`score` had, such as data.separator"
        if matched.other_text
        else f"score them: score model=... data=... data.path={config.data.path}"
    )
    return (
        f"scores={config.scores}: none of the {format_count(len(matched.unmatched), 'chain')} of {config.data.path} "
        f"({place}) is among the {format_count(len(scores.chains), 'chain')} of {first_of(scores.files)}. {remedy}"
    )
