"""`label --multirun`: a run for each combination of values, one after the other.

Hydra's grammar says which settings have several values: `a,b`, `choice(a,b)`, `range(1,5)`. A text in quotes and a list are one
value. The first setting varies slowest. All combinations are checked before the first run starts, and a run that fails does not
stop the others.

The folder of a run has its values as its name: `estimator.threshold=0.3,sampling.temperature=0.7`. That is all that the same
command, or one with more values, needs to go on. Other characters than LETTERS are replaced; the name then ends with a hash, so
that no two runs have the same one.
"""

import re
import shlex
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any

from pipeline.cli.command import Command, write_lines, write_out
from pipeline.cli.compose import ComposedSettings, compose
from pipeline.cli.label import LABELLING
from pipeline.cli.own_settings import Given
from pipeline.cli.workers import ray_hiring
from pipeline.config.words import quote, setting_word
from pipeline.core.errors import ClusterError, Interrupted, StepvalueError, UsageError
from pipeline.core.ids import content_id
from pipeline.core.output import say
from pipeline.storage.location import storage_at
from pipeline.storage.lock import hold_lock
from pipeline.storage.run_record import NAME

if TYPE_CHECKING:
    from pipeline.runtime.chain_run.run import Hiring

MOST_RUNS = 256
MOST_NAME = 120
"""Characters of a name, which is a part of a path."""
LETTERS = r"A-Za-z0-9._+\-"
_OTHERS = re.compile(f"[^{LETTERS}]+")
_DIGITS = 8
_ONE_FOR_ALL = frozenset({"run_dir", "budget", "cluster.address"})


def sweep(
    command: Command, overrides: Sequence[str], given: Given, *, show: bool = False, hiring: "Hiring | None" = None
) -> int:
    """Make all runs and name them, or `show` their settings. Returns the exit code: 1 if a run has failed.

    `hiring` provides the workers of each run; None: one Ray does, for all runs. Raises UsageError, before anything starts, for
    a combination that `label` would refuse, Interrupted, RunConflict if another job sweeps in the folder, and StoreError.
    """
    composed, configs = dict[str, ComposedSettings](), dict[str, Any]()
    for name, words in combinations(overrides).items():
        with _named(name):
            composed[name] = compose(command, words, given)
            configs[name] = None if show else composed[name].settings()
    for remark in dict.fromkeys(remark for found in composed.values() for remark in found.remarks):
        say(remark)
    if show:
        write_out("---\n".join(f"# {name}\n{found.yaml}" for name, found in composed.items()))
        return 0
    folder, first = _folder({config.run_dir for config in configs.values()}), next(iter(configs.values()))
    from pipeline.data.rows import input_digest
    from pipeline.runtime.driver import check_place, place_of
    from pipeline.runtime.stop import stoppable

    digest = cache(input_digest)
    for name, config in configs.items():
        configs[name] = replace(config, run_dir=f"{folder.rstrip('/')}/{name}")
        with _named(name):
            check_place(place_of(configs[name], digest))
    done, failed = [], []
    with stoppable() as stop, hold_lock(storage_at(folder), lock=first.run.lock), ExitStack() as joined:
        ray = partial(ray_hiring, first.cluster, LABELLING.workers, stop.check)
        hire = hiring or joined.enter_context(ray())
        for number, config in enumerate(configs.values(), start=1):
            say(f"run {number} of {len(configs)}: {config.run_dir}")
            try:
                stop.check()
                LABELLING.do(config, partial(LABELLING.hired, hire=hire, stop=stop))
                done.append(config.run_dir)
            except Interrupted:
                raise
            except Exception as error:  # noqa: BLE001  a defect in one run must not cost the others their night
                why = str(error)
                if not isinstance(error, StepvalueError):
                    why = f"{type(error).__name__}: {why}"
                    traceback.print_exc()
                elif isinstance(error, ClusterError):
                    # The next run may find another cluster, or start Ray again.
                    joined.close()
                    hire = hiring or joined.enter_context(ray())
                failed.append(f"{config.run_dir}: {why}")
                say(f"run {number} failed: {why}")
    write_lines(_ending(done, failed))
    return 1 if failed else 0


