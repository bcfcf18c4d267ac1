"""Composes the settings of a command from its command line and the files in `conf/`, and checks them.

Only this file and `multirun` use Hydra, which is imported when settings are composed.

Hydra composes files and overrides, also a user's own files (`own_settings`). The settings of a section such as `estimator`
depend on its implementation (`estimator=pooled`). So the implementation is looked up first, and the rest is composed with its
settings.
"""

import dataclasses
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pipeline.cli.command import Command
from pipeline.cli.options import (
    YAML,
    choosing_settings,
    command_content,
    conf_content,
    conf_folder,
    groups,
    implementation_of,
    plugins,
    with_options,
    written_keys,
)
from pipeline.cli.overrides import (
    Sections,
    check_overrides,
    check_values,
    chosen_implementation,
    marks_of,
    open_keys,
    own_elsewhere,
    refuse_missing_plugins,
    schema_for,
    sections_of,
    settings_elsewhere,
    text_keys,
    texts_elsewhere,
)
from pipeline.cli.own_settings import (
    NOTHING,
    Given,
    OwnSettings,
    continued_settings,
    experiment_of,
    flat,
    implied_options,
    merged_options,
    missing_option,
    nested,
    own_settings,
    placed,
    refuse_targets,
    without_replaced,
)
from pipeline.config.fields import OWN, SAMPLE, TABLE, ChosenSettings, Settings, describe_settings
from pipeline.config.words import quote
from pipeline.core.errors import UsageError, first_line
from pipeline.core.registry import Registry
from pipeline.core.suggestions import choice_hint
from pipeline.data.rows import names_input
from pipeline.runtime.objects import REGISTRIES

if TYPE_CHECKING:
    from omegaconf import DictConfig


_PATH, _RUN_DIR = "data.path", "run_dir"
_STORED = "stepvalue"
"""Begins the names of what Hydra composes and no file has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedSettings:
    """The settings of a command line, for a command with this schema. `remarks`: on settings without effect."""

    config: "DictConfig"
    schema: type
    own: type[Settings] | None
    remarks: tuple[str, ...]

    @property
    def yaml(self) -> str:
        from omegaconf import OmegaConf

        return OmegaConf.to_yaml(self.config)

    def settings(self) -> Any:
        """The settings as an object of the command's schema. Raises UsageError if a required setting is missing."""
        from omegaconf import OmegaConf
        from omegaconf.errors import MissingMandatoryValue

        try:
            found = OmegaConf.to_object(self.config)
        except MissingMandatoryValue as error:
            key = error.full_key or "a setting"
            raise UsageError(f"{key} is not set: give {key}=...") from error
        _make_paths_absolute(found)
        return _static(found, self.schema, self.own)


