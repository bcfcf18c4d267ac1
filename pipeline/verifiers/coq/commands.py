"""What a sentence of Coq does, by its first word: only sentences that are known here get to Coq. Pure.

What a problem says is given, so it may have axioms, notations and scopes. A step may not: with them it could have Coq accept
anything. Neither may write files, load other code, or change what the kernel checks.
"""

import itertools
import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files

from pipeline.verifiers.coq.lexer import Sentence


class Effect(StrEnum):
    """What a sentence does. `focus`: a bullet or a brace. `question`: prints something, and does not get to Coq."""

    FOCUS = "focus"
    TACTIC = "tactic"
    STATEMENT = "statement"
    PROOF = "proof"
    END = "end"
    DEFINITION = "definition"
    CONTEXT = "context"
    QUESTION = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A sentence that is read. `given`: it is one of a problem. `names`: what a step declares or binds in a term, which must be
    new. `of_proof`: what its tactics bind, which libraries alone may have. `matched`: what its patterns say, which must be new,
    or constructors. `refusal`: why it does not get to Coq."""

    sentence: Sentence
    effect: Effect
    given: bool = False
    names: tuple[str, ...] = ()
    of_proof: tuple[str, ...] = ()
    matched: tuple[str, ...] = ()
    refusal: str = ""


_WORDS = {
    key: frozenset(words.split())
    for key, words in tomllib.loads((files(__package__ or "") / "commands.toml").read_text("utf-8")).items()
}
STATEMENTS, DEFINITIONS, QUESTIONS, GIVEN = map(_WORDS.__getitem__, ("statements", "definitions", "questions", "given"))
TACTICS, STATING, STANDARD = map(_WORDS.__getitem__, ("tactics", "stating", "standard"))
ENDS = frozenset({"Qed", "Defined"})
PROOFS = frozenset({"Proof", "Unshelve"})
NEVER = re.compile(
    r"\w*native_\w+|\w+_no_check|timeout|time|Timeout|Time|Fail|Redirect|Extraction|Ltac2|external|Drop|Load"
)
"""Words of no sentence: they write, load, postpone a check, or depend on the clock."""
HOLED, BY_TERM, BESIDE = map(_WORDS.__getitem__, ("holed", "by_term", "beside"))
MADE_UP = re.compile(r"(?:False|Empty_set)_\w+|absurd\w*|except")
PROVED_FIRST = frozenset({"assert", "eassert", "replace"})
"""Those that state a goal which comes first, or is what `by` proves."""
_UNSAFE = re.compile(
    r"\w*[IUS]\w*nt63|\w*Float\w*|PrimInt\w*|PArray|Cyclic\w*|Extr\w*|SetIsType|Hurkens|Diaconescu|Berardi\w*"
)
"""Libraries of machine numbers, of code, and of what other axioms contradict."""
MOST_BINDERS = 200
"""In a sentence of a step: for each, what follows it is read."""
_DECLARED = frozenset({"Scope", "Instance"})
"""What may follow `Declare`. Others load code."""
_WITH_TERMS = frozenset({"exists", "pose", "set", "remember"})
"""Tactics that are followed by a term."""
_BINDERS = _WORDS["binders"] | _WITH_TERMS
_DECLARING = (STATEMENTS - {"Goal"}) | DEFINITIONS
_ALL_BINDERS = _BINDERS | _WORDS["patterns"]
_ENDING = frozenset({"at", "by", "in", "using", "with"})
"""Words after names that are bound, before others that are not."""
_BETWEEN = frozenset("[]|(){},:!&*'`")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_NAME = re.compile(r"[^\W\d][\w']*")
_PREFIXES = frozenset({"Local", "Global"})


def command(sentence: Sentence, *, given: bool) -> Command:
    """What a sentence does. `given`: whether it is one of a problem, and not of a step."""
    effect, refusal = _effect(sentence, given=given)
    if given or refusal or effect not in (Effect.STATEMENT, Effect.DEFINITION, Effect.TACTIC):
        return Command(sentence=sentence, effect=effect, given=given, refusal=refusal)
    tokens = _without_prefix(sentence.tokens)
    bound = tuple(dict.fromkeys(bound_names(tokens)))
    names = tuple(dict.fromkeys((*bound_names(tokens, _BINDERS | _DECLARING), *filter(STANDARD.__contains__, bound))))
    matched = () if effect is Effect.TACTIC else tuple(dict.fromkeys(_names_in_patterns(tokens)))
    of_proof = tuple(name for name in bound if name not in names)
    return Command(sentence=sentence, effect=effect, names=names, of_proof=of_proof, matched=matched)


def _effect(sentence: Sentence, *, given: bool) -> tuple[Effect, str]:
    """What a sentence does, and why it does not get to Coq."""
    if not sentence.text.endswith("."):
        return Effect.FOCUS, ""
    tokens = _without_prefix(sentence.tokens)
    if not tokens:
        return Effect.CONTEXT, "an empty sentence is not read"
    if never := next((word for word in sorted(sentence.words) if NEVER.fullmatch(word)), ""):
        return Effect.CONTEXT, f"`{never}` does not get to Coq"
    if not given and (refusal := _refusal_of_step(sentence)):
        return Effect.CONTEXT, refusal
    return _by_first_word(tokens, given=given)


def _without_prefix(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return tokens[1:] if tokens[:1] and tokens[0] in _PREFIXES else tokens


def _by_first_word(tokens: tuple[str, ...], *, given: bool) -> tuple[Effect, str]:
    first = tokens[0]
    if first in STATEMENTS or first in DEFINITIONS:
        return _declaration(tokens, given=given)
    if first in ENDS or first in PROOFS:
        is_end = first in ENDS or (first == "Proof" and tokens[1:2] not in ((), ("using",), ("with",)))
        return Effect.END if is_end else Effect.PROOF, ""
    if first in QUESTIONS:
        has_string = any(each[0] == '"' for each in tokens)
        return Effect.QUESTION, "a question with a string does not get to Coq" if has_string else ""
    if first in ("Require", "From"):
        return Effect.CONTEXT, _refusal_of_require(tokens, given=given)
    if first in GIVEN:
        return Effect.CONTEXT, _refusal_of_given(tokens) if given else f"`{first}` by a step may make anything true"
    return Effect.TACTIC, "" if is_tactic(tokens) else f"`{first}` is not read"


def is_tactic(tokens: tuple[str, ...]) -> bool:
    """Whether tokens begin like a tactic, after brackets and the names of goals: `2: lia`, `(intros; auto)`, `[ | lia ]`."""
    at = 0
    if len(tokens) > 2 and tokens[0].isdecimal():
        while at < len(tokens) and (tokens[at].isdecimal() or tokens[at] in ",-"):
            at += 1
        if at == len(tokens) or tokens[at] != ":":
            return False
        at += 1
    elif tokens[:2] in (("all", ":"), ("par", ":")):
        at = 2
    while at < len(tokens) and tokens[at] in ("(", "[", "|", ">"):
        at += 1
    return at < len(tokens) and tokens[at] in TACTICS


def _refusal_of_step(sentence: Sentence) -> str:
    if word := next((word for word in sorted(sentence.words) if word in _WORDS["not_by_steps"]), ""):
        return f"`{word}` by a step is not looked into"
    if any("<" in token or "Toplevel" in token for token in sentence.tokens if token.startswith('"')):
        return "a string with `<` does not get to Coq"
    if sum(token in _ALL_BINDERS for token in sentence.tokens) > MOST_BINDERS:
        return f"more than {MOST_BINDERS} names are bound"
    if sentence.tokens[0] == "Let" or "#" in sentence.tokens[:1]:
        return f"`{sentence.tokens[0]}` by a step is not read"
    return ""


def _names_in_patterns(tokens: tuple[str, ...]) -> Iterator[str]:
    """The words before arrows, up to what begins a pattern. Of patterns with `|`, each part binds the same names. What `fun`
    binds is found as such."""
    for at, token in enumerate(tokens):
        if token == ">" and tokens[at - 1] == "=":
            pattern: list[str] = []
            depth = 0
            for before, each in zip(tokens[at - 3 :: -1], tokens[at - 2 :: -1], strict=False):
                depth += (each in _CLOSING) - (each in _OPENING)
                if (before, each) == ("=", ">") or (depth <= 0 and each in ("|", "with", "fun", "λ")):
                    yield from () if each in ("fun", "λ") else pattern
                    break
                pattern += [each] * _is_bindable(each)


def bound_names(tokens: tuple[str, ...], binders: Collection[str] = _ALL_BINDERS) -> Iterator[str]:
    """The names that stand where one of the binders binds them, or in brackets as in `(n True : nat)` and `{ n | n < 3 }`."""
    for at, token in enumerate(tokens):
        if token in binders and not (token in _WITH_TERMS and at == 0):
            yield from _after_binder(itertools.islice(tokens, at + 1, None))
        elif token in ("(", "{", "["):
            names = tuple(itertools.takewhile(_is_bindable, itertools.islice(tokens, at + 1, None)))
            end = tokens[at + 1 + len(names) : at + 2 + len(names)]
            yield from names if end == (":",) or (token == "{" and end in (("|",), ("&",))) else ()
            yield from _after_binder(iter(tokens[at + 1 :])) if token == "{" and end == ("'",) else ()


def _is_bindable(token: str) -> bool:
    return bool(_NAME.fullmatch(token)) and token != "_" and token not in _ALL_BINDERS


def _after_binder(tokens: Iterator[str]) -> Iterator[str]:
    """The names up to what ends them: a type, a comma, an arrow. Types within brackets are skipped."""
    depth = in_type = 0
    for at, token in enumerate(tokens):
        if token in ("(", "[", "{"):
            depth += 1
        elif token in (")", "]", "}"):
            depth -= 1
            in_type = in_type if in_type <= depth else 0
        elif token == ":" and at > 0:
            in_type = in_type or depth
        if depth < 0 or token in _ENDING or (depth == 0 and token in (":", ",") and at > 0):
            return
        if not in_type and _is_bindable(token):
            yield token
        elif not (in_type or token in _BETWEEN or token == "_"):
            return


def _declaration(tokens: tuple[str, ...], *, given: bool) -> tuple[Effect, str]:
    first = tokens[0]
    is_open = first == "Definition" and not _has(tokens, ":", "=")
    effect = Effect.STATEMENT if first in STATEMENTS or is_open else Effect.DEFINITION
    if first == "Goal":
        return effect, ""
    if not (len(tokens) > 1 and _NAME.fullmatch(tokens[1])):
        return effect, f"`{first}` without a plain name is not read"
    if not given and tokens.count("with") > tokens.count("match"):
        return effect, "several declarations in one sentence of a step are not read"
    if not given and "ltac" in tokens:
        return effect, "what a tactic makes of a declaration is not what it says"
    return effect, ""


def _has(tokens: tuple[str, ...], *wanted: str) -> bool:
    return any(tokens[at : at + len(wanted)] == wanted for at in range(len(tokens)))


def _refusal_of_require(tokens: tuple[str, ...], *, given: bool) -> str:
    rest = list(tokens)
    from_coq = rest[0] == "From"
    if from_coq:
        if rest[1:2] != ["Coq"]:
            return "only Coq's own library is loaded"
        rest = rest[2:]
    if rest[:1] != ["Require"]:
        return "`From` without `Require` is not read"
    rest = rest[1:]
    if rest[:1] and rest[0] in ("Import", "Export"):
        rest = rest[1:]
    for name in rest:
        parts = name.split(".")
        if parts[0] == "Coq":
            parts = parts[1:]
        known = (len(parts) == 1 and parts[0] in _WORDS["modules"] | _WORDS["tactic_modules"]) or (
            len(parts) > 1 and parts[0] in _WORDS["libraries"]
        )
        if not known or any(map(_UNSAFE.match, parts)):
            return f"the library `{name}` is not loaded"
        if not given and parts[-1] not in _WORDS["tactic_modules"]:
            return f"the library `{name}` by a step may change what later sentences mean"
    return "" if rest else "`Require` of nothing is not read"


def _refusal_of_given(tokens: tuple[str, ...]) -> str:
    first = tokens[0]
    if first in ("Set", "Unset") and "_".join(tokens[1:]) not in _WORDS["options"]:
        return f"`{' '.join(tokens)[:60]}` is not read"
    if first == "Declare" and not (len(tokens) > 1 and tokens[1] in _DECLARED):
        return "`Declare` of anything but scopes and instances is not read"
    if first in ("Import", "Export") and not all(
        _NAME.fullmatch(part) for each in tokens[1:] for part in each.split(".")
    ):
        return f"`{first}` is read with plain names only"
    return ""
