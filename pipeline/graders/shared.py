"""One checker for everything in a process that just wants a verdict: made when first needed, closed at exit.

Covered: any thread; a process forked from this one, which makes children of its own, because two processes cannot share a
pipe; as many settings as are asked for, each with its own children, which are held until the process ends.
Not covered: work that wants several verdicts at once. Raise `processes` and ask from that many threads.
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
    """Whether a prediction is right: verdict, the answer it is about, and the milliseconds that took.

    `gold` is a text, a number, or a list of those of which any counts; blank, or of another type, it is `unparseable`.
    `prediction` is a text, a number or None. With `extracts` it is a whole model output that states its final answer, else
    the bare answer; of another type it is `no_answer`. Waits at most `config.deadline_seconds` per gold, and about a second
    more when a child process has to be started. Usable from any thread. Raises StepvalueError only when no child process
    can be started.
    """
    return in_time(shared_checker(config), question(gold, prediction, extracts=extracts))


def shared_checker(config: GraderConfig | None = None) -> Checker:
    """This process's checker with these settings. It is not to be closed."""
    key = _DEFAULT_KEY if config is None else repr(complete_settings(config, GRADERS))
    known = _checkers.get(key)
    if known is not None:
        return known
    with _making:
        if key not in _checkers:
            # Settings are mutable; those of a checker must stay what its key says.
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
