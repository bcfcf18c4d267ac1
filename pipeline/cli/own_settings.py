"""Settings of a user's own: files of settings in the folder of `--config-dir`, as `--config-name` and `experiment=` name them.

A file holds settings of a command as nested YAML, such as the output of `--cfg job`. Hydra composes them (`compose`); this
module finds the files and says which options of groups they choose. A file may say so in three ways: in its defaults list
(`override /policy: hf`), by the name of an option (`policy: hf`), and by the name of the implementation (`policy.kind`).

A command that continues a run, such as `grow`, has the settings of that run. The record (`run.json`) holds what determines the
labels. Where the input is, and the settings that may differ from start to start, are recorded with each start: those of the
last one that ended well are taken.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.cli.command import Command
from pipeline.cli.options import (
    EXPERIMENT,
    YAML,
    choosing_settings,
    groups,
    implementation_of,
    option_for,
    option_names,
    usual_options,
)
from pipeline.config.recorded_settings import RUN_RECORD, SETTING_NAMES, flatten_settings, refuse_missing
from pipeline.core.errors import UsageError
from pipeline.core.suggestions import choice_hint
from pipeline.data.rows import GIVEN_FILE, GIVEN_FOLDER
from pipeline.runtime.objects import REGISTRIES

if TYPE_CHECKING:
    from pipeline.storage.starts import Start

TARGET = "_target_"
"""What names code to run in files of other programs that use Hydra. It is refused, although nothing here would run it."""
_DEFAULTS = "defaults"
_SELF = "_self_"
_HEADER = re.compile(r"^#\s*@package\s+(\S+)", re.MULTILINE)
_KEY = re.compile(r"[\w.]*\w")
_GLOBAL = "_global_"
_OVERRIDE = re.compile(r"(?:override\s+)?/?")
_INTERPOLATION = "${"
_STOP_AT_ANSWER = "sampling.stop_at_answer"
_PATH, _DATA = "data.path", "data"
Content = Mapping[str, Any]
Reader = Callable[[Path], Content]
"""Reads a YAML file. Raises UsageError, which names the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of a command line that name settings: a folder of files, and a file in it."""

    folder: Path | None = None
    name: str | None = None


NOTHING = Given()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSettings:
    """Settings from elsewhere than `conf/` and the command line. `place` names them in messages.

    `values`: dotted key -> value. `options`: the options of groups that they choose. `remarks`: on settings
    that are not there.
    """

    place: str
    values: Mapping[str, object]
    options: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def own_settings(command: Command, given: Given, experiment: str | None, read: Reader) -> list[OwnSettings]:
    """The settings of the files that a command line names; a later one wins.

    Raises UsageError for a folder or file that is not there or that cannot be read, and for an option that is not there.
    """
    if given.name is not None and "=" in given.name:
        raise UsageError(f"--config-name is followed by the setting {given.name}: write --config-name NAME")
    if given.folder is None:
        if given.name is not None:
            raise UsageError(f"--config-name {given.name} needs the folder of the file too: --config-dir FOLDER")
        if experiment is not None:
            raise UsageError(
                f"{EXPERIMENT}={experiment} needs the folder of your settings: --config-dir FOLDER, "
                f"with FOLDER/{EXPERIMENT}/{experiment}{YAML} in it"
            )
        return []
    if not given.folder.is_dir():
        raise UsageError(f"--config-dir {given.folder}: there is no such folder")
    folder = _Folder(command=command, path=given.folder, read=read, experiments=experiment is None)
    names = [*([given.name] if given.name is not None else []), *([f"{EXPERIMENT}/{experiment}"] if experiment else [])]
    return [each for name in names for each in folder.settings(name)]


def experiment_of(overrides: Sequence[str]) -> tuple[list[str], str | None]:
    """The overrides without `experiment=NAME` or `+experiment=NAME`, and the name. Raises UsageError for two names."""
    rest, names = [], []
    for text in overrides:
        key, equals, value = text.partition("=")
        if equals and key.removeprefix("+") == EXPERIMENT:
            names.append(value.strip("'\" "))
        else:
            rest.append(text)
    if len(names) > 1 or any("," in name or not name for name in names):
        raise UsageError(f"{EXPERIMENT}={','.join(names)}: name one experiment")
    return rest, names[0] if names else None


def refuse_targets(place: str, content: object) -> None:
    """Raise UsageError if a file names code to run, anywhere in it."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if TARGET in str(key).split("."):
                raise UsageError(f"{place}: {TARGET} names code to run, which settings never do: leave it out")
            refuse_targets(place, value)
    elif isinstance(content, list | tuple):
        for each in content:
            refuse_targets(place, each)


def flat(content: Content) -> dict[str, object]:
    """Dotted key -> value, of the content of a file."""
    return {name: value for key, part in content.items() for name, value in flatten_settings(str(key), part).items()}


