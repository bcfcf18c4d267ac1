"""The commands of the loop's three laps, in order.

First: the policy samples chains, they are labelled, a PRM and an ORM learn from them, and both choose among candidates for
other problems; vLLM scores these too, for `agree` and `calibrate`. Second: the PRM is a witness for labels of other
problems, where Monte Carlo has few rollouts. `relabel` makes consensus labels three ways: `exact`, `posterior` without a
witness, and `posterior` with the PRM. So what the witness adds is seen apart from what the posterior makes of Monte Carlo.
Third: the PRM steers the policy, with vLLM for both.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from tests.bench.loop.plan import CANDIDATES, CHAINS_ALONE, FRESH_ROLLOUTS, ROLLOUTS, SOLUTIONS, TRAINING
from tests.bench.loop.searching import searched
from tests.bench.loop.stages import Stage
from tests.tiny.policy import TinyPolicy

LABELLED, SAMPLED, OTHERS = "sample and label", "sample candidates", "label other problems"
TOKENS_OF = {LABELLED: "train-run", SAMPLED: "test-run", OTHERS: "other-run"}
"""Stage -> its run, whose tokens are counted."""
STEP, OUTCOME = "step", "outcome"
"""The models of the first lap, by the target that they are trained for."""
MC, ALONE, CONSENSUS, EXACT = "mc", "alone", "consensus", "exact"
"""Labels of the second lap: of Monte Carlo, of posteriors without and with the witness, and of `exact`."""
TARGETS = {MC: "value", ALONE: "p_error_free", CONSENSUS: "p_error_free"}
"""The column that a model of the second lap learns: V, or the probability that no step so far has an error."""
SIZES = "n=[1,2,4,8,16]"
COMPARED = ("best_of_n", "beam")
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""The model is so small that threads wait for each other: on two cores that others used too, training took more than ten
times as long with two."""


