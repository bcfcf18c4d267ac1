"""The verifier `coq`: a step holds if Coq accepts its sentences after those before it, and is refuted if it rejects one.

That Coq accepts a tactic says that the step is a valid one, and not that the proof can be completed after it.
"""

import math
from collections.abc import Mapping, Sequence

from pipeline.core.errors import UsageError
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.coq import toplevel
from pipeline.verifiers.coq.commands import BESIDE, BY_TERM, HOLED, MADE_UP, PROVED_FIRST, STATING, Command, Effect
from pipeline.verifiers.coq.script import Script, script_of
from pipeline.verifiers.coq.session import Ended, Outcome, Ran, Sessions
from pipeline.verifiers.reading import NotRead
from pipeline.verifiers.sentences import finding, in_a_line, unknown
from pipeline.verifiers.settings import CoqConfig

MOST_CONTEXT = 200_000
"""Characters of a problem with its steps. With more a step is unknown."""
_CLAIMS = frozenset({Effect.TACTIC, Effect.END})
_UNFOUND = "was not found in the current environment"
_HOLES, _FUNCTIONS = frozenset({"_", "?", "with"}), frozenset({"fun", "λ", "match"})
_LONG_WORD = 3
"""Letters. Variables have fewer, as a rule."""
_VERBS = {Outcome.REJECTED: "rejects", Outcome.SHADOWS: "cannot vouch for", Outcome.FAILED: "does not decide"}


class Coq(Verifier):
    """Steps in Coq: whether it accepts them."""

    Config = CoqConfig
    settings: CoqConfig

    def __init__(self, settings: CoqConfig) -> None:
        """Raises UsageError without Coq."""
        super().__init__(settings)
        path = toplevel.program()
        if path is None:
            raise UsageError(f"verifier coq {self.missing(settings)}")
        self._sessions = Sessions(lambda: toplevel.Toplevel(path, settings.memory_mib), settings.sentence_seconds)

    @classmethod
    def missing(cls, settings: CoqConfig) -> str:
        return "" if toplevel.program() else f"needs {toplevel.PROGRAM}: {toplevel.REMEDY}"

    @classmethod
    def inputs(cls, settings: CoqConfig) -> Mapping[str, str]:
        """The version of Coq, which findings depend on."""
        path = toplevel.program()
        return {"coq_version": toplevel.version(path) if path else ""}

    def verify(self, step: StepInContext) -> Finding:
        if len(step.step) > self.settings.most_characters or not step.step.strip():
            return UNKNOWN
        if len(step.problem) + sum(map(len, step.earlier)) > MOST_CONTEXT:
            return UNKNOWN
        try:
            script = script_of(step)
            return UNKNOWN if script is None else self._finding(script)
        except NotRead as reason:
            return unknown(f"not read: {reason}")
        except Ended as reason:
            return unknown(f"Coq does not start: {reason}")

    def close(self) -> None:
        """End the process of Coq. The next step starts another one."""
        self._sessions.close()

    def _finding(self, script: Script) -> Finding:
        if not any(each.effect in _CLAIMS for each in script.own):
            return self._introduction(script)
        ran = self._sessions.run((*script.before, *script.own))
        if (found := self._stopped(script, ran)) is not None:
            return found
        if ran[-1].proof and (doubt := self._open(script)):
            return unknown(doubt)
        shown = in_a_line(" ".join(each.sentence.text for each in script.own), 160)
        return finding(
            StepVerdict.HOLDS,
            f"Coq accepts: {shown}",
            Covers.PART if script.has_words or script.has_remarks else Covers.WHOLE,
        )

    def _introduction(self, script: Script) -> Finding:
        """Of a step that claims nothing: Coq may reject it, but its acceptance proves nothing."""
        if not any(each.effect in (Effect.DEFINITION, Effect.STATEMENT) for each in script.own):
            return unknown("the step proves nothing") if script.own else UNKNOWN
        ran = self._sessions.run((*script.before, *script.own))
        found = self._stopped(script, ran)
        return found or unknown("the step introduces something, and proves nothing")

    def _stopped(self, script: Script, ran: Sequence[Ran]) -> Finding | None:
        """The finding where a sentence is not accepted."""
        last = ran[-1]
        if last.outcome is Outcome.ACCEPTED:
            return None
        quoted = in_a_line(last.command.sentence.text, 160)
        said = f"`{quoted}`: {in_a_line(last.why, 300)}"
        if len(ran) <= len(script.before):
            verb = _VERBS[last.outcome]
            return unknown(f"Coq {verb} a sentence of {script.whose[len(ran) - 1]}, {said}")
        if last.outcome is not Outcome.REJECTED:
            return unknown(f"Coq {_VERBS[last.outcome]} {said}")
        if doubt := self._doubt(script, last):
            return unknown(f"Coq rejects {said}; but {doubt}")
        covers = Covers.PART if script.has_words else Covers.WHOLE
        return finding(StepVerdict.REFUTED, f"Coq rejects {said}", covers)

    def _doubt(self, script: Script, rejected: Ran) -> str:
        """Why a sentence that Coq rejects does not refute its step."""
        if not script.is_fenced and (rejected.is_syntax or may_be_words(rejected)):
            return "the step may be words"
        if self.settings.ignore_words:
            return ""
        if script.has_words:
            return "the step has words around its sentences"
        return "words before the step may state what it needs" if script.words_before else ""

    def _open(self, script: Script) -> str:
        """What a step states that is not proved after it, where a proof is open. Empty if there is nothing."""
        if any(each.effect is Effect.STATEMENT for each in script.own):
            return "the step states something, and does not prove it"
        words = frozenset().union(*(each.sentence.words for each in script.own))
        tokens = frozenset().union(*(each.sentence.tokens for each in script.own))
        beside = 1 if len(script.own) > 1 or ";" in tokens else 2
        is_made = words & (HOLED | BY_TERM) or "%" in tokens
        goals = self._sessions.goals(1 if is_made else beside if words & BESIDE else math.inf)
        if goals is None:
            return "Coq does not say what is left to prove"
        if goals.shelved:
            return "existential variables are open after the step"
        if not goals.can_end:
            return "the kernel takes no proof that goes on from the step"
        if goals.is_false and not self._was_false(script):
            return "a goal is left that is false at first sight"
        if goals.focused and not (_closes_own_goals(script.own) and not any(map(_makes_up, script.own))):
            return "the step states a goal, and may not prove it"
        return "" if _keeps_focus(script.own) else "the step states a goal, and may not prove it"

    def _was_false(self, script: Script) -> bool:
        """Whether a goal before the step was false already, as in a proof by contradiction."""
        self._sessions.run(script.before)
        goals = self._sessions.goals(1, introduced=True)
        return goals is not None and goals.is_false


