r"""Decides whether the words next to a value deny it: "not 5", "twice 5", "\boxed{5} is wrong". Pure, linear time.

The same rule holds for numbers, formulas, choices and boxes. The words that are looked at stand in the clause of the value, up
to `REACH` characters before it, and right after it. "It is not hard to see that the answer is 5" denies nothing, because words
between the denial and the value begin another statement.

A box is a strong mark of an answer, so it is no answer only if it is denied. A formula or number is none either if it is only a
bound ("at most 5"), one of two, asked for, or assumed: `is_no_statement`.
"""

import re
from collections.abc import Iterable

REACH = 120

_BOLD = "**"
_OPENING = " \t$*([{"
_CLAUSE = re.compile(r"[.,;!?\n](?=\s|$)|:(?=\s*\S)")
# Words that connect a denial with its value. Word boundaries leave one way to read them, so the search takes linear time.
_NOUNS = (
    r"(?:(?:\b(?:the|an|our|my|this|that|it|of|for|as|value|values|final|correct|right|answer|number|result|solution|root|option"
    r"|choice|possibility|case|[A-Za-z])\b|=) ?){0,8}"
)
_LINKS = (
    r"(?:(?:\b(?:be|been|being|equal|equals|to|exactly|simply|just|really|actually|definitely|necessarily|merely|only|quite|yet|even"
    r"|the|an|our|my|this|that|it|is|was|are|were|of|for|as|give|gives|yield|have|has|get|reach|take|accept|choose|pick|select"
    r"|use|write|value|values|final|correct|right|answer|number|result|solution|root|option|choice|true|case|say|think|believe"
    r"|claim|mean|possible|possibly|likely|work|lead|[A-Za-z])\b|=) ?){0,12}"
)
_NEGATIONS = ("not", "never", "cannot", "nor", "neither", "no longer")
_FALSE = ("unlikely", "impossible", "false", "wrong", "incorrect", "untrue", "deny", "denies")
_REJECTIONS = (
    *(verb + end for verb in ("reject", "discard", "disregard", "avoid") for end in ("", "s", "ed", "ing")),
    *("dismiss" + end for end in ("", "es", "ed", "ing")),
    *(verb + end for verb in ("exclud", "eliminat", "ignor") for end in ("e", "es", "ed", "ing")),
    *(f"rul{end} out" for end in ("e", "es", "ed", "ing")),
    *(f"cross{end} out" for end in ("", "es", "ed", "ing")),
)
_FRACTIONS = ("half", "quarter", "third", "fourth", "fifth", "sixth", "eighth", "tenth", "percent")
_OTHERS = (
    "other than", "rather than", "instead of", "different from", "differs from", "anything but", "far from", "except",
    "except for", "unlike",
)  # fmt: skip
_CHANGES = ("twice", "thrice", *(f"{fraction} of" for fraction in _FRACTIONS), *_OTHERS)
_ASSUMPTIONS = ("suppose", "assume", "wonder")


def _one_of(phrases: Iterable[str]) -> str:
    return rf"(?:{'|'.join(phrases)})"


_NOT = rf"(?:\b{_one_of(_NEGATIONS)}\b|n't\b|n\u2019t\b) ?"
_UNTRUE = rf"(?:(?:\b(?<!no )(?<!not )(?<!n't )doubt|\b{_one_of(_FALSE)}) (?:that|if|whether) ?|\bwhether )"
_REJECT = rf"\b{_one_of(_REJECTIONS)} "
_COUNTS = r"one|two|three|four|five|six|seven|eight|nine|ten"
_CHANGED = (
    rf"\b(?:{_one_of(_CHANGES)}|(?:{_COUNTS}|\d{{1,9}}) times"
    rf"|(?:{_COUNTS}|\d{{1,9}}|[a-z]) (?:less|more|fewer|greater|larger|smaller|higher|lower) than) "
)
_BEFORE = re.compile(
    rf"(?:{_NOT}{_LINKS}:?|{_UNTRUE}{_LINKS}:?|{_REJECT}{_NOUNS}|{_CHANGED}{_NOUNS})[ $*(\[{{\\]*$", re.IGNORECASE
)
# Every denial before a value has one of these words, the longest one of its phrase, or "n't". They are quicker to look for.
_DENIALS = (*_NEGATIONS, *_FALSE, "doubt", "whether", *_REJECTIONS, *_CHANGES, "times", "than", "if", *_ASSUMPTIONS)
_WORDS_OF_DENIAL = frozenset(max(phrase.split(), key=len) for phrase in _DENIALS)
_WORD = re.compile(r"[a-z]+")
# Right after a value: its closing marks, then words that deny it.
_WRONG = (
    r"(?:wrong|incorrect|false|untrue|impossible|invalid|inadmissible|excluded|rejected|discarded|eliminated|ruled out|mistaken"
    r"|mistake|error|no\b|too (?:small|large|big|high|low|much|many|few)|absurd|nonsense|contradict(?:ion|ory)"
    r"|not (?:correct|right|valid|possible|allowed|true|acceptable|(?:the|an?|our) (?:\w{1,10} )?(?:answer|solution|root)))"
)
_BE = (
    r"(?:is|are|was|were|seems|looks|would be|must be|has to be|turns out to be|turned out to be|proved|gives|leads to)"
    r"(?: (?:clearly|obviously|definitely|also|simply|just|then|therefore|thus|surely|certainly|to be|the|an?))*"
)
_AFTER = re.compile(
    r"(?:"
    rf"(?:,? ?(?:which|but (?:this|that|it)|and (?:this|that|it)) )?{_BE} {_WRONG}\b"
    r"|(?:is|are|was|were) not\b|(?:is|are|was|were)n['\u2019]t\b"
    rf"|(?:\(|[-\u2013\u2014] ?|, ){_WRONG}\b"
    r"|(?:does|do|did)(?: not|n['\u2019]t) (?:\w{1,12} )?"
    r"(?:work|satisf|fit|hold|check|solve|apply|make sense|lie|belong|exist|match|count|give|help|answer|qualif|suffice)"
    r"|can(?:not|n?['\u2019]t| not)\b|fails?\b|(?:contradicts|violates)\b)",
    re.IGNORECASE,
)
# "Is it \boxed{5}?"; "if it were \boxed{5}, then"; "suppose it is \boxed{5}".
_MORE = r"(?!.*\b(?:then|so|thus|hence|we)\b)"
_IF = re.compile(rf"\s*(?:(?:so|but|and|now|then|that|what) )?if\b{_MORE}", re.IGNORECASE)
_SUPPOSE = re.compile(rf"\s*(?:let us |let's |we )?{_one_of(_ASSUMPTIONS)}\b{_MORE}", re.IGNORECASE)
_IF_GOES_ON = re.compile(r"(?:, (?:then|we|it|this|that|there|he|she|they|the)\b|then\b)")
# The first characters of what denies a value or asks for it, after the marks that close the value.
_GOES_ON = frozenset("?,(-\u2013\u2014abcdefghijklmnopqrstuvwxyzI")
_CLOSERS = " \t\n$*)]}\\"

