"""A chain as a proof script of Coq: what comes before a step, its own sentences, and what makes a verdict doubtful. Pure."""

from dataclasses import dataclass, field

from pipeline.verifiers import reading
from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.coq.commands import DEFINITIONS, GIVEN, STATEMENTS, Command, Effect, command, is_tactic
from pipeline.verifiers.coq.lexer import sentences
from pipeline.verifiers.reading import FormalPart, NotRead
from pipeline.verifiers.sentences import in_a_line

_LANGUAGES = frozenset({"coq", "rocq", "gallina"})
_FIRST_WORDS = STATEMENTS | DEFINITIONS | GIVEN | {"Require", "From", "Proof", "Qed", "Defined"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """`before`: what stands before the step; `whose`: the text that each of these sentences is from. `own`: the step's.

    `has_words`: the step has words besides, or questions, which do not get to Coq. `has_remarks`: it has comments or strings,
    or a step names a class of the problem, so that signs may mean an instance of its own.
    `words_before`: a text before it has. `is_fenced`: the step says that it is Coq."""

    before: tuple[Command, ...]
    whose: tuple[str, ...]
    own: tuple[Command, ...]
    has_words: bool
    has_remarks: bool
    words_before: bool
    is_fenced: bool


@dataclass(slots=True)
class _Before:
    commands: list[Command] = field(default_factory=list)
    whose: list[str] = field(default_factory=list)
    has_words: bool = False
    is_formal: bool = False

    def add(self, part: FormalPart | None, text: str, name: str, *, given: bool) -> None:
        self.has_words |= reading.has_words(part, text)
        if part is None:
            return
        self.is_formal = True
        try:
            commands, _ = _commands(part, given=given)
        except NotRead as reason:
            raise NotRead(f"{name}: {reason}") from None
        for each in commands:
            if each.refusal:
                raise NotRead(f"{name}: {each.refusal}: {in_a_line(each.sentence.text, 80)}")
            self.commands.append(each)
            self.whose.append(name)


def script_of(step: StepInContext) -> Script | None:
    """The script that ends with a step, None if the step is not in Coq. Raises NotRead where a sentence is not read."""
    own = coq_part(step.step)
    if own is None:
        return None
    before = _Before()
    before.add(coq_part(step.problem, "the problem: "), step.problem, "the problem", given=True)
    for number, text in enumerate(step.earlier, start=1):
        name = f"step {number}"
        part = coq_part(text, f"{name}: ")
        if part is None and text.strip() and not own.is_fenced:
            # It may be a part of the script all the same.
            raise NotRead(f"{name} is not in Coq, or has a sentence that is not read")
        before.add(part, text, name, given=False)
    if not own.is_fenced and not before.is_formal and not own.commands.lstrip()[:1].isupper():
        # Words such as "exists." may look like a tactic; without any script before them they are words.
        return None
    commands, questions = _commands(own, given=False)
    for each in commands:
        if each.refusal:
            raise NotRead(f"{each.refusal}: {in_a_line(each.sentence.text, 80)}")
    classes = {
        each.sentence.tokens[each.sentence.tokens.index("Class") + 1]
        for each in before.commands
        if each.given and "Class" in each.sentence.tokens[:-1]
    }
    named = any(classes & each.sentence.words for each in (*before.commands, *commands) if not each.given)
    return Script(
        before=tuple(before.commands),
        whose=tuple(before.whose),
        own=commands,
        has_words=own.has_words or questions,
        has_remarks=named or "(*" in own.commands or '"' in own.commands,
        words_before=before.has_words,
        is_fenced=own.is_fenced,
    )


def coq_part(text: str, whose: str = "") -> FormalPart | None:
    """What is Coq in a text, None if nothing is. Raises NotRead if a block does not end."""
    return reading.formal_part(text, _LANGUAGES, _is_script, whose)


def _is_script(text: str) -> bool:
    """Whether each sentence of a text begins as one of Coq does."""
    if not text.strip():
        return False
    try:
        found = sentences(text)
    except NotRead:
        return False
    return bool(found) and all(_begins(each.tokens) for each in found)


def _begins(tokens: tuple[str, ...]) -> bool:
    return bool(tokens) and (tokens[0] in _FIRST_WORDS or not tokens[0][0].isalpha() or is_tactic(tokens))


def _commands(part: FormalPart, *, given: bool) -> tuple[tuple[Command, ...], bool]:
    """The commands of a part, and whether there are questions besides, which are left out."""
    found = [command(sentence, given=given) for sentence in sentences(part.commands)]
    kept = tuple(each for each in found if each.effect is not Effect.QUESTION or each.refusal)
    return kept, len(kept) < len(found)
