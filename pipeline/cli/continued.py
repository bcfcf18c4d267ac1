"""The settings of the run in a directory, for a command that continues it, such as `grow`.

The record (`run.json`) holds what determines the labels. Where the input is, and the settings that may differ from start to
start, are recorded with each start: those of the last one that ended well are taken.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.cli.command import Command
from pipeline.cli.own_settings import OwnSettings, choose_options, without_choices
from pipeline.config.recorded_settings import RUN_RECORD, SETTING_NAMES, refuse_missing
from pipeline.data.rows import GIVEN_FILE, GIVEN_FOLDER
from pipeline.runtime.objects import REGISTRIES

if TYPE_CHECKING:
    from pipeline.storage.starts import Start

_STOP_AT_ANSWER = "sampling.stop_at_answer"
_PATH, _DATA = "data.path", "data"


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
    settings = {key: value for key, value in settings.items() if not _is_plugin(key)}
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


def _is_plugin(key: str) -> bool:
    section, _, name = key.partition(".")
    return section in REGISTRIES and name == "plugin"
