"""Finds what may be claims of facts in a text: a subject with an attribute and an entity, and a value. Pure, bounded.

Three forms are read: "the ATTRIBUTE of ENTITY is VALUE", "ENTITY's ATTRIBUTE is VALUE" and "ENTITY has an ATTRIBUTE of VALUE".
A subject is read from the beginning of its clause, as a whole: in "Ann thinks that the capital of Peru is Lima" there is none.
Where names begin and end is not known here, so a subject has several readings. A table decides which one has names that it
knows.

Below are also the words that make a claim doubtful: it is denied, supposed, asked for, reported, compared or of another world.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

LONGEST_SUBJECT = 200
LONGEST_VALUE = 200
MOST_CLAIMS = 50
"""Per text. Further ones are not read."""
MOST_READINGS = 8
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bSt\.)(?<!\bMt\.)(?<!\bDr\.)\s+(?=[A-Z\d\"'*$(])|\n+|;\s+")
# Where a further claim of a sentence may begin.
_CLAUSE = re.compile(r"(?:,\s{0,3}|\s)(?:and|but|while|whereas|so)\s+(?=(?:the|its|their)\s)", re.IGNORECASE)
_LEAD = re.compile(
    r"(?:\s|\*\*|[-•]\s|\d{1,2}[.)]\s|step\s\d{1,2}\s?[:.]|(?:so|then|thus|therefore|hence|now|also|first|firstly|second|secondly|next"
    r"|finally|indeed|recall|note|here|and|but|since|because|as|clearly|in fact|of course|we know|i know|i recall|we recall"
    r"|it is known|it follows|this means|which means|remember|as we know)\b(?:\s+that\b)?,?\s{0,3})*",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\s(?:(?P<past>was|were)|is|are|equals|(?P<sign>=|≈))\s+(?:equal\s+to\s+|exactly\s+|(?:also\s+)?(?:called|named)\s+)?",
    re.IGNORECASE,
)
_HAS = re.compile(r"\s(?:has|have|(?P<past>had))\s+(?:an?|the)\s+", re.IGNORECASE)
_LOOSELY = re.compile(r"(?:about|approximately|around|roughly|nearly|almost|approx\.?|circa|≈|~)\s*", re.IGNORECASE)
_OF = re.compile(r"\s(?:of|in|for|on)\s", re.IGNORECASE)
_HAS_OF = re.compile(r"\sof\s+")
_POSSESSIVE = re.compile(r"['’]s?\s+")
# What may follow a value without changing it.
_AFTER = re.compile(
    r"\s*[.!]?[\s*\"”]*$|,\s+(?:so|and|but|which|while|whereas|because|since|as|thus|therefore|hence|then|according|the|we|it|this|that|you)\b"
    r"|\s+(?:because|since|so|which|while|whereas|according to|and (?:the|its|their))\b|\s+\((?!mod)",
    re.IGNORECASE,
)
UNSURE = re.compile(
    r"\b(?:not|never|no|none|cannot|neither|nor|or|if|whether|unless|would|could|might|may|should|must|perhaps|maybe|probably"
    r"|likely|possibl[ey]|presumably|apparently|seems?|guess\w*|think\w*|thought|believ\w*|assum\w*|suppos\w*|imagin\w*"
    r"|pretend\w*|claim\w*|say|says|said|saying|told|stat(?:e|es|ed|ing) that|argu\w*|suggest\w*|false|untrue|incorrect\w*"
    r"|wrong\w*|mistak\w*|error|myth\w*|misconception|instead|rather|except|than|least|most|over|under|between|once|formerly"
    r"|former|used to|until|before|future|will be|hypothetical\w*|let|denote\w*|question|asks?|asked|option|choices?|check\w*"
    r"|verif\w*|unknown|unclear|twice|half|double|times|plus|minus|sum|difference|product|ratio|total|average|per capita|only"
    r"|according to|one of|part of|some|any|estimate\w*|historical\w*|originally|initially|ancient|medieval)\b|n['’]t\b|\?|≠"
    r"|\\neq?(?![A-Za-z])|\((?:at|in|on|for|by|as|without)\b",
    re.IGNORECASE,
)
# A place, time or source before a claim: "In 1900, the capital of ...", "According to Ann, ...".
FRAMED = re.compile(
    r"(?:^\W{0,20}|[,:]\s|\b(?:so|and|but|then|that|now|also)\s)(?:in(?! fact\b)|during|as of|according|under|by|at|for|within"
    r"|from|after|among|on (?:the|an?)|with)\b",
    re.IGNORECASE,
)
OTHER_WORLD = re.compile(
    r"\b(?:suppos(?:e|es|ed|ing)|imagin(?:e|es|ed|ing|ary)|pretend\w*|hypothetical\w*|fiction\w*|what if|alternate|fantasy"
    r"|parallel universe|in (?:this|the|a|our|my) (?:story|game|novel|book|puzzle|movie|world|universe|scenario)"
    r"|counterfactual\w*|assum(?:e|es|ed|ing)|redefin\w*|rename\w*|if (?:the|its|we)|contradiction|April Fool\w*|joke|riddle"
    r"|myth\w*|misconception\w*|moved (?:its|the|their)|becomes?|say that|let [\w ]{1,40} be)\b",
    re.IGNORECASE,
)
REVOKED = re.compile(
    r"\b(?:wait|oops|actually|correction|incorrect\w*|mistake\w*|misread|not (?:true|correct|right|so)|is(?: not|n['’]t)"
    r" (?:true|correct|right|so|the case)|wrong|re-?check|scratch that|contradict\w*|false\w*|untrue|an? lie|lied"
    r"|opposites?|absurd\w*|impossible|disprove\w*|refute\w*|too (?:low|high|small|large))\b|(?:^|[.!?]\s)(?:no|not)[.!,]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What may be a claim. `readings`: the ways to read its subject, as an attribute and an entity. `values`: those to read its
    value, the longest first. `loosely`: it says that it is approximate. `past`: it is about the past. `sentence`: the whole."""

    readings: tuple[tuple[str, str], ...]
    values: tuple[str, ...]
    loosely: bool
    past: bool
    sentence: str


