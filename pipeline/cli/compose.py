"""Composes the settings of a command from its command line and the files in `conf/`, and checks them.

This is the only file that uses Hydra, which is imported when settings are composed.

Hydra composes files and overrides. The settings of a section such as `estimator` depend on its implementation
(`estimator=pooled`). So the implementation is looked up first, and the rest is composed with its settings.
"""

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import yaml

import pipeline
from pipeline.cli.command import Command
from pipeline.cli.overrides import (
    Owner,
    Sections,
    check_overrides,
    marks_of,
    open_keys,
    quote,
    text_keys,
)
from pipeline.config.changes import Change, change_type
from pipeline.config.fields import BY_GROUP, CHOOSES, OWN, REFUSED, ChosenSettings, Settings, describe_settings
from pipeline.config.label import EstimatorConfig, GraderConfig, PolicyConfig
from pipeline.config.recorded_settings import RUN_RECORD, flatten_settings, refuse_missing
from pipeline.config.renamed import current_overrides
from pipeline.core.errors import UsageError, first_line
from pipeline.core.registry import Registry
from pipeline.engines.registry import ENGINES
from pipeline.estimators.registry import ESTIMATORS
from pipeline.graders.registry import GRADERS

if TYPE_CHECKING:
    from omegaconf import DictConfig

REGISTRIES: Mapping[str, tuple[type[ChosenSettings], Registry[Any]]] = {
    "policy": (PolicyConfig, ENGINES),
    "estimator": (EstimatorConfig, ESTIMATORS),
    "grader": (GraderConfig, GRADERS),
}
"""The sections with a choice of implementations: the settings that all of them share, and their registry."""
_PACKAGED_CONF = Path(pipeline.__file__).parent / "conf"
_CHECKOUT_CONF = Path(pipeline.__file__).parents[1] / "conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplementationSettings:
    """The settings of the implementation that a setting names: their `section` on the command line, and their dataclass."""

    section: str
    schema: type[Settings]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedSettings:
    """The settings of a command line, for a command with this schema. `remarks`: on settings without effect and old names."""

    config: "DictConfig"
    schema: type
    own: ImplementationSettings | None
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
        return _static(found, self.schema, self.own)


def compose(command: Command, overrides: Sequence[str]) -> ComposedSettings:
    """Compose and check the settings of a command. Raises UsageError with one line that names the key and the remedy."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.config_store import ConfigStore
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

    overrides, hints = current_overrides(command.name, overrides)
    sections = _sections(command, ChosenSettings)
    written = written_keys(overrides)
    _refuse_missing(written, sections)
    chosen = {section: _chosen(command, section, written) for section in sections}
    for section, name in chosen.items():
        _refuse_unusable(REGISTRIES[section][1], name)
    own = _own(command, written)
    schema = _schema(command, chosen, own)
    elsewhere = {key: owner for section, name in chosen.items() for key, owner in _elsewhere(section, name).items()}
    everything = Sections(
        schema=schema,
        elsewhere=elsewhere | _own_elsewhere(command, written),
        groups=groups(command),
        choosing={key: name for section in sections for key, name in _choosing(section).items()},
    )
    texts = text_keys(schema).union(*(_texts_elsewhere(section) for section in sections))
    parsed = [_parsed(text, texts, open_keys(schema)) for text in overrides]
    checked, remarks = check_overrides(parsed, everything)
    store = ConfigStore.instance()
    store.store(name=f"{command.name}_schema", node=schema)
    for section, name in chosen.items():
        if not (conf_folder() / section / f"{name}.yaml").is_file():
            store.store(group=section, name=name, node={REGISTRIES[section][0].CHOSEN_BY: name})
    try:
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            config = hydra_compose(command.name, overrides=checked)
        if command.check is not None:
            command.check(_static(OmegaConf.to_object(config), command.schema, own))
        else:
            OmegaConf.to_object(config)
    except MissingMandatoryValue:
        pass
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(_cause(error)) from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    return ComposedSettings(config=config, schema=command.schema, own=own, remarks=(*hints, *remarks))


def _static(found: Any, schema: type, own: ImplementationSettings | None) -> Any:
    """Settings as an object of the command's own schema. Other processes do not know the type made for this command line."""
    values = {
        field.name: getattr(found, own.section if own and field.metadata == OWN else field.name)
        for field in dataclasses.fields(schema)
    }
    return schema(**values)


def groups(command: Command) -> dict[str, list[str]]:
    """Group -> its options, for the sections of the command's settings: files of `conf/` and installed plug-ins."""
    sections = {section.name for section in dataclasses.fields(command.schema)}
    return {
        group.name: sorted({*(option.stem for option in group.glob("*.yaml")), *_plugins(group.name)})
        for group in sorted(conf_folder().iterdir())
        if group.is_dir() and group.name in sections
    }


def offered_groups(command: Command) -> dict[str, list[str]]:
    """The groups with the options that make sense for the command, for help and completion."""
    return {
        group: [option for option in options if option in command.offers.get(group, options)]
        for group, options in groups(command).items()
    }


def conf_folder() -> Path:
    """The folder `conf/`: beside the package in a checkout, inside it in an installation."""
    return (_PACKAGED_CONF if _PACKAGED_CONF.is_dir() else _CHECKOUT_CONF).resolve()


def _plugins(section: str) -> list[str]:
    if section not in REGISTRIES:
        return []
    registry = REGISTRIES[section][1]
    return [name for name in registry.names() if name not in registry.ours]


