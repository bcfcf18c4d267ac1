r"""Extracts the final answer from a text, and detects when a growing text has stated it. Pure, linear time, never raises.

The last explicit statement is the answer: `\boxed{x}` or `\fbox{x}` (with nested braces; also `\boxed 5`), `#### x`,
"the answer is x", "Answer: x", a last line "A: x", or a text that consists only of a number or formula. Boxes that are joined
only by commas, "and" or "or" are one answer.

Not covered: an answer in none of these forms (unless a fallback is requested), and an answer longer than `MAX_STATEMENT`
characters, which is cut and is therefore over the limits. A box that is never closed is no answer.

In a growing text, a statement is complete when its line has ended and plain text on the next lines cannot change the final
answer: a closed `\boxed{}`, `#### 72`, "the answer is 27". A form that is an answer only at the end of the text does not count:
a bare number, a last line "A: 27", a heading "#### Step 1". A sentence that continues after the line ("The answer is the sum
of:") is not complete, and neither is an answer in many words.
Not covered: a text that later retracts its answer or states another one.
"""

import re
from dataclasses import dataclass
from operator import itemgetter

from pipeline.config.choices import Fallback
from pipeline.graders.math.choices import are_consecutive
from pipeline.graders.math.denials import REACH, is_denied
from pipeline.graders.math.fallback_answer import MAX_BARE, MAX_SCAN, TAIL, closing_statement, last_number
from pipeline.graders.math.long_integers import is_long_integer
from pipeline.graders.math.multipliers import with_multiplier
from pipeline.graders.math.turns import first_turn
from pipeline.graders.thinking import outside_thinking

MAX_STATEMENT = 2_000
MAX_MENTIONS = 500
CUT = "…"
MAX_BOXES = 8
MAX_ANSWER_WORDS = 6
MAX_STATED_WORDS = 2
"""For an answer without a digit in a growing text: "yes", "New York". A longer one may be the beginning of an explanation."""
MAX_STATED_WORDS_WITH_NUMBER = 4
"""For an answer with a digit in a growing text: "27 shells in all". A LaTeX formula may be longer."""

