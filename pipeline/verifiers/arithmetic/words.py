"""The words around an equation that decide what it is: what cannot be a unit, what changes a number, what makes it doubtful."""

import re

from pipeline.data.numbers import PARTS
from pipeline.graders.math.denials import is_denied
from pipeline.graders.math.wording import phrase
from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.sentences import sentence_around


def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


DETERMINERS = words_of(
    "the a an all his her their its our my your those these that this remaining total original other"
)
"""Words between "of" and its number: 20% of the remaining 50."""
NEVER_UNITS = words_of(
    """is are was were be been am has have had will would can could should may might must do does did so then thus therefore
    hence because since if when while but and or nor not plus minus times divided multiplied which who whose whom that he she it
    they we i you there here gives makes equals get gets got means than as"""
)
"""Words that no description of a unit has: in "10 rows of corn stalks * 9" there is a unit, in "10 is 5 * 9" there is none."""
CHANGERS = words_of(
    """twice double triple quadruple thrice times over plus minus than percent negative point squared cubed root sqrt cube
    square log ln lg exp sin cos tan sec csc cot arcsin arccos arctan max min gcd lcm hcf average mean median mode sum product
    difference quotient ratio base floor ceil ceiling round mod modulo abs det half third quarter between versus vs choose
    factorial except without subtract add multiply divide"""
)
"""A number after one of these is only part of what the equation is about."""
CHANGERS_OF = (CHANGERS | PARTS.keys()) | words_of(
    "fraction percentage share part portion multiple power logarithm factor"
)
"""The same before "of": a third of 5 + 4."""
CONTINUERS = words_of("times plus minus of over by divided multiplied to or")
"""A number before one of these and another number is only the first part of a result: 3 times 5."""
FOLLOWERS = words_of("point squared cubed r remainder remainders rem mod modulo")
"""A number before one of these is only the first part of a result: 3 remainder 2."""
LABELS = words_of(
    """step day week month year grade case problem question part chapter figure equation round group team room page number
    option line item table example section level box bag class row column no q phase stage lesson test quiz game trip score
    version route bus ex exercise method approach scenario person worker friend january february march april may june july
    august september october november december jan feb mar apr jun jul aug sep oct nov dec"""
)
"""A number after one of these may be a name: Day 3 - 5 eggs."""
HEDGES = words_of("about approximately roughly around nearly almost approx circa")
"""What makes a result approximate."""
_UNSURE = phrase(
    r"<negation>|<untrue>|\b(?:<wrong>|(?:<assume>|<guess>|<reject>|supposing|assuming|imagine|check\w*|try|trying|verify|must"
    r"|should|would (?:mean|imply)|instead|unless|otherwise|contradict\w*|hypothetical\w*|incorrectly|mod|modulo"
    r"|remainder|round\w*|floor (?:of|function|value)|ceiling (?:of|function)|the floor and|truncat\w*|nearest|base|binary"
    r"|octal|hexadecimal|clock|[ap]\.?m|noon|midnight|inclusive\w*|estimate\w*|claim\w*|puzzle|typo|thinks|thought|says|said"
    r"|believe[sd]|testing|according to|pretend\w*|nobody|hardly|disagree\w*|doubt\w*|den(?:y|ies)|refut\w*|fails?"
    r"|a lie)\b)|!=|[\"“][^\"“”]{0,80}=[^\"“”]{0,80}[\"”]|\\(?:l?not|neg|neq?)(?![A-Za-z])|[?≠¬\u0400-\u1cff\u2e80-\ud7ff]"
    r"|\b(?:falsch|nicht|kein\w*|angenommen|wenn|sei(?:en)?|glaubt?|annehmen|faux|fausse|pas|suppos(?:ons|ez|er)|soit|croit|si"
    r"|fals[oa]|sup[oó]n\w*|supong\w*|cree|err[aá]d[oa]|suponh\w*|suppon\w*|sbagliat[oa]|se)\b",
    re.IGNORECASE,
)
"""What denies, asks, supposes or rounds, also in some other languages, or in letters that are not Latin or Greek."""
_SAID = re.compile(
    r"(?i)(?:\b(?:that|says|dass|que|che|(if|let|say|given|assumption|wrote(?: that)?|would (?:give|need)))|[\"“«(]"
    r"|(?:[.!?]\s|^|\n)(?:\w{1,20} ?\w{0,20}:)?)[\s$\\(\[*]*$"
)
"""What stands before an equation that a sentence is about."""
_REACH = 120
_REVOKED = re.compile(
    r"\b(?:contradict\w*|impossible|incorrect\w*|mistake\w*|untrue|absurd|not (?:true|equal|possible|hold|satisf\w*|work|valid"
    r"|the same|correct|what|a solution)|does(?: not|n't) (?:equal|hold|work|match|satisf\w*|make sense|add up)|is(?: not|n't)"
    r" (?:true|equal|possible|valid|correct|the case)|too (?:low|high|small|large|big|much|little)|re-?check|wait|oops|actually"
    r"|correction|misread|sorry|no(?=[,:]))\b|≠|\\neq?(?![A-Za-z])",
    re.IGNORECASE,
)
_OTHER_ARITHMETIC = re.compile(
    r"\b(?:mod|modulo|modular|congruent|remainder when|binary|octal|hexadecimal|base[- ](?:\d|\$|\\|ten|two|three|four|five|six"
    r"|seven|eight|nine|b\b|n\b|k\b)|in base|bases|operation|operator|o'clock|clock|boolean|gf|tropical|xor|cryptarithm\w*"
    r"|matchstick\w*)\b|\\p?mod(?![A-Za-z])|\\equiv|≡|\d_\{?\d+\}?(?!\d)|_\{?(?:b|10|2|7|8|5|6|9)\}?(?![A-Za-z0-9])",
    re.IGNORECASE,
)
"""A text that speaks of remainders, bases or operations of its own, so that 3 + 5 = 1 may be right."""


def is_mentioned(text: str, start: int, end: int) -> bool:
    """Whether the words around an equation deny it, ask for it or assume it, so that it is no claim."""
    before, after = text[max(0, start - _REACH) : start], text[end : end + _REACH]
    said = _SAID.search(before)
    return is_denied(before, after) or bool(said and (said[1] or _UNSURE.search(sentence_around(text, start, end))))


def is_doubtful(step: StepInContext, text: str, start: int, end: int) -> bool:
    """Whether a false equation may be right or no claim: it is mentioned, its sentence denies or supposes something or rounds
    in another way, its step takes something back, or the step or the problem is of another arithmetic."""
    unsure = _UNSURE.search(sentence_around(text, start, end)) or _REVOKED.search(step.step)
    other = _OTHER_ARITHMETIC.search(step.step) or _OTHER_ARITHMETIC.search(step.problem)
    return unsure is not None or other is not None or is_mentioned(text, start, end)