def claims_of(text: str) -> Iterator[Claim]:
    """The claims of a text, in their order."""
    return islice(chain.from_iterable(map(_of_sentence, _SENTENCE_END.split(text))), MOST_CLAIMS)


def _of_sentence(sentence: str) -> Iterator[Claim]:
    begins = [0, *(clause.end() for clause in _CLAUSE.finditer(sentence))]
    for verb in _VERB.finditer(sentence):
        for begin in _subjects_before(begins, verb.start()):
            readings = _readings(_subject(sentence, begin, verb.start()))
            if readings and (claim := _claim(sentence, readings, verb.end(), verb)):
                yield claim
    for has in _HAS.finditer(sentence):
        for begin in _subjects_before(begins, has.start()):
            entity = _subject(sentence, begin, has.start())
            attribute = sentence[has.end() : has.end() + LONGEST_SUBJECT]
            if not entity:
                continue
            for of in islice(_HAS_OF.finditer(attribute), MOST_READINGS):
                reading = (attribute[: of.start()].strip(), entity)
                if claim := _claim(sentence, (reading,), has.end() + of.end(), has):
                    yield claim


def _subjects_before(begins: list[int], end: int) -> list[int]:
    """Where the subject before a verb may begin: with its sentence, or with its clause."""
    before = [begin for begin in begins if end - LONGEST_SUBJECT <= begin < end]
    return sorted({*before[:1], *before[-1:]}, reverse=True)


def _subject(sentence: str, begin: int, end: int) -> str:
    lead = _LEAD.match(sentence, begin, end)
    return sentence[lead.end() if lead else begin : end].strip(' *"“”')


def _readings(subject: str) -> tuple[tuple[str, str], ...]:
    """The ways to read a subject as an attribute of an entity."""
    found: list[tuple[str, str]] = []
    if subject[:4].lower() == "the ":
        ofs = islice(_OF.finditer(subject), MOST_READINGS)
        found += [(subject[: of.start()].strip(), subject[of.end() :].strip()) for of in ofs]
    owners = islice(_POSSESSIVE.finditer(subject), MOST_READINGS)
    found += [(subject[owner.end() :].strip(), subject[: owner.start()].strip()) for owner in owners]
    return tuple(reading for reading in found if all(reading))


def _claim(sentence: str, readings: tuple[tuple[str, str], ...], start: int, verb: re.Match[str]) -> Claim | None:
    hedge = _LOOSELY.match(sentence, start)
    start = hedge.end() if hedge else start
    rest = sentence[start : start + LONGEST_VALUE]
    texts = [rest[: after.start()].strip().strip('*"“”').removeprefix("\\(") for after in _AFTER.finditer(rest)]
    values = [value for text in reversed(texts) if (value := text.removesuffix("\\)").strip("$ *,"))]
    loosely = hedge is not None or verb.groupdict().get("sign") == "≈"
    read = tuple(dict.fromkeys(values[:MOST_READINGS]))
    return Claim(readings, read, loosely, verb["past"] is not None, sentence) if values else None