def may_be_words(rejected: Ran) -> bool:
    """Whether a sentence without any sign of Coq may be meant in English: "exists the one.", "apply induction."."""
    tokens = rejected.command.sentence.tokens
    if not all(each.isalpha() and each.isascii() for each in tokens):
        return False
    return _UNFOUND in rejected.why or sum(len(each) >= _LONG_WORD for each in tokens[1:]) > 1


def _states(command: Command) -> bool:
    return command.effect is Effect.TACTIC and not STATING.isdisjoint(command.sentence.words)


def _makes_up(command: Command) -> bool:
    """Whether a term of a tactic may make up the goals that are left: by a hole, a function, a value, or what follows from
    False."""
    if command.effect is not Effect.TACTIC:
        return False
    words, tokens = command.sentence.words, frozenset(command.sentence.tokens)
    is_made = (words & HOLED and tokens & _HOLES) or (words & (HOLED | BY_TERM) and tokens & _FUNCTIONS)
    return bool(is_made) or any(map(MADE_UP.fullmatch, words))


def _closes_own_goals(commands: Sequence[Command]) -> bool:
    """Whether each goal that the tactics state is proved at once: by `by`, or between braces."""
    for at, each in enumerate(commands):
        if not _states(each):
            continue
        tokens = each.sentence.tokens
        is_plain = tokens[0] in PROVED_FIRST and ";" not in tokens
        after = commands[at + 1].sentence.text if at + 1 < len(commands) else ""
        is_proved = "by" in tokens if tokens[0] == "replace" else "by" in tokens or after == "{"
        if not (is_plain and is_proved):
            return False
    return True


def _keeps_focus(commands: Sequence[Command]) -> bool:
    """Whether the focus at the end is that of the first tactic that states a goal: no brace is open, and there is no bullet."""
    first = next((at for at, each in enumerate(commands) if _states(each)), len(commands))
    depth = 0
    for each in commands[first:]:
        if each.effect is Effect.FOCUS:
            sign = each.sentence.text[-1]
            depth += {"{": 1, "}": -1}.get(sign, -len(commands))
            if depth < 0:
                return False
    return depth == 0
