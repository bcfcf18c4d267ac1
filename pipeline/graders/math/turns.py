"""Cuts a text at the end of the turn in which the answer is: at a mark of its end, or of the beginning of another turn.

Pure, linear time. A mark is a token of a chat template, or a line that begins with the name of a speaker as templates in plain
text have it. Such a line counts only where the whole text looks like a transcript, because stories have speakers, too.
"""

import re
from collections.abc import Callable

# The end of a text, turn or message, as chat templates spell it: <|im_end|>, <|eot_id|>, <|EOT|>, <|END_OF_TURN_TOKEN|>.
_END = (
    r"<(?:\|(?i:im_end|eo[tmsd](?:_id|_token)?|end_response|(?:end|end_?of_?(?:text|turn|message|sentence|sequence|document|response|solution))(?:_token)?"
    r"|turn_end|return|end▁of▁sentence)\||｜(?:end▁of▁sentence|end_of_sentence)｜|end_of_turn|turn\||(?i:eos)|/s)>"
)
_BEGIN = (
    r"<\|im_start\|>[ ]?\w{0,20}|<start_of_turn>\w{0,20}|<\|turn>[ ]?\w{0,20}|<\|start_header_id\|>\w{0,20}<\|end_header_id\|>"
    r"|(?:<s>\s{0,2})?\[/?INST\]|<\|(?i:user|assistant|system|human|prompter|bot|begin_of_text)\|>"
    r"|<\|START_OF_TURN_TOKEN\|>(?:<\|(?:USER|CHATBOT|SYSTEM)_TOKEN\|>)?|<bos>|<extra_id_1>\w{0,20}|<｜(?:User|Assistant)｜>"
    r"|<\|start\|>(?:user|system|developer)|(?:^|(?<=\n))(?:\#\#\#[ ]?(?:Human|User|Instruction|Assistant|Response):"
    r"|<(?:human|user|bot|assistant)>:|(?:\*\*)?(?P<speaker>Human|User|USER|Assistant|ASSISTANT):(?:\*\*)?(?=[ \nA-Z]))"
)
_MARK = re.compile(rf"(?P<end>{_END})|{_BEGIN}")
# Every mark begins with one of these, or has one of the names. They are quicker to look for.
_TOKEN = re.compile(
    r"<(?:[|｜]|/s>|start_of_turn>|end_of_turn>|turn\|>|eos>|EOS>|bos>|extra_id_1>|human>:|user>:|bot>:)"
)
_NAMES = ("INST]", "Human:", "User:", "USER:", "### Assistant:", "Instruction:")
_OTHER = re.compile(r"user|system|human|prompter|(?<!/)inst|developer|tool|ipython", re.IGNORECASE)
# A line that begins a turn only after another speaker. Answers have such headings, too.
_REPLY = re.compile(r"(?:\*\*)?assistant:|\#\#\# ?response:", re.IGNORECASE)
_TASK = re.compile(
    r"\n[ \t]{0,4}(?:-{3,}\s{1,8})?(?P<mark>\#{1,6}[ ]?)?(?P<bold>\*\*)?(?P<new>(?:New|Next|Another)[ ])?(?P<open>[\[<])?"
    r"(?P<name>(?i:problem|question|exercise|example|task|instruction|prompt|input|pregunta|problema|frage|aufgabe)|Q|问题|题目|例题?"
    r"|You are an? (?:AI|helpful) assistant|Let's (?:try|do|solve) (?:another|the next) (?:problem|question|one))"
    r"[ ]?(?:\#|No\.?[ ])?(?P<number>\d{1,3}|[一二三四五六七八九十])?"
    r"(?:(?(open)[\]>]|[ ]?[:：.)])(?:\*\*)?|(?(bold)\*\*[:：]?|(?(mark)|(?(number)(?=[ ]?\n)|(?!)))))"
    r"(?=\s|$|(?<=[：>])|(?<=:)[A-Z\d\u4e00-\u9fff])"
)
_BARE = re.compile(r"\s{0,4}[-+$\\]{0,2}[\d][^\nA-Za-z?:]{0,40}(?=\n)\n?(?=\n)")
_GIVEN_MARKS = ("nswer", "\\boxed", "####", "答案")
_GIVEN = re.compile(
    r"(?P<draft>\b(?:first|initial|partial|intermediate|possible|tentative|naive|wrong|previous) a)?"
    r"nswer\s{0,4}\*{0,2}\s{0,4}(?::|is\b|=)|\\boxed|####|</answer>|答案[是为:：]"
)
_QUESTION = re.compile(r"[^?\d$\\\n]{1,160}\?")
# What follows a question that a solution asks itself: "Question: is that all? No, add 2."
_OWN_REPLY = re.compile(
    r"[ ]+(?!(?:\(?[A-E][.):]|A:|Answer|Options|Choices|Give|Express|Round|Write|Note|Let's))\S|\n(?:No|Yes|Well|Wait)\b"
)
_OWN = re.compile(r"(?:I|This|That|My|The answer|We (?:counted|forgot|missed|should|did|need))\b")
_STRUCK = "<s>"
_OPENING = re.compile(rf"\s*(?:{_STRUCK}\s*)?")
_SAME_TURN = "<|start|>assistant"  # The final channel of the same turn follows.


