"""A run that is labelled with the rollouts of another has the labels that it would have made by itself."""

from pathlib import Path

import pytest

from pipeline.analysis.audit.run import audit
from pipeline.analysis.shared_rollouts import SharedRollouts, label_with_rollouts_of
from pipeline.config.changes import AuditConfig
from pipeline.config.label import LabelConfig
from pipeline.core.errors import Interrupted
from pipeline.core.schemas import LOG_KEYS
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.runtime.driver import place_of
from pipeline.runtime.state import sampling_identity
from pipeline.storage.location import storage_at
from tests.audit.runs import config, labelled
from tests.library import Library
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

RULES = {
    "fixed": ("estimator.rule=threshold", "estimator.threshold=0.4", "estimator.interval=jeffreys"),
    "first_success": ("estimator.confidence=0.8", "estimator.after_error=negative"),
    "bisect": ("estimator.after_error=uncertain",),
    "pooled": ("estimator.rule=first_error", "estimator.threshold=0.2"),
}


CALM = "policy.lab.fail_after=0"
"""Where an engine dies, it depends on the moment in how many files its unit is flushed."""


def shared(source: Path, wanted: LabelConfig) -> SharedRollouts:
    place = place_of(wanted)
    return label_with_rollouts_of(
        storage_at(str(source)), place.storage, place.identity, estimator_for(wanted.estimator)
    )


def content(run_dir: Path, *folders: str) -> dict[str, bytes]:
    return {
        f"{folder}/{path.name}": path.read_bytes()
        for folder in folders
        if (run_dir / folder).is_dir()
        for path in (run_dir / folder).iterdir()
    }


def at(run_dir: Path) -> str:
    """The setting of a run in another directory, with the same rows: staged rows name their file."""
    return f"run_dir={run_dir}"


def test_the_rules_cover_every_estimator_of_ours() -> None:
    assert RULES.keys() == set(ESTIMATORS.ours)


@pytest.mark.parametrize("name", RULES)
def test_labels_are_those_of_a_run_that_samples_by_itself(name: str, tmp_path: Path) -> None:
    source = labelled(tmp_path, f"estimator={name}", CALM)
    alone, copy = tmp_path / "alone", tmp_path / "copy"
    labelled(tmp_path, f"estimator={name}", CALM, *RULES[name], at(alone))
    wanted = config(tmp_path, f"estimator={name}", "policy.lab.fail_after=20", *RULES[name], at(copy))
    found = shared(source, wanted)
    assert found.same
    assert found.labelled > 1
    folders = ("labels", "inputs", "rejects", *LOG_KEYS)
    assert content(copy, *folders) == content(alone, *folders)
    assert content(copy, "labels") != content(source, "labels")
    assert audit(AuditConfig(run_dir=str(copy))).sound
    again = label_in_process(wanted)
    assert (again.units_done_now, again.rollouts_now) == (0, 0)
    assert shared(source, wanted) == SharedRollouts(same=True)


def test_a_run_that_grows_passes_its_new_rollouts_on(library: Library, tmp_path: Path) -> None:
    source, copy = library.copy("mixed", tmp_path), tmp_path / "copy"
    shared(source, config(tmp_path, *RULES["fixed"], at(copy)))
    label_in_process(config(tmp_path, "sampling.rollouts=5"))
    wanted = config(tmp_path, "sampling.rollouts=5", *RULES["fixed"], at(copy))
    assert shared(source, wanted).labelled > 1
    assert label_in_process(wanted).rollouts_now == 0
    assert content(copy, "rollouts") == content(source, "rollouts")
    assert audit(AuditConfig(run_dir=str(copy))).sound


def test_rollouts_that_the_other_run_has_not_are_not_lost(library: Library, tmp_path: Path) -> None:
    source = library.copy("mixed", tmp_path)
    own = tmp_path / "own"
    labelled(tmp_path, "sampling.rollouts=4", *RULES["fixed"], at(own))
    before = content(own, "rollouts", "labels", "commits")
    wanted = config(tmp_path, *RULES["fixed"], at(own))
    assert shared(source, wanted) == SharedRollouts(same=False)
    assert content(own, "rollouts", "labels", "commits") == before


def test_what_an_interruption_leaves_is_completed(library: Library, tmp_path: Path) -> None:
    source, copy = library.copy("mixed", tmp_path), tmp_path / "copy"
    wanted = config(tmp_path, *RULES["fixed"], at(copy))
    place, calls = place_of(wanted), list[None]()

    def check() -> None:
        calls.append(None)
        if len(calls) == 2:
            raise Interrupted("now")

    with pytest.raises(Interrupted):
        label_with_rollouts_of(
            storage_at(str(source)), place.storage, place.identity, estimator_for(wanted.estimator), check
        )
    halfway = audit(AuditConfig(run_dir=str(copy)))
    assert not halfway.findings
    assert not halfway.sound
    assert shared(source, wanted).labelled >= 1
    assert label_in_process(wanted).rollouts_now == 0
    assert audit(AuditConfig(run_dir=str(copy))).sound


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (["estimator.threshold=0.3"], True),
        (["estimator.rule=any", "estimator.confidence=0.9", "estimator.interval=jeffreys"], True),
        (["run_dir=elsewhere"], True),
        (["estimator.successes=2"], False),
        (["estimator=fixed"], False),
        (["sampling.temperature=0.5"], False),
        (["sampling.rollouts=9"], False),
        (["policy.oracle.seed=3"], False),
        (["data.path=other"], False),
        (["grader.deadline_seconds=2"], False),
    ],
)
def test_which_settings_matter_only_after_sampling(other: list[str], same: bool, tmp_path: Path) -> None:
    base = config(tmp_path, "estimator=first_success")
    changed = config(tmp_path, *(["estimator=first_success"] if "estimator=fixed" not in other else []), *other)
    assert (sampling_identity(base) == sampling_identity(changed)) is same