MAX_BLANKS = 8
MAX_LISTED = 16
MAX_LISTED_CHARS = 60
MAX_LAST_LINE = 300

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
# A line of a list: "- 5", "* 5", "1. 5", "1) 5".
_ITEM_TEXT = r"(?P<mark>[-*+•]|\d{1,2}[.)])[ \t]+(?P<value>[^\n]{1,200})"
_ITEM = re.compile(rf"[ \t*]{{0,4}}\s{{0,8}}{_ITEM_TEXT}")
_NEXT_ITEM = re.compile(rf"[ \t]{{0,4}}\n[ \t]{{0,8}}{_ITEM_TEXT}")
# More items may follow, until a blank line.
_LAST_ITEM = re.compile(r"(?:^|\n)[ \t]{0,8}(?:[-*+•]|\d{1,2}[.)])[ \t]+[^\n\\]{1,200}\n$")
_BOLD = re.compile(r"(?<![\w)*])\*\*(?=[^\s*])([^*\n]{1,60})(?<=\S)\*\*(?![\w(*])")
_LONG_INTEGER = re.compile(r"[\s$*#(\\\[]{0,12}[-+]?[\d,]{1000,40000}")
_BOXES = ("\\boxed", "\\fbox")
# One of these is in every text with parts. They are quicker to look for.
_PART_MARKS = ("a)", "i)", "(1)", "art ", "art(", "art\n")
# The label of a part at the beginning of a line or after a box: (a), a), (1), **Part (a)**, Part 1:
_PART = re.compile(
    r"(?:^|[\n,;]|(?<=\})[$.]{0,3})[ \t#*>-]{0,8}"
    r"(?:[Pp]art\s{0,2}\(?([a-h]|[1-8]|i{1,3}|iv|vi?)[).:]|\(?([a-h]|i{1,3}|iv|vi?)\)|\(([1-8])\))"
)
_BARE_BOX = re.compile(r"\s*(-?[\w.,/]{1,100})")
_JOINT = re.compile(
    r"[\s$.]*(?:\\[()\[\]])*[\s$]*(?:,|;|and|or|,\s*and|\\quad|\\text\s*\{\s*,?\s*(?:and|or)\s*\}|\\[()\[\]]|[\s$]|[A-Za-z](?:_(?:\w|\{\w{1,4}\}))?\s{0,2}=)*",
    re.ASCII,
)
_JOINER = re.compile(r"[,;]|and|or")
_MENTIONS = ("nswer", "NSWER", "答案", "故选")
_STATEMENT = re.compile(
    r"答案\s{0,4}(?:是|为|选|[:：=])[:：\s]{0,4}|故选\s{0,4}[:：]?\s{0,4}|nswers?(?:\s{0,4}\*{2})?(?:"
    r"\s{0,4}[:=：](?:\s{0,4}\*{2})?"
    r"|(?:\s{1,4}(?:to|for|of)\s[^.\n]{1,80}?)?"
    r"\s{1,4}(?:is|are|was|equals|would be|will be|should be|must be)\b\s{0,4}[:=]?"
    r"|\s{0,4}\*{0,2}\s{0,40}\n(?=\s{0,4}(?:\$|\\[(\[]|\*\*|[-\d]))"
    r"|\s{1,4}(?=\\[(\[]|\$))",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:\s|\*\*|therefore\b,?|thus\b,?|then\b|simply\b|just\b|exactly\b|equal to\b|approximately\b|about\b|indeed\b"
    r"|(?:the )?(?:option|choice)\b|:)*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r",\s(?:it|they|he|she|we|not|rather)\s|\s(?:rather than|instead of|and not)\s"
    r"|[.。](?=\s|$|\*|\"|'|<|\$\s|\$$)|\n|(?:,|;|\s)\s{0,4}(?:because|since|which|so|as|where|with|but|when)\s"
)
# What ends a sentence that goes on after a clause: "The number which satisfies both is 12".
_CLAUSES_END = re.compile(
    r",\s(?:it|they|he|she|we|not|rather)\s|\s(?:rather than|instead of|and not)\s"
    r"|[.。](?=\s|$|\*|\"|'|<|\$\s|\$$)|\n|(?:,|;|\s)\s{0,4}(?:because|since|so(?! that))\s"
)
_CLAUSES = re.compile(r"\b(?:which|where|with|when|but|as|so that)\b")
_VALUE_INSIDE = re.compile(r"[\d\\$]")
_CLOSERS = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_DELIMITER = re.compile(r"(?<!\\)\\[()\[\]]")
_DOLLAR = re.compile(r"(?<!\\)\$")
_WRAP = ' \t\r\n\f\v*`"“”‘'
_TAGS = re.compile(r"(?:\s*(?:ки|<[|/][a-z_|]{1,20}>))+$")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?|[A-Za-z]")
# A sentence that begins with "the" and states a value after a verb.
_SENTENCE = re.compile(
    r"[Tt]he (?:[^\W\d_]{1,20}[,']? |\d{1,9},? |\$[^$\n]{1,40}\$,? ){1,30}?(?:is|are|equals|is equal to) (?=[^A-Za-z])"
)
_DENIED = re.compile(r"\b(?:not|no|never|cannot|if|than|unless|without|except|between|at least|at most)\b|n't\b")
_VALUE = re.compile(r"[-+$*\\(\d.]")
_SECOND = re.compile(r"[A-Za-z]{2,} .*\d|\b(?:and|or)\b")
_HEADING = re.compile(r"nswer\s{0,4}\*{0,2}\s{0,8}\n\s{0,40}")
_BARE_ANSWER = re.compile(r"(?:[$£€]|\\\(|\\\[|[-+]?\.?\d)[^\n ]*(?: [^\n ]+){0,3}")
_DIGIT = re.compile(r"\d")
_ANSWER = re.compile(r"[-+$£€(\[{]*(?:[\d.]|\\(?!text))|\(?[A-J]\)?$|[A-Za-z]\w? ?=")
_RETRACTION = re.compile(r"\b(?:wait|actually|mistaken?|oops|re-?check|correction|should be)\b", re.IGNORECASE)
_NO_PAYLOAD = re.compile(
    r"(?:in)?correct|right|wrong|reasonable|valid|not\b.*|found|complete|as follows|below|given by|clear", re.I
)
_CLOSING_LINE = re.compile(r"[^\n]{1,64}")
_CHECKING = re.compile(
    r"(?:check|verif|confirm|test|review|compar)\w*\s{1,4}(?:\w{1,6}\s{1,4}){0,2}(?:final\s{1,4})?[Aa]$", re.IGNORECASE
)
_CLAUSE_END = re.compile(r"[.;,!?](?=\s)|\n")
_MARKS = re.compile(r"nswer|NSWER|答案|故选|\\boxed|\\fbox|####")
_MORE = "\nNext"
_OPEN = (*":,;=+-*/([{", " and", " or")
_TAGGED = re.compile(r"<answer>(.{1,2000}?)(?:</answer>|$)", re.DOTALL)


