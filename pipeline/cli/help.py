"""The text of `-h`, for the program and for each command. It fits on one screen.

`reference` explains all settings of a command.
"""

import textwrap
from collections.abc import Iterator

from pipeline.cli import all_commands
from pipeline.cli.command import OPTION_MEANINGS, VALUED_OPTIONS, Command
from pipeline.cli.complete import COMPLETION, SUMMARY
from pipeline.cli.options import offered_groups, usual_options
from pipeline.cli.reference import NO_DEFAULT, Setting, as_text, command_settings, section_meanings
from pipeline.core.sentences import first_sentence

COLUMNS = 80
"""The width of a terminal where no one has changed it."""
PROGRAM = "python -m pipeline"
MOST_SETTINGS = 10
EXAMPLES = 2
_PLAIN = ("true", "false", "null")
_PROGRAM_TEXT = """\
usage: python -m pipeline COMMAND [setting=value ...], installed: stepvalue ...
{commands}COMMAND -h explains a command, --help-all in full. --version prints the version.
Exit codes: 0 done, 1 failed, 2 wrong usage, 75 interrupted (start it again).
"""


def program_help() -> str:
    """The commands, each with its summary."""
    rows = {name: command.summary for name, command in all_commands().items()} | {COMPLETION: SUMMARY}
    return _PROGRAM_TEXT.format(commands="".join(f"  {name:<10}  {summary}\n" for name, summary in rows.items()))


def command_help(command: Command) -> str:
    """The purpose of a command, examples, its most used settings, and where the other settings are explained."""
    shown = list(_most_used(command))
    column = 2 + max(len(written) for written, _ in shown)
    lines = [*textwrap.wrap(command.about, COLUMNS), ""]
    lines += [line for example in command.examples[:EXAMPLES] for line in _example_lines(example)]
    lines += ["", "settings used most, with their defaults (??? has to be given):"]
    for written, meaning in shown:
        first, *rest = textwrap.wrap(meaning, COLUMNS - column - 2)
        lines += [f"  {written:<{column}}{first}", *(" " * (column + 2) + line for line in rest)]
    options = f"options: {', '.join([*command.plain_options, '--cfg job', *VALUED_OPTIONS])}"
    lines += ["", *textwrap.wrap(options, COLUMNS, break_on_hyphens=False)]
    return "\n".join([*lines, "--help-all and conf/README.md explain all settings, --cfg job prints them.", ""])


def full_help(command: Command) -> str:
    """All examples of a command, its notes, its groups with their options, and all its settings."""
    examples = [line for each in command.examples for line in _example_lines(each)]
    parts = [textwrap.fill(command.about, COLUMNS), "\n".join(examples)]
    if command.notes:
        parts += [_filled(paragraph) for paragraph in command.notes.rstrip("\n").split("\n\n")]
    parts.append("\n".join(["options:", *_option_lines(command)]))
    choices = offered_groups(command)
    if command.chooses is not None:
        key, registry = command.chooses
        choices[key] = registry.names()
    if choices:
        rows = [f"  {name:<10} {' '.join(options)}" for name, options in choices.items()]
        parts.append("\n".join(["groups (choose with group=option):", *rows]))
    return "\n\n".join([*parts, as_text(command, COLUMNS)])


def _option_lines(command: Command) -> Iterator[str]:
    """The options of a command, with their meanings."""
    options = dict(command.plain_options)
    options |= {f"{option} {value}": OPTION_MEANINGS[option] for option, value in VALUED_OPTIONS.items()}
    column = max(map(len, options))
    yield from (f"  {option:<{column}}  {meaning}" for option, meaning in options.items())


def _filled(paragraph: str) -> str:
    """A paragraph of notes as wide as the screen. Lines that are indented, such as examples of input, stay as they are."""
    return paragraph if paragraph.startswith(" ") else textwrap.fill(paragraph, COLUMNS)


def _example_lines(example: str) -> list[str]:
    """A command line, continued with a backslash where it is too long for the screen."""
    words = " ".join(f"  {PROGRAM} {example}".replace("\\\n", " ").split())
    if len(words) <= COLUMNS - 2:
        return [f"  {words}"]
    width = COLUMNS - len(" \\")
    lines = textwrap.wrap(
        words, width, initial_indent="  ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
    )
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def _most_used(command: Command) -> Iterator[tuple[str, str]]:
    """`key=default` and the first sentence of the meaning, for each of the most used settings and groups."""
    settings: dict[str, Setting] = {}
    for _, found in command_settings(command):
        for setting in found:
            settings.setdefault(setting.key, setting)
    options = offered_groups(command)
    defaults = usual_options(command)
    for key in command.most_used:
        if key in options:
            usual = defaults.get(key, "None")
            meaning = first_sentence(section_meanings(command)[key])
            yield f"{key}={'null' if usual == 'None' else usual}", f"{meaning} Options: {', '.join(options[key])}."
            continue
        setting = settings[key]
        names = [choice for choice in setting.choices if choice not in _PLAIN]
        if command.chooses is not None and command.chooses[0] == key:
            names = command.chooses[1].names()
        choices = f" ({', '.join(names)})" if names else ""
        # The usual option does without it, if only others have it.
        usual = defaults.get(key.partition(".")[0], "None")
        needless = setting.default == NO_DEFAULT and setting.of and usual not in ("None", *setting.of)
        yield f"{key}={'' if needless else setting.default}", f"{first_sentence(setting.meaning)[:-1]}{choices}."
