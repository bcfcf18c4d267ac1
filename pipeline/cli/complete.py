"""Candidates for shell completion: commands, options, groups, keys and their choices.

The scripts in `shells/` call the hidden command `__complete` with the words so far; the word under the cursor is the last. It
prints one candidate per line, with its meaning after a tab, or FILES if the shell should complete a file name. It reads only
schemas and lists of names. A plug-in that cannot be used adds no candidates; the command itself reports what is wrong with it.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.cli import all_commands, command_named
from pipeline.cli.command import FOLDER, NAME, OPTION_MEANINGS, SHORT, VALUED_OPTIONS, Command
from pipeline.cli.options import EXPERIMENT, named_implementation, offered_groups, option_names, written_keys
from pipeline.cli.reference import Setting, settings
from pipeline.config.changes import Change
from pipeline.config.fields import RELABEL, describe_settings
from pipeline.core.errors import StepvalueError, UsageError
from pipeline.core.registry import Registry
from pipeline.core.sentences import first_sentence
from pipeline.runtime.objects import REGISTRIES

COMPLETION = "completion"
SUMMARY = "print the script that completes command lines in bash, zsh or fish"
"""For the list of commands."""
SHELLS = ("bash", "zsh", "fish")
FILES = ":files"
"""Printed instead of candidates: the shell completes the text after the `=` as a path."""
PATHS = frozenset({
    "best", "budget", "data.path", "input", "model", "out", "outcome_scores", "output", "plan.out", "planned", "policy.model",
    "policy.tokenizer", "run_dir", "scores", "tokenizer",
})  # fmt: skip
"""Settings that name a file or a folder."""
HELP = f"""\
{COMPLETION}: {SUMMARY}.

  bash: eval "$(stepvalue completion bash)"     in ~/.bashrc
  zsh:  eval "$(stepvalue completion zsh)"      in ~/.zshrc, after compinit
  fish: stepvalue completion fish | source      in ~/.config/fish/config.fish

It completes `stepvalue ...` and `python -m pipeline ...`. Both ask the program
`stepvalue` for the candidates: the one beside that `python`, or on the PATH.
`python -m pipeline` itself is not asked, because that could start another
package named `pipeline` in the current folder. Everything else after `python`
is completed as before.
"""
_OPTIONS = {
    "-h": "what the command does, and its settings used most",
    "--help-all": "all settings, with their meanings",
    "--cfg": "--cfg job prints the values it would run with",
}
_SCRIPTS = Path(__file__).parent / "shells"


def completion_script(arguments: Sequence[str]) -> str:
    """The completion script of a shell, or how to use it. Raises UsageError for a shell without a script."""
    match arguments:
        case ["-h" | "--help" | "--help-all"]:
            return HELP
        case [shell] if shell in SHELLS:
            return (_SCRIPTS / f"stepvalue.{shell}").read_text("utf-8")
    raise UsageError(
        f"completion takes the name of a shell: {', '.join(SHELLS)} (completion -h says what to do with it)"
    )


def completion_lines(words: Sequence[str]) -> str:
    """The output of `__complete` for the words after the program's name. The last word is unfinished."""
    *before, word = words or [""]
    return "".join(
        f"{found}\t{meaning}\n" if meaning else f"{found}\n"
        for found, meaning in _candidates(before, word)
        if found.startswith(word) or found == FILES
    )


def _candidates(before: Sequence[str], word: str) -> Iterator[tuple[str, str]]:
    """What the last word may be, and more, each with its meaning."""
    if not before:
        yield from ((name, command.summary) for name, command in all_commands().items())
        yield COMPLETION, SUMMARY
        if word.startswith("-"):
            yield from {"-h": "the commands", "--version": "the version"}.items()
    elif before[0] == COMPLETION:
        yield from ((shell, "") for shell in SHELLS if len(before) == 1)
    elif (command := _known(before[0])) is not None:
        yield from _of_command(command, before[1:], word)


def _known(name: str) -> Command | None:
    with suppress(StepvalueError):
        return command_named(name)
    return None


def _of_command(command: Command, before: Sequence[str], word: str) -> Iterator[tuple[str, str]]:
    if before and before[-1] in ("--cfg", "-c"):
        yield "job", ""
    elif word.startswith("-"):
        yield from _OPTIONS.items()
        yield from command.plain_options.items()
        yield from _valued(word, _folder(before))
    elif not before or before[-1] not in (*VALUED_OPTIONS, *SHORT):
        key, equals, _ = word.partition("=")
        given, folder = written_keys(before), _folder(before)
        if equals:
            found = _values(command, key, given, folder)
            yield from ((each if each == FILES else f"{key}={each}", "") for each in found)
        else:
            yield from _keys(command, word, given, folder)