def choose_options(
    command: Command, place: str, values: Mapping[str, object], named: Mapping[str, str], folder: Path | None
) -> dict[str, str]:
    """Group -> option, for the groups that are `named` and those whose option or implementation the values name.

    Raises UsageError for one that there is none of, and for two that contradict each other.
    """
    known, usual = groups(command, folder), usual_options(command)
    found = {group: str(values[group]) for group in known if isinstance(values.get(group), str)} | dict(named)
    for group, option in found.items():
        if option not in known[group]:
            raise UsageError(f"{place}: {group}={option}: there is no such option, {choice_hint(option, known[group])}")
    for section, (base, registry) in REGISTRIES.items():
        name = values.get(key := f"{section}.{base.CHOSEN_BY}")
        if not isinstance(name, str) or usual.get(section, "None") == "None":
            continue
        if _INTERPOLATION in name:
            raise UsageError(f"{place}: {key}: {name} is looked up before settings are composed: write the name itself")
        if name not in registry.names():
            raise UsageError(f"{place}: {key}={name}: there is no such name, {choice_hint(name, registry.names())}")
        if section not in found:
            found[section] = option_for(section, name, usual[section])
        elif found[section] in groups(command)[section] and implementation_of(section, found[section]) != name:
            raise UsageError(f"{place}: {key}={name} contradicts {section}={found[section]}: leave one of them out")
    return found


def merged_options(own: Sequence[OwnSettings], typed: Mapping[str, str], sections: Sequence[str]) -> dict[str, str]:
    """Group -> option, as files choose them: a later one wins, and the command line (`typed`) wins over all. A setting that
    chooses an implementation, such as a model, does so where nothing else does."""
    options = {group: option for each in own for group, option in each.options.items() if group not in typed}
    implied = {section: option for each in own for section, option in implied_options(sections, each.values).items()}
    open_to_it = {section for section in sections if not {section, _chosen_by(section)} & typed.keys()}
    open_to_it -= implied_options(sections, typed).keys()
    return {section: option for section, option in implied.items() if section in open_to_it} | options


def implied_options(sections: Sequence[str], values: Mapping[str, object]) -> dict[str, str]:
    """Section -> the option that a setting such as a model chooses, if it is given."""
    return {
        section: option
        for section in sections
        for key, option in choosing_settings(section).items()
        if values.get(key) not in (None, "", "???")
    }


def without_replaced(
    own: Sequence[OwnSettings],
    typed: Mapping[str, str],
    chosen: Mapping[str, str],
    implementation: Callable[[str, str], str],
) -> Iterator[OwnSettings]:
    """The settings, without sections that are for one implementation where something that comes later chooses another.

    `chosen`: section -> the implementation that it is for. `implementation`: that of a section's option.
    """
    for number, each in enumerate(own):
        later = {*typed, *(group for other in own[number + 1 :] for group in other.options)}
        for section, name in chosen.items():
            option = {**implied_options([section], each.values), **each.options}.get(section)
            if option and {section, _chosen_by(section)} & later and implementation(section, option) != name:
                kept = {key: value for key, value in each.values.items() if key.partition(".")[0] != section}
                remark = (
                    f"{each.place}: its settings of {section} have no effect, for {section}={name} is chosen instead"
                )
                left = len(each.values) - len(kept)
                each = replace(each, values=kept, remarks=(*each.remarks, *([remark] if left else [])))
        yield each


def nested(values: Mapping[str, object]) -> dict[str, Any]:
    """Settings by section, from their dotted keys."""
    made: dict[str, Any] = {}
    for key, value in values.items():
        *above, last = key.split(".")
        section = made
        for name in above:
            section = section.setdefault(name, {})
        section[last] = value
    return made


def placed(message: str, own: Sequence[OwnSettings], typed: Mapping[str, str]) -> str:
    """A message that begins with a key, with the place of the settings that set it last; as it is if the command line does."""
    found = _KEY.match(message)
    places = [each.place for each in own if found and found[0] in each.values and found[0] not in typed]
    return f"{places[-1]}: {message}" if places else message


def missing_option(message: str, known: Mapping[str, Sequence[str]]) -> str:
    """What Hydra says of a defaults list, in one line, with the remedy. `known`: group -> its options."""
    said = re.split(
        r"\.?\s*(?:Config search path|Available options|No match in|Did you mean)", " ".join(message.split())
    )[0]
    if found := re.search(r"Could not (?:load|find) '(\w+)/([^']*)'", message):
        return f"{said}, {choice_hint(found[2], known.get(found[1], ()))}" if found[1] in known else said
    if found := re.search(r"Could not override '(\w+)@", message):
        return (
            f"{said}: choose {found[1]} in an experiment; or begin the option with `# @package {_GLOBAL}` and write its "
            "settings below the name of its section"
        )
    return said


def _chosen_by(section: str) -> str:
    return f"{section}.{REGISTRIES[section][0].CHOSEN_BY}"


