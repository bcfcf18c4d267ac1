"""What a command line chooses from: the groups of `conf/`, their options, and the implementations that these name."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import pipeline
from pipeline.cli.command import Command
from pipeline.config.fields import BY_GROUP, CHOOSES, describe_settings
from pipeline.config.recorded_settings import flatten_settings
from pipeline.core.errors import UsageError
from pipeline.runtime.objects import REGISTRIES

YAML = ".yaml"
EXPERIMENT = "experiment"
"""The folder, in that of `--config-dir`, of the files that `experiment=NAME` names."""
_PACKAGED_CONF = Path(pipeline.__file__).parent / "conf"
_CHECKOUT_CONF = Path(pipeline.__file__).parents[1] / "conf"


def groups(command: Command, folder: Path | None = None) -> dict[str, list[str]]:
    """Group -> its options, for the sections of the command's settings: files of `conf/` and installed plug-ins, and files in
    a user's own folder."""
    sections = {section.name for section in dataclasses.fields(command.schema)}
    return {
        group.name: sorted(
            {*option_names(group), *plugins(group.name), *(option_names(folder / group.name) if folder else ())}
        )
        for group in sorted(conf_folder().iterdir())
        if group.is_dir() and group.name in sections
    }


def offered_groups(command: Command, folder: Path | None = None) -> dict[str, list[str]]:
    """The groups with the options that make sense for the command, for help and completion. All of a user's own folder do."""
    return {
        group: [
            option
            for option in options
            if option in command.offers.get(group, options) or (folder and option in option_names(folder / group))
        ]
        for group, options in groups(command, folder).items()
    }


def conf_folder() -> Path:
    """The folder `conf/`: beside the package in a checkout, inside it in an installation."""
    return (_PACKAGED_CONF if _PACKAGED_CONF.is_dir() else _CHECKOUT_CONF).resolve()


def usual_options(command: Command) -> dict[str, str]:
    """The option of each group that a command takes where none is named."""
    return _options_in(command_content(command))


def command_content(command: Command) -> dict[str, Any]:
    """The content of `conf/COMMAND.yaml`. A plug-in's command has no such file: its groups have the options of `label`, and
    others those of the first command that has the group."""
    files = {file.stem: file for file in sorted(conf_folder().glob(f"*{YAML}"))}
    if command.name in files:
        return conf_content(files[command.name])
    usual: dict[str, str] = {}
    for file in (files["label"], *files.values()):
        usual = {group: option for group, option in _options_in(conf_content(file)).items() if option != "None"} | usual
    chosen = [{group: usual[group]} for group in groups(command)]
    return {"defaults": [f"{command.name}_schema", *chosen, "_self_"]}


def _options_in(content: Mapping[str, Any]) -> dict[str, str]:
    listed = [each for each in content["defaults"] if isinstance(each, dict)]
    return {group: str(option) for each in listed for group, option in each.items()}


def implementation_of(section: str, option: str) -> str:
    """The implementation of a group's option. Its file names it; without a file, the option is the name of a plug-in."""
    base, _ = REGISTRIES[section]
    file = conf_folder() / section / f"{option}.yaml"
    if not file.is_file():
        return option if option in plugins(section) else base.usual()
    loaded = conf_content(file)
    return str((loaded.get(section) or loaded).get(base.CHOSEN_BY) or base.usual())


def option_for(section: str, implementation: str, usual: str) -> str:
    """The option of a group that chooses an implementation: the `usual` one if it does, else the one of its name."""
    return usual if implementation_of(section, usual) == implementation else implementation


def options_of(file: Path, section: str) -> dict[str, object]:
    """Dotted key -> value, for the settings that an option of a group sets."""
    loaded = conf_content(file)
    return {
        key: value
        for name, part in (loaded if section in loaded else {section: loaded}).items()
        for key, value in flatten_settings(name, part).items()
    }


def written_keys(overrides: Sequence[str]) -> dict[str, str]:
    """The value of each key, as it is written: enough to see which implementations are chosen."""
    return {key: value.strip("'\" ") for key, _, value in (text.partition("=") for text in overrides)}


def with_options(command: Command, sections: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """The overrides with the option of a group in place of the implementation's name: search=beam for search.method=beam.

    Raises UsageError where an option of the group stands beside it that may be for another one."""
    typed, usual = written_keys(overrides), usual_options(command)
    naming = {
        f"{section}.{each.name}": section
        for section in sections
        for each in describe_settings(REGISTRIES[section][0])
        if each.name == REGISTRIES[section][0].CHOSEN_BY and BY_GROUP in each.marks
    }
    found = []
    for text in overrides:
        key, name = text.partition("=")[0], typed[text.partition("=")[0]]
        section = naming.get(key)
        if section is None:
            found.append(text)
        elif (option := typed.get(section)) is None:
            found.append(f"{section}={option_for(section, name, usual[section])}")
        elif option not in groups(command)[section] or implementation_of(section, option) != name:
            raise UsageError(f"{text} stands beside {section}={option}: leave one of them out")
    return found


def named_implementation(section: str, written: Mapping[str, str]) -> str | None:
    """Which implementation a section is for: by its own key, the group's option or a setting that chooses; None: by none."""
    base, _ = REGISTRIES[section]
    if (key := f"{section}.{base.CHOSEN_BY}") in written:
        return written[key]
    if section in written:
        return implementation_of(section, written[section])
    choosing = choosing_settings(section)
    return next((name for key, name in choosing.items() if key in written), None)


def without_model(section: str, uses: str, model: str) -> Callable[[Mapping[str, str]], dict[str, str]]:
    """What `Command.implied` is where implementations of a section may need no model: then the option `oracle` of the section
    `model` stands for it, unless that is written. `uses`: the attribute that says whether an implementation needs one."""

    def implied(written: Mapping[str, str]) -> dict[str, str]:
        registry, name = REGISTRIES[section][1], named_implementation(section, written)
        if name is None or name not in registry.names() or any(key.partition(".")[0] == model for key in written):
            return {}
        return {} if getattr(registry.load(name), uses) else {model: "oracle"}

    return implied


def choosing_settings(section: str) -> dict[str, str]:
    """Dotted key -> implementation, for settings that choose an implementation when they are given."""
    registry = REGISTRIES[section][1]
    return {
        f"{section}.{each.name}": name
        for name, settings in registry.our_settings().items()
        for each in describe_settings(settings)
        if CHOOSES in each.marks
    }


def option_names(group: Path) -> list[str]:
    """The names of the files in a folder of settings."""
    return sorted(option.stem for option in group.glob(f"*{YAML}"))


def plugins(section: str) -> list[str]:
    if section not in REGISTRIES:
        return []
    registry = REGISTRIES[section][1]
    return [name for name in registry.names() if name not in registry.ours]


@cache
def conf_content(file: Path) -> dict[str, Any]:
    """The content of a file of `conf/`. PyYAML's C loader takes a tenth of the time of its Python loader."""
    loaded = yaml.load(file.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded if isinstance(loaded, dict) else {}
