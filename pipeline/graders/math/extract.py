r"""Extracts the final answer from a text, and detects when a growing text has stated it. Pure, linear time, never raises.

The last explicit statement is the answer: `\boxed{x}` or `\fbox{x}` (with nested braces; also `\boxed 5`), `#### x`, "the
answer is x", "Answer: x", a last line "A: x", `"answer": x` in JSON, or a text that consists only of a number or formula. Boxes
that are joined only by commas, "and" or "or" are one answer. A mark that is empty, a placeholder or never closed is none.
Not covered: an answer in none of these forms (unless a fallback is requested), and one longer than `MAX_STATEMENT` characters,
which is cut and is therefore over the limits.

In a growing text, a statement is complete when its line has ended and plain text on the next lines cannot change the final
answer: no bare number, last line "A: 27", heading "#### Step 1", sentence that goes on, or answer in many words.
Not covered: a text that later retracts its answer or states another one.
"""

import re
from dataclasses import dataclass
from operator import itemgetter

from pipeline.config.choices import Fallback
from pipeline.data.thinking import outside_thinking
from pipeline.graders.math.choices import are_consecutive
from pipeline.graders.math.denials import REACH, is_denied
from pipeline.graders.math.fallback_answer import (
    EMOJI,
    MAX_BARE,
    MAX_SCAN,
    NOT_BUT,
    TAIL,
    closing_statement,
    last_number,
    with_multiplier,
    without_ornaments,
    without_remark,
)
from pipeline.graders.math.limits import is_long_integer
from pipeline.graders.math.turns import first_problem, first_turn
from pipeline.graders.math.wording import phrase

MAX_STATEMENT = 2_000
MAX_MENTIONS = 500
CUT = "…"
MAX_BOXES = 8
MAX_ANSWER_WORDS = 6
# In a growing text, without a digit ("New York") and with one ("27 shells in all"). A longer text may be an explanation.
MAX_STATED_WORDS, MAX_STATED_WORDS_WITH_NUMBER = 2, 4
MAX_BLANKS = 8
MAX_LISTED, MAX_LISTED_CHARS = 16, 60
MAX_LAST_LINE = 300

