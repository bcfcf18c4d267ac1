"""Why an engine died, in one line, from what its processes printed and how they ended. Pure."""

import re
import signal
from collections.abc import Mapping

from pipeline.core.formatting import printable

MAX_CAUSE_CHARACTERS = 400

# The lines with which a failed start or a death begins, as vLLM 0.32, CPython and C++ print them. What stands before them was
# survived.
_BEGINS = re.compile(
    r"^.*(?:EngineCore failed to start|encountered a fatal error|WorkerProc (?:hit an exception|failed)|died unexpectedly|"
    r"terminate called|Fatal Python error)",
    re.MULTILINE,
)
# An exception's line stands alone in a traceback, behind vLLM's prefix of its processes.
_CAUSES = (
    re.compile(
        r"^(?:\([^)\n]*\) )?(?:[A-Z]+ \d\d-\d\d [\d:]+ \[[^\]\n]*\] )?"
        r"(?P<cause>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit): .+)$",
        re.MULTILINE,
    ),
    re.compile(r"what\(\):\s*(?P<cause>.+)$", re.MULTILINE),
    re.compile(r"(?P<cause>Fatal Python error: .+)$", re.MULTILINE),
)
# What the other processes say about the death of the first one.
_CONSEQUENCE = re.compile(
    r"See (?:stack trace|root cause) |Worker failed with error|EngineDeadError|cancelled|^SystemExit"
)
_EXIT = re.compile(r"[Pp]roc (?P<name>[\w.-]+) died unexpectedly \(exit code: (?P<code>-?\d+)\)")
_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{8,}")


def death_cause(printed: str, ended: Mapping[str, int]) -> str:
    """The first error that a process printed when the death began; else how the first process ended.

    `ended`: exit codes of processes that have ended, by name; -N is signal N. Control characters and access tokens are
    replaced.
    """
    dying = dying_words(printed)
    found = sorted(
        ((match.start("cause"), match["cause"]) for pattern in _CAUSES for match in pattern.finditer(dying)),
        key=lambda place_and_cause: place_and_cause[0],
    )
    causes = [cause for _, cause in found if not _CONSEQUENCE.search(cause)]
    if causes:
        return _bounded(causes[0])
    codes = {match["name"]: int(match["code"]) for match in _EXIT.finditer(printed)} or dict(ended)
    for name, code in codes.items():
        if code:
            return _bounded(f"its process {name} {_end(code)}, and printed no error")
    return "its processes printed no error"


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
