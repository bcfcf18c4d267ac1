"""The command that makes the labels which a start of `label` on an existing run asks for, if no new rollout is needed.

`label` on the directory of a run refuses other settings. Where those that differ may change afterwards, `relabel` or `regrade`
makes the labels from the stored rollouts.
"""

import shlex
from collections.abc import Mapping

from pipeline.config.changes import change_type
from pipeline.config.fields import describe_settings, identity_settings
from pipeline.config.label import EstimatorConfig, GraderConfig
from pipeline.config.recorded_settings import PRIOR_VERSION, chosen_settings, flatten_settings
from pipeline.config.words import setting_word
from pipeline.core.errors import StepvalueError, UsageError
from pipeline.estimators.base import objection
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.graders.registry import GRADERS
from pipeline.storage.run_record import SCHEMA, STAGED_INPUT, recorded_identity
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import refuse_unfinished

_LEFT_OUT = object()
_ESTIMATOR = f"{EstimatorConfig.SECTION}.{EstimatorConfig.CHOSEN_BY}"


def relabel_hint(storage: Storage, identity: Mapping[str, object]) -> str:
    """A line that names the command, for a run with another `identity` than the one in the directory. Empty where neither
    command makes these labels, or the directory cannot be read."""
    try:
        recorded = recorded_identity(storage)
        differing = {
            key: identity.get(key)
            for key in sorted({*recorded, *identity} - {STAGED_INPUT, SCHEMA, PRIOR_VERSION})
            if recorded.get(key) != identity.get(key)
        }
        command = _command(differing)
        if not command or not _can_be_made(recorded, identity):
            return ""
        named = _estimator_option(differing, recorded, identity)
        asked = {key: value for key, value in differing.items() if key in identity}
        settings = [
            setting_word(key, value) for key, value in {**named, **asked, **named}.items() if value is not _LEFT_OUT
        ]
        words = shlex.join([command, setting_word("run_dir", storage.run_dir), *settings])
    except StepvalueError:
        return ""
    option = setting_word(EstimatorConfig.SECTION, identity.get(_ESTIMATOR))
    own = f" (leave out {option} to keep its estimator, {recorded.get(_ESTIMATOR)})" if named else ""
    try:
        refuse_unfinished(storage)
    except StepvalueError:
        return (
            f"\nFinish the run with its own settings first; then this makes such labels without a model{own}: {words}"
        )
    return f"\nThis makes such labels from the rollouts of the run, without a model{own}: {words}"


def _estimator_option(
    differing: Mapping[str, object], recorded: Mapping[str, object], identity: Mapping[str, object]
) -> dict[str, object]:
    """Where another estimator of ours is wanted: its option, which comes with settings of its own, and those of these settings
    that are to be others. Settings that need no word are _LEFT_OUT: so are defaults of what the recorded estimator lacks."""
    name = str(identity.get(_ESTIMATOR))
    if _ESTIMATOR not in differing or name not in ESTIMATORS.ours:
        return {}
    schema = ESTIMATORS.settings(name)
    defaults = flatten_settings(EstimatorConfig.SECTION, identity_settings(schema(name=name)))
    own = {key: _LEFT_OUT for key, value in defaults.items() if key not in recorded and identity.get(key) == value}
    usual = flatten_settings(EstimatorConfig.SECTION, dict(schema.OPTION))
    others = {key: _LEFT_OUT if identity.get(key) == value else identity.get(key) for key, value in usual.items()}
    return {EstimatorConfig.SECTION: name, _ESTIMATOR: _LEFT_OUT, **own, **others}


def _command(differing: Mapping[str, object]) -> str:
    """The command that may change these settings; empty if none may."""
    of_labels, of_grader = _keys(EstimatorConfig, ESTIMATORS), _keys(GraderConfig, GRADERS)
    if not differing or not differing.keys() <= of_labels | of_grader:
        return ""
    return "relabel" if differing.keys() <= of_labels else "regrade"


def _keys(base: type[EstimatorConfig] | type[GraderConfig], registry: object) -> set[str]:
    return {f"{base.SECTION}.{each.name}" for each in describe_settings(change_type(base, registry))}  # type: ignore[arg-type]


def _can_be_made(recorded: Mapping[str, object], identity: Mapping[str, object]) -> bool:
    """Whether the wanted estimator can use the rollouts of the recorded one."""
    try:
        sampled, wanted = (
            estimator_for(chosen_settings(settings, EstimatorConfig, ESTIMATORS)) for settings in (recorded, identity)
        )
    except (ValueError, UsageError):
        return False
    return objection(sampled, wanted) is None