def final_answer(
    text: str, *, pattern: re.Pattern[str] | None = None, fallback: Fallback = Fallback.none
) -> str | None:
    """The answer that `text` states last, without wrappers, or None. The text ends at its first mark of an end of turn.

    The first group of the last match of `pattern` takes precedence over all built-in markers. The running time of `pattern` is
    not limited here.
    """
    if pattern is not None:
        matches = list(pattern.finditer(text))
        if matches and matches[-1].group(1):
            return unwrap(matches[-1].group(1)) or None
    text = first_turn(text)
    parts = outside_thinking(text)
    if parts is None:
        return None
    text = next((part for part in reversed(parts) if part.strip()), "")
    answer = _stated(text)
    if answer is None and len(parts) > 1:
        text = "\n".join(parts)
        answer = _stated(text)
    if answer is not None and _is_taken_back(text, answer):
        answer = None
    if answer is None and fallback is Fallback.last_number:
        return last_number(text)
    if answer is None and fallback is Fallback.closing_statement:
        closing = closing_statement(_after_denied_boxes(text))
        return unwrap(closing) or None if closing else None
    return answer


def _is_taken_back(text: str, answer: str) -> bool:
    """Whether the text after the statement retracts it and names another number: "Wait, actually it is 6"."""
    position = text.rfind(answer)
    after = text[position + len(answer) :][:MAX_STATEMENT] if position >= 0 else ""
    turn = _RETRACTION.search(after)
    return turn is not None and _DIGIT.search(after, turn.end()) is not None


def _stated(text: str) -> str | None:
    tag = text.rfind("<answer>")
    if tag >= 0:
        inside = _TAGGED.match(text, tag)
        if inside:
            text = inside.group(1)
            return _stated_plainly(text) or unwrap(text) or None
    return _stated_plainly(text)


def _stated_plainly(text: str) -> str | None:
    box = _last_box(text, len(text))
    if box >= 0:
        content, end = _box_at(text, box)
        if content is not None and is_denied(text[max(0, box - REACH) : box], text[end : end + REACH]):
            return _stated_beside(text, box, end)
        said = _last_statement(text, max(box, end))
        # "\\boxed{5}. The answer is given as an integer" does not replace the boxed answer.
        if said is not None and (content is None or not _DIGIT.search(content) or _ANSWER.match(said)):
            return said
        if content is None:
            return None
        several = text.find("\\boxed", 0, box) >= 0
        return (_boxes_of_parts(text) if several else None) or _join_boxes(text, box, content)
    said = _last_statement(text, 0)
    if said is None and len(text) <= MAX_BARE and _BARE_ANSWER.fullmatch(text.strip()):
        return unwrap(text) or None
    return said


def _last_box(text: str, end: int) -> int:
    """The position of the last box command before `end`, or -1."""
    return max(text.rfind("\\boxed", 0, end), text.rfind("\\fbox", 0, end))


