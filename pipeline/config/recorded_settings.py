"""Converts settings between the schemas of `config` and the form that a run directory records: dotted keys, plain values."""

import dataclasses
import json
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, TypeVar, get_args, get_type_hints

from pipeline.config.fields import ChosenSettings, as_type, describe_settings
from pipeline.config.label import EstimatorConfig, GraderConfig, PolicyConfig
from pipeline.config.search import SearchConfig
from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry, is_given

RUN_RECORD = "run.json"
"""The file of a run directory that records the settings. `storage.run_record` reads and writes it."""
Settings = Mapping[str, object]
PLUGIN = "plugin"
"""The key that records which plug-in an implementation comes from; see `core.registry`."""
PRIOR_VERSION = "kernel_prior"
"""The key that records the version of what an estimator assumes before it has learned from a run."""
SETTING_NAMES: Mapping[str, str] = {
    "input": "data.path (content)",
    "policy_fingerprint": "policy.model (weights)",
    PRIOR_VERSION: "estimator (version of its prior)",
    "grader_version": "grader (version)",
    "template_sha256": "judge.template_file (content)",
    "parser_version": "how critiques are read (version)",
    "verifier_version": "verifier (version)",
    "proves": "verifier (whether it proves)",
    "coq_version": "Coq (version)",
    "lean_version": "Lean (version)",
    "python": "Python (version)",
    "table_sha256": "verifier.table (content)",
}
"""Recorded values that are no settings -> what a message calls them."""
_DERIVED = frozenset({"staged_input"})
"""Recorded hashes that follow from other recorded values."""
_MOST_CHANGES = 8
_MOST_CHARACTERS = 60
T = TypeVar("T")
C = TypeVar("C", bound=ChosenSettings)


def flatten_settings(key: str, value: object) -> dict[str, object]:
    """A setting, or all settings of a section, by dotted key."""
    if isinstance(value, dict):
        return {
            name: plain
            for part, inner in value.items()
            for name, plain in flatten_settings(f"{key}.{part}", inner).items()
        }
    if isinstance(value, Enum):
        return {key: value.value}
    return {key: value}


def given_settings(section: str, change: Any) -> dict[str, object]:
    """The settings that a change of a section gives, by dotted key: those that are not None. An empty text becomes None."""
    named = {
        key: None if value == "" else value for key, value in dataclasses.asdict(change).items() if value is not None
    }
    return flatten_settings(section, named)


def chosen_settings(settings: Settings, base: type[C], registry: Registry[Any]) -> C:
    """A recorded section as the settings of the implementation that it names; settings that are not recorded have defaults.

    Raises ValueError for invalid settings, and UsageError if the implementation is not installed.
    """
    refuse_missing(settings, base, registry)
    name = str(settings.get(f"{base.SECTION}.{base.CHOSEN_BY}", base.usual()))
    schema: type[C] = registry.settings(name)
    # Records also contain settings of the other built-in implementations.
    others = {each.name for own in registry.our_settings().values() for each in describe_settings(own)}
    return settings_section(settings, base.SECTION, schema, ignored={*others, PLUGIN})


def refuse_missing(settings: Settings, base: type[ChosenSettings], registry: Registry[Any]) -> None:
    """Raise UsageError if the recorded implementation is a plug-in that is missing here or has another version, or an object
    that is not given."""
    by = f"{base.SECTION}.{base.CHOSEN_BY}"
    name, plugin = str(settings.get(by, base.usual())), settings.get(f"{base.SECTION}.{PLUGIN}")
    if plugin and is_given(plugin) and (name not in registry.names() or plugin != str(registry.plugin(name))):
        here = f", and here it is the {registry.plugin(name)}" if name in registry.names() else ""
        opened = "open_search" if f"{SearchConfig.SECTION}.{SearchConfig.CHOSEN_BY}" in settings else "open_run"
        raise UsageError(
            f"{by}={name} is the {plugin}{here}: give the same object in Python, "
            f"{opened}(RUN_DIR, {base.SECTION}=...), or make it a plug-in, which every machine can install"
        )
    if plugin and name not in registry.names():
        raise UsageError(f"{by}={name} comes from {plugin}, which is not installed here: install that version")
    if plugin and plugin != str(registry.plugin(name)):
        raise UsageError(
            f"{by}={name} comes from {plugin}, but {registry.plugin(name)} is installed here: install the recorded version"
        )