# "by Theorem (B)", "see Figure (B)", "(A) or (B)".
_REFERENCE = re.compile(
    r"(?:\b(?:theorem|lemma|corollary|proposition|equation|eq\.?|identity|inequality|formula|definition|axiom|assumption)s?"
    r"|\b(?:by|from|see|using|in|per|via|cf\.?|under|to) (?:the )?(?:figure|fig\.?|part|case|step|line|rule|property|condition"
    r"|table|diagram|section|point|item|row|column|statement|exercise|problem|claim|remark|note|appendix|page)s?"
    r"|\b[A-J]\)?,? ?(?:or|nor|and)(?: (?:option|choice))?|\b(?:or|nor)(?: (?:option|choice))?) ?\(?$",
    re.IGNORECASE,
)

# Only for values without a mark.
_BOUND = re.compile(
    r"(?:\b(?:than|at least|at most|divisible by|multiple of)\b"
    r"|(?:\$|\\[)\]]) ?(?:or|and)) ?:? ?(?:\*\*)?[$\\(\[ ]*\n?$",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\s{0,4}(?:[Ii]f|[Ss]uppose|[Aa]ssume|[Ww]hether)\b(?![^.]*\b(?:then|we get|we find|we obtain)\b)"
    r"|.{0,400}\b(?:must|have to|need to) check\b"
)
_STATES = re.compile(r"\b(?:then|so|thus|hence|therefore|we (?:get|find|obtain|have))\b", re.IGNORECASE)
_CLOSING = " $*\n"
# "It cannot be 5" contains a number but states no answer.
_DENIAL = re.compile(r"(?:\b(?:not|cannot|never|neither|nor)\b|n't\b)[^,;:.]*$", re.IGNORECASE)
_HEDGE = re.compile(
    r"\b(?:than|at least|at most|between|instead|previously|case|part|step|problem|question|exercise)\b|≠|\\ne"
    r"|=[^=\n]{1,40}(?:\band\b|\bor\b|,)\s{0,3}[A-Za-z]\w?\s{0,3}=",  # two values: the last one alone is not the answer
    re.IGNORECASE,
)


def is_denied(before: str, after: str) -> bool:
    """Whether the text before or after a value denies it, changes it, asks for it or assumes it. For every kind of value."""
    after = after[:REACH].replace(_BOLD, "").lstrip(_CLOSERS)
    if after[:1] in _GOES_ON and (after[:1] == "?" or _AFTER.match(after)):
        return True
    clause = before[-REACH:]
    # The exact clause is looked for below. This is quick, and enough for most texts.
    clause = clause[max(clause.rfind("\n", 0, -2), clause.rfind(". ")) + 1 :]
    small = clause.lower()
    if "n't" not in small and "n\u2019t" not in small and _WORDS_OF_DENIAL.isdisjoint(_WORD.findall(small)):
        return False
    clause = clause.replace(_BOLD, "")
    opened = clause.rstrip(_OPENING)
    cuts = [cut.end() for cut in _CLAUSE.finditer(opened, 0, max(0, len(opened) - 1))]
    clause = clause[cuts[-1] if cuts else 0 :]
    if _BEFORE.search(clause) or _SUPPOSE.match(clause):
        return True
    return _IF.match(clause) is not None and _IF_GOES_ON.match(after) is not None


def is_no_choice(before: str, after: str) -> bool:
    """Whether the letter of a choice is denied, is one of two, or is the name of a theorem or a figure."""
    return _REFERENCE.search(before[-REACH:]) is not None or is_denied(before, after)


def is_no_statement(before: str, after: str) -> bool:
    """Whether a formula without a mark is denied, or is a bound, one of two, asked for or a condition."""
    line = before[before.rfind("\n") + 1 :]
    question = after.rstrip(_CLOSING).endswith("?")
    asks = question or (_CONDITION.match(line) is not None and not _STATES.search(line))
    return asks or _BOUND.search(line) is not None or is_denied(before, after)


def is_condition(line: str) -> bool:
    """Whether a line is a condition, a question or a plan. Such a line states nothing."""
    return line.endswith("?") or _CONDITION.match(line) is not None


def denies(line: str) -> bool:
    """Whether a line without marks denies what its last clause says."""
    return _DENIAL.search(line.rstrip(". ")) is not None


def hedges_number(line: str) -> bool:
    """Whether a line compares its number, gives several, or names a step or a problem by it."""
    return _HEDGE.search(line) is not None
