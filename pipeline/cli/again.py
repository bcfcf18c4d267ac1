"""`--again`: the settings that the directory of a run records, for another run.

The record (`run.json`) holds what determines the labels. Where the input is, and the settings that may differ from start to
start, are recorded with each start; `check_again` says what is taken. Starts of earlier versions lack them, and `check_again`
then names what is missing.
"""

import dataclasses
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.cli.command import AGAIN, Command
from pipeline.cli.options import YAML, conf_folder, implementation_of, options_of, usual_options
from pipeline.cli.overrides import marks_of
from pipeline.cli.own_settings import OwnSettings, choose_options, without_choices
from pipeline.config.fields import FREE, describe_settings
from pipeline.config.recorded_settings import CHECKS, RUN_RECORD, SETTING_NAMES, refuse_missing
from pipeline.config.renamed import current_settings
from pipeline.config.words import setting_word
from pipeline.core.errors import UsageError
from pipeline.data.rows import GIVEN_FILE, GIVEN_FOLDER
from pipeline.runtime.objects import REGISTRIES

if TYPE_CHECKING:
    from pipeline.storage.starts import Start

_STOP_AT_ANSWER = "sampling.stop_at_answer"
_PATH, _RUN_DIR, _DATA, _BUDGET = "data.path", "run_dir", "data", "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """`settings` of a run. `whole`: they include those of a start, and not only what determines the labels."""

    settings: OwnSettings
    whole: bool


def recorded_settings(command: Command, run_dir: str, folder: Path | None, given: Collection[str]) -> Recorded:
    """The settings of the run in a directory. `folder`: the user's own options. `given`: keys and groups that are given too.

    Raises StoreError if the record of the run is damaged, and UsageError if there is no run, and if a plug-in of the run is not
    installed.
    """
    from pipeline.storage.location import storage_at
    from pipeline.storage.run_record import recorded_identity
    from pipeline.storage.starts import read_starts
    from pipeline.storage.stored_run import refuse_no_run, with_present_input

    storage = storage_at(run_dir)
    refuse_no_run(storage)
    started = _of_start(read_starts(storage).starts)
    recorded = with_present_input(storage, recorded_identity(storage))
    place = f"{run_dir.rstrip('/')}/{RUN_RECORD}"
    for base, registry in REGISTRIES.values():
        refuse_missing(recorded, base, registry)
    settings = {key: value for key, value in started.items() if "." in key or key == _BUDGET}
    if _DATA in given:
        settings.pop(_PATH, None)
    settings |= {
        key: value for key, value in recorded.items() if key == CHECKS or ("." in key and key not in SETTING_NAMES)
    }
    settings = current_settings(command.name, {key: value for key, value in settings.items() if not _is_plugin(key)})
    # The record has its effective value, with None for false. A start has its own value, where that is another one.
    effective = settings.get(_STOP_AT_ANSWER)
    settings[_STOP_AT_ANSWER] = started.get(_STOP_AT_ANSWER, effective) if started else bool(effective)
    schemas = dict(_schemas(command, settings))
    for section, schema in schemas.items():
        for each in describe_settings(schema):
            if each.former is not None:
                value = each.former.value
                settings.setdefault(f"{section}.{each.name}", value.value if isinstance(value, Enum) else value)
    kept = {key: value for key, value in settings.items() if not _is_of_others(key, schemas)}
    options = choose_options(command, place, kept, {}, folder)
    own = OwnSettings(place=place, values=without_choices(kept, options), options=options)
    return Recorded(settings=own, whole=bool(started))


def continued_settings(command: Command, run_dir: str, folder: Path | None, given: Collection[str]) -> OwnSettings:
    """The settings of the run in a directory, for a command that continues it. The rows of a Python call are gone, but the run
    has them: they keep the name that such rows have. Raises as `recorded_settings` does."""
    found = recorded_settings(command, run_dir, folder, given).settings
    return found if _DATA in given else replace(found, values={_PATH: f"{GIVEN_FOLDER}/{GIVEN_FILE}", **found.values})


def check_again(
    command: Command, run_dir: str, recorded: Recorded, given: Collection[str], typed: Mapping[str, str]
) -> tuple[str, ...]:
    """A remark on the settings that are taken, or that the record lacks. `given`: as for `recorded_settings`. Raises UsageError
    if the other run has no directory of its own, or no input."""
    record = recorded.settings
    if _RUN_DIR not in given:
        raise UsageError(f"{AGAIN} {run_dir} makes another run: give its folder, {_RUN_DIR}=...")
    other = typed.get(_RUN_DIR, "")
    if other.rstrip("/") == run_dir.rstrip("/") or Path(other).resolve() == Path(run_dir).resolve():
        raise UsageError(f"{_RUN_DIR}={other} is the folder of the run that {AGAIN} names: give another one")
    if not {_PATH, _DATA} & {*given, *record.values}:
        why = (
            "the rows of this run were given in Python"
            if recorded.whole
            else f"{record.place} records a hash of the input and not {_PATH}"
        )
        raise UsageError(f"{why}: give {_PATH}=...")
    if recorded.whole:
        return (f"{run_dir} was labelled with {_taken(command, record, given)}; other settings have their defaults",)
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


def _of_start(starts: "Sequence[Start]") -> Mapping[str, object]:
    """The settings of the last start that ended well, or else of the last one; empty where none recorded any."""
    from pipeline.storage.starts import DONE

    recording = [start for start in starts if start.settings]
    done = [start for start in recording if start.ended == DONE]
    return (done or recording)[-1].settings if recording else {}


def _taken(command: Command, record: OwnSettings, given: Collection[str]) -> str:
    """The recorded settings that are not the default, as a command line has them; those that are given now are left out."""
    usual = usual_options(command)
    options = {group: option for group, option in record.options.items() if usual.get(group) != option}
    defaults = _defaults(command, record)
    values = {key: value for key, value in record.values.items() if key not in defaults or defaults[key] != value}
    chosen = [*sorted(options.items()), *sorted(values.items(), key=lambda setting: setting[0])]
    words = [setting_word(key, value) for key, value in chosen if key not in given]
    return shlex.join(words) or "the defaults"


def _defaults(command: Command, record: OwnSettings) -> dict[str, object]:
    """The values of the settings where nobody gives them, with the options of the record."""
    found: dict[str, object] = {}
    for section, schema in _schemas(command, {**record.values, **_choices(record)}):
        found |= dict(_schema_defaults(schema, f"{section}."))
    for group, option in {**usual_options(command), **record.options}.items():
        if (file := conf_folder() / group / f"{option}{YAML}").is_file():
            found |= options_of(file, group)
    return found


def _schema_defaults(schema: Any, prefix: str) -> Iterator[tuple[str, object]]:
    for each in dataclasses.fields(schema):
        value = each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
        if dataclasses.is_dataclass(value):
            yield from _schema_defaults(type(value), f"{prefix}{each.name}.")
        else:
            yield f"{prefix}{each.name}", value.value if isinstance(value, Enum) else value


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