def compose(command: Command, overrides: Sequence[str], given: Given = NOTHING) -> ComposedSettings:
    """Compose and check the settings of a command. Raises UsageError with one line that names the key, or the file and the key,
    and the remedy."""
    from omegaconf import OmegaConf

    overrides, experiment = experiment_of([_full(command, text) for text in overrides])
    sections = sections_of(command, ChosenSettings)
    overrides = with_options(command, sections, overrides)
    typed = written_keys(overrides)
    found = own_settings(command, given, experiment, read_yaml)
    if command.continues and typed.get(_RUN_DIR):
        keys = {*typed, *(key for each in found for key in (*each.values, *each.options))}
        found = [continued_settings(command, typed[_RUN_DIR], given.folder, keys), *found]
    options = merged_options(found, typed, sections)
    written = {key: str(value) for each in found for key, value in each.values.items()} | options | typed
    refuse_missing_plugins(written, sections)
    _refuse_options(command, written)
    implied = command.implied(written)
    overrides = [*overrides, *(f"{group}={option}" for group, option in implied.items())]
    typed, written = {**typed, **implied}, {**written, **implied}
    used: list[OwnSettings] = []
    if given.folder is None:
        chosen = {section: chosen_implementation(command, section, written) for section in sections}
    else:
        used = _used_options(command, given.folder, {**implied_options(sections, typed), **options, **typed})
        chosen = {section: _implementation(section, used, typed) for section in sections}
    for section, name in chosen.items():
        refuse_unusable(REGISTRIES[section][1], name)
    own = _own(command, written)
    schema = schema_for(command, chosen, own)
    elsewhere = {
        key: owner for section, name in chosen.items() for key, owner in settings_elsewhere(section, name).items()
    }
    everything = Sections(
        schema=schema,
        elsewhere=elsewhere | own_elsewhere(command, written),
        groups=groups(command, given.folder),
    )
    texts = text_keys(schema).union(*(texts_elsewhere(section) for section in sections))
    parsed = [_parsed(text, texts, open_keys(schema)) for text in overrides]
    checked, remarks = check_overrides(parsed, everything)
    choosing = {
        section: name for section in sections for key, name in choosing_settings(section).items() if key in typed
    }
    checked += [f"{section}={name}" for section, name in choosing.items() if section not in {**options, **typed}]

    def implementation(section: str, option: str) -> str:
        if given.folder is None:
            return implementation_of(section, option)
        return _implementation(section, _used_options(command, given.folder, {section: option}), {})

    places = [check_values(each, everything) for each in without_replaced(found, typed, chosen, implementation)]
    used = [check_values(each, everything, strict=True) for each in used if each.place]
    remarks = [*(remark for each in (*used, *places) for remark in each.remarks), *remarks]
    options = {group: option for group, option in options.items() if group in everything.groups}
    with _as_usage_errors([*used, *places], typed):
        _store(command, schema, chosen)
        config = _composed(
            command, given.folder, places, [*(f"{key}={name}" for key, name in options.items()), *checked]
        )
        made = OmegaConf.to_object(config)
        if command.check is not None:
            command.check(_static(made, command.schema, own))
    return ComposedSettings(config=config, schema=command.schema, own=own, remarks=tuple(remarks))


def _full(command: Command, text: str) -> str:
    """An override with the setting that its short key stands for. A path alone is the input, or the run directory of a command
    that has no input."""
    key, equals, value = text.partition("=")
    if not equals and (Path(text).exists() or names_input(text)):
        keys = marks_of(command.schema)
        return next((f"{path}={text}" for path in (_PATH, _RUN_DIR) if path in keys), text)
    return f"{command.short.get(key, key)}{equals}{value}"


def _refuse_options(command: Command, written: Mapping[str, str]) -> None:
    """Raise UsageError for an option that the command cannot use."""
    for choice, why in command.refused.items():
        group, _, option = choice.partition("=")
        if written.get(group) == option:
            raise UsageError(f"{choice} {why}")


def read_yaml(file: Path) -> dict[str, Any]:
    """The content of a user's file of settings. Raises UsageError, with its name, if it is no mapping of settings."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        if not isinstance(yaml.safe_load(text := file.read_text("utf-8")), dict | None):
            raise UsageError(f"{file}: this is no YAML mapping: settings are written `key: value`, one below the other")
        content = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    except OmegaConfBaseException as error:
        raise UsageError(f"{file}: {_cause(error)}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{file}: this file cannot be read as YAML: {' '.join(str(error).split())}") from error
    refuse_targets(str(file), content)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def _used_options(command: Command, folder: Path, wanted: Mapping[str, str]) -> list[OwnSettings]:
    """The files of options that Hydra would compose, with the implementations that they name, in order; those that are not the
    user's own have no `place`. `wanted`: group -> option."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from hydra.types import RunMode

    known = groups(command, folder)
    wanted = {group: option for group, option in wanted.items() if option in known.get(group, ())}
    for group, option in wanted.items():
        if (file := folder / group / f"{option}{YAML}").is_file():
            read_yaml(file)
    _store(command, {}, {})
    try:
        with _hydra(command, folder) as primary:
            loader = GlobalHydra.instance().config_loader()
            overrides = [f"{group}={option}" for group, option in wanted.items()]
            found = loader.compute_defaults_list(primary, overrides, RunMode.RUN).defaults
    except RecursionError as error:
        raise UsageError(
            f"{folder}: an option names itself in its defaults list: give your option another name"
        ) from error
    except HydraException as error:
        raise UsageError(f"{folder}: {missing_option(str(error), known)}") from error
    paths = [(each.config_path, each.package or "") for each in found if each.config_path]
    return [_used(folder, path, package) for path, package in paths if path.partition("/")[0] in known]


