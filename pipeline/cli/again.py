"""`--again`: the settings that the directory of a run records, for another run.

The record (`run.json`) holds what determines the labels. It does not hold where the input is, nor the settings that may differ
from start to start; `check_again` names these.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from pipeline.cli.command import AGAIN, Command
from pipeline.cli.options import implementation_of
from pipeline.cli.overrides import marks_of
from pipeline.cli.own_settings import OwnSettings, choose_options, without_choices
from pipeline.config.fields import FREE, describe_settings
from pipeline.config.recorded_settings import RUN_RECORD, SETTING_NAMES, refuse_missing
from pipeline.config.renamed import current_settings
from pipeline.core.errors import UsageError
from pipeline.runtime.objects import REGISTRIES

_STOP_AT_ANSWER = "sampling.stop_at_answer"
_PATH, _RUN_DIR, _DATA = "data.path", "run_dir", "data"


def recorded_settings(command: Command, run_dir: str, folder: Path | None) -> OwnSettings:
    """The settings of the run in a directory. `folder`: the user's own options.

    Raises StoreError if there is no run or its record is damaged, and UsageError if a plug-in of the run is not installed.
    """
    from pipeline.storage.location import storage_at
    from pipeline.storage.run_record import recorded_identity
    from pipeline.storage.stored_run import with_present_input

    storage = storage_at(run_dir)
    recorded = with_present_input(storage, recorded_identity(storage))
    place = f"{run_dir.rstrip('/')}/{RUN_RECORD}"
    for base, registry in REGISTRIES.values():
        refuse_missing(recorded, base, registry)
    settings = {key: value for key, value in recorded.items() if "." in key and key not in SETTING_NAMES}
    settings = current_settings(command.name, {key: value for key, value in settings.items() if not _is_plugin(key)})
    # The record has its effective value, with None for false.
    settings[_STOP_AT_ANSWER] = bool(settings.get(_STOP_AT_ANSWER))
    schemas = dict(_schemas(command, settings))
    for section, schema in schemas.items():
        for each in describe_settings(schema):
            if each.former is not None:
                value = each.former.value
                settings.setdefault(f"{section}.{each.name}", value.value if isinstance(value, Enum) else value)
    kept = {key: value for key, value in settings.items() if not _is_of_others(key, schemas)}
    options = choose_options(command, place, kept, {}, folder)
    return OwnSettings(place=place, values=without_choices(kept, options), options=options)


def check_again(
    command: Command, run_dir: str, own: Sequence[OwnSettings], typed: Mapping[str, str]
) -> tuple[str, ...]:
    """A remark on the settings that the record lacks, which comes first in `own`. Raises UsageError if the other run has no
    directory of its own, or no input."""
    record, *files = own
    given = {*typed, *(key for each in files for key in (*each.values, *each.options))}
    if _RUN_DIR not in given:
        raise UsageError(f"{AGAIN} {run_dir} makes another run: give its folder, {_RUN_DIR}=...")
    other = typed.get(_RUN_DIR, "")
    if other.rstrip("/") == run_dir.rstrip("/") or Path(other).resolve() == Path(run_dir).resolve():
        raise UsageError(f"{_RUN_DIR}={other} is the folder of the run that {AGAIN} names: give another one")
    if not {_PATH, _DATA} & given:
        raise UsageError(f"{record.place} records a hash of the input and not {_PATH}: give {_PATH}=...")
    schemas = dict(_schemas(command, {**record.values, **_choices(record)}))
    held = {name: [key for key in record.values if key.startswith(f"{name}.")] for name in schemas}
    # Of these sections nothing is recorded, or one setting.
    few = {name: keys for name, keys in held.items() if len(keys) <= 1 and name not in REGISTRIES}
    lacking = [
        key
        for name, schema in schemas.items()
        if name not in few
        for key in _free(schema, f"{name}.")
        if key not in record.values and key not in given
    ]
    names = ", ".join([*lacking, *(f"{name}.*{' but ' if keys else ''}{''.join(keys)}" for name, keys in few.items())])
    return (f"{record.place} does not record these settings, which have their defaults unless you give them: {names}",)


def _choices(record: OwnSettings) -> dict[str, object]:
    """The implementations of a record, which its options stand for."""
    return {
        f"{section}.{REGISTRIES[section][0].CHOSEN_BY}": implementation_of(section, option)
        for section, option in record.options.items()
        if section in REGISTRIES
    }


def _schemas(command: Command, settings: Mapping[str, object]) -> Iterator[tuple[str, Any]]:
    """Each section of a command with its schema: that of the recorded implementation, where it has several."""
    for each in describe_settings(command.schema):
        if each.name in REGISTRIES:
            base, registry = REGISTRIES[each.name]
            yield each.name, registry.settings(str(settings.get(f"{each.name}.{base.CHOSEN_BY}", base.usual())))
        elif dataclasses.is_dataclass(each.kind):
            yield each.name, each.kind


def _is_plugin(key: str) -> bool:
    section, _, name = key.partition(".")
    return section in REGISTRIES and name == "plugin"


def _is_of_others(key: str, schemas: Mapping[str, Any]) -> bool:
    """Whether a recorded setting is one of an implementation that the run does not use. Runs record some of these."""
    section = key.partition(".")[0]
    if section not in REGISTRIES or key in marks_of(schemas[section], f"{section}."):
        return False
    return any(key in marks_of(schema, f"{section}.") for schema in REGISTRIES[section][1].our_settings().values())


def _free(schema: Any, prefix: str, free: bool = False) -> Iterator[str]:
    """The dotted keys of the settings that may differ from start to start."""
    for each in describe_settings(schema):
        if dataclasses.is_dataclass(each.kind):
            yield from _free(each.kind, f"{prefix}{each.name}.", free or FREE in each.marks)
        elif free or FREE in each.marks:
            yield f"{prefix}{each.name}"
