"""Runs scripts in a toplevel that is kept, so that scripts with the same beginning do not run it again.

What a script gives does not depend on the scripts before it: the toplevel goes back to the state after their common beginning,
and a script that a used toplevel fails on is run again in a new one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pipeline.verifiers.coq.commands import Command, Effect
from pipeline.verifiers.coq.replies import Reply, Said, axioms, has_located

GOALS = 'all: let goals := numgoals in fail 0 "goals" goals.'
"""A sentence that fails with the number of goals in focus, or is accepted if there are none."""
_GIVEN_AWAY = "stepvalue_gives_all"
AXIOM = f"Axiom {_GIVEN_AWAY} : forall A : Type, A."
"""Declared after a step, and taken back with the state, so that nothing in a chain can use it."""
GIVE = f"all: exact (@{_GIVEN_AWAY} _)."
MOST_FOCUSES = 500
"""Bullets and braces that are closed to see whether a proof can end."""
_QUICK = "solve [ easy | congruence | tauto ]"
FALSE_GOAL = (
    f"all: first [ assert_succeeds {_QUICK} | assert_fails (idtac; lazymatch goal with |- ?G => assert (G -> False) by "
    f"(clear; solve [ {_QUICK} | now (intro H; inversion H) ]) end) ]."
)
"""A sentence that fails if a goal is false at first sight, and what is known does not contradict itself at first sight."""
UNSHELVE = "Unshelve."
"""Brings the goals into focus that were put off, as those of existential variables are."""
KEPT = 4
"""Toplevels that are kept for scripts with other beginnings, with 150 MiB each, and as much again where libraries are large."""
SENTENCES_PER_PROCESS = 5_000
"""A new process now and then keeps what Coq does not free within bounds."""


class Ended(Exception):
    """A toplevel has ended at a sentence. Its text says why. `is_late`: it was ended because it took too long."""

    def __init__(self, why: str, *, is_late: bool = False) -> None:
        super().__init__(why)
        self.is_late = is_late


class Asked(Protocol):
    """A toplevel in a state. Its methods raise Ended, and it is of no use then."""

    @property
    def state(self) -> int: ...
    def ask(self, sentence: str, seconds: float) -> Reply: ...
    def back_to(self, state: int, seconds: float) -> bool: ...
    def close(self) -> None: ...


class Outcome(StrEnum):
    """What came of a sentence. `shadows`: it gives a name another meaning, or rests on more than the problem has. `failed`: Coq
    gave no verdict."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SHADOWS = "shadows"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A sentence that was run. `state`: the toplevel's after it. `proof`: the name of the one that is open. `view`: what a next
    sentence of a step is to find. `why`: what Coq says against it. `is_late`: it took too long."""

    command: Command
    outcome: Outcome
    state: int
    proof: str = ""
    view: "View | None" = None
    why: str = ""
    is_syntax: bool = False
    is_late: bool = False

    @property
    def loads(self) -> bool:
        """Whether the sentence loads libraries."""
        return self.command.sentence.tokens[:1] in (("Require",), ("From",))


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is declared in a state, as Coq prints it, without white space, and the libraries of the problem."""

    declared: str
    libraries: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The numbers of goals in focus, and of those that were put off. `is_false`: one is false at first sight. `can_end`: the
    kernel takes the proof when all goals are given away."""

    focused: int
    shelved: int
    is_false: bool
    can_end: bool


class Sessions:
    """Up to `KEPT` sessions. A script goes to the one that has run most of its beginning: libraries take long to load."""

    def __init__(self, start: Callable[[], Asked], seconds: float) -> None:
        self._start = start
        self._seconds = seconds
        self._sessions: list[Session] = []

    def run(self, commands: Sequence[Command]) -> list[Ran]:
        """As `Session.run`."""
        best = max(self._sessions, key=lambda each: each.common(commands), default=None)
        if best is None or (not best.common(commands) and len(self._sessions) < KEPT):
            best = Session(self._start, self._seconds)
        elif not best.common(commands):
            best = min(reversed(self._sessions), key=lambda each: each.libraries)
        # The last one used comes first.
        self._sessions = [best, *(each for each in self._sessions if each is not best)]
        return best.run(commands)

    def goals(self, checked_from: float, *, introduced: bool = False) -> Goals | None:
        """As `Session.goals`, of the last script."""
        return self._sessions[0].goals(checked_from, introduced=introduced) if self._sessions else None

    def close(self) -> None:
        """End all toplevels."""
        for each in self._sessions:
            each.close()


class Session:
    """A toplevel that is started when first needed. `seconds`: for each sentence."""

    def __init__(self, start: Callable[[], Asked], seconds: float) -> None:
        self._start = start
        self._seconds = seconds
        self._toplevel: Asked | None = None
        self._sentences = self._first = 0
        self._ran: list[Ran] = []

    @property
    def libraries(self) -> int:
        """How many sentences of the last script have loaded some."""
        return sum(ran.loads for ran in self._ran)

    def run(self, commands: Sequence[Command]) -> list[Ran]:
        """What comes of sentences in this order, up to the first that is not accepted. Raises Ended where no toplevel
        starts."""
        common = self.common(commands)
        if common < min(len(commands), len(self._ran)) and self._ran[common].command == commands[common]:
            # The last script stopped at the same sentence in the same state.
            return self._ran[: common + 1]
        is_used = self._toplevel is not None
        found = self._go_on(commands, self._ran[:common])
        if is_used and found and found[-1].outcome is Outcome.FAILED and not found[-1].is_late:
            found = self._go_on(commands, [])
        self._ran = found
        return found

    def goals(self, checked_from: float, *, introduced: bool) -> Goals | None:
        """The goals after the last script; None if no proof is open, or Coq does not say. With as many as `checked_from`, one
        that is false at first sight is looked for, or that would be with its hypotheses `introduced`."""
        if self._toplevel is None:
            return None
        try:
            focused = self._count(self._toplevel)
            is_there = self._accepts(self._toplevel, UNSHELVE)
            every = self._count(self._toplevel)
            if introduced:
                self._accepts(self._toplevel, "all: repeat intro.")
            is_false = (focused or 0) >= checked_from and not self._accepts(self._toplevel, FALSE_GOAL)
            can_end = self._can_end(self._toplevel)
        except Ended:
            self.close()
            return None
        if focused is None or every is None or not is_there:
            return None
        return Goals(focused=focused, shelved=every - focused, is_false=is_false, can_end=can_end)

    def _accepts(self, toplevel: Asked, sentence: str) -> bool:
        return toplevel.ask(sentence, self._seconds).said is Said.ACCEPTED

    def _can_end(self, toplevel: Asked) -> bool:
        """Whether the kernel takes the proof as it is with all goals given away."""
        bullets = dict.fromkeys(
            ran.command.sentence.text for ran in reversed(self._ran) if ran.command.effect is Effect.FOCUS
        )
        closing = ["}", *(each for each in bullets if each[-1] not in "{}")]
        if not self._accepts(toplevel, AXIOM):
            return False
        for _ in range(MOST_FOCUSES):
            self._accepts(toplevel, GIVE)
            if self._accepts(toplevel, "Qed."):
                return not self._rests_on_more(toplevel)
            if not any(self._accepts(toplevel, each) for each in closing):
                return False
        return False

    def _rests_on_more(self, toplevel: Asked) -> bool:
        """Whether the proof that was just ended has axioms of a library that a step has loaded."""
        view = self._ran[-1].view
        if view is None or not any(not ran.command.given and ran.loads for ran in self._ran):
            return False
        return bool(_more(lambda asked: toplevel.ask(asked, self._seconds).text, self._ran[-1].proof, view))

    def _count(self, toplevel: Asked) -> int | None:
        reply = toplevel.ask(GOALS, self._seconds)
        if reply.said is Said.ACCEPTED:
            return 0
        number = reply.error.rpartition("goals ")[2].rstrip(".")
        return int(number) if number.isdecimal() else None

    def close(self) -> None:
        """End the toplevel."""
        if self._toplevel is not None:
            self._toplevel.close()
        self._toplevel = None

    def common(self, commands: Sequence[Command]) -> int:
        """The accepted sentences with which both the last script and this one begin."""
        common = 0
        for ran, each in zip(self._ran, commands, strict=False):
            if ran.outcome is not Outcome.ACCEPTED or ran.command != each:
                break
            common += 1
        return common

    def _go_on(self, commands: Sequence[Command], done: list[Ran]) -> list[Ran]:
        """Run what follows the sentences that are done. A toplevel in which a sentence fails is ended."""
        toplevel, done = self._at(done)
        found = list(done)
        for each in commands[len(found) :]:
            try:
                ran = self._one(toplevel, each, found[-1] if found else None)
            except Ended as ended:
                ran = Ran(command=each, outcome=Outcome.FAILED, state=0, why=str(ended), is_late=ended.is_late)
            found.append(ran)
            if ran.outcome is Outcome.FAILED:
                self.close()
            if ran.outcome is not Outcome.ACCEPTED:
                break
        return found

    def _at(self, done: list[Ran]) -> tuple[Asked, list[Ran]]:
        """A toplevel in the state after these sentences; without them if it cannot go back."""
        if self._sentences > SENTENCES_PER_PROCESS or (not done and self.libraries):
            # A library that has been loaded leaves something behind.
            self.close()
        if self._toplevel is not None:
            try:
                if self._toplevel.back_to(done[-1].state if done else self._first, self._seconds):
                    return self._toplevel, done
            except Ended:
                pass
            self.close()
        self._toplevel = self._start()
        self._sentences, self._first = 0, self._toplevel.state
        return self._toplevel, []

    def _one(self, toplevel: Asked, command: Command, last: Ran | None) -> Ran:
        self._sentences += 1

        def said(*questions: str) -> str:
            return toplevel.ask(" ".join(questions), self._seconds).text

        view, proof = (last.view, last.proof) if last else (None, "")
        if command.given:
            view = None
        elif view is None:
            view = View(declared=_squeezed(said("Print All.")), libraries=frozenset(said("Print Libraries.").split()))
        bound = ((command.names, "Locate"), (command.of_proof, r"\w+ Coq\."), (command.matched, "Constructor"))
        for old in (name for names, beside in bound for name in names if has_located(said(f"Locate {name}."), beside)):
            return Ran(command=command, outcome=Outcome.SHADOWS, state=toplevel.state, why=f"`{old}` is a name already")
        is_defined = view is not None and command.effect is Effect.DEFINITION
        notations = said(*_NOTATIONS) if is_defined else ""
        reply = toplevel.ask(command.sentence.text, self._seconds)
        outcome, why = _OUTCOMES[reply.said], reply.error
        if view is not None and reply.said is Said.ACCEPTED and (is_defined or command.effect is Effect.END):
            declared = _squeezed(said("Print All."))
            if is_defined and reply.proof != proof:
                why = "it opens a proof"
            elif is_defined and said(*_NOTATIONS) != notations:
                why = "it changes notations"
            else:
                why = _doubt(said, command.names[0] if is_defined else proof, view, declared)
            outcome = Outcome.SHADOWS if why else outcome
            view = View(declared=declared, libraries=view.libraries)
        return Ran(
            command=command,
            outcome=outcome,
            state=toplevel.state,
            proof=reply.proof,
            view=view,
            why=why,
            is_syntax=reply.is_syntax,
        )


_NOTATIONS = ("Print Scopes.", "Print Visibility.")


def _doubt(said: Callable[[str], str], name: str, before: View, declared: str) -> str:
    """Why what a step declares is not what it says: more than this name is new, or it rests on what neither the problem nor its
    libraries have. Empty: there is no reason."""
    typed = said(f"About {name}.").lstrip().partition("\n\n")[0]
    if declared != before.declared + _squeezed(typed):
        return f"it declares more than `{name}`"
    return _more(said, name, before)


def _more(said: Callable[[str], str], name: str, before: View) -> str:
    """What a name rests on that neither the problem nor its libraries have, in words. Empty: nothing."""
    found = axioms(said(f"Print Assumptions {name}."))
    if found is None:
        return "Coq does not say what it rests on"
    found.pop(_GIVEN_AWAY, None)
    for axiom, line in found.items():
        parts = [*said(f"Locate {axiom}.").split(), "", ""][1].split(".")
        is_given = len(parts) > 2 and f"Module{parts[1]}" in before.declared
        is_given |= f"***{_squeezed(line)}" in before.declared
        if not is_given and not any(".".join(parts[:at]) in before.libraries for at in range(1, len(parts))):
            return f"it rests on `{axiom}`, which the problem does not have"
    return ""


def _squeezed(text: str) -> str:
    """Without white space, and brackets, which say what is implicit in some answers only."""
    return "".join(text.translate(_BRACKETS).split())


_BRACKETS = str.maketrans("", "", "(){}[]")
_OUTCOMES = {Said.ACCEPTED: Outcome.ACCEPTED, Said.REJECTED: Outcome.REJECTED, Said.FAILED: Outcome.FAILED}