def _sections(command: Command, kind: type) -> list[str]:
    """The sections of a command with a choice of implementations, or (kind Change) whose settings may be changed later."""
    hints = get_type_hints(command.schema)
    wanted = {section: (base if kind is ChosenSettings else kind) for section, (base, _) in REGISTRIES.items()}
    return [section for section, base in wanted.items() if hints.get(section) is base]


def written_keys(overrides: Sequence[str]) -> dict[str, str]:
    """The value of each key, as it is written: enough to see which implementations are chosen."""
    return {key: value.strip("'\" ") for key, _, value in (text.partition("=") for text in overrides)}


def _refuse_missing(written: Mapping[str, str], sections: Collection[str]) -> None:
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


def _refuse_unusable(registry: Registry[Any], name: str) -> None:
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


def _chosen(command: Command, section: str, written: Mapping[str, str]) -> str:
    """Which implementation a section is for: the one that is named, else the default."""
    named = named_implementation(section, written)
    return implementation_of(section, usual_options(command)[section]) if named is None else named


def named_implementation(section: str, written: Mapping[str, str]) -> str | None:
    """Which implementation a section is for: by its own key, the group's option or a setting that chooses; None: by none."""
    base, _ = REGISTRIES[section]
    if (key := f"{section}.{base.CHOSEN_BY}") in written and not _by_group(base):
        return written[key]
    if section in written:
        return implementation_of(section, written[section])
    choosing = _choosing(section)
    return next((name for key, name in choosing.items() if key in written), None)


def _by_group(base: type[ChosenSettings]) -> bool:
    return any(each.name == base.CHOSEN_BY and BY_GROUP in each.marks for each in describe_settings(base))


def _choosing(section: str) -> dict[str, str]:
    """Dotted key -> implementation, for settings that choose an implementation when they are given."""
    registry = REGISTRIES[section][1]
    return {
        f"{section}.{each.name}": name
        for name, settings in registry.our_settings().items()
        for each in describe_settings(settings)
        if CHOOSES in each.marks
    }


def usual_options(command: Command) -> dict[str, str]:
    """The option of each group that a command takes where none is named."""
    defaults = _read(conf_folder() / f"{command.name}.yaml")["defaults"]
    return {group: str(option) for each in defaults if isinstance(each, dict) for group, option in each.items()}


def implementation_of(section: str, option: str) -> str:
    """The implementation of a group's option. Its file names it; without a file, the option is the name of a plug-in."""
    base, _ = REGISTRIES[section]
    file = conf_folder() / section / f"{option}.yaml"
    if not file.is_file():
        return option if option in _plugins(section) else base.usual()
    loaded = _read(file)
    return str((loaded.get(section) or loaded).get(base.CHOSEN_BY) or base.usual())


def options_of(file: Path, section: str) -> dict[str, object]:
    """Dotted key -> value, for the settings that an option of a group sets."""
    loaded = _read(file)
    return {
        key: value
        for name, part in (loaded if section in loaded else {section: loaded}).items()
        for key, value in flatten_settings(name, part).items()
    }


@cache
def _read(file: Path) -> dict[str, Any]:
    """The content of a settings file. PyYAML's C loader takes a tenth of the time of its Python loader."""
    loaded = yaml.load(file.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded if isinstance(loaded, dict) else {}


def _own(command: Command, written: Mapping[str, str]) -> ImplementationSettings | None:
    """The settings of the named implementation, if it has any. An unknown name is reported when the command runs."""
    if command.chooses is None:
        return None
    key, registry = command.chooses
    name = written.get(key, "")
    schema = registry.settings(name) if name in registry.names() else None
    if schema is None:
        return None
    _refuse_unusable(registry, name)
    if not schema.SECTION or schema.SECTION in {each.name for each in describe_settings(command.schema)}:
        raise UsageError(
            f"{registry.noun} {name} of {registry.plugin(name)} cannot be used: SECTION={schema.SECTION!r} of its "
            f"{schema.__name__} is empty or already the name of a setting of `{command.name}`"
        )
    return ImplementationSettings(section=schema.SECTION, schema=schema)


def _own_elsewhere(command: Command, written: Mapping[str, str]) -> dict[str, Owner]:
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


def _schema(command: Command, chosen: Mapping[str, str], own: ImplementationSettings | None) -> type:
    """The command's schema with the settings of the chosen implementations."""
    kinds: dict[str, type] = {section: REGISTRIES[section][1].settings(name) for section, name in chosen.items()}
    kinds |= {section: change_type(*REGISTRIES[section]) for section in _sections(command, Change)}
    if own:
        kinds[own.section] = own.schema
    if not kinds:
        return command.schema
    fields = [(name, kind, dataclasses.field(default_factory=kind)) for name, kind in kinds.items()]
    return dataclasses.make_dataclass(
        command.schema.__name__, fields, bases=(command.schema,), kw_only=True, slots=True
    )


def _elsewhere(section: str, chosen: str) -> dict[str, Owner]:
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


def _texts_elsewhere(section: str) -> set[str]:
    """Keys of text settings of all our implementations."""
    registry = REGISTRIES[section][1]
    return {f"{section}.{key}" for settings in registry.our_settings().values() for key in text_keys(settings)}


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
    while error.__cause__ is not None:
        error = error.__cause__
    key = getattr(error, "full_key", None)
    return f"{key}: {first_line(error)}" if key else first_line(error)
