r"""The count or probability that a closing sentence states: "there are 12 ways to seat them". Pure, linear time.

The sentence has one number alone, and no word that denies, compares, hedges or adds a second statement.
"""

import re

from pipeline.graders.math.multipliers import with_multiplier

_VALUE = r"(\$[^$\n]{1,60}\$|\d[\d,]{0,40}(?:[./]\d{1,40})?%?)"
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


def result_of_sentence(line: str) -> str | None:
    """The number or formula of a line that is such a sentence, else None."""
    sentence = line[line.rfind(". ") + 1 :].strip(" *")
    match = _COUNT.fullmatch(sentence) or _CHANCE.fullmatch(sentence)
    if match is None or _NOT_ALONE.search(sentence[: match.start(1)]) or _NOT_ALONE.search(sentence[match.end(1) :]):
        return None
    value = match.group(1).strip("$ ")
    return with_multiplier(value, sentence[match.end(1) :]) if value else None
