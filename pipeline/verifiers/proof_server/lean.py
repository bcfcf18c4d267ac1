"""A chain as a file of Lean 4: which texts are checked together to judge a step. Pure.

A step is either commands (`theorem ... := by ...`), or tactics that go on with a proof that is open. Whether the proof ends
with them is not known, so they are checked with something after them that closes any goal, too: an axiom whose name no step can
know. A step may only prove: what else it may say in Lean is not sent. Lean's lexer is not known here, so what two lexers may
cut into other words is not sent either, and each text ends by asking Lean for the axioms of what the step proves.
"""

import hashlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import count

from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.reading import NotRead, formal_part, has_words

INDENT = "  "
"""Of tactics whose own is lost, because steps are trimmed."""
STANDARD = frozenset({"propext", "Classical.choice", "Quot.sound"})
"""The axioms of Lean itself."""
_LANGUAGES = frozenset({"lean", "lean4", "lean 4"})
_WORDS = tomllib.loads(files(__package__).joinpath("words.toml").read_text("utf-8"))
_ANY_TACTIC, _ANYWHERE, _REFUSED = ("|".join(_WORDS[name].split()) for name in ("tactics", "anywhere", "words"))
_BEFORE_WORD = r"(?<![A-Za-z0-9_])(?<![\w'!?)\]⟩]\.)"
"""Where a word of Lean may begin: not within a name of plain letters, nor at a later part of a dotted one."""
_NAME = r"[^\W\d][\w'!?]*(?:\.[^\W\d][\w'!?]*)*(?=[\s:({\[⦃]|\.\{)"
_FILE = re.compile(r"\s*(?:import|open|theorem|lemma|example|variable|namespace|section|def|noncomputable|universe)\s")
_TACTIC = re.compile(rf"\s*(?:[·|]|\.\s|(?:{_ANY_TACTIC})(?![\w']))")
_NOT_SENT = re.compile(
    rf"{_ANYWHERE}|{_BEFORE_WORD}(?:{_REFUSED})(?![A-Za-z0-9_])|[#`\"«»]|@\s*\[|/-|-/|(?<![A-Za-z0-9_])[0-9]+[A-Za-z_]"
)
"""What a step may not say. Numbers with letters after them, which may be two words, names in « », and texts are among it."""
_COMMENT = re.compile(r"--[^\n]*|/-(?:[^/-]|-(?!/)|/(?!-))*-/")
_COMMAND_WORD = re.compile(rf"{_BEFORE_WORD}(?:theorem|lemma|example)(?![A-Za-z0-9_])")
_COMMAND = re.compile(rf"^(?:(?:theorem|lemma)\s+{_NAME}|example(?=[\s:({{\[⦃]))", re.MULTILINE)
_MODIFIERS = r"^[ \t]*(?:@\[[^\]\n]*\][ \t]*|(?:private|protected|noncomputable|nonrec|public)[ \t]+)*"
_DECLARATION = re.compile(rf"{_MODIFIERS}(?:theorem|lemma|def|abbrev|instance)\s+({_NAME})?", re.MULTILINE)
_EXAMPLE = re.compile(rf"({_MODIFIERS})example(?=[\s:({{\[⦃])", re.MULTILINE)
_AXIOM = re.compile(rf"\baxiom\s+({_NAME})")
_IMPORT = re.compile(r"^[ \t]*(?:public[ \t]+)?(?:meta[ \t]+)?import\s.*\n?", re.MULTILINE)
_LOCAL = re.compile(r"\b(?:let|letI|haveI|set|generalize)\b|inferInstance")
"""What may give a sign or a name another meaning in the rest of a proof."""
_INSTANCE = re.compile(
    r":\s*(?:H?(?:Add|Sub|Mul|Div|Mod|Pow|SMul)|Neg|Inv|Zero|One|OfNat|LE|LT|Dvd|BEq|Membership|Coe\w*|\w*Cast)(?![\w'.])"
)
"""Signs may mean what such a variable has for them."""
_LAST_SORRY = re.compile(r"\b(?:by\s+)?sorry\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Texts that are checked to judge a step. `before`: what stands before it, closed by `closing` if a proof is open.
    `whole`: with the step. `open`: with the step and `closing` after it, None if the step is commands.

    `closing`: the axiom that closes any goal. `names`: what the step proves. The texts end by asking for the axioms of these
    and of `closing`. `given`: the other axioms of the text before the step. `has_words`: the step has words besides. `is_part`:
    it has comments, or local definitions may change what it says. `words_before`: a text before it has words. `is_fenced`:
    blocks say that it is Lean."""

    before: str
    whole: str
    open: str | None
    closing: str
    names: tuple[str, ...]
    given: frozenset[str]
    has_words: bool
    is_part: bool
    words_before: bool
    is_fenced: bool

    def gap(self, axioms: Sequence[tuple[str, frozenset[str]]], *, is_open: bool) -> str:
        """Why the axioms that Lean lists for each name do not show that the step proves what it says. Empty if they do."""
        *said, _ = axioms or [("", frozenset())]
        asked = zip(said, self.names, strict=False)
        all_named = len(said) == len(self.names) and all(_is_called(name, wanted) for (name, _), wanted in asked)
        if not all_named or not self.is_read(axioms):
            return "Lean does not list the axioms of what the step proves"
        known = STANDARD | ({self.closing} if is_open else set())
        used = {axiom for _, each in said for axiom in each if axiom not in known}
        more = sorted(axiom for axiom in used if not any(_is_called(axiom, each) for each in self.given))
        return f"it rests on {', '.join(more)}" if more else ""

    def is_read(self, axioms: Sequence[tuple[str, frozenset[str]]]) -> bool:
        """Whether Lean has read a text to its end: it answers the last question."""
        return axioms[-1:] == [(self.closing, frozenset({self.closing}))]

    def is_of_asking(self, error: str) -> bool:
        """Whether an error may be about the questions after the step, and not about the step."""
        return any(re.search(rf"nknown \w+ [`']{re.escape(name)}[`']", error) for name in self.names)


def question_of(step: StepInContext, header: str) -> Question | None:
    """What to ask about a step, None if it is not in Lean. `header`: goes before a problem without imports. Raises NotRead."""
    own = formal_part(step.step, _LANGUAGES, _is_step, "the step: ")
    if own is None:
        return None
    ours = _proving(own.commands, "the step")
    problem = formal_part(step.problem, _LANGUAGES, _is_file, "the problem: ")
    if problem is None and not own.is_fenced:
        return None
    words_before = has_words(problem, step.problem)
    steps: list[str] = []
    for number, text in enumerate(step.earlier, start=1):
        part = formal_part(text, _LANGUAGES, _is_step, f"step {number}: ")
        words_before |= has_words(part, text)
        if part is None:
            if text.strip() and not own.is_fenced:
                raise NotRead(f"step {number} is not read as Lean")
            continue
        steps.append(_proving(part.commands, f"step {number}"))
    closing = f"stepvalue_{hashlib.sha256(repr(step).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    given = "" if problem is None else _given(problem.commands)
    if not _IMPORT.search(given):
        given = f"{header}\n{given}"
    numbers = count(1)
    *texts, ours = (
        _EXAMPLE.sub(lambda found: f"{found[1]}def {closing}_{next(numbers)}", text) for text in (given, *steps, ours)
    )
    stated = "\n".join(text for text in texts if text.strip()).strip("\n")
    names = _DECLARATION.findall(ours)
    is_command = bool(names)
    if not _DECLARATION.match(ours):
        names[:0] = _DECLARATION.findall(stated)[-1:]
    if not names or "" in names:
        raise NotRead("what the step proves has no name that is read")
    imports = max((found.end() for found in _IMPORT.finditer(stated)), default=0)
    before = f"{stated[:imports].rstrip()}\naxiom {closing}.{{u}} (α : Sort u) : α\n{stated[imports:]}".strip("\n")
    asking = "\n".join(f"#print axioms {name}" for name in names)
    last = f"#print axioms {closing}"
    indent = re.match(r"[ \t]*", ours)
    close = f"{indent[0] if indent else ''}exact {closing} _"
    return Question(
        before=f"{before}\n{last}" if is_command else f"{before}\n{close}\n{asking}\n{last}",
        whole=f"{before}\n{ours}\n{asking}\n{last}",
        open=None if is_command else f"{before}\n{ours}\n{close}\n{asking}\n{last}",
        closing=closing,
        names=tuple(names),
        given=frozenset(_AXIOM.findall(stated)),
        has_words=own.has_words,
        is_part=any(map(_INSTANCE.search, (*steps, ours)))
        or any((_COMMENT.search(own.commands), *(() if is_command else map(_LOCAL.search, (*steps, ours))))),
        words_before=words_before,
        is_fenced=own.is_fenced,
    )


def _is_called(full_name: str, name: str) -> bool:
    """Whether a name as the kernel has it may be the one that a text has, which stands in a namespace."""
    return f".{full_name}".endswith(f".{name}")


def _is_file(text: str) -> bool:
    return _FILE.match(text) is not None


def _is_step(text: str) -> bool:
    return _COMMAND.match(text) is not None or _TACTIC.match(text) is not None


def _proving(text: str, whose: str) -> str:
    """The text of a step without its comments. A first line of tactics without any indent gets one, because steps are trimmed.
    Raises NotRead if it says anything that may not prove."""
    text = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    if found := _NOT_SENT.search(text):
        raise NotRead(f"{whose} says `{found[0].strip()}`, which is not sent")
    if len(_COMMAND_WORD.findall(text)) != len(_COMMAND.findall(text)):
        raise NotRead(f"{whose} has a theorem that does not begin a line, or whose name is not read")
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    if not lines:
        raise NotRead(f"{whose} says nothing")
    text = "\n".join(lines)
    return text if text[0] in " \t" or _COMMAND.match(text) else f"{INDENT}{text}"


def _given(text: str) -> str:
    """What a problem gives. A `sorry` at its end stands for the proof that the steps make. Raises NotRead for another one."""
    given = _LAST_SORRY.sub("by", text)
    if re.search(r"\bsorry\b", given):
        raise NotRead("the problem has a `sorry` before its end")
    return given.strip("\n")
