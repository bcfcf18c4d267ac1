"""The second lap of the loop: the PRM of the first one is a witness for labels of other problems.

The policy samples chains of problems that no model has seen, and Monte Carlo labels them with few rollouts. The first lap's PRM
scores the same chains. `relabel` makes consensus labels of both opinions, two ways, and a PRM learns from those of the
posterior, another from Monte Carlo alone, with the same settings. Both choose among the candidates of the first lap. Pure, but
for what stages call before they start.
"""

import polars as pl

from tests.loop.commands import ONE_THREAD, Stage, labelled, scored, selected, trained
from tests.loop.plan import SIZES, SOLUTIONS, STEP, TRAINING, Files
from tests.tiny.policy import TinyPolicy

LABELLED_OTHERS = "label other problems"
MC, CONSENSUS = "mc", "consensus"
"""The models of the second lap, by the labels that they learn from."""
EXACT, POSTERIOR = "exact", "posterior"
ESTIMATOR = ("estimator=pooled", "estimator.target_sd=0.2")
TARGETS = {MC: {"soft": "value"}, CONSENSUS: {"soft": "p_error_free"}}
"""What the models learn: V by Monte Carlo alone, and the probability that no step so far has an error."""


def transfer_stages(files: Files, policy: TinyPolicy) -> list[Stage]:
    """From problems to two tables of accuracies, after the stages of the first lap."""
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
        Stage(
            name="relabel by consensus.how=exact",
            command=_relabelled(files, EXACT),
            before=lambda: files.exact_labels.unlink(missing_ok=True),
        ),
        Stage(
            name="relabel by consensus.how=posterior",
            command=_relabelled(files, POSTERIOR),
            before=lambda: _keep_labels(files),
        ),
        _trained(files, policy, CONSENSUS),
        *(stage for labels in TARGETS for stage in _chosen(files, labels)),
    ]


def _relabelled(files: Files, how: str) -> tuple[str, ...]:
    return (
        "relabel",
        f"run_dir={files.other_run}",
        "estimator.rule=consensus",
        f"consensus.how={how}",
        f"consensus.witnesses=[scores:{files.other_scores}]",
    )


def _trained(files: Files, policy: TinyPolicy, labels: str) -> Stage:
    settings = {"target": STEP, "loss": "soft", **TARGETS[labels], **TRAINING}
    return Stage(
        name=f"train a PRM on {labels} labels",
        command=trained(policy, files.other_run, files.model(labels), settings),
        environment=ONE_THREAD,
    )


def _chosen(files: Files, labels: str) -> list[Stage]:
    return [
        Stage(
            name=f"score by the PRM of {labels} labels",
            command=scored(files.model(labels), files.test_run, files.scores(labels)),
            environment=ONE_THREAD,
        ),
        Stage(
            name=f"select by the PRM of {labels} labels",
            command=selected(
                files.scores(labels),
                files.test_run,
                files.selected(labels),
                f"n=[{','.join(map(str, SIZES))}]",
            ),
            shown_again=True,
        ),
    ]


def _keep_labels(files: Files) -> None:
    """Copy the present labels, unless they are kept: after a restart others may stand in their place."""
    if not files.exact_labels.exists():
        new = files.exact_labels.with_suffix(".new")
        pl.read_parquet(files.other_run / "labels" / "*.parquet").write_parquet(new)
        new.replace(files.exact_labels)
