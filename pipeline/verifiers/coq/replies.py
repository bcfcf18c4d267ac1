"""What Coq's toplevel says of a sentence, read from its prompts. Pure.

With `-emacs` it writes `<prompt>NAME < STATE |PROOFS| DEPTH < </prompt>`, and a new number of the state only if it has accepted
something. Messages may hold anything a script makes up, prompts too. So after each sentence it is asked for a name that nobody
can know, and the prompt after its error counts.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

_PROMPT = re.compile(r"<prompt>([^\n]*?) < (\d+) \|([^\n|]*(?:\|[^\n|]*)*?)\| \d+ < </prompt>\s*$")
_ANY_PROMPT = re.compile(r"<prompt>[^\n]*?</prompt>")
_ERROR = re.compile(r"^Error:\s*", re.MULTILINE)
_ECHO = re.compile(r"^(?:Toplevel input, characters.*|> .*)$", re.MULTILINE)
_NO_VERDICT = re.compile(
    r"Anomaly|Out of memory|Stack overflow|Timeout|interrupt|System error|Sys_error|Dynlink|physical path|locate library|"
    r"Cannot load|No space left|not supported|compiled|Cannot allocate|Universe instance|Unbound plugin",
    re.IGNORECASE,
)
_SYNTAX = re.compile(r"^Syntax error|^Lexer|^Syntax Error")
_ELSEWHERE = re.compile(r"No object of basename|.*\(shorter name to refer|\s*$")
_AXIOM = re.compile(r"(\S+) :\s")
_NUMBERED = re.compile(r"\b((?:[A-Za-z_]\w*\.)+)\d+\b")


class Said(StrEnum):
    """What Coq says of a sentence. `failed`: it did not come to a verdict."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`state`: the number of the state after the sentence. `proof`: the name of the proof that is open, empty if none is.
    `error`: what Coq says against it. `text`: what Coq says of a question."""

    said: Said
    state: int
    proof: str = ""
    error: str = ""
    text: str = ""

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
    state = int(prompt[2])
    proof = prompt[1] if prompt[3] else ""
    text, prompts = _ANY_PROMPT.subn("\n", output[: max(output.rfind("Toplevel input", 0, at), 0)])
    if state > before:
        # A line that Coq takes for several sentences was not looked into.
        said, error = (Said.FAILED, "several sentences") if prompts > 1 else (Said.ACCEPTED, "")
        return Reply(said=said, state=state, proof=proof, error=error, text=text)
    error = _error(text)
    said = Said.FAILED if state < before or not error or _NO_VERDICT.search(error) else Said.REJECTED
    return Reply(said=said, state=state, proof=proof, error=error or "no reason")


def has_located(text: str, beside: str = "Locate") -> bool:
    """Whether an answer to `Locate` has something that the name alone means, but for what a pattern of lines has, `beside`."""
    return not all(_ELSEWHERE.match(line) or re.match(beside, line) for line in text.splitlines())


def axioms(text: str) -> dict[str, str] | None:
    """What a proof rests on by an answer to `Print Assumptions`: each name with its line. What an open section of the problem
    has does not count. None if it is not read."""
    found: dict[str, str] = {}
    is_section = False
    for line in text.splitlines():
        if line in ("Axioms:", "Section Variables:"):
            is_section = line != "Axioms:"
        elif (
            line.startswith(("Closed under the global context", "Fetching opaque proofs"))
            or is_section
            or not line.strip()
        ):
            continue
        elif name := _AXIOM.match(line):
            found[name[1]] = line
        else:
            return None
    return found


def _error(said: str) -> str:
    """The text of an error, without the echo of the sentence, and without numbers that depend on what was asked before."""
    if not (begin := _ERROR.search(said)):
        return ""
    return " ".join(_NUMBERED.sub(r"\g<1>_", _ECHO.sub("", said[begin.end() :])).split())
