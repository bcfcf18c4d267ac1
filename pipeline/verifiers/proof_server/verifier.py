"""The verifier `proof_server`: a step holds if a Lean server accepts it after what stands before it, else it is refuted.

What the server says of a step counts only if it accepts the text before the step alone. A server that cannot be asked is an
error, and never a verdict.
"""

import re
from collections.abc import Mapping, Sequence

from pipeline.core.errors import EngineDied, InputError
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.proof_server import http
from pipeline.verifiers.proof_server.answers import PATH, BadAnswer, Checked, answer, request
from pipeline.verifiers.proof_server.lean import Question, question_of
from pipeline.verifiers.reading import NotRead
from pipeline.verifiers.sentences import finding, in_a_line, unknown
from pipeline.verifiers.settings import ProofServerConfig

MOST_CONTEXT = 200_000
"""Characters of a problem with its steps. With more a step is unknown."""
_VERSION = "#eval Lean.versionString"
_WAIT_SECONDS = 60
"""For which a server may have a request wait, besides the time for each text."""
_NO_VERDICT = re.compile(
    r"unsolved goals|no goals|timeout|heartbeats|maximum recursion|out of memory|stack overflow|deadlock|interrupted|"
    r"unknown module|unknown package|object file|invalid import|internal|unreachable|PANIC|unknown namespace|"
    r"not been implemented|sorry",
    re.IGNORECASE,
)
"""Errors that do not refute: of a proof that goes on, of limits, and of a server that lacks a library."""
_MAYBE_WORDS = re.compile(r"expected|unexpected|unknown (?:identifier|constant|tactic)|unterminated", re.IGNORECASE)
_STATING = re.compile(r"\b(?:exfalso|suffices|absurd|False)\b|elim|\bby\s*\Z")
"""Tactics that have a new goal, which nothing makes true."""


class ProofServer(Verifier):
    """Steps in Lean 4, by the server of `verifier.url`."""

    Config = ProofServerConfig
    settings: ProofServerConfig

    @classmethod
    def missing(cls, settings: ProofServerConfig) -> str:
        if not settings.url:
            return "needs verifier=proof_server verifier.url=http://HOST:PORT, a Kimina Lean Server"
        try:
            cls.inputs(settings)
        except InputError as error:
            return f"needs its server: {error}"
        return ""

    @classmethod
    def inputs(cls, settings: ProofServerConfig) -> Mapping[str, str]:
        """The version of Lean on the server. Raises InputError where it does not say one."""
        try:
            (said,) = _asked(settings, [_VERSION])
        except EngineDied as error:
            raise InputError(str(error)) from error
        if not said.is_clean or len(said.infos) != 1:
            raise InputError(
                f"proof server {settings.url} says no version of Lean: {in_a_line(said.failure or '; '.join(said.errors))}"
            )
        return {"lean_version": said.infos[0].strip().strip('"')}

    def verify(self, step: StepInContext) -> Finding:
        """Raises EngineDied where the server cannot be asked."""
        if len(step.step) > self.settings.most_characters or not step.step.strip():
            return UNKNOWN
        if len(step.problem) + sum(map(len, step.earlier)) > MOST_CONTEXT:
            return UNKNOWN
        try:
            question = question_of(step, self.settings.header)
        except NotRead as reason:
            return unknown(f"not read: {reason}")
        return UNKNOWN if question is None else self._finding(question, step.step)

    def _finding(self, question: Question, step: str) -> Finding:
        texts = [text for text in (question.whole, question.before, question.open) if text]
        said = dict(zip(texts, _asked(self.settings, texts), strict=True))
        whole = said[question.whole]
        before = said.get(question.before, Checked())
        left = said[question.open] if question.open else whole
        covers = Covers.PART if question.has_words or question.is_part else Covers.WHOLE
        if whole.is_clean and whole.uses_sorry:
            return unknown("something is not proved, though no step says sorry")
        if whole.is_clean and (gap := question.gap(whole.axioms, is_open=False)):
            return unknown(f"Lean accepts it, but {gap}")
        if whole.is_clean:
            return finding(StepVerdict.HOLDS, f"Lean accepts: {in_a_line(step)}", covers)
        if not before.is_clean or before.uses_sorry:
            return unknown(f"Lean does not accept what stands before the step: {_reason(before)}")
        if question.open and left.is_clean:
            if gap := question.gap(left.axioms, is_open=True):
                return unknown(f"Lean accepts it, but {gap}")
            if whole.failure or not all(error.startswith("unsolved goals") for error in whole.errors):
                return unknown(f"Lean does not decide it: {_reason(whole)}")
            if _STATING.search(step):
                return unknown("the step states a goal, and may not prove it")
            return finding(
                StepVerdict.HOLDS, f"Lean accepts, with a proof that is still open: {in_a_line(step)}", covers
            )
        errors = [error for error in left.errors if not _NO_VERDICT.search(error) and not question.is_of_asking(error)]
        if left.failure or not errors or not question.is_read(left.axioms):
            return unknown(f"Lean does not decide it: {_reason(left)}")
        if doubt := self._doubt(question, errors):
            return unknown(f"Lean rejects it: {in_a_line(errors[0], 300)}; but {doubt}")
        return finding(StepVerdict.REFUTED, f"Lean rejects `{in_a_line(step)}`: {in_a_line(errors[0], 300)}", covers)

    def _doubt(self, question: Question, errors: Sequence[str]) -> str:
        """Why errors do not refute a step."""
        if not question.is_fenced and _MAYBE_WORDS.search(errors[0]):
            return "the step may be words, or have lost its layout"
        if self.settings.ignore_words:
            return ""
        if question.has_words:
            return "the step has words around it"
        return "words before the step may state what it needs" if question.words_before else ""


def _asked(settings: ProofServerConfig, texts: Sequence[str]) -> list[Checked]:
    """What the server says of texts. Raises EngineDied."""
    seconds = settings.text_seconds
    content = http.post(settings.url.rstrip("/"), PATH, request(texts, seconds), len(texts) * seconds + _WAIT_SECONDS)
    try:
        return answer(content, len(texts))
    except BadAnswer as error:
        raise EngineDied(
            f"proof server {settings.url} gave an answer that is not one of a Kimina Lean Server: {error}"
        ) from error


def _reason(said: Checked) -> str:
    return in_a_line(said.failure or "; ".join(said.errors) or "it uses sorry", 300)