def _stated_beside(text: str, box: int, end: int) -> str | None:
    """The answer of a text whose last box is denied: a statement after that box, else what the text before it states."""
    said = _last_statement(text, end)
    for _ in range(MAX_BOXES if said is None else 0):
        text = text[:box]
        box = _last_box(text, box)
        content, end = _box_at(text, box) if box >= 0 else (None, 0)
        if content is None:
            break
        if not is_denied(text[max(0, box - REACH) : box], text[end : end + REACH]):
            return _join_boxes(text, box, content)
    return said


def _after_denied_boxes(text: str) -> str:
    """The text after the clause of its last box. All of it if the text has no box."""
    box = _last_box(text, len(text))
    content, end = _box_at(text, box) if box >= 0 else (None, 0)
    if content is None:
        return text
    clause = _CLAUSE_END.search(text, end)
    return text[clause.end() :] if clause else ""


def _last_statement(text: str, start: int) -> str | None:
    """The last statement in words or after hashes that begins at or after `start`."""
    hashes = text.rfind("####", start)
    if hashes >= 0:
        line = _chunk(text, hashes + 4).lstrip("# \t")
        stop = line.find("\n")
        payload = line if stop < 0 else line[:stop]
        # "#### Step 3: check" is a heading if text follows below it.
        heading = stop >= 0 and payload[:2].isalpha() and bool(line[stop:].strip())
        if not heading and payload.strip():
            said = _in_words(text, hashes)
            return unwrap(payload) or None if said is None else said
    said = _in_words(text, start)
    if said is None:
        line_start = max(text.rfind("\nA: ", start), 0 if text.startswith("A: ") and start == 0 else -1)
        if line_start >= 0:
            line_start += 3 if text[line_start] == "\n" else 2
            rest = _CLOSING_LINE.match(text, line_start)
            if rest and not text[rest.end() : rest.end() + TAIL].strip():
                return unwrap(rest.group()) or None
    return said


def _in_words(text: str, start: int) -> str | None:
    """The payload x of the last "answer is x" or "Answer: x" at or after `start`."""
    mentions = {mark: text.rfind(mark, start) for mark in _MENTIONS}
    for _ in range(MAX_MENTIONS):
        mark, found = max(mentions.items(), key=itemgetter(1))
        if found < 0:
            return None
        match = _STATEMENT.match(text, found) or _heading(text, found)
        if match and not _CHECKING.search(text, max(0, found - 40), found):
            items = _listed(text, found, match.end()) if "\n" in text[found : match.end() + MAX_BLANKS] else None
            payload = _value_of_sentence(_payload(text, match.end())) if items is None else items
            if (
                payload
                and not _NO_PAYLOAD.fullmatch(payload)
                and not _is_prose(payload)
                and not _is_denied_in_words(text, found, match.end(), payload)
            ):
                return payload
        mentions[mark] = text.rfind(mark, start, found)
    return None


def _listed(text: str, mention: int, start: int) -> str | None:
    """The items of the list below a heading, as "5, 6". None if no list follows. Empty if its items are no values.

    A dash or number before a blank is a mark of the list: below "Answer:" the line "- 5" states 5, and so does "1. 5".
    """
    item = _ITEM.match(text, start)
    if item is None or "\n" not in text[mention : item.start("mark")]:
        return None
    values, marks = list[str](), list[str]()
    while item is not None and len(values) < MAX_LISTED:
        values.append(unwrap(item["value"]))
        marks.append(item["mark"])
        item = _NEXT_ITEM.match(text, item.end())
    numbers = [mark.strip(".)") for mark in marks if mark[0].isdigit()]
    ordered = numbers == [str(number) for number in range(1, len(marks) + 1)] if numbers else len(set(marks)) == 1
    short = all(value and len(value) <= MAX_LISTED_CHARS and value.count(" ") < MAX_ANSWER_WORDS for value in values)
    return ", ".join(values) if ordered and short and item is None else ""