_OPENED = re.compile(r"\s{0,8}\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
# A line of a list: "- 5", "* 5", "1. 5", "1) 5".
_ITEM_TEXT = r"(?P<mark>[-*+•]|\d{1,2}[.)])[ \t]+(?P<value>[^\n]{1,200})"
_ITEM = re.compile(rf"[ \t*]{{0,4}}\s{{0,8}}{_ITEM_TEXT}")
_NEXT_ITEM = re.compile(rf"[ \t]{{0,4}}\n[ \t]{{0,8}}{_ITEM_TEXT}")
# More items may follow, until a blank line.
_LAST_ITEM = re.compile(r"(?:^|\n)[ \t]{0,8}(?:[-*+•]|\d{1,2}[.)])[ \t]+[^\n\\]{1,200}\n$")
_BOLD = re.compile(r"(?<![\w)*=])(\*\*|==|__)(?=[^\s*=_])([^*\n]{1,60}?)(?<=\S)\1(?![\w(*=])")
_LONG_INTEGER = re.compile(r"[\s$*#(\\\[]{0,12}[-+]?[\d,]{1000,40000}")
_BOX = "\\boxed"
# Also one whose backslash JSON has taken.
_OTHER_BOXES = re.compile(r"\\(?:f|frame|oval)box(?![a-z])|\x08oxed(?![a-z])")
# One of these is in every text with parts. They are quicker to look for.
_PART_MARKS = ("a)", "i)", "(1)", "art ", "art(", "art\n")
# The label of a part at the beginning of a line or after a box: (a), a), (1), **Part (a)**, Part 1:
_PART = re.compile(
    r"(?:^|[\n,;]|(?<=\})[$.]{0,3})[ \t#*>-]{0,8}"
    r"(?:[Pp]art\s{0,2}\(?([a-h]|[1-8]|i{1,3}|iv|vi?)[).:]|\(?([a-h]|i{1,3}|iv|vi?)\)|\(([1-8])\))"
)
_BARE_BOX = re.compile(r"[ \t]{0,4}(-?(?=[\w.,/]{0,20}\d)[\w.,/]{1,100}|[A-J](?=[ \t.$]{0,4}(?:\n|$)))")
_JOINT = re.compile(
    r"[\s$.]*(?:\\[()\[\]])*[\s$]*(?:,|;|and|or|,\s*and|\\quad|\\text\s*\{\s*,?\s*(?:and|or)\s*\}|\\[()\[\]]|[\s$]|[A-Za-z](?:_(?:\w|\{\w{1,4}\}))?\s{0,2}=)*",
    re.ASCII,
)
_JOINER = re.compile(r"[,;]|and|or")
_MENTIONS = ("nswer", "NSWER", "答案", "故选")
_STATEMENT = re.compile(
    r"答案\s{0,4}(?:是|为|选|[:：=】])[:：\s]{0,4}|故选\s{0,4}[:：]?\s{0,4}|nswers?(?:\s{0,4}\*{2})?(?:"
    r"\s{0,4}[:=：】](?:\s{0,4}\*{2})?"
    r"|(?:\s{1,4}(?:to|for|of)\s[^.\n]{1,80}?)?"
    r"\s{1,4}(?:is|are|was|equals|would be|will be|should be|must be)\b\s{0,4}(?::|=(?!=))?"
    r"|\s{0,4}\*{0,2}\s{0,40}\n(?=\s{0,4}(?:\$|\\[(\[]|\*\*|[-\d]))"
    r"|\s{1,4}(?=\\[(\[]|\$)|\s{1,4}isn['’]t\s[^.\n]{1,40},?\sbut(?! also)\b)",
    re.IGNORECASE,
)
_OPENING = phrase(
    rf"(?:\n\s{{0,4}}>[ ]|\s|\*\*|:|→|{EMOJI}"
    r"|<before_value>(?!\w),?|(?!<not_quite>)[a-z]{2,11}ly,?\s(?=[$*({\[-]{0,4}[\d\\$])"
    r"|(?:the )?(?:option|choice)\b|, ?<aside>,(?=\s[$*({\[-]{0,4}[\d\\$])|\(<aside>\)|<called>\s(?=[$\\*(-]{0,4}[\d\\])"
    rf"|{NOT_BUT}"
    r"|(?P<fence>```|~~~)(?:text|txt|plaintext|latex|math|markdown|output|json)?\n(?=[^\n`]{1,200}\n\s{0,4}(?P=fence)))*",
    re.IGNORECASE,
)
_END = (
    r",\s(?:it|they|he|she|we|not|rather)\s|\s(?:rather than|instead of|and not)\s"
    r"|(?!(?<=^[A-J])\. [$\\-]{0,2}\d\S{0,20}\s*$)[.。](?=\s|$|\*|\"|'|<|\$\s|\$$)|!(?=\s[A-Z][a-z])|\n"
    r"|(?:,|;|\s)\s{0,4}(?:because|since|so%s)\s|[,;]\s(?:hence|thus|therefore)\s"
)
_SENTENCE_END = re.compile(_END % "|which|as|where|with|but|when")
# What ends a sentence that goes on after a clause: "The number which satisfies both is 12".
_CLAUSES_END = re.compile(_END % "(?! that)")
_CLAUSES = re.compile(r"\b(?:which|where|with|when|but|as|so that)\b")
_VALUE_INSIDE = re.compile(r"[\d\\$]")
_CLOSERS = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_DELIMITER = re.compile(r"(?<!\\)\\[()\[\]]")
_DOLLAR = re.compile(r"(?<!\\)\$")
_RECURRING = re.compile(r"\.\d{0,40}?(\d{1,12}?)\1(?:\.\.\.|…)$")
_WRAP = ' \t\r\n\f\v*`"“”‘'
_ALIGNED = re.compile(
    r"\\begin\{(?:align(?:ed|\*)?|array\}\{[lcr])\}([^{}]*(?:\{[^\n]*)?)\\end\{[a-z*]{5,8}\}", re.DOTALL
)
_GOES_ON = re.compile(r"\\\\\s{0,8}&?\s{0,8}=")
_TAGS = re.compile(r"(?:\s*(?:ки|<[|/][a-z_|]{1,20}>))+$")
# Tags of HTML that change nothing but the look, those that begin a line, and the heading of a text in LaTeX.
_LOOK = re.compile(r"</?(?:b|strong|i|em|u|mark|span|code)>|\\text\s?\{\s?(?:[Ff]inal )?[Aa]nswer\s?:\s?\}")
_NEW_LINE = re.compile(r"</?(?:br|p|div|center)\s?/?>|<\|(?:START_RESPONSE|begin_of_solution)\|>", re.IGNORECASE)
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?|[A-Za-z]")
# A sentence that begins with "the" and states a value after a verb.
_SENTENCE = re.compile(
    r"[Tt]he (?:[^\W\d_]{1,20}[,']? |\d{1,9},? |\$[^$\n]{1,40}\$,? ){1,30}?(?:is|are|equals|is equal to) (?=[^A-Za-z])"
)
# "6 times 7 equals 42".
_PRODUCT = re.compile(r"\d[\d.,]{0,12} (?:[a-z]{1,12} ){1,3}\d[\d.,]{0,12} (?:equals|is|gives|makes) (\d[\d.,]{0,40})")
_DENIED = re.compile(r"\b(?:not|no|never|cannot|if|than|unless|without|except|between|at least|at most)\b|n't\b")
_VALUE = re.compile(r"[-+$*\\(\d.]")
_SECOND = re.compile(r"[A-Za-z]{2,} .*\d|\b(?:and|or)\b")
_HEADING = re.compile(r"nswer\s{0,4}\*{0,2}\s{0,8}\n\s{0,40}")
_BARE_ANSWER = re.compile(r"(?:[$£€]|\\\(|\\\[|[-+]?\.?\d)[^\n ]*(?: [^\n ]+){0,3}")
_DIGIT = re.compile(r"\d")
_ANSWER = re.compile(r"[-+$£€(\[{]*(?:[\d.]|\\(?!text))|\(?[A-J]\)?$|[A-Za-z]\w? ?=")
_RETRACTION = phrase(r"\b<retraction>\b", re.IGNORECASE)
_NO_PAYLOAD = phrase(r"<no_payload>|not\b.*|(?:in|inside|within|enclosed) .{0,20}<around>.*", re.IGNORECASE | re.DOTALL)
_CLOSING_LINE = re.compile(r"\n?A: ([^\n]{1,64})")
_CHECKING = phrase(r"<checking>\w{0,9}\s{1,4}(?:\w{1,6}\s{1,4}){0,2}(?:final\s{1,4})?[Aa]$", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.;,!?](?=\s)|\n")
_MARKS = re.compile(r"nswer|NSWER|答案|故选|box|####")
_MORE = "\nNext"
_OPEN = (*":,;=+-*/([{", " and", " or")
_TAGGED = re.compile(r"<answer>(.{0,2000}?)(?:(</answer>)|$)", re.DOTALL)
_TAG_IS_NAMED = re.compile(r"[`'\"]| tags?\b")
# What a box holds that shows where the answer goes, and what a text calls the answer there.
_EMPTY = re.compile(r"(?:[\s.…_?~$*{}]|\\(?:[lc]?dots|quad|text|underline)\b|\\[_,;!: ])*")
_PLACEHOLDER = phrase(r"(?:<whose> )*<placeholder>(?: (?:goes )?here)?", re.IGNORECASE)
_WRAPPERS = re.compile(r"\\(?:text\w*|boxed|mathrm|quad|[ ,;!])|[\s{}<>\[\]$*_.`]+")
# The answer of an object in JSON at the end of a text.
_JSON_END = re.compile(r"[}\]]\s{0,8}(?:```)?\s{0,8}$")
_JSON = re.compile(
    r"[\"'](?i:(?P<answer>(?:final[ _]?)?answer)|result)[\"']\s{0,4}:\s{0,4}"
    r"(?P<value>\"(?:[^\"\\\n]|\\.){1,300}\"|'[^'\n]{1,300}'|\[[^\[\]\n]{1,300}\]|[-\w.+/]{1,60})\s{0,8}[,}\n]"
)


def final_answer(
    text: str, *, pattern: re.Pattern[str] | None = None, fallback: Fallback = Fallback.none, complete: bool = True
) -> str | None:
    """The answer that `text` states last, without wrappers, or None. The text ends at its first mark of an end of turn.

    The first group of the last match of `pattern` takes precedence over all built-in markers. The running time of `pattern` is
    not limited here. In a text that was cut short (`complete` is false) `fallback` is ignored, and a statement at its end may
    be the beginning of another one: there the statement before it counts if the last one begins to repeat it.
    """
    if complete:
        return _final(text, pattern, fallback)
    answer = _final(text, pattern, Fallback.none)
    cut = text.rstrip(", ")
    if (
        answer is None
        or not cut.removesuffix(".").endswith(answer)
        or _final(text + "0", pattern, Fallback.none) == answer
    ):
        return answer
    marks = [mark.start() for mark in (pattern or _MARKS).finditer(text)]
    before = _final(text[: marks[-1]], pattern, Fallback.none) if marks else None
    if before and before.startswith(answer) and not _is_taken_back(text, before):
        return before
    return answer if cut.endswith(".") else None


def _final(text: str, pattern: re.Pattern[str] | None, fallback: Fallback) -> str | None:
    matches = list(pattern.finditer(text)) if pattern is not None else []
    if matches and matches[-1].group(1):
        return unwrap(matches[-1].group(1)) or None
    if "box{" in text or "fbox" in text or "\b" in text:
        text = _OTHER_BOXES.sub(r"\\boxed", text)
    if ("<" in text and "</" in text) or ("\\text" in text and (":}" in text or ": }" in text)):
        text = _LOOK.sub("", text)
    if "<" in text:
        text = _NEW_LINE.sub("\n", text)
    parts = outside_thinking(first_turn(text))
    if parts is None:
        return None
    text = first_problem(next((part for part in reversed(parts) if part and not part.isspace()), ""))
    answer = _stated(text)
    if answer is None and len(parts) > 1:
        text = "\n".join(parts)
        answer = _stated(text)
    if answer is not None and _is_taken_back(text, answer):
        answer = None
    if answer is not None or fallback is Fallback.none:
        return answer
    if fallback is Fallback.last_number:
        return last_number(text)
    return unwrap(closing_statement(without_ornaments(_after_denied_boxes(text))) or "") or None


def _is_taken_back(text: str, answer: str) -> bool:
    """Whether the text after the statement retracts it and names another number: "Wait, actually it is 6"."""
    position = text.rfind(answer)
    after = text[position + len(answer) :][:MAX_STATEMENT] if position >= 0 else ""
    turn = _RETRACTION.search(after)
    return turn is not None and _DIGIT.search(after, turn.end()) is not None


def _stated(text: str) -> str | None:
    """What the last tags of an answer that hold one hold, else what the text states. Tags that never close hold the end."""
    end = len(text)
    for _ in range(MAX_BOXES):
        tag = text.rfind("<answer>", 0, end)
        inside = _TAGGED.match(text, tag, len(text)) if tag >= 0 else None
        if inside is None or (not inside[2] and (end < len(text) or _TAG_IS_NAMED.match(text, tag + len("<answer>")))):
            break
        said = _stated_plainly(inside[1]) or unwrap(inside[1])
        earlier = text.rfind("<answer>", 0, tag)
        if said and not _shows_where(said) and (inside[2] or earlier < 0 or "</answer>" not in text[earlier:tag]):
            return said
        end = tag
    return _stated_plainly(text[:end])


def _stated_plainly(text: str) -> str | None:
    last, content, end = _last_box(text, len(text))
    said = _last_statement(text if last < 0 or content is not None else text[:last], end)
    if last >= 0 and content is None:
        begun = text[last + len(_BOX) : last + MAX_STATEMENT].lstrip("{ \n").rstrip()
        return said if said and said.startswith(begun) else None
    if content is not None:
        box = last
        for _ in range(MAX_BOXES):
            if content is None or not is_denied(text[max(0, box - REACH) : box], text[end : end + REACH]):
                break
            box, content, end = _last_box(text, box)
        # "\\boxed{5}. The answer is given as an integer" does not replace the boxed answer.
        if content is None or (said is not None and (box < last or not _DIGIT.search(content) or _ANSWER.match(said))):
            return said
        several = box == last and text.find(_BOX, 0, box) >= 0
        return (_boxes_of_parts(text) if several else None) or _join_boxes(text, box, content)
    if said is None and len(text) <= MAX_BARE and _BARE_ANSWER.fullmatch(text.strip()):
        return unwrap(text) or None
    return _answer_in_json(text) if said is None and _JSON_END.search(text, max(0, len(text) - 20)) else said


def _answer_in_json(text: str) -> str | None:
    found = list(_JSON.finditer(text, max(0, len(text) - TAIL)))
    answer = next((match for match in reversed(found) if match["answer"]), found[-1] if found else None)
    return unwrap(answer["value"].replace("\\\\", "\\")) or None if answer else None


def _shows_where(content: str) -> bool:
    """Whether a mark holds no answer, but nothing or words for one: \\boxed{}, \\boxed{...}, \\boxed{your answer}."""
    return _EMPTY.fullmatch(content) is not None or (
        len(content) <= MAX_LISTED_CHARS
        and not _DIGIT.search(content)
        and _PLACEHOLDER.fullmatch(_WRAPPERS.sub(" ", content).strip()) is not None
    )


def _last_box(text: str, end: int) -> tuple[int, str | None, int]:
    """Where the last box that holds an answer before `end` begins, its content, and where it ends. -1 if there is none.

    One that is never closed is passed over if it holds nothing or begins to repeat the one before it. Else its content is None.
    """
    begun, unclosed = "", -1
    for _ in range(MAX_BOXES):
        box = text.rfind(_BOX, 0, end)
        if box < 0:
            break
        content, close = _box_at(text, box)
        if content is None:
            opened = text[box + len(_BOX) : box + MAX_STATEMENT].strip()
            if opened.startswith("{") and _VALUE_INSIDE.search(opened):
                begun, unclosed = opened[1:].lstrip(), box
        elif not _shows_where(content) and (not begun or content.lstrip().startswith(begun)):
            return box, content, close
        elif not _shows_where(content):
            break
        end = box
    return unclosed, None, 0


def _after_denied_boxes(text: str) -> str:
    """The text after the clause of its last box. All of it if the text has no box."""
    box = text.rfind(_BOX)
    content, end = _box_at(text, box) if box >= 0 else (None, 0)
    if content is None:
        return text
    clause = _CLAUSE_END.search(text, end)
    return text[clause.end() :] if clause else ""


def _last_statement(text: str, start: int) -> str | None:
    """The last statement in words or after hashes that begins at or after `start`."""
    hashes = len(text)
    for _ in range(MAX_BOXES):
        hashes = text.rfind("####", start, hashes)
        if hashes < 0:
            break
        line = _chunk(text, hashes + 4).lstrip("# \t")
        stop = line.find("\n")
        payload = line if stop < 0 else line[:stop]
        if stop >= 0 and payload[:2].isalpha() and line[stop:].strip():
            # "#### Step 3: check" is a heading if text follows below it.
            break
        if not _shows_where(payload):
            said = _in_words(text, hashes)
            return unwrap(without_remark(payload)) or None if said is None else said
    said = _in_words(text, start)
    if said is None and (last := max(text.rfind("\nA: ", start), -1 if text[:3] != "A: " or start else 0)) >= 0:
        rest = _CLOSING_LINE.match(text, last)
        return unwrap(rest[1]) or None if rest and not text[rest.end() : rest.end() + TAIL].strip() else None
    return said


def _in_words(text: str, start: int) -> str | None:
    """The payload x of the last "answer is x" or "Answer: x" at or after `start`."""
    mentions = {mark: text.rfind(mark, start) for mark in _MENTIONS}
    for _ in range(MAX_MENTIONS):
        mark, found = max(mentions.items(), key=itemgetter(1))
        if found < 0:
            return None
        line = text.rfind("\n", max(0, found - 40), found) + 1
        # Below a heading such as "# Answer" or "**Final Answer**" the answer is on the next line.
        headed = text[line : line + 2] in ("# ", "##", "**")
        match = _STATEMENT.match(text, found) or (_HEADING.match(text, found) if headed else None)
        if match and not _CHECKING.search(text, max(0, found - 40), found):
            items = _listed(text, found, match.end()) if "\n" in text[found : match.end() + MAX_BLANKS] else None
            payload = _value_of_sentence(_payload(text, match.end())) if items is None else items
            if (
                payload
                and not _NO_PAYLOAD.fullmatch(payload)
                and not _shows_where(payload)
                and not (_BOX in payload and _box_at(payload, payload.rfind(_BOX))[0] is None)
                # "Answer:" may introduce a solution in words: "Answer: let us first see how many".
                and (payload.count(" ") < MAX_ANSWER_WORDS or _DIGIT.search(payload) or "\\" in payload)
            ):
                at = text.find(payload, match.end(), match.end() + len(payload) + REACH)
                after = text[at + len(payload) :][:REACH] if at >= 0 else ""
                if not is_denied(text[max(0, found - REACH) : found], after):
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


def _value_of_sentence(payload: str) -> str:
    """The value that a sentence after a heading states, as 12 in "The number of ways is 12". Else the payload."""
    if product := _PRODUCT.fullmatch(payload):
        return product[1]
    sentence = _SENTENCE.match(payload) if payload[:4] in ("The ", "the ") else None
    if sentence is None or _DENIED.search(sentence.group()) or not _VALUE.match(payload, sentence.end()):
        return payload
    value = payload[sentence.end() :]
    if _CLAUSES.search(sentence.group()):
        stop = _SENTENCE_END.search(value)
        value = value[: stop.start()] if stop else value
    return payload if _SECOND.search(value) or _DENIED.search(value) else unwrap(value)


def _payload(text: str, start: int) -> str:
    """The text after the words "the answer is": the formula that begins there, or all up to the end of the sentence."""
    chunk = _chunk(text, start)
    opening = _OPENING.match(chunk)
    chunk = chunk[opening.end() :] if opening else chunk
    if chunk[:2] in _CLOSERS and (close := chunk.find(_CLOSERS[chunk[:2]], 2)) >= 0:
        return with_multiplier(unwrap(chunk[2:close]), chunk[close + 2 :]) or unwrap(chunk)
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
    said = said.replace("\\boxed{}", "") if _DIGIT.search(said) else said
    if said[:2] == '{"':
        return _answer_in_json(said) or ""
    return unwrap(without_remark(_BOLD.sub(r"\2", said)).rstrip("! "))


def _chunk(text: str, start: int) -> str:
    """The text that may hold a statement: `MAX_STATEMENT` characters, or all of a longer integer and what follows it."""
    if len(text) - start <= MAX_STATEMENT:
        return text[start:]
    integer = _LONG_INTEGER.match(text, start)
    return text[start : (integer.end() if integer else start) + MAX_STATEMENT]


def _box_at(text: str, box: int) -> tuple[str | None, int]:
    """Content and end position of the box command at `box`. The content is None if the box is never closed."""
    start = box + len(_BOX)
    opened = _OPENED.match(text, start)
    if opened is None:
        bare = _BARE_BOX.match(text, start)
        return (bare.group(1), bare.end()) if bare else (None, start)
    depth = 1
    for brace in _BRACE.finditer(text, opened.end(), opened.end() + MAX_SCAN):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0:
            return text[opened.end() : brace.start()], brace.end()
    return None, start


def _boxes_of_parts(text: str) -> str | None:
    """All boxes with their labels, if each box belongs to a part of its own: (a), (b), and so on. None for other texts."""
    if not any(mark in text for mark in _PART_MARKS) or not _PART.search(text):
        return None
    labels, contents, start = list[str](), list[str](), 0
    while (box := text.find(_BOX, start)) >= 0:
        content, end = _box_at(text, box)
        found = _PART.findall(text, start, box)
        if len(found) != 1 or content is None or len(labels) == MAX_BOXES:
            return None
        labels.append(next(label for label in found[0] if label))
        contents.append(content)
        start = end
    if (
        not (len(labels) > 1 and are_consecutive(labels))
        or _PART.search(text, start)
        or _RETRACTION.search(text, text.find(contents[0]))
    ):
        return None
    # The parts 1, 2 become a, b.
    names = "abcdefgh" if labels[0] == "1" else labels
    return ", ".join(f"({label}) \\boxed{{{content}}}" for label, content in zip(names, contents, strict=False))


def _join_boxes(text: str, box: int, content: str) -> str | None:
    """The last box and the boxes before it that are joined to it only by commas, "and" or "or"."""
    parts = [unwrap(without_ornaments(content))]
    for _ in range(MAX_BOXES):
        earlier = text.rfind(_BOX, 0, box)
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
        answer = answer[:MAX_STATEMENT] + CUT
    answer = _DOLLAR.sub("", _OTHER_BOXES.sub(r"\\boxed", answer)).replace('\\"', '"').strip()
    if answer.endswith(("и", ">")):
        answer = _TAGS.sub("", answer)
    if "\\" in answer:
        answer = _DELIMITER.sub("", answer)
    previous = None
    while answer != previous:
        previous = answer
        answer = answer.strip(_WRAP)
        answer = answer if _RECURRING.search(answer) else answer.rstrip(".,;:。")
        if answer.startswith(("'", "’")):
            # A single mark at the end is a prime, so it stays.
            answer = answer[1:].removesuffix(answer[0])
        if answer.startswith("\\boxed{") and answer.endswith("}"):
            answer = answer[answer.index("{") + 1 : -1]
    if answer.startswith("\\begin{") and (aligned := _ALIGNED.fullmatch(answer)):
        # Lines that begin with a sign of equality go on.
        answer = ", ".join(_GOES_ON.sub("=", aligned[1]).replace("&", " ").split("\\\\")).strip()
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
        if answer is None:
            return False
        most = MAX_STATED_WORDS_WITH_NUMBER if _DIGIT.search(answer) else MAX_STATED_WORDS
        short = "\\" in answer or len(answer.split()) <= most
        return short and final_answer(lines + _MORE, pattern=self.pattern) == answer
