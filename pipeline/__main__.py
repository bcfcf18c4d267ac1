"""The command line: compose the settings, check them, dispatch. The only file that knows of Hydra."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from rich.console import Console

from pipeline.cli import COMMANDS
from pipeline.cli.command import Command, write_out
from pipeline.cli.label import LABEL
from pipeline.cli.overrides import check_overrides, first_line, open_keys, quoted, text_keys
from pipeline.config.label import LabelConfig
from pipeline.core.errors import Interrupted, StepvalueError, UsageError
from pipeline.core.failpoints import arm

_PACKAGED_CONF = Path(__file__).parent / "conf"
_CHECKOUT_CONF = Path(__file__).parents[1] / "conf"

_HELP = """\
stepvalue: Monte Carlo step values for process reward models.

usage: python -m pipeline COMMAND [setting=value ...]      (installed: stepvalue COMMAND ...)

{commands}
-h behind a command explains it, --cfg job prints the settings it would run with.
exit codes: 0 done, 1 failed, 2 wrong usage or input, 75 interrupted: start the same command again to go on
"""

_COMMAND_HELP = """\
{examples}
{flags}{groups}settings (now):
{settings}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A parsed command line."""

    overrides: list[str]
    show_config: bool
    show_help: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A user's mistake is one line on standard error, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        if armed := arm(os.environ):
            errors.print(f"stepvalue: {armed}")
        return _dispatch(arguments)
    except StepvalueError as error:
        errors.print(f"stepvalue: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        errors.print("stepvalue: interrupted before anything was started")
        return Interrupted.exit_code


def compose_label(overrides: Sequence[str]) -> LabelConfig:
    """The settings of `label` as plain objects. Raises UsageError with one line that names the key and the remedy."""
    config = _settings(LABEL, overrides)
    assert isinstance(config, LabelConfig)
    return config


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        write_out(_HELP.format(commands=_commands_text()))
        return 0 if arguments else UsageError.exit_code
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name!r}: choose {', '.join(COMMANDS)} (-h lists them)")
    command = COMMANDS[name]
    invocation = _parse(command, rest)
    if invocation.show_help:
        write_out(
            _COMMAND_HELP.format(
                examples=command.examples,
                flags=_flags_text(command),
                groups=_groups_text(command),
                settings=_yaml(command, invocation.overrides),
            )
        )
        return 0
    if invocation.show_config:
        write_out(_yaml(command, invocation.overrides))
        return 0
    return command.run(_settings(command, invocation.overrides))


def _parse(command: Command, arguments: Sequence[str]) -> Invocation:
    options = {f"--{flag}": flag for flag in command.flags}
    overrides = []
    show_config = show_help = False
    words = iter(arguments)
    for word in words:
        if word in ("-h", "--help"):
            show_help = True
        elif word in ("--cfg", "-c"):
            if next(words, "job") != "job":
                raise UsageError("--cfg knows one word: --cfg job")
            show_config = True
        elif word == "--cfg=job":
            show_config = True
        elif word in options:
            overrides.append(f"{options[word]}=true")
        elif word.startswith("-"):
            known = " and ".join([", ".join([*options, "-h"]), "--cfg job"])
            raise UsageError(f"there is no option {word}: settings are written key=value, options are {known}")
        else:
            overrides.append(word)
    return Invocation(overrides=overrides, show_config=show_config, show_help=show_help)


def _settings(command: Command, overrides: Sequence[str]) -> object:
    try:
        return OmegaConf.to_object(_composed(command, overrides))
    except MissingMandatoryValue as error:
        key = error.full_key or "a setting"
        raise UsageError(f"{key} is not set: give {key}=...") from error


def _composed(command: Command, overrides: Sequence[str]) -> object:
    ConfigStore.instance().store(name=f"{command.name}_schema", node=command.schema)
    parsed = [_parsed(text, command.schema) for text in overrides]
    checked = check_overrides(parsed, command.schema, _groups(command))
    try:
        with initialize_config_dir(str(_conf_folder()), version_base="1.3"):
            config = compose(command.name, overrides=checked)
        OmegaConf.to_object(config)
    except MissingMandatoryValue:
        return config
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(_cause(error)) from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    return config


def _parsed(text: str, schema: type) -> Any:
    """Hydra's reading of one override; what it cannot read, or reads as a list, is a text where the setting is one.

    Where a setting is a text or a list of texts, whatever is neither, such as a number, is a text.
    """
    parser = OverridesParser.create()
    key, equals, value = text.partition("=")
    either = key in open_keys(schema)
    is_text = key in text_keys(schema) or either
    as_text = f"{key}={quoted(value)}" if equals and value.isprintable() and is_text else None
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
    """The innermost complaint in one line, with the key it is about."""
    while error.__cause__ is not None:
        error = error.__cause__
    key = getattr(error, "full_key", None)
    return f"{key}: {first_line(error)}" if key else first_line(error)


def _yaml(command: Command, overrides: Sequence[str]) -> str:
    return OmegaConf.to_yaml(_composed(command, overrides))


def _conf_folder() -> Path:
    folder = _PACKAGED_CONF if _PACKAGED_CONF.is_dir() else _CHECKOUT_CONF
    return folder.resolve()


def _groups(command: Command) -> dict[str, list[str]]:
    """The options of the groups that fill a section of the command's settings."""
    sections = {section.name for section in dataclasses.fields(command.schema)}
    return {
        group.name: sorted(option.stem for option in group.glob("*.yaml"))
        for group in sorted(_conf_folder().iterdir())
        if group.is_dir() and group.name in sections
    }


def _groups_text(command: Command) -> str:
    lines = [f"  {name:<10} {' '.join(options)}\n" for name, options in _groups(command).items()]
    return "".join(["groups (choose with group=option):\n", *lines, "\n"]) if lines else ""


def _flags_text(command: Command) -> str:
    lines = [f"  --{flag} {flag}=true\n" for flag in command.flags]
    return "".join(["options:\n", *lines, "\n"]) if lines else ""


def _commands_text() -> str:
    return "".join(f"  {name:<8} {command.summary}\n" for name, command in COMMANDS.items())


if __name__ == "__main__":
    sys.exit(main())