def _used(folder: Path, path: str, package: str) -> OwnSettings:
    """An option of a group as the settings that it sets. `path`: its group and its name."""
    own, ours = folder / f"{path}{YAML}", conf_folder() / f"{path}{YAML}"
    if not own.is_file():
        group, _, name = path.partition("/")
        content = conf_content(ours) if ours.is_file() else {REGISTRIES[group][0].CHOSEN_BY: name}
        return OwnSettings(place="", values=_packaged(content, package))
    content = {key: value for key, value in read_yaml(own).items() if key != "defaults"}
    remark = f"{own} takes the place of {path.replace('/', '=', 1)} of stepvalue"
    return OwnSettings(place=str(own), values=_packaged(content, package), remarks=(remark,) if ours.is_file() else ())


def _packaged(content: Mapping[str, Any], package: str) -> dict[str, object]:
    """Dotted key -> value. `package`: the section that the settings belong to."""
    return flat({package: content} if package and package != "_global_" else content)


def _implementation(section: str, used: Sequence[OwnSettings], typed: Mapping[str, str]) -> str:
    """Which implementation a section is for: the one that is named last. Raises UsageError if a user's option names none, or
    one that there is none of."""
    base, registry = REGISTRIES[section]
    key = f"{section}.{base.CHOSEN_BY}"
    if key in typed:
        return typed[key]
    of_section = [each for each in used if any(name.startswith(f"{section}.") for name in each.values)]
    naming = [each for each in of_section if key in each.values]
    places = [each.place for each in of_section if each.place]
    if places and not naming:
        raise UsageError(f"{places[-1]}: it does not say which {registry.noun} it is for: add {base.CHOSEN_BY}: NAME")
    name = str(naming[-1].values[key]) if naming else base.usual()
    if naming and naming[-1].place and name not in registry.names():
        raise UsageError(
            f"{naming[-1].place}: {key}={name}: there is no such name, {choice_hint(name, registry.names())}"
        )
    return name


def _store(command: Command, schema: Any, chosen: Mapping[str, str]) -> None:
    """Give Hydra the schema of a command, and options for implementations without a file."""
    from hydra.conf import HydraConf
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    store = ConfigStore.instance()
    # Not Hydra's own settings of jobs and logs: nothing here asks for them, and they take half the time of a composition.
    if store.repo["hydra"][f"config{YAML}"].node.defaults:
        store.store(group="hydra", name="config", node=HydraConf(defaults=[]))
    # Hydra takes a third of that time to read a schema, even one that it has.
    stored = store.repo.get(f"{command.name}_schema{YAML}")
    if stored is None or OmegaConf.get_type(stored.node) is not schema:
        store.store(name=f"{command.name}_schema", node=schema)
    for section, name in [*((each, name) for each in REGISTRIES for name in plugins(each)), *chosen.items()]:
        if not (conf_folder() / section / f"{name}{YAML}").is_file():
            store.store(group=section, name=name, node={REGISTRIES[section][0].CHOSEN_BY: name})


@contextmanager
def _hydra(command: Command, folder: Path | None) -> Iterator[str]:
    """Hydra for `conf/`, with a user's folder in front of it. Yields the name of the file to compose."""
    from hydra import initialize_config_dir
    from hydra.core.config_store import ConfigStore

    conf = conf_folder()
    primary = command.name
    if folder is not None or not (conf / f"{primary}{YAML}").is_file():
        # In the user's folder a file may have the name of the command, and a plug-in's command has no file.
        primary = f"{_STORED}_{command.name}"
        searched = {"hydra": {"searchpath": [f"file://{conf}"]}}
        ConfigStore.instance().store(name=primary, node={**command_content(command), **searched})
    with initialize_config_dir(str((folder or conf).resolve()), version_base="1.3"):
        yield primary


