"""The schema of a command line: that of its command, with the settings of the implementations that are chosen."""

import dataclasses
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_type_hints

from pipeline.cli.command import Command
from pipeline.cli.options import implementation_of, named_implementation, usual_options
from pipeline.cli.overrides import Owner, marks_of, text_keys
from pipeline.config.changes import Change, change_type
from pipeline.config.fields import REFUSED, ChosenSettings, Settings
from pipeline.config.recorded_settings import RUN_RECORD, refuse_missing
from pipeline.runtime.objects import REGISTRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplementationSettings:
    """The settings of the implementation that a setting names: their `section` on the command line, and their dataclass."""

    section: str
    schema: type[Settings]


def sections_of(command: Command, kind: type) -> list[str]:
    """The sections of a command with a choice of implementations, or (kind Change) whose settings may be changed later."""
    hints = get_type_hints(command.schema)
    wanted = {section: (base if kind is ChosenSettings else kind) for section, (base, _) in REGISTRIES.items()}
    return [section for section, base in wanted.items() if hints.get(section) is base]


def chosen_implementation(command: Command, section: str, written: Mapping[str, str]) -> str:
    """Which implementation a section is for: the one that is named, else the default."""
    named = named_implementation(section, written)
    return implementation_of(section, usual_options(command)[section]) if named is None else named


def refuse_missing_plugins(written: Mapping[str, str], sections: Collection[str]) -> None:
    """Raise UsageError if an option names a plug-in that made the run directory but is not installed here."""
    unknown = [section for section in sections if written.get(section, "") not in ("", *REGISTRIES[section][1].names())]
    record = Path(written.get("run_dir", "")) / RUN_RECORD
    if not unknown or not record.is_file():
        return
    with suppress(ValueError):  # a damaged record is reported when the run directory is opened
        recorded = json.loads(record.read_text("utf-8"))
        for section in unknown:
            base, registry = REGISTRIES[section]
            if recorded.get(f"{section}.{base.CHOSEN_BY}") == written[section]:
                refuse_missing(recorded, base, registry)


def schema_for(command: Command, chosen: Mapping[str, str], own: ImplementationSettings | None) -> type:
    """The command's schema with the settings of the chosen implementations."""
    kinds: dict[str, type] = {section: REGISTRIES[section][1].settings(name) for section, name in chosen.items()}
    kinds |= {section: change_type(*REGISTRIES[section]) for section in sections_of(command, Change)}
    if own:
        kinds[own.section] = own.schema
    if not kinds:
        return command.schema
    return _with_sections(command.schema, tuple(kinds.items()))


@cache
def _with_sections(schema: type, kinds: tuple[tuple[str, type], ...]) -> type:
    """One type for the same settings, so that Hydra, which reads a new type in 20 ms, has it already."""
    fields = [(name, kind, dataclasses.field(default_factory=kind)) for name, kind in kinds]
    return dataclasses.make_dataclass(schema.__name__, fields, bases=(schema,), kw_only=True, slots=True)


def settings_elsewhere(section: str, chosen: str) -> dict[str, Owner]:
    """Settings that others of our implementations have, but not the chosen one."""
    _, registry = REGISTRIES[section]
    own = marks_of(registry.settings(chosen), f"{section}.")
    found: dict[str, Owner] = {}
    for name, settings in registry.our_settings().items():
        for key, marks in marks_of(settings, f"{section}.").items():
            if key not in own:
                owner = found.get(key)
                names = (*owner.names, name) if owner else (name,)
                refused = REFUSED in marks or (owner is not None and owner.refused)
                found[key] = Owner(section=section, names=names, chosen=chosen, refused=refused)
    return found


def own_elsewhere(command: Command, written: Mapping[str, str]) -> dict[str, Owner]:
    """The settings of those of our implementations that the command line does not name."""
    if command.chooses is None:
        return {}
    key, registry = command.chooses
    chosen = written.get(key, "")
    return {
        setting: Owner(section=key, names=(name,), chosen=chosen, refused=False)
        for name, settings in registry.our_settings(named=True).items()
        if name != chosen
        for setting in marks_of(settings, f"{settings.SECTION}.")
    }


def texts_elsewhere(section: str) -> set[str]:
    """Keys of text settings of all our implementations."""
    registry = REGISTRIES[section][1]
    return {f"{section}.{key}" for settings in registry.our_settings().values() for key in text_keys(settings)}