class Laps:
    """The stages of a loop in a folder."""

    def __init__(self, folder: Path, policy: TinyPolicy) -> None:
        self._folder = folder
        self._policy = policy
        self._prm = folder / f"{STEP}-model"

    def first(self, write_judged: Callable[[], None]) -> Iterator[Stage]:
        """`write_judged`: makes the file `judged.jsonl` from the candidates."""
        at, soft = self._folder, {"loss": "soft"}
        sampled = (f"sampling.solutions={SOLUTIONS}", f"sampling.rollouts={ROLLOUTS}", "estimator=fixed")
        yield self._labelled(LABELLED, "train.jsonl", "train-run", *sampled)
        yield self._labelled(SAMPLED, "test.jsonl", "test-run", f"sampling.solutions={CANDIDATES}", *CHAINS_ALONE)
        yield self._trained("train the PRM", "train-run", STEP, {"target": STEP, **soft})
        yield self._trained("train the ORM", "train-run", OUTCOME, {"target": OUTCOME, "loss": "hard"})
        yield self._scored("score by the PRM", STEP, "test-run", f"{STEP}-scores")
        yield self._scored("score by the ORM", OUTCOME, "test-run", f"{OUTCOME}-scores")
        fresh = (f"sampling.rollouts={FRESH_ROLLOUTS}", "estimator=fixed")
        yield self._labelled("fresh rollouts", "judged.jsonl", "fresh-run", *fresh, before=write_judged)
        yield self._scored("score by vLLM", STEP, "fresh-run", "fresh-scores", "scorer.engine=vllm")
        scores = f"scores={at / 'fresh-scores.parquet'}"
        judged = ("data=processbench", f"data.path={at / 'judged.jsonl'}", f"out={at / 'agree.json'}")
        yield Stage(name="judge the PRM by arithmetic", command=("agree", scores, *judged))
        made = at / "calibration.json"
        command = ("calibrate", scores, f"run_dir={at / 'fresh-run'}", f"out={made}")
        yield Stage(name="calibrate the PRM", command=command)
        yield self._scored("score with the calibration", STEP, "fresh-run", "calibrated-scores", f"calibration={made}")
        yield self._selected("select", STEP, f"outcome_scores={at / f'{OUTCOME}-scores.parquet'}")

    def second(self) -> Iterator[Stage]:
        """PRMs learn from Monte Carlo and from both posteriors, with the same settings, and choose among the candidates of the
        first lap."""
        witness = f"scores:{self._folder / 'other-scores.parquet'}"
        # About half the tokens of the default precision: labels for which a second opinion matters.
        few = (f"sampling.solutions={SOLUTIONS}", "estimator=pooled", "estimator.target_sd=0.2")
        yield self._labelled(OTHERS, "others.jsonl", "other-run", *few)
        yield self._scored("score them by the PRM of the first lap", STEP, "other-run", "other-scores")
        yield self._learned(MC)
        yield self._relabelled(EXACT, "exact", witness, keep=None)
        yield self._relabelled(ALONE, "posterior", "", keep=EXACT)
        yield self._learned(ALONE)
        yield self._relabelled(CONSENSUS, "posterior", witness, keep=ALONE)
        yield self._learned(CONSENSUS)
        for labels in TARGETS:
            yield self._scored(f"score candidates: {labels}", labels, "test-run", f"{labels}-scores")
            yield self._selected(f"select: {labels}", labels)

    def third(self) -> Iterator[Stage]:
        """Search the test problems of the first lap, and compare."""
        runs = [self._folder / f"{method}-run" for method in COMPARED]
        problems = self._folder / "test.jsonl"
        for method, run in zip(COMPARED, runs, strict=True):
            command = searched(self._policy, self._prm, problems, run, method, CANDIDATES, "scorer.engine=vllm")
            yield Stage(name=f"search: {method}", command=command)
        out = f"out={self._folder / 'searches.json'}"
        command = ("select", f"searches=[{','.join(map(str, runs))}]", out)
        yield Stage(name="compare the searches", command=command, shown_again=True)

    def _labelled(
        self, name: str, problems: str, run: str, *settings: str, before: Callable[[], None] = lambda: None
    ) -> Stage:
        where = (f"data.path={self._folder / problems}", f"run_dir={self._folder / run}")
        command = ("label", *self._policy.overrides, *where, *settings, "run.show_chains=0")
        return Stage(name=name, command=command, before=before)

    def _trained(self, name: str, run: str, model: str, settings: dict[str, Any]) -> Stage:
        """From the policy's own weights, on the present labels of a run."""
        words = [
            f"{key}='{value}'" if key == "separator" else f"{key}={value}"
            for key, value in {**settings, **TRAINING}.items()
        ]
        where = (f"run_dir={self._folder / run}", f"out={self._folder / f'{model}-model'}")
        command = ("train", f"model={self._policy.asset}", *where, *words)
        return Stage(name=name, command=command, environment=_ONE_THREAD)

    def _learned(self, labels: str) -> Stage:
        settings = {"target": STEP, "loss": "soft", "soft": TARGETS[labels]}
        return self._trained(f"train a PRM: {labels}", "other-run", labels, settings)

    def _scored(self, name: str, model: str, run: str, out: str, *settings: str) -> Stage:
        where = (f"run_dir={self._folder / run}", f"out={self._folder / f'{out}.parquet'}")
        command = ("score", f"model={self._folder / f'{model}-model'}", *settings, *where)
        return Stage(name=name, command=command, environment=_ONE_THREAD)

    def _selected(self, name: str, model: str, *settings: str) -> Stage:
        at = self._folder
        where = (f"scores={at / f'{model}-scores.parquet'}", f"run_dir={at / 'test-run'}")
        command = ("select", *where, *settings, SIZES, f"out={at / f'{model}-select.json'}")
        return Stage(name=name, command=command, shown_again=True)

    def _relabelled(self, labels: str, how: str, witness: str, *, keep: str | None) -> Stage:
        """`keep`: the name of the labels that the new ones replace, to be kept as a file."""
        rule = ("estimator.rule=consensus", f"consensus.how={how}", f"consensus.witnesses=[{witness}]")
        command = ("relabel", f"run_dir={self._folder / 'other-run'}", *rule)

        def before() -> None:
            (self._folder / f"{labels}-labels.parquet").unlink(missing_ok=True)
            if keep is not None:
                _keep_labels(self._folder, keep)

        return Stage(name=f"relabel: {labels}", command=command, before=before)


def _keep_labels(folder: Path, name: str) -> None:
    """Copy the present labels, unless they are kept: after a restart others may stand in their place."""
    kept = folder / f"{name}-labels.parquet"
    if not kept.exists():
        new = kept.with_suffix(".new")
        pl.read_parquet(folder / "other-run" / "labels" / "*.parquet").write_parquet(new)
        new.replace(kept)
