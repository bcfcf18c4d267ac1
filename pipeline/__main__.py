"""The command line: composes and checks the settings, then runs the command."""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from pipeline import __version__
from pipeline.cli import COMMANDS
from pipeline.cli.command import Command, interrupt_on, write_out
from pipeline.cli.label import LABEL
from pipeline.config.label import LabelConfig
from pipeline.core.errors import Interrupted, StepvalueError, UsageError
from pipeline.core.failpoints import arm

_HELP = """\
stepvalue: Monte Carlo step values for process reward models.

usage: python -m pipeline COMMAND [setting=value ...]      (installed: stepvalue COMMAND ...)

{commands}
COMMAND -h explains a command, COMMAND --help-all tells what each of its settings means, COMMAND --cfg job prints those it would
run with. --version prints the version.
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
    show_all: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A user's mistake gives one line on standard error, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        with interrupt_on(signal.SIGINT):
            if armed := arm(os.environ):
                errors.print(f"stepvalue: {armed}")
            return _dispatch(arguments, errors)
    except StepvalueError as error:
        errors.print(f"stepvalue: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        errors.print("stepvalue: interrupted before the command started")
        return Interrupted.exit_code


def compose_label(overrides: Sequence[str]) -> LabelConfig:
    """The settings of `label` as plain objects. Raises UsageError with one line that names the key and the remedy."""
    from pipeline.cli.compose import compose

    config = compose(LABEL, overrides).settings()
    assert isinstance(config, LabelConfig)
    return config


def _dispatch(arguments: list[str], errors: Console) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        write_out(_HELP.format(commands=_commands_text()))
        return 0 if arguments else UsageError.exit_code
    if arguments[0] == "--version":
        write_out(f"stepvalue {__version__}\n")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name!r}: choose {', '.join(COMMANDS)} (-h lists them)")
    # Hydra is imported here because it loads slowly and the list of commands does not need it.
    from pipeline.cli.compose import compose

    command = COMMANDS[name]
    invocation = _parse(command, rest)
    if invocation.show_all:
        from pipeline.cli.reference import as_text

        write_out(as_text(command))
        return 0
    if invocation.show_help:
        write_out(
            _COMMAND_HELP.format(
                examples=command.examples,
                flags=_flags_text(command),
                groups=_groups_text(command),
                settings=compose(command, invocation.overrides).yaml,
            )
        )
        return 0
    if invocation.show_config:
        write_out(compose(command, invocation.overrides).yaml)
        return 0
    found = compose(command, invocation.overrides)
    settings = found.settings()
    for remark in found.remarks:
        errors.print(f"stepvalue: {remark}")
    return command.run(settings)


def _parse(command: Command, arguments: Sequence[str]) -> Invocation:
    options = {f"--{flag}": flag for flag in command.flags}
    overrides = []
    show_config = show_help = show_all = False
    words = iter(arguments)
    for word in words:
        if word in ("-h", "--help"):
            show_help = True
        elif word == "--help-all":
            show_all = True
        elif word in ("--cfg", "-c"):
            if next(words, "job") != "job":
                raise UsageError("--cfg takes one value: --cfg job")
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
    return Invocation(overrides=overrides, show_config=show_config, show_help=show_help, show_all=show_all)


def _groups_text(command: Command) -> str:
    from pipeline.cli.compose import groups

    choices = groups(command)
    if command.chooses is not None:
        key, door = command.chooses
        choices[key] = door.names()
    lines = [f"  {name:<10} {' '.join(options)}\n" for name, options in choices.items()]
    return "".join(["groups (choose with group=option):\n", *lines, "\n"]) if lines else ""


def _flags_text(command: Command) -> str:
    lines = [f"  --{flag} {flag}=true\n" for flag in command.flags]
    return "".join(["options:\n", *lines, "\n"]) if lines else ""


def _commands_text() -> str:
    return "".join(f"  {name:<8} {command.summary}\n" for name, command in COMMANDS.items())


if __name__ == "__main__":
    sys.exit(main())
