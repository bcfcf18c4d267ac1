"""The command line: composes and checks the settings, then runs the command."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipeline import __version__
from pipeline.cli import COMMANDS, all_commands, command_named
from pipeline.cli.command import (
    FOLDER,
    MULTIRUN,
    NAME,
    SHORT,
    SHORT_MULTIRUN,
    VALUED_OPTIONS,
    Command,
    interrupt_on,
    write_out,
)
from pipeline.core.errors import Interrupted, StepvalueError, UnknownSetting, UsageError
from pipeline.core.failpoints import arm
from pipeline.core.formatting import listed
from pipeline.core.suggestions import choice_hint, nearest_keys


@dataclass(slots=True)
class Invocation:
    """A parsed command line. `options`: name -> value, of those that take a value."""

    overrides: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    sweeps: bool = False
    show_config: bool = False
    show_help: bool = False
    show_all: bool = False


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A user's mistake gives a line on standard error, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with interrupt_on(signal.SIGINT):
            if armed := arm(os.environ):
                _print_error(f"stepvalue: {armed}")
            return _dispatch(arguments)
    except StepvalueError as error:
        _print_error(f"stepvalue: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _print_error("stepvalue: interrupted before the command started")
        return Interrupted.exit_code


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        from pipeline.cli.help import program_help

        write_out(program_help())
        return 0 if arguments else UsageError.exit_code
    if arguments[0] == "--version":
        write_out(f"stepvalue {__version__}\n")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name in ("completion", "__complete"):
        from pipeline.cli.complete import COMPLETION, completion_lines, completion_script

        write_out((completion_script if name == COMPLETION else completion_lines)(rest))
        return 0
    command = command_named(name)
    if command is None:
        from pipeline.cli.complete import COMPLETION

        known = [*all_commands(), COMPLETION]
        raise UsageError(f"there is no command {name!r}: {choice_hint(name, known)} (-h explains them)")
    # Hydra is imported here because it loads slowly and the list of commands does not need it.
    from pipeline.cli.compose import compose
    from pipeline.cli.own_settings import Given

    invocation = _parse(command, rest)
    if invocation.show_all or invocation.show_help:
        from pipeline.cli.help import command_help, full_help

        write_out((full_help if invocation.show_all else command_help)(command))
        return 0
    options = invocation.options
    given = Given(folder=Path(options[FOLDER]) if FOLDER in options else None, name=options.get(NAME))
    if invocation.sweeps:
        if not command.sweeps:
            sweeping = " and ".join(each.name for each in COMMANDS.values() if each.sweeps)
            raise UsageError(f"{MULTIRUN} is an option of {sweeping}: start `{command.name}` once for each value")
        from pipeline.cli.multirun import sweep

        with _owners_named(name):
            return sweep(command, invocation.overrides, given, show=invocation.show_config)
    with _owners_named(name):
        found = compose(command, invocation.overrides, given)
    for remark in found.remarks:
        _print_error(f"stepvalue: {remark}")
    if invocation.show_config:
        write_out(found.yaml)
        return 0
    return command.run(found.settings())


@contextmanager
def _owners_named(name: str) -> Iterator[None]:
    """The error about a setting that the command lacks names the commands that have it."""
    try:
        yield
    except UnknownSetting as error:
        from pipeline.cli.reference import command_settings

        key = f"{error.args[-2]}."
        owners = [
            f"`{each.name}`"
            for each in COMMANDS.values()
            if any(f"{known.key}.".startswith(key) for _, found in command_settings(each) for known in found)
        ]
        if not owners:
            raise
        raise UsageError(*error.args[:-1], f" of `{name}`: it is one of {listed(owners)}") from error


def _print_error(line: str) -> None:
    # Not at the top: shells wait for the answers of `__complete`, which has no use for it.
    from pipeline.display.terminal import show, terminal

    show([line], terminal(stderr=True))


def _parse(command: Command, arguments: Sequence[str]) -> Invocation:
    flags = {f"--{flag}": flag for flag in command.flags}
    found = Invocation()
    words = iter(arguments)
    for word in words:
        if word in ("-h", "--help"):
            found.show_help = True
        elif word == "--help-all":
            found.show_all = True
        elif word in ("--cfg", "-c"):
            if next(words, "job") != "job":
                raise UsageError("--cfg takes one value: --cfg job")
            found.show_config = True
        elif word == "--cfg=job":
            found.show_config = True
        elif (option := SHORT.get(name := word.partition("=")[0], name)) in VALUED_OPTIONS:
            value = found.options[option] = word.partition("=")[2] if "=" in word else next(words, "")
            if not value or value.startswith("-"):
                raise UsageError(f"{option} takes a value: {option} {VALUED_OPTIONS[option]}")
        elif word in (MULTIRUN, SHORT_MULTIRUN):
            found.sweeps = True
        elif word in flags:
            found.overrides.append(f"{flags[word]}=true")
        elif word.startswith("-"):
            raise UsageError(_no_option(command, word))
        else:
            found.overrides.append(word)
    return found


def _no_option(command: Command, word: str) -> str:
    """The message about an unknown option: the option or the setting that it most likely means, and all options."""
    from pipeline.cli.overrides import marks_of

    options = [*command.plain_options, *VALUED_OPTIONS, "-h", "--help-all"]
    name, _, value = word.partition("=")
    near = nearest_keys(name, options) if name.startswith("--") else []
    # Other programs write settings as options.
    keys = [*marks_of(command.schema)]
    single = [key for key in keys if not any(other.startswith(f"{key}.") for other in keys)]
    settings = nearest_keys(name.lstrip("-").replace("-", "_"), single)
    meant = near[:1] or [f"{key}={value or '...'}" for key in settings[:1]]
    guess = f"did you mean {meant[0]}? Settings" if meant else "settings"
    return f"there is no option {word}: {guess} are written key=value, options are {', '.join(options)} and --cfg job"


if __name__ == "__main__":
    sys.exit(main())