def with_source(before: Settings, now: Settings, base: type[ChosenSettings], registry: Registry[Any]) -> Settings:
    """Settings as they are to be recorded `now`: where a section has another implementation than `before`, with its source, and
    without settings that only a plug-in or object of before has.

    Raises UsageError if there is no implementation of its name."""
    by, source = f"{base.SECTION}.{base.CHOSEN_BY}", f"{base.SECTION}.{PLUGIN}"
    name = now.get(by, base.usual())
    if name == before.get(by, base.usual()):
        return now
    plugin = registry.plugin(str(name))
    own = {f"{base.SECTION}.{each.name}" for each in describe_settings(registry.settings(str(name)))}
    gone = {source, *(key for key in before if key.startswith(f"{base.SECTION}.") and key not in own)}
    others = {key: value for key, value in now.items() if key not in gone} if source in before else now
    return others if plugin is None else {**others, source: str(plugin)}


def complete_settings(settings: C, registry: Registry[Any]) -> C:
    """The settings as those of the implementation that they name, with its defaults for the fields that the base lacks.

    Raises UsageError if the implementation is not installed, and ValueError if it does not accept the settings.
    """
    schema: type[C] = registry.settings(settings.implementation)
    return as_type(settings, schema)


def change_lines(before: Settings, now: Settings) -> list[str]:
    """How recorded settings differ, a line for each, at most _MOST_CHANGES and one that counts the others.

    If a section has another implementation, its other settings differ for that reason. They are counted in the line of the
    implementation and come with no line of their own.
    """
    differing = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    differing = [key for key in differing if key not in _DERIVED] or differing
    choices = [f"{base.SECTION}.{base.CHOSEN_BY}" for base in (PolicyConfig, EstimatorConfig, GraderConfig)]
    changed = {_section(key): key for key in choices if key in differing}
    covered = {section: [key for key in differing if _section(key) == section] for section in changed}
    own = [key for key in differing if _section(key) not in changed]
    lines = []
    for key in [*changed.values(), *own][:_MOST_CHANGES]:
        was, is_now = (_shown(settings.get(key)) for settings in (before, now))
        line = f"{SETTING_NAMES.get(key, key)} was {was}, now {is_now}"
        if follow := len(covered.get(_section(key), [key])) - 1:
            line += f", with {follow} other setting{'s' if follow > 1 else ''} of the {_section(key)}"
        lines.append(line)
    more = len(changed) + len(own) - len(lines)
    return [*lines, f"and {more} more"] if more else lines


def _section(key: str) -> str:
    return key.partition(".")[0]


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 3] + "..."


def settings_section(settings: Settings, name: str, schema: type[T], ignored: Collection[str] = ()) -> T:
    """A section without inner sections, with defaults for settings that are not recorded.

    Settings in `ignored` are skipped if the schema does not have them. Raises ValueError for other unknown settings and for
    invalid values.
    """
    kinds = get_type_hints(schema)
    values: dict[str, object] = {}
    for key, value in settings.items():
        at, _, setting = key.rpartition(".")
        if at == name:
            if setting not in kinds:
                if setting in ignored:
                    continue
                raise ValueError(f"{key} is not a setting of this version")
            values[setting] = _typed(value, kinds[setting])
    return schema(**values)


def _typed(value: object, kind: Any) -> object:
    """A recorded value as the choice that it names, for a setting of choices, which may be optional."""
    choices = [each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, Enum)]
    return choices[0](value) if choices and value is not None else value