def _is_denied_in_words(text: str, mention: int, start: int, payload: str) -> bool:
    """Whether a sentence denies the payload after `start`: "I do not think the answer is 5", "it is 5, which is wrong"."""
    at = text.find(payload, start, start + len(payload) + REACH)
    end = at + len(payload) if at >= 0 else len(text)
    return is_denied(text[max(0, mention - REACH) : mention], text[end : end + REACH])


def _value_of_sentence(payload: str) -> str:
    """The value that a sentence after a heading states, as 12 in "The number of ways is 12". Else the payload."""
    sentence = _SENTENCE.match(payload) if payload[:4] in ("The ", "the ") else None
    if sentence is None or _DENIED.search(sentence.group()) or not _VALUE.match(payload, sentence.end()):
        return payload
    value = payload[sentence.end() :]
    if _CLAUSES.search(sentence.group()):
        stop = _SENTENCE_END.search(value)
        value = value[: stop.start()] if stop else value
    return payload if _SECOND.search(value) or _DENIED.search(value) else unwrap(value)


def _is_prose(payload: str) -> bool:
    """Whether "Answer:" introduces a solution in words ("Answer: let us first see how many") instead of an answer."""
    return payload.count(" ") >= MAX_ANSWER_WORDS and not _DIGIT.search(payload) and "\\" not in payload


def _heading(text: str, found: int) -> re.Match[str] | None:
    """A heading such as "# Answer" or "**Final Answer**", with the answer on the line below it."""
    line = text.rfind("\n", max(0, found - 40), found) + 1
    return _HEADING.match(text, found) if text[line : line + 2] in ("# ", "##", "**") else None


def _payload(text: str, start: int) -> str:
    """The text after the words "the answer is": the formula that begins there, or all up to the end of the sentence."""
    chunk = _chunk(text, start)
    opening = _OPENING.match(chunk)
    chunk = chunk[opening.end() :] if opening else chunk
    closer = _CLOSERS.get(chunk[:2])
    if closer:
        close = chunk.find(closer, 2)
        if close >= 0:
            value = unwrap(chunk[2:close])
            return with_multiplier(value, chunk[close + 2 :]) or unwrap(chunk)
    stop = _SENTENCE_END.search(chunk)
    if stop and chunk[:4] in ("The ", "the ") and not _VALUE_INSIDE.search(chunk, 0, stop.start()):
        # "The number which satisfies both is 12" states its value after a clause.
        end = _CLAUSES_END.search(chunk)
        whole = unwrap((chunk[: end.start()] if end else chunk).rstrip("! "))
        value = _value_of_sentence(whole)
        if value != whole:
            return value
    # In prose the mark after "42!" is punctuation, not a factorial.
    said = (chunk[: stop.start()] if stop else chunk).rstrip("! ")
    return unwrap(_BOLD.sub(r"\1", said) if "**" in said else said)


def _chunk(text: str, start: int) -> str:
    """The text that may hold a statement: `MAX_STATEMENT` characters, or all of a longer integer and what follows it."""
    if len(text) - start <= MAX_STATEMENT:
        return text[start:]
    integer = _LONG_INTEGER.match(text, start)
    return text[start : (integer.end() if integer else start) + MAX_STATEMENT]


def _box_at(text: str, box: int) -> tuple[str | None, int]:
    """Content and end position of the box command at `box`. The content is None if the box is never closed."""
    start = box + (6 if text.startswith("\\boxed", box) else 5)
    opened = start
    while opened < len(text) and opened < start + 8 and text[opened].isspace():
        opened += 1
    if opened >= len(text) or text[opened] != "{":
        bare = _BARE_BOX.match(text, start)
        return (bare.group(1), bare.end()) if bare else (None, start)
    depth = 0
    for brace in _BRACE.finditer(text, opened, opened + MAX_SCAN):
        mark = brace.group()
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                return text[opened + 1 : brace.start()], brace.end()
    return None, start


