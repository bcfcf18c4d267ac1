"""One shared checker per process and settings, for callers of `grade`. It is created on first use and closed at exit.

Covered: calls from any thread; a forked process, which starts its own children because two processes cannot share a pipe; any
number of different settings, each with its own children, which live until the process ends.
Not covered: several verdicts at once by default. For that, raise `processes` and call `grade` from as many threads.
"""

import atexit
import copy
import os
import threading

from pipeline.config.label import GraderConfig
from pipeline.config.recorded_settings import complete_settings
from pipeline.core.records import Grade
from pipeline.graders.base import Checker
from pipeline.graders.question import in_time, question
from pipeline.graders.registry import GRADERS, checker_for

_checkers: dict[str, Checker] = {}
_making = threading.Lock()
_DEFAULT = GraderConfig()
_DEFAULT_KEY = repr(complete_settings(_DEFAULT, GRADERS))


def grade(gold: object, prediction: object, *, extracts: bool = True, config: GraderConfig | None = None) -> Grade:
    """Grade a prediction. Returns the verdict, the answer that was graded, and the time in milliseconds.

    `gold` is a text, a number, or a list of these, any of which is correct. If it is blank or of another type, the verdict is
    `unparseable`. `prediction` is a text, a number or None; if it is of another type, the verdict is `no_answer`. With
    `extracts` it is a whole model output that states its final answer, otherwise it is the bare answer. Waits at most
    `config.deadline_seconds` per gold, twice that with `timeout_is=wrong`, and a second to start a child.
    Usable from any thread. Raises StepvalueError only if no child process can be started.
    """
    return in_time(shared_checker(config), question(gold, prediction, extracts=extracts))


def shared_checker(config: GraderConfig | None = None) -> Checker:
    """This process's checker with these settings. The caller must not close it."""
    key = _DEFAULT_KEY if config is None else repr(complete_settings(config, GRADERS))
    known = _checkers.get(key)
    if known is not None:
        return known
    with _making:
        if key not in _checkers:
            # Settings are mutable. The copy keeps the checker's settings equal to its key.
            _checkers[key] = checker_for(copy.deepcopy(config or _DEFAULT))
        return _checkers[key]


def _close_all() -> None:
    while _checkers:
        _checkers.popitem()[1].close()


def _forget_the_parents() -> None:
    global _making
    _making = threading.Lock()
    _checkers.clear()


os.register_at_fork(after_in_child=_forget_the_parents)
atexit.register(_close_all)
