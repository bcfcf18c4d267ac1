"""The identity of a run, the settings of a start, and the units that still need work."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.config.fields import identity_settings
from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import PRIOR_VERSION, complete_settings, flatten_settings
from pipeline.core.ids import content_id
from pipeline.core.records import Tally, UnitTarget
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.data.rows import lasting_path
from pipeline.engines.registry import policy_for
from pipeline.estimators.registry import estimator_for
from pipeline.graders.registry import grader_version
from pipeline.runtime.answer_ending import stops_at_answer
from pipeline.runtime.objects import REGISTRIES
from pipeline.runtime.problem_budget import meets_target
from pipeline.runtime.worker import UnitTask
from pipeline.runtime.worker_handle import Job
from pipeline.storage.commits import UNIT, Commit, RecordSequence, log_tally, resolve
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.units import UnitRef

_SECTIONS = ("data", "policy", "sampling", "estimator", "grader")
_PATH = "data.path"
_MISSING = object()


def identity(config: LabelConfig, input_digest: str, policy_fingerprint: str = "") -> dict[str, object]:
    """The identity of a run: all settings that determine its result, as dotted key -> plain value.

    It also contains the hash of the input, versions, and the distribution of each plug-in or what is known of the code of each
    object.
    """
    learner = estimator_for(config.estimator).learner
    fields: dict[str, object] = {
        "input": input_digest,
        "policy_fingerprint": policy_fingerprint,
        "schema": SCHEMA_VERSION,
        "grader_version": grader_version(),
        "run.unit_problems": config.run.unit_problems,
        PRIOR_VERSION: 1 if learner is None else learner.version,
    }
    for section in _SECTIONS:
        fields.update(section_identity(section, getattr(config, section)))
    fields.update(policy_for(config.policy).identity())
    # The effective value of the setting.
    fields["sampling.stop_at_answer"] = stops_at_answer(config)
    return {**fields, STAGED_INPUT: _input_id(fields)}


def section_identity(section: str, settings: Any) -> dict[str, object]:
    """What a section of settings adds to the identity of a run, by dotted key."""
    if section not in REGISTRIES:
        return flatten_settings(section, identity_settings(settings))
    (_, registry), name = REGISTRIES[section], settings.implementation
    own = flatten_settings(section, identity_settings(complete_settings(settings, registry)))
    plugin = registry.plugin(name)
    return own if plugin is None else {**own, f"{section}.plugin": str(plugin)}


def _input_id(fields: dict[str, object]) -> str:
    """Id of the staged input. It depends on the content of the input and on the settings for reading rows."""
    relevant = {
        key: value for key, value in fields.items() if key == "input" or key.startswith(("data.", "grader.", "run."))
    }
    return content_id("input", json.dumps(relevant, sort_keys=True))


def run_name(fields: dict[str, object]) -> str:
    """The folder name of a run, a hash of its identity."""
    return content_id("run", json.dumps(fields, sort_keys=True))[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The state of a run, from the record sequences of its units.

    `jobs`: the units that need work. `wholes`: the records of whole units, by unit id. `tally`: the sum over whole units.
    `logged`: counts of all committed rollouts, including those of unfinished units.
    """

    jobs: tuple[Job, ...]
    wholes: Mapping[str, Commit]
    tally: Tally
    logged: Tally


def state_of(
    units: Iterable[UnitRef],
    sequences: Mapping[str, RecordSequence],
    unit_targets: Mapping[str, UnitTarget],
    growths: tuple[Commit, ...] = (),
) -> RunState:
    """The state of a run. `unit_targets`: the target of each unit, by unit id. `growths`: the records of the run's growths. The
    jobs are in the order of the input."""
    jobs: list[Job] = []
    wholes: dict[str, Commit] = {}
    tally = logged = Tally()
    for unit in units:
        sequence = sequences.get(unit.unit_id) or RecordSequence(kind=UNIT, sequence_id=unit.unit_id)
        found = resolve(sequence)
        whole = found.whole
        unit_target = unit_targets[unit.unit_id]
        if whole is None or not meets_target(whole, unit_target):
            length = sequence.length
            asked = UnitTask(unit=unit, unit_target=unit_target, known_length=length, growths=growths)
            jobs.append(Job(asked=asked))
        if whole is not None:
            tally += whole.tally
            wholes[unit.unit_id] = whole
        logged += log_tally(sequence)
    return RunState(jobs=tuple(jobs), wholes=wholes, tally=tally, logged=logged)


def start_settings(config: LabelConfig, identity: Mapping[str, object]) -> dict[str, object]:
    """The settings of a start that the record of the run lacks: those that may differ from start to start, by dotted key, and
    those that the identity has in another form. With them `grow` continues a run by its directory alone. `data.path` is
    absolute, and left out where the rows are those of a Python call."""
    settings = {section: value for section, value in asdict(config).items() if isinstance(value, dict)}
    settings["data"]["path"] = lasting_path(config.data.path)
    found = {
        key: value
        for section, own in settings.items()
        for key, value in flatten_settings(section, own).items()
        if identity.get(key, _MISSING) != value and not (key == _PATH and value is None)
    }
    return {key: value for key, value in found.items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    """Whether a value can be recorded. Settings of a plug-in may have types of their own."""
    with suppress(TypeError, ValueError):
        json.dumps(value)
        return True
    return False
