"""The words around an equation that decide what it is: what cannot be a unit, what changes a number, what makes it doubtful."""

import re
import tomllib
from functools import lru_cache
from importlib.resources import files

from pipeline.data.numbers import PARTS
from pipeline.graders.math.denials import is_denied
from pipeline.graders.math.wording import phrase
from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.sentences import sentence_around


def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_LISTS = {
    key: words_of(words)
    for key, words in tomllib.loads((files(__package__ or "") / "words.toml").read_text("utf-8")).items()
}
DETERMINERS, NEVER_UNITS, CHANGERS = map(_LISTS.__getitem__, ("determiners", "never_units", "changers"))
CONTINUERS, FOLLOWERS, LABELS, HEDGES = map(_LISTS.__getitem__, ("continuers", "followers", "labels", "hedges"))
CHANGERS_OF = CHANGERS | PARTS.keys() | _LISTS["changers_of"]
_UNCLAIMED = phrase(
    r"~~[^~]{0,80}=[^~]{0,80}~~"
    r"|</?(?:del|strike|s)>|\\(?:[bx]?cancel|sout)\b|<untrue>|<negation>[^.,]{0,30} that\b|\b(?:never|not) (?:hold"
    r"|occur|happen|true)|\b(?:<wrong>(?: to| that|:)"
    r"|(?:<assume>|<guess>|<reject>|supposing|assuming|imagine|unless|contradict\w*|hypothetical\w*|incorrectly|claim\w*"
    r"|puzzle|typo|thinks|thought|says|said|believe[sd]|according to|pretend\w*|nobody|hardly|disagree\w*|doubt\w*|den(?:y"
    r"|ies)|refut\w*|fails?|a lie|no (?:means|way)|myth|misprint|fallacy|counterfeit|contrary|far from|unprovable|slogan"
    r"|insists?|lied|lying|jok(?:ed|ing)|kidding|fib(?:s|bed)?|maintains?|(?:suppos|alleg)edly|sake of|sic|or rather"
    r"|nowhere|solution by|novel|famous|premise|(?:in|let"
    r"|given|where|if) (?:an?|any|some|that|this) (?:\w{1,12} )?(?:world|universe|planet|novel|puzzle)|would (?:mean|imply)"
    r"|(?:might|could|may|tempted to) (?:\w{1,12} ){0,2}(?:write|say|conclude|answer|claim))\b)|!="
    r"|[\"“][^\"“”]{0,80}=[^\"“”]{0,80}[\"”]|\\(?:l?not|neg|neq?)(?![A-Za-z])|[?≠¬\u0400-\u1cff\u2e80-\ud7ff]"
    r"|(?<!of )\b(?:option|choice|student|pupil)s?(?:'s \w{1,12}| \w)?:|\b(?:his|her|their) (?:answer|solution)s? (?:was"
    r"|were)\b|'s (?:\w{1,12} )?(?:answer|work|solution|result|attempt|claim)s?(?: (?:is|was|reads))?:?[^\w.]{1,4}\d"
    r"|\b(?:falsch|nicht|kein\w*|angenommen|wenn|sei(?:en)?|glaubt?|annehmen|faux|fausse|pas|suppos(?:ons|ez|er)|soit|croit"
    r"|si|fals[oa]|sup[oó]n\w*|supong\w*|cree|err[aá]d[oa]|suponh\w*|suppon\w*|sbagliat[oa]|se|n[ãa]o|non(?!-)|no es|niet"
    r"|inte|ikke|nie|ei ole|nu este|nen[ií]|nem|de[ğg]il|tidak|bukan|jamais|nunca|niemals|nooit|inexact|imagin\w+|không"
    r"|hindi)\b",
)
"""What denies, asks, supposes or reports, also in some other languages, or in letters that are not Latin or Greek."""
_UNSURE = phrase(
    r"<negation>|\b(?:<wrong>|check\w*|try|trying|verify|must|should|instead|otherwise|mod|modulo|remainder|round\w*"
    r"|truncat\w*|floor (?:of|function|value)|ceiling (?:of|function)|the floor and|nearest|base|binary|octal|hexadecimal"
    r"|clock|[ap]\.?m|noon|midnight|inclusive\w*|estimate\w*|testing)\b",
)
"""What makes a false equation doubtful: words that round in another way, count otherwise or try something."""
_SAID = re.compile(
    r"(?i)(?:\b(?:if|let|say|given(?: that)?|assumption|where|unless|provided(?: that)?|as long as|when|cuando|would (?:give"
    r"|need)|als|falls|wäre|fosse|gdyby|jeśli|hvis|jos|jika|nếu|has it that|(?:^|[.!?\n]\s{0,3})(?:were|had|should)(?: (?:it"
    r"|this|that|\w{1,12} \w{1,6}(?:ed|und|ten|ot)))?(?: been)?|((?<!\bwe )(?<!\bi )(?:wr[oi]te(?:s|d)?|answer(?:s|ed)"
    r"|repl(?:y|ied)|reads?|comput\w{1,3}|conclude[sd]?|calculate[sd]|obtain\w{1,2}|print\w{1,2}|lists|got|found"
    r"|(?:\w{0,8}book|machine|calculator) (?:has|shows))(?: that)?))|(?:^|[.!?:\n]\s{0,3})\(?(?-i:[A-H])\)"
    r"|\b(?:original(?:ly)?|before|error|attempt|draft|version)\b[^.!?:=\n]{0,20}:)[\s$\\(\[*]*$"
)
"""What stands before an equation that is a condition, a choice, or what somebody else says."""
_COUNTED = re.compile(
    r"[^\W\d]|.\s?(?!(?:and|but|so|because|which|or|on|in|as|to|at|for|when|while)\b)[^\W\d]", re.DOTALL
)
"""He wrote 2 + 3 = 5 letters: the text from the last character of an equation that counts things, and is nobody's words."""
_TAKEN_BACK = phrase(
    r"[\W_]{1,8}(?:(?:but|however|yet|although|except|clearly|obviously|of course),? )*(?:this|that|it|which|the above"
    r"|(?:the|this|that) (?:last |previous )?(?:equation|statement|claim|sum|result|line|step))(?: is|'s| was| are|) "
    r"(?:(?:an?|all|clearly|obviously|simply|just|of course) )*(?:<wrong>|lie\b|joke\b|not (?:so|right)\b)"
)
"""What takes an equation back right after it: 2 + 2 = 4. This is false."""
_REACH = 120
_REVOKED = re.compile(
    r"\b(?:contradict\w*|impossible|incorrect\w*|mistake\w*|untrue|absurd|not (?:true|equal|possible|hold|satisf\w*|work"
    r"|valid|the same|correct|what|a solution)|does(?: not|n't) (?:equal|hold|work|match|satisf\w*|make sense|add up)"
    r"|is(?: not|n't) (?:true|equal|possible|valid|correct|the case)|too (?:low|high|small|large|big|much|little)|re-?check"
    r"|wait|oops|actually|correct(?:ion|ed:)|misread|sorry|scratch that|strike that|i mean|redo|no(?=[,:]|\swait))\b|≠"
    r"|\\neq?(?![A-Za-z])",
    re.IGNORECASE,
)
_OTHER_ARITHMETIC = re.compile(
    r"\b(?:mod|modulo|modular|congruent|remainder when|binary|octal|hexadecimal|base[- ](?:\d|\$|\\|ten|two|three|four|five"
    r"|six|seven|eight|nine|b\b|n\b|k\b)|in base|bases|operation|operator|o'clock|clock|boolean|gf|tropical|xor"
    r"|cryptarithm\w*|matchstick\w*)\b|\\p?mod(?![A-Za-z])|\\equiv|≡|\d_\{?\d+\}?(?!\d)|_\{?(?:b|10|2|7|8|5|6"
    r"|9)\}?(?![A-Za-z0-9])",
    re.IGNORECASE,
)
"""A text that speaks of remainders, bases or operations of its own, so that 3 + 5 = 1 may be right."""
_REDEFINES = re.compile(
    r"\bdefin\w+ [$\\(]{0,2}[a-z] ?[^\w\s(,=] ?[a-z]\b|\blet [$\\(]{0,2}([a-z]) ?[^\w\s=] ?[a-z] ?= ?[^.\n]{0,40}\b\1\b"
    r"|(?:[-+*/×#@]|\b(?:plus|minus|times)) (?:now )?means\b",
    re.IGNORECASE,
)


