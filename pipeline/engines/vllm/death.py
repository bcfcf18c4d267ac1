"""Why an engine died, in one line, from what its processes printed and how they ended. Pure."""

import re
import signal
from collections.abc import Mapping

from pipeline.core.formatting import printable

MAX_CAUSE_CHARACTERS = 400

# The lines with which a failed start or a death begins, as vLLM, CPython and C++ print them. What stands before them was
# survived.
_BEGINS = re.compile(
    r"^.*(?:EngineCore failed to start|encountered a fatal error|WorkerProc (?:hit an exception|failed)|died unexpectedly|"
    r"terminate called|Fatal Python error)",
    re.MULTILINE,
)
# vLLM's prefix of its processes, then that of its log.
_PREFIX = r"^(?:\([^)\n]*\) )?(?:[A-Z]+ \d\d-\d\d [\d:]+ \[[^\]\n]*\] )?"
# An exception's line stands alone in a traceback. Without a message it is a name.
_CAUSES = (
    re.compile(
        _PREFIX + r"(?P<cause>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit)(?:: .+)?)$",
        re.MULTILINE,
    ),
    re.compile(r"what\(\):\s*(?P<cause>.+)$", re.MULTILINE),
    re.compile(r"(?P<cause>Fatal Python error: .+)$", re.MULTILINE),
    re.compile(r"(?P<cause>(?:symbol lookup error|error while loading shared libraries): .+)$", re.MULTILINE),
)
_PLACE = re.compile(r'File "[^"\n]*?(?P<file>[^"/\n]+)", line (?P<line>\d+), in (?P<function>\S+)')
_LOGGED = re.compile(r"^\([^)\n]*\) |^(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# What the other processes say about the death of the first one.
_CONSEQUENCE = re.compile(
    r"See (?:stack trace|root cause) |Worker failed with error|EngineDeadError|: cancelled$|CancelledError$|^SystemExit"
    r"|RPC call to .* timed out"
)
_EXIT = re.compile(r"[Pp]roc (?P<name>[\w.-]+) died unexpectedly \(exit code: (?P<code>-?\d+)\)")
_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{8,}")


def death_cause(printed: str, ended: Mapping[str, int]) -> str:
    """The first error that a process printed when the death began; else how the first process ended.

    `ended`: exit codes of processes that have ended, by name; -N is signal N. Control characters and access tokens are
    replaced.
    """
    printed = without_colours(printed)
    dying = dying_words(printed)
    found = sorted(
        (match for pattern in _CAUSES for match in pattern.finditer(dying)), key=lambda match: match.start("cause")
    )
    causes = [match for match in found if not _CONSEQUENCE.search(match["cause"])]
    if causes:
        return _bounded(causes[0]["cause"] + _where(causes[0], dying))
    codes = {match["name"]: int(match["code"]) for match in _EXIT.finditer(printed)} or dict(ended)
    for name, code in codes.items():
        if code:
            return _bounded(f"its process {name} {_end(code)}, and {_last_words(printed)}")
    if found:
        return _bounded(found[0]["cause"])
    return _bounded(f"its processes {_last_words(printed)}")


def _where(cause: "re.Match[str]", dying: str) -> str:
    """Where an exception without a message was raised: the last place of the traceback before it."""
    places = [] if ": " in cause["cause"] else list(_PLACE.finditer(dying, 0, cause.start()))
    return f" in {places[-1]['function']} ({places[-1]['file']}, line {places[-1]['line']})" if places else ""


def _last_words(printed: str) -> str:
    """What was printed last past vLLM's log: by a library, or the system. The log itself ends with consequences."""
    others = (_BEGINS, _CONSEQUENCE, _LOGGED)
    lines = [line for line in printed.splitlines() if line.strip() and not any(each.search(line) for each in others)]
    return f"printed last: {lines[-1].strip()}" if lines else "printed no error"


def without_colours(text: str) -> str:
    """The text without the escape sequences for colours."""
    return _COLOUR.sub("", text)


def dying_words(printed: str) -> str:
    """What was printed from the beginning of the failure on. Empty if none is found."""
    begins = _BEGINS.search(printed)
    return printed[begins.start() :] if begins else ""


def shortened(cause: str, most: int) -> str:
    """The cause with at most `most` characters, cut between words."""
    return cause if len(cause) <= most else cause[:most].rsplit(" ", 1)[0] + " ..."


def without_tokens(text: str) -> str:
    """The text without access tokens of Hugging Face."""
    return _TOKEN.sub("hf_***", text)


def _end(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (the kernel does this when memory is full: see dmesg)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


def _bounded(cause: str) -> str:
    return shortened(without_tokens(printable(cause)), MAX_CAUSE_CHARACTERS)