def without_choices(values: Mapping[str, object], options: Mapping[str, str]) -> dict[str, object]:
    """The values without the names of options and implementations, where options stand for them."""
    named = {*options, *(_chosen_by(section) for section in options if section in REGISTRIES)}
    return {key: value for key, value in values.items() if key not in named}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    """A folder of files, and how they are read. `experiments`: take those that a file names, because the command line names
    none."""

    command: Command
    path: Path
    read: Reader
    experiments: bool

    def settings(self, path: str, above: tuple[Path, ...] = ()) -> list[OwnSettings]:
        """The settings of a file, with those of the files that its defaults list names before or after it."""
        file = _file(self.path, path)
        if file in above:
            circle = " -> ".join(str(each) for each in (*above[above.index(file) :], file))
            raise UsageError(
                f"{circle}: each file names the next one in its {_DEFAULTS}; leave one of these entries out"
            )
        content = dict(self.read(file))
        header = _HEADER.search(file.read_text("utf-8"))
        if header and header[1] != _GLOBAL:
            raise UsageError(
                f"{file}: its first line makes it a part of {header[1]}: write `# @package {_GLOBAL}`, or no such line"
            )
        entries = content.pop(_DEFAULTS, None) or []
        if not isinstance(entries, list):
            raise UsageError(f"{file}: {_DEFAULTS} is a list, such as [override /policy: hf, {_SELF}]")
        chosen, before, after = self._defaults_of(file, entries)
        values = {self.command.short.get(key, key): value for key, value in flat(content).items()}
        options = choose_options(self.command, str(file), values, chosen, self.path)
        own = OwnSettings(place=str(file), values=without_choices(values, options), options=options)

        def of(names: Sequence[str]) -> list[OwnSettings]:
            return [each for each_path in names for each in self.settings(each_path, (*above, file))]

        return [*of(before), own, *of(after)]

    def _defaults_of(self, file: Path, entries: Sequence[object]) -> tuple[dict[str, str], list[str], list[str]]:
        """What a defaults list says: the options of groups, and the other files before and after the file itself, which comes
        last if the list does not place it, as in Hydra."""
        known = [*groups(self.command, self.path), EXPERIMENT]
        options: dict[str, str] = {}
        before: list[str] = []
        after: list[str] = []
        names = before
        for entry in entries:
            match entry:
                case "_self_":
                    names = after
                case str() if entry in (self.command.name, f"{self.command.name}_schema"):
                    pass
                case str():
                    # From the folder of all files, or from that of this one.
                    within = file.parent.relative_to(self.path)
                    names.append(entry[1:] if entry.startswith("/") else str(within / entry))
                case dict() if len(entry) == 1:
                    ((key, option),) = entry.items()
                    group = _OVERRIDE.sub("", str(key), count=1)
                    if group not in known:
                        raise UsageError(f"{file}: {_DEFAULTS}: there is no group {group}, {choice_hint(group, known)}")
                    if not isinstance(option, str) or _INTERPOLATION in option:
                        raise UsageError(f"{file}: {_DEFAULTS}: {key}: {option} is not the name of an option")
                    if group != EXPERIMENT:
                        options[group] = option
                    elif self.experiments:
                        names.append(f"{EXPERIMENT}/{option}")
                case _:
                    raise UsageError(
                        f"{file}: {_DEFAULTS}: {entry} is neither the name of a file nor `override /GROUP: OPTION`"
                    )
        return options, before, after


def _file(folder: Path, name: str) -> Path:
    """The file of a name. Raises UsageError, with the names that are there."""
    file = folder / f"{name.removesuffix(YAML)}{YAML}"
    if file.is_file():
        return file
    there = option_names(file.parent)
    hint = choice_hint(file.stem, there) if there else f"nor any other *{YAML} in {file.parent}"
    raise UsageError(f"{file}: there is no such file, {hint}")


def continued_settings(command: Command, run_dir: str, folder: Path | None, given: Collection[str]) -> OwnSettings:
    """The settings of the run. The rows of a Python call are gone, but the run has them: they keep the name that such rows
    have. `folder`: the user's own options. `given`: keys and groups that are given too.

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
    settings = {_PATH: f"{GIVEN_FOLDER}/{GIVEN_FILE}", **started}
    if _DATA in given:
        del settings[_PATH]
    settings |= {key: value for key, value in recorded.items() if "." in key and key not in SETTING_NAMES}
    plugins = {f"{section}.plugin" for section in REGISTRIES}
    settings = {key: value for key, value in settings.items() if key not in plugins}
    # The record has its effective value. A start has its own value, where that is another one.
    settings[_STOP_AT_ANSWER] = started.get(_STOP_AT_ANSWER, settings.get(_STOP_AT_ANSWER))
    options = choose_options(command, place, settings, {}, folder)
    return OwnSettings(place=place, values=without_choices(settings, options), options=options)


def _of_start(starts: "Sequence[Start]") -> Mapping[str, object]:
    """The settings of the last start that ended well, or else of the last one; empty where none recorded any."""
    from pipeline.storage.starts import DONE

    recording = [start for start in starts if start.settings]
    done = [start for start in recording if start.ended == DONE]
    return (done or recording)[-1].settings if recording else {}