def first_turn(text: str) -> str:
    """The text of the first turn that is not a user's. Marks before any text are skipped."""
    start, ours, begins = 0, True, None
    if not ("<" in text and _TOKEN.search(text)) and not any(map(text.__contains__, _NAMES)):
        return text
    for mark in _MARK.finditer(text):
        at, speaker = mark.start(), mark["speaker"]
        if speaker:
            begins = begins or _turns_of_speakers(text)
            if not begins(at, speaker):
                continue
        if mark["end"] and text.startswith(_SAME_TURN, mark.end()):
            continue
        if mark["end"] == "</s>" and text.find(_STRUCK, start, at) >= 0:
            # <s>5</s> strikes a text out, in the language of web pages.
            continue
        if ours and _REPLY.match(mark.group()):
            continue
        opening = _OPENING.match(text, start)
        if ours and opening and opening.end() < at:
            return text[start:at]
        start, ours = mark.end(), ours if mark["end"] else _OTHER.search(mark.group()) is None
    return text[start:] if ours else ""


def first_problem(text: str) -> str:
    """The text up to the heading of another problem after its answer: "Question: What is 5+5?", "**Problem 2**"."""
    bare = _BARE.match(text)
    if bare and (task := _TASK.match(text, bare.end())) and _is_another(text, task):
        # Base models state the answer alone, and go on: "8\n\nQ: What is 3+4?\nA: 7".
        return text[: bare.end()]
    line_end = text.find("\n", _first_mark(text))
    tasks = list(_TASK.finditer(text, line_end)) if line_end >= 0 else []
    given = next((found.end() for found in _GIVEN.finditer(text) if not found["draft"]), len(text)) if tasks else 0
    others = (task.start() for task in tasks if task.start() >= given and _is_another(text, task))
    return text[: next(others, len(text))]


def _is_another(text: str, task: re.Match[str]) -> bool:
    """Whether a heading begins another problem, and not a question or an example in the solution itself."""
    name, number = task["name"].lower(), task["number"]
    earlier = re.compile(rf"(?:^|\n)[#*\s]{{0,8}}{name}\s?\d", re.IGNORECASE)
    if number and number != "1" and earlier.search(text, 0, task.start()):
        return False
    said = text[task.end() : task.end() + 300].lstrip(" \n*:")
    question = _QUESTION.match(said)
    if question and _OWN_REPLY.match(said, question.end()):
        return False
    return bool(number or task["new"] or question or said.partition("\n")[0].endswith("?")) or not (
        (said[:1].isascii() and said[:1].islower()) or _OWN.match(said)
    )


def _turns_of_speakers(text: str) -> Callable[[int, str], bool]:
    """Decides whether a line with the name of a speaker begins a turn, as in a transcript: stories have speakers, too."""
    begin, stated = len(text) - len(text.lstrip()), _first_mark(text)
    speakers = ((found["speaker"] or "", found.start()) for found in _MARK.finditer(text))
    reply = max((at for speaker, at in speakers if speaker.lower() == "assistant"), default=-1)

    def begins(at: int, speaker: str) -> bool:
        if at <= begin or speaker.lower() == "assistant":
            return at <= reply
        apart = text.startswith("\n\n", at - 2)
        return (stated < at and (apart or reply > at or speaker == "Human")) or (
            apart and reply > at and text.startswith("\n\n", reply - 2)
        )

    return begins


def _first_mark(text: str) -> int:
    """Where a text first speaks of an answer. Its length for nowhere."""
    found = [at for at in map(text.find, _GIVEN_MARKS) if at >= 0]
    return min(found) if found else len(text)
