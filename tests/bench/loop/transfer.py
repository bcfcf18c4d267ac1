"""The second lap of the loop: the PRM of the first one is a witness for labels of other problems.

The policy samples chains of problems that no model has seen, and Monte Carlo labels them with few rollouts. The first lap's PRM
scores the same chains. `relabel` makes consensus labels three ways: `exact`, `posterior` without a witness, and `posterior`
with the PRM. So what the witness adds is seen apart from what the posterior makes of Monte Carlo. PRMs learn from Monte Carlo
and from both posteriors, with the same settings, and choose among the candidates of the first lap. Pure, but for what stages
call before they start.
"""

import polars as pl

from tests.bench.loop.commands import ONE_THREAD, Stage, labelled, scored, selected, trained
from tests.bench.loop.plan import SIZES, SOLUTIONS, STEP, TRAINING, Files
from tests.tiny.policy import TinyPolicy

LABELLED_OTHERS = "label other problems"
MC, ALONE, CONSENSUS = "mc", "alone", "consensus"
"""The models of the second lap, by their labels: those of Monte Carlo, and of posteriors without and with the witness."""
EXACT = "exact"
ESTIMATOR = ("estimator=pooled", "estimator.target_sd=0.2")
"""About half the tokens of the default precision: labels for which a second opinion matters."""
TARGETS = {MC: "value", ALONE: "p_error_free", CONSENSUS: "p_error_free"}
"""The column that a model learns: V by Monte Carlo, or the probability that no step so far has an error."""


def transfer_stages(files: Files, policy: TinyPolicy) -> list[Stage]:
    """From problems to a table of accuracies for each model, after the stages of the first lap."""
    witness = f"scores:{files.other_scores}"
    return [
        Stage(
            name=LABELLED_OTHERS,
            command=labelled(
                policy, files.other_problems, files.other_run, f"sampling.solutions={SOLUTIONS}", *ESTIMATOR
            ),
        ),
        Stage(
            name="score them by the PRM of the first lap",
            command=scored(files.model(STEP), files.other_run, files.other_scores),
            environment=ONE_THREAD,
        ),
        _trained(files, policy, MC),
        _relabelled(files, EXACT, "exact", witness, keep=None),
        _relabelled(files, ALONE, "posterior", "", keep=EXACT),
        _trained(files, policy, ALONE),
        _relabelled(files, CONSENSUS, "posterior", witness, keep=ALONE),
        _trained(files, policy, CONSENSUS),
        *(stage for labels in TARGETS for stage in _chosen(files, labels)),
    ]


def _relabelled(files: Files, labels: str, how: str, witness: str, *, keep: str | None) -> Stage:
    """`keep`: the name of the labels that the new ones replace, to be kept as a file."""

    def before() -> None:
        files.kept_labels(labels).unlink(missing_ok=True)
        if keep is not None:
            _keep_labels(files, keep)

    return Stage(
        name=f"relabel: {labels}",
        command=(
            "relabel",
            f"run_dir={files.other_run}",
            "estimator.rule=consensus",
            f"consensus.how={how}",
            f"consensus.witnesses=[{witness}]",
        ),
        before=before,
    )


def _keep_labels(files: Files, name: str) -> None:
    """Copy the present labels, unless they are kept: after a restart others may stand in their place."""
    kept = files.kept_labels(name)
    if not kept.exists():
        new = kept.with_suffix(".new")
        pl.read_parquet(files.other_run / "labels" / "*.parquet").write_parquet(new)
        new.replace(kept)


def _trained(files: Files, policy: TinyPolicy, labels: str) -> Stage:
    settings = {"target": STEP, "loss": "soft", "soft": TARGETS[labels], **TRAINING}
    return Stage(
        name=f"train a PRM: {labels}",
        command=trained(policy, files.other_run, files.model(labels), settings),
        environment=ONE_THREAD,
    )


def _chosen(files: Files, labels: str) -> list[Stage]:
    return [
        Stage(
            name=f"score candidates: {labels}",
            command=scored(files.model(labels), files.test_run, files.scores(labels)),
            environment=ONE_THREAD,
        ),
        Stage(
            name=f"select: {labels}",
            command=selected(
                files.scores(labels), files.test_run, files.selected(labels), f"n=[{','.join(map(str, SIZES))}]"
            ),
            shown_again=True,
        ),
    ]
