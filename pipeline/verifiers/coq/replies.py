"""What Coq's toplevel says of a sentence, read from its prompts. Pure.

With `-emacs` it writes `<prompt>NAME < STATE |PROOFS| DEPTH < </prompt>`, and a new number of the state only if it has accepted
something. Messages may hold anything a script makes up, prompts too. So after each sentence it is asked for a name that nobody
can know, and the prompt after its error counts.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

_PROMPT = re.compile(r"<prompt>[^\n]*? < (\d+) \|([^\n|]*(?:\|[^\n|]*)*?)\| \d+ < </prompt>\s*$")
_ANY_PROMPT = re.compile(r"<prompt>[^\n]*?</prompt>")
_ERROR = re.compile(r"^Error:\s*", re.MULTILINE)
_ECHO = re.compile(r"^(?:Toplevel input, characters.*|> .*)$", re.MULTILINE)
_NO_VERDICT = re.compile(
    r"Anomaly|Out of memory|Stack overflow|Timeout|interrupt|System error|Sys_error|Dynlink|physical path|locate library|"
    r"Cannot load|No space left|not supported|compiled|Cannot allocate|Universe instance|Unbound plugin",
    re.IGNORECASE,
)
_SYNTAX = re.compile(r"^Syntax error|^Lexer|^Syntax Error")
_NUMBERED = re.compile(r"\b((?:[A-Za-z_]\w*\.)+)\d+\b")


class Said(StrEnum):
    """What Coq says of a sentence. `failed`: it did not come to a verdict."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`state`: the number of the state after the sentence. `in_proof`: whether a proof is open. `error`: what Coq says
    against it."""

    said: Said
    state: int
    in_proof: bool = False
    error: str = ""

    @property
    def is_syntax(self) -> bool:
        """Whether the sentence could not even be parsed."""
        return _SYNTAX.match(self.error) is not None


def end_of(nonce: str) -> re.Pattern[bytes]:
    """A pattern for the end of what Coq says after it was asked for the name `nonce`."""
    return re.compile(rb"The reference " + nonce.encode() + rb"\s+was\s+not\s+found[^<]*(<prompt>[^\n]*</prompt>)\s*\Z")


def reply(output: str, nonce: str, before: int) -> Reply | None:
    """The reply in an output up to the prompt after the error about `nonce`. None if it is none. `before`: the state before."""
    prompt = _PROMPT.search(output)
    at = output.rfind(f"The reference {nonce}")
    if prompt is None or at < 0:
        return None
    state = int(prompt[1])
    in_proof = bool(prompt[2])
    if state > before:
        return Reply(said=Said.ACCEPTED, state=state, in_proof=in_proof)
    error = _error(output[: max(output.rfind("Toplevel input", 0, at), 0)])
    said = Said.FAILED if state < before or not error or _NO_VERDICT.search(error) else Said.REJECTED
    return Reply(said=said, state=state, in_proof=in_proof, error=error or "no reason")


def _error(said: str) -> str:
    """The text of an error, without the echo of the sentence, and without numbers that depend on what was asked before."""
    said = _ANY_PROMPT.sub("", said)
    if not (begin := _ERROR.search(said)):
        return ""
    return " ".join(_NUMBERED.sub(r"\g<1>_", _ECHO.sub("", said[begin.end() :])).split())