def _boxes_of_parts(text: str) -> str | None:
    """All boxes with their labels, if each box belongs to a part of its own: (a), (b), and so on. None for other texts."""
    if not any(mark in text for mark in _PART_MARKS) or not _PART.search(text):
        return None
    labels: list[str] = []
    contents: list[str] = []
    start = 0
    while (box := min((at for at in (text.find(mark, start) for mark in _BOXES) if at >= 0), default=-1)) >= 0:
        content, end = _box_at(text, box)
        found = _PART.findall(text, start, box)
        if len(found) != 1 or content is None or len(labels) == MAX_BOXES:
            return None
        labels.append(next(label for label in found[0] if label))
        contents.append(content)
        start = end
    parts = len(labels) > 1 and are_consecutive(labels)
    if not parts or _PART.search(text, start) or _RETRACTION.search(text, text.find(contents[0])):
        return None
    # The parts 1, 2 become a, b.
    names = "abcdefgh" if labels[0] == "1" else labels
    return ", ".join(f"({label}) \\boxed{{{content}}}" for label, content in zip(names, contents, strict=False))


def _join_boxes(text: str, box: int, content: str) -> str | None:
    """The last box and the boxes before it that are joined to it only by commas, "and" or "or"."""
    parts = [unwrap(content)]
    for _ in range(MAX_BOXES):
        earlier = max(text.rfind("\\boxed", 0, box), text.rfind("\\fbox", 0, box))
        if earlier < 0:
            break
        inside, end = _box_at(text, earlier)
        if inside is None or end > box or box - end > 40:
            break
        between = text[end:box]
        if not _JOINER.search(between) or not _JOINT.fullmatch(between):
            break
        parts.append(unwrap(inside))
        box = earlier
    distinct = list(dict.fromkeys(part for part in reversed(parts) if part))
    return ", ".join(distinct) or None


def unwrap(answer: str) -> str:
    """An answer without the wrappers that carry no meaning: `**`, quotes, `$`, `\\(`, a trailing full stop."""
    if _PLAIN.fullmatch(answer):
        return answer
    if len(answer) > MAX_STATEMENT and not is_long_integer(answer):
        # The mark keeps the beginning of a longer text from being read as an answer.
        answer = answer[:MAX_STATEMENT] + CUT
    answer = _DOLLAR.sub("", answer).replace('\\"', '"').strip()
    if answer.endswith(("и", ">")):
        answer = _TAGS.sub("", answer)
    if "\\" in answer:
        answer = _DELIMITER.sub("", answer)
    previous = None
    while answer != previous:
        previous = answer
        answer = answer.strip(_WRAP).rstrip(".,;:。")
        if answer.startswith(("'", "’")):
            # A single mark at the end is a prime, so it stays.
            answer = answer[1:].removesuffix(answer[0])
        if answer.startswith(("\\boxed{", "\\fbox{")) and answer.endswith("}"):
            answer = answer[answer.index("{") + 1 : -1]
    # Stripping may leave a backslash without a meaning ("5\.", "\ 5").
    return answer.rstrip("\\ ")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSeen:
    """Detects a stated answer in a growing text. `pattern` is `grader.answer_pattern`. Its running time is not limited here."""

    pattern: re.Pattern[str] | None = None

    def may_state(self, piece: str) -> bool:
        """Whether a line may state an answer. This test is quick, and false for most lines."""
        return self.pattern is not None or _MARKS.search(piece) is not None

    def complete(self, text: str) -> bool:
        """Whether `text` has stated its final answer. Ignores everything after the last line end."""
        lines = text[: text.rfind("\n") + 1]
        if lines.rstrip(" \t\r\n").endswith(_OPEN) or _LAST_ITEM.search(lines[-MAX_LAST_LINE:]):
            return False
        answer = final_answer(lines, pattern=self.pattern)
        return answer is not None and _is_short(answer) and final_answer(lines + _MORE, pattern=self.pattern) == answer


def _is_short(answer: str) -> bool:
    most = MAX_STATED_WORDS_WITH_NUMBER if _DIGIT.search(answer) else MAX_STATED_WORDS
    return "\\" in answer or len(answer.split()) <= most