def combinations(overrides: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The name of each run that a command line makes -> the command line of that run. Raises UsageError for one without a
    sweep, with too many runs, or that names a run twice."""
    found = [_setting(text) for text in overrides]
    keys, settings = [key for key, _ in found], [values for _, values in found]
    swept = [key for key, ((_, alone), *_) in found if alone is not None]
    for key in swept:
        if key in _ONE_FOR_ALL:
            raise UsageError(f"{key} is the same for all runs of a sweep: give one value")
        if keys.count(key) > 1:
            raise UsageError(f"{key} is given twice: name all of its values at once, {key}=VALUE,VALUE")
    if not swept:
        raise UsageError(
            "--multirun makes a run for each value of a setting, and no setting has several: separate them with commas, such "
            "as estimator.threshold=0.3,0.5, or leave --multirun out"
        )
    if (number := prod(map(len, settings))) > MOST_RUNS:
        raise UsageError(
            f"a sweep has at most {MOST_RUNS} runs, and this one has {number:,} or more: name fewer values"
        )
    runs: dict[str, tuple[str, ...]] = {}
    for chosen in product(*settings):
        values = {key: alone for key, (_, alone) in zip(keys, chosen, strict=True) if alone is not None}
        if (name := folder_name(values)) in runs:
            raise UsageError(f"{name} is in the sweep twice: name each value once")
        runs[name] = tuple(word for word, _ in chosen)
    return runs


def folder_name(values: Mapping[str, str]) -> str:
    """The name of the folder of a run with these values."""
    name = ",".join(f"{_OTHERS.sub('-', key)}={_OTHERS.sub('-', value)}" for key, value in values.items())
    if len(name) <= MOST_NAME and not any(_OTHERS.search(key + value) for key, value in values.items()):
        return name
    digest = content_id("sweep", *(part for pair in values.items() for part in pair))[:_DIGITS]
    # A plain name has no ~ in it.
    return f"{name[: MOST_NAME - _DIGITS - 1]}~{digest}"


def _setting(text: str) -> tuple[str, list[tuple[str, str | None]]]:
    """The key of a setting, and each of its values as a word of a command line, and alone if the setting is swept."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_override(text)
    except HydraException:
        # A text that Hydra cannot read is one value, and `compose` says whether it may be one.
        return text.partition("=")[0], [(text, None)]
    key = parsed.get_key_element()
    if not parsed.is_sweep_override():
        return key, [(text, None)]
    try:
        found = [_value(key, element) for element in islice(parsed.sweep_iterator(), MOST_RUNS + 1)]
    except HydraException as error:
        raise UsageError(
            f"{text} names no single values: write them down, {key}=VALUE,VALUE, or as range(START,STOP,STEP)"
        ) from error
    return key.removeprefix("+"), [*found]


def _value(key: str, element: Any) -> tuple[str, str]:
    """A value with its key as a command line gives them, and alone."""
    from hydra.core.override_parser.types import QuotedString, Transformer

    text = element.text if isinstance(element, QuotedString) else element
    if isinstance(text, str):
        # Elsewhere only a setting that is a text may have such a value without quotes.
        return f"{key}={quote(text)}" if "=" in text else setting_word(key, text), text
    text = str(Transformer.encode(element))
    return f"{key}={text}", text


def _folder(named: set[str | None]) -> str:
    """The folder of the runs. Raises UsageError where there is not one for all, or it is that of a run."""
    folder = named.pop()
    if named or folder is None:
        raise UsageError("a sweep needs one folder for its runs: give run_dir=FOLDER, and the same one to go on later")
    if NAME in storage_at(folder).names(""):
        raise UsageError(
            f"run_dir={folder} is the directory of a run: give another folder, which will hold a directory per run"
        )
    return folder


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the run in errors about its settings."""
    try:
        yield
    except StepvalueError as error:
        raise type(error)(f"{name}: ", *error.args) from error


def _ending(done: Sequence[str], failed: Sequence[str]) -> Iterator[str]:
    """The lines after the last run: all runs, and how two of them are compared."""
    yield ""
    yield from (f"finished  {run_dir}" for run_dir in done)
    yield from (f"failed    {why}" for why in failed)
    if failed:
        yield "          the same command tries what has failed again"
    if len(done) > 1:
        yield "compare   " + shlex.join(["stepvalue", "report", setting_word("run_dir", done[:2], '"')])
