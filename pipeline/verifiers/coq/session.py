"""Runs scripts in a toplevel that is kept, so that scripts with the same beginning do not run it again.

What a script gives does not depend on the scripts before it: the toplevel goes back to the state after their common beginning,
and a script that a used toplevel fails on is run again in a new one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pipeline.verifiers.coq.commands import Command
from pipeline.verifiers.coq.replies import Reply, Said

GOALS = 'all: let goals := numgoals in fail 0 "goals" goals.'
"""A sentence that fails with the number of goals in focus, or is accepted if there are none."""
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
    """What came of a sentence. `shadows`: it was not run, for it would give a name another meaning. `failed`: Coq gave no
    verdict."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SHADOWS = "shadows"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A sentence that was run. `state`: the toplevel's after it. `why`: what Coq says against it. `is_late`: it took too
    long."""

    command: Command
    outcome: Outcome
    state: int
    in_proof: bool = False
    why: str = ""
    is_syntax: bool = False
    is_late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The numbers of goals in focus, and of those that were put off."""

    focused: int
    shelved: int


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

    def goals(self) -> Goals | None:
        """As `Session.goals`, of the last script."""
        return self._sessions[0].goals() if self._sessions else None

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
        return sum(ran.command.sentence.tokens[:1] in (("Require",), ("From",)) for ran in self._ran)

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

    def goals(self) -> Goals | None:
        """The goals after the last script; None if no proof is open, or Coq does not say."""
        if self._toplevel is None:
            return None
        try:
            focused = self._count(self._toplevel)
            is_there = self._toplevel.ask(UNSHELVE, self._seconds).said is Said.ACCEPTED
            every = self._count(self._toplevel)
        except Ended:
            self.close()
            return None
        if focused is None or every is None or not is_there:
            return None
        return Goals(focused=focused, shelved=every - focused)

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
                ran = self._one(toplevel, each)
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

    def _one(self, toplevel: Asked, command: Command) -> Ran:
        self._sentences += 1
        if command.name:
            named = toplevel.ask(f"Check {command.name}.", self._seconds)
            if "was not found in the current environment" not in named.error:
                why = f"`{command.name}` is a name already"
                return Ran(command=command, outcome=Outcome.SHADOWS, state=toplevel.state, why=why)
        reply = toplevel.ask(command.sentence.text, self._seconds)
        return Ran(
            command=command,
            outcome=_OUTCOMES[reply.said],
            state=reply.state,
            in_proof=reply.in_proof,
            why=reply.error,
            is_syntax=reply.is_syntax,
        )


_OUTCOMES = {Said.ACCEPTED: Outcome.ACCEPTED, Said.REJECTED: Outcome.REJECTED, Said.FAILED: Outcome.FAILED}
