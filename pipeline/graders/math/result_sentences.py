r"""The count or probability that a closing sentence states: "there are 12 ways to seat them". Pure, linear time.

The sentence has one number alone, and no word that denies, compares, hedges or adds a second statement. What belongs to the
solution is no result: "there are 12 cases to check", "12 ways to choose the first", "the complementary probability is 1/3".
"""

import re

from pipeline.graders.math.multipliers import with_multiplier

_VALUE = r"\*{0,2}(\$[^$\n]{1,60}\$|\d[\d,]{0,40}(?:[./]\d{1,40})?%?)\*{0,2}"
_OPENING = r"(?:(?:so|thus|hence|therefore|in all|in total|finally|we see that|we find that)[,:]? ){0,3}"
_COUNT = re.compile(
    rf"{_OPENING}there (?:are|is|exists?)(?: exactly| only| precisely| a total of| in total| thus| therefore)? {_VALUE}"
    r"(?: [A-Za-z'-]{1,20},?){0,20}[.!]?",
    re.IGNORECASE,
)
_CHANCE = re.compile(
    rf"{_OPENING}the (?:[a-z]{{1,20}} )?probability(?: of this(?: event)?)? (?:is|equals|is equal to) {_VALUE}"
    r"(?: that(?: [A-Za-z'-]{1,20},?){0,20})?[.!]?",
    re.IGNORECASE,
)
_NOT_ALONE = re.compile(
    r"\b(?:not|no|never|cannot|neither|nor|if|unless|or|and|but|than|least|most|between|about|each|every|per|would|could|might|may"
    r"|for|when|before|wait|case|step|part|more|fewer|less|other|another|also|remaining|left)\b|n't\b",
    re.IGNORECASE,
)


_INTERMEDIATE = re.compile(
    r"\b(?:cases|subcases|possibilities|options|candidates|scenarios|values|numbers|pairs|triples|things|conditions|equations) "
    r"(?:left |remaining |that |which )?(?:to|we (?:must|have to|need to|should)) (?:be )?"
    r"(?:check|consider|examin|rul|exclud|eliminat|verif|try|discuss|analy[sz]|distinguish|handl|investigat|test|treat|look at)"
    r"|\b(?:too many|too few|(?:steps?|cases|subcases) (?:left|remain\w*))\b|\bto go[.!]*$"
    r"|\b(?:ways?|choices?|options?|possibilities) (?:(?:to|of) [a-z]{1,12}|for) (?:the |a |an |its |our )?"
    r"(?:first|second|third|fourth|fifth|next|other|remaining|last|leading|tens|units|hundreds)\b"
    r"|\b(?:complementary|opposite|prior|converse) (?:probability|chance|event)"
    r"|\bprobability of (?:the|its) (?:complement|opposite)",
    re.IGNORECASE,
)
_STATING = re.compile(
    r"\b(?:there (?:are|is|exists?)|(?:have|has|probability|chance|event|complement|opposite)\b)", re.IGNORECASE
)


def is_intermediate(line: str) -> bool:
    """Whether the last sentence of a line states a count or probability that belongs to the solution, and is no result."""
    sentence = line[line.rfind(". ") + 1 :]
    return _INTERMEDIATE.search(sentence) is not None and _STATING.search(sentence) is not None


def result_of_sentence(line: str) -> str | None:
    """The number or formula of a line that is such a sentence, else None."""
    sentence = line[line.rfind(". ") + 1 :].strip(" *")
    match = _COUNT.fullmatch(sentence) or _CHANCE.fullmatch(sentence)
    if match is None or _NOT_ALONE.search(sentence[: match.start(1)]) or _NOT_ALONE.search(sentence[match.end(1) :]):
        return None
    value = match.group(1).strip("$ ")
    return with_multiplier(value, sentence[match.end(1) :]) if value else None