def _folder(before: Sequence[str]) -> Path | None:
    """The user's folder of settings, if the words before name one."""
    pairs = ((word, following) for word, following in zip(before, [*before, ""][1:], strict=True))
    for word, following in pairs:
        name, equals, value = word.partition("=")
        if SHORT.get(name, name) == FOLDER and (equals or following):
            return Path(value if equals else following).expanduser()
    return None


def _valued(word: str, folder: Path | None) -> Iterator[tuple[str, str]]:
    """The options that take a value, or the values of one."""
    option, equals, _ = word.partition("=")
    if not equals:
        yield from ((f"{name}=", OPTION_MEANINGS[name]) for name in VALUED_OPTIONS)
    elif option == NAME:
        yield from ((f"{option}={name}", "") for name in (option_names(folder) if folder else ()))
    elif option in VALUED_OPTIONS:
        yield FILES, ""


def _keys(command: Command, word: str, given: Mapping[str, str], folder: Path | None) -> Iterator[tuple[str, str]]:
    """`key=` and `section.`. The settings of a section follow once its name is complete."""
    above = word[: word.rfind(".") + 1]
    if not above:
        choices = {group: options for group, options in offered_groups(command, folder).items() if len(options) > 1}
        if folder and (names := option_names(folder / EXPERIMENT)):
            choices[EXPERIMENT] = names
        sections = [each.name for each in describe_settings(command.schema) if dataclasses.is_dataclass(each.kind)]
        sections += [schema.SECTION for schema in _own_schemas(command, given)]
        yield from ((f"{group}=", f"one of {', '.join(options)}") for group, options in choices.items())
        yield from ((f"{section}.", "settings") for section in sections)
    seen = set()
    for setting in _settings(command, word, given):
        if setting.key.startswith(above):
            part, dot, _ = setting.key.removeprefix(above).partition(".")
            found = f"{above}{part}{'.' if dot else '='}"
            if found not in seen:
                seen.add(found)
                yield found, "settings" if dot else first_sentence(setting.meaning)


def _values(command: Command, key: str, given: Mapping[str, str], folder: Path | None) -> Iterator[str]:
    options = offered_groups(command, folder)
    if folder:
        options[EXPERIMENT] = option_names(folder / EXPERIMENT)
    section, _, name = key.rpartition(".")
    if key in options:
        yield from options[key]
    elif command.chooses is not None and command.chooses[0] == key:
        yield from command.chooses[1].names()
    elif found := [setting for setting in _settings(command, key, given) if setting.key == key]:
        if section in REGISTRIES and name == REGISTRIES[section][0].CHOSEN_BY:
            yield from REGISTRIES[section][1].names()
        else:
            yield from dict.fromkeys(choice for setting in found for choice in setting.choices)
            if key in PATHS:
                yield FILES


def _settings(command: Command, word: str, given: Mapping[str, str]) -> Iterator[Setting]:
    """The settings of the section that a word begins with. Without a section, the settings of the command itself.

    A section with several implementations has the keys of the one that is named, or of all if none is.
    """
    section, dot, _ = word.partition(".")
    if not dot:
        yield from (setting for setting in settings(command.schema) if "." not in setting.key)
        return
    for each in describe_settings(command.schema):
        if each.name != section or not dataclasses.is_dataclass(each.kind):
            continue
        if section not in REGISTRIES:
            yield from settings(each.kind, f"{section}.")
            continue
        base, registry = REGISTRIES[section]
        schemas = [base, *_schemas(registry, named_implementation(section, given), named=False)]
        found = [setting for schema in schemas for setting in settings(schema, f"{section}.")]
        yield from (setting for setting in found if each.kind is not Change or RELABEL in setting.marks)
    for schema in _own_schemas(command, given):
        if section == schema.SECTION:
            yield from settings(schema, f"{section}.")


def _own_schemas(command: Command, given: Mapping[str, str]) -> list[Any]:
    """The own settings of formats. A format whose settings load only with its code is left out until it is named."""
    if command.chooses is None:
        return []
    key, registry = command.chooses
    return list(_schemas(registry, given.get(key), named=True))


def _schemas(registry: Registry[Any], name: str | None, *, named: bool) -> Iterator[Any]:
    """The settings of one implementation or of all. With `named`, only those of ours that load without their implementation."""
    if name is None:
        yield from registry.our_settings(named=named).values()
    for each in [each for each in registry.names() if each not in registry.ours] if name is None else [name]:
        with suppress(StepvalueError):
            if (schema := registry.settings(each)) is not None:
                yield schema