def _composed(
    command: Command, folder: Path | None, own: Sequence[OwnSettings], overrides: Sequence[str]
) -> "DictConfig":
    """What Hydra composes: the files of `conf/` and of the folder, then the user's own settings in order, then overrides."""
    from hydra import compose as hydra_compose
    from hydra.core.config_store import ConfigStore

    for number, each in enumerate(own):
        ConfigStore.instance().store(
            group=f"{_STORED}_{number}", name="own", node=nested(each.values), package="_global_"
        )
    added = [f"+{_STORED}_{number}=own" for number, _ in enumerate(own)]
    with _hydra(command, folder) as primary:
        return hydra_compose(primary, overrides=[*added, *overrides])


@contextmanager
def _as_usage_errors(own: Sequence[OwnSettings], typed: Mapping[str, str]) -> Iterator[None]:
    """Turn errors of composition into UsageError, with the place of the setting if it is not the command line."""
    from hydra.errors import HydraException
    from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

    try:
        yield
    except MissingMandatoryValue:
        pass
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(placed(_cause(error), own, typed)) from error
    except ValueError as error:
        raise UsageError(placed(str(error), own, typed)) from error


def _make_paths_absolute(section: Any) -> None:
    for field in describe_settings(type(section)):
        value = getattr(section, field.name)
        if TABLE in field.marks and value not in (None, SAMPLE):
            setattr(section, field.name, os.path.abspath(value))
        elif isinstance(value, Settings):
            _make_paths_absolute(value)


def _static(found: Any, schema: type, own: type[Settings] | None) -> Any:
    """Settings as an object of the command's own schema. Other processes do not know the type made for this command line."""
    values = {
        field.name: getattr(found, own.SECTION if own and field.metadata == OWN else field.name)
        for field in dataclasses.fields(schema)
    }
    return schema(**values)


def refuse_unusable(registry: Registry[Any], name: str) -> None:
    """Raise UsageError for a plug-in whose settings have a type that a command line cannot express."""
    plugin = registry.plugin(name)
    if plugin is None:
        return
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        OmegaConf.structured(registry.settings(name))
    except OmegaConfBaseException as error:
        raise UsageError(
            f"{registry.noun} {name} of {plugin} cannot be used because of its settings: {_cause(error)}"
        ) from error


def _own(command: Command, written: Mapping[str, str]) -> type[Settings] | None:
    """The settings of the named implementation, if it has any. An unknown name is reported when the command runs."""
    if command.chooses is None:
        return None
    key, registry = command.chooses
    name = written.get(key, "")
    schema: type[Settings] | None = registry.settings(name) if name in registry.names() else None
    if schema is None:
        return None
    refuse_unusable(registry, name)
    if not schema.SECTION or schema.SECTION in {each.name for each in describe_settings(command.schema)}:
        raise UsageError(
            f"{registry.noun} {name} of {registry.plugin(name)} cannot be used: SECTION={schema.SECTION!r} of its "
            f"{schema.__name__} is empty or already the name of a setting of `{command.name}`"
        )
    return schema


def _parsed(text: str, texts: Collection[str], either_kind: Collection[str]) -> Any:
    """One override as Hydra parses it. For a text setting, a value that Hydra cannot parse, or parses as a list, is a text.

    For a setting that is a text or a list of texts, any other value, such as a number, is a text.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    key, equals, value = text.partition("=")
    either = key in either_kind
    is_text = key in texts or either
    as_text = f"{key}={quote(value)}" if equals and value.isprintable() and is_text else None
    try:
        parsed = parser.parse_override(text)
    except HydraException as error:
        if as_text:
            return parser.parse_override(as_text)
        raise UsageError(
            f"{text!r} cannot be read: settings are written key=value, with quotes around blanks and commas"
        ) from error
    found = parsed.value()
    other = not isinstance(found, list | str) if either else isinstance(found, list | dict)
    return parser.parse_override(as_text) if as_text and other else parsed


def _cause(error: BaseException) -> str:
    """The innermost error in one line, with the key that it refers to."""
    from hydra.errors import ConfigCompositionException

    while (
        inner := error.__cause__ or (error.__context__ if isinstance(error, ConfigCompositionException) else None)
    ) is not None:
        error = inner
    key = getattr(error, "full_key", None)
    return f"{key}: {first_line(error)}" if key else first_line(error)