def is_mentioned(text: str, start: int, end: int) -> bool:
    """Whether the words around an equation deny it, ask for it or assume it, so that it is no claim."""
    before, after = text[max(0, start - _REACH) : start], text[end : end + _REACH]
    said = _SAID.search(before)
    reported = said is not None and not (said[1] and _COUNTED.match(text, end - 1))
    reported = reported or _TAKEN_BACK.match(after.lower()) is not None
    return reported or _says(_UNCLAIMED, sentence_around(text, start, end)) or is_denied(before, after)


def redefines(step: StepInContext) -> bool:
    """Whether the step or the problem defines an operation, so that 2 + 3 = 5 may be wrong."""
    return any(map(_REDEFINES.search, (step.step, step.problem)))


def is_doubtful(step: StepInContext, text: str, start: int, end: int) -> bool:
    """Whether a false equation may be right or no claim: it is mentioned, its sentence denies or supposes something or rounds
    in another way, its step takes something back, or the step or the problem is of another arithmetic."""
    unsure = _says(_UNSURE, sentence_around(text, start, end)) or _REVOKED.search(step.step)
    other = _OTHER_ARITHMETIC.search(step.step) or _OTHER_ARITHMETIC.search(step.problem)
    return bool(unsure) or other is not None or is_mentioned(text, start, end)


@lru_cache(maxsize=256)
def _says(words: re.Pattern[str], sentence: str) -> bool:
    return words.search(sentence.lower()) is not None
