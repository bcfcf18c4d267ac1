"""Dicts that choose an implementation and its settings, such as `policy={"kind": "oracle"}`, as what the command line takes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pipeline.cli.command import Command
from pipeline.core.errors import UsageError
from pipeline.python.overrides import Setting, said

FORMAT_NAME = "name"
"""What names the format in a dict of `export`."""


def with_options(settings: Iterable[Setting], command: Command) -> Iterator[Setting]:
    """The settings of a command. One that names an implementation chooses the option of its section, with what belongs to it.

    Where a command keeps what is not named (`relabel`), the setting stays as it is.
    """
    from pipeline.cli.options import option_for, usual_options
    from pipeline.runtime.objects import REGISTRIES

    usual = usual_options(command)
    choosing = {
        f"{section}.{base.CHOSEN_BY}": section
        for section, (base, _) in REGISTRIES.items()
        if usual.get(section, "None") != "None"
    }
    for each in settings:
        section = choosing.get(each.key)
        if section is not None and isinstance(each.value, str):
            yield replace(each, key=section, value=option_for(section, each.value, usual[section]))
        else:
            yield each


def format_settings(format: object) -> tuple[object, list[Setting]]:
    """A format of `export`, and the settings of a dict that chooses it: `{"name": "preference", "margin": 0.2}`.

    Raises UsageError for a dict that names no format, and for settings of a format that has none."""
    if not isinstance(format, Mapping):
        return format, []
    from pipeline.export.registry import EXPORTS

    name = format.get(FORMAT_NAME)
    if not isinstance(name, str):
        raise UsageError(
            f"format: the dict does not say which format it is for: add {FORMAT_NAME!r}, one of {', '.join(EXPORTS.names())}"
        )
    own = {key: value for key, value in format.items() if key != FORMAT_NAME}
    section = getattr(EXPORTS.settings(name), "SECTION", "")
    if own and not section:
        raise UsageError(f"format: {name} has no settings of its own: give {', '.join(map(str, own))} beside it")
    return name, [
        Setting(key=f"{section}.{key}", value=value, said=said("format", format)) for key, value in own.items()
    ]
