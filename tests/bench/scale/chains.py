"""Input and policy of the simulation: chains whose steps say what they are worth, and rollouts as long as real ones vary.

The value of a prefix moves as in the family `jump` of the estimators' bench: most steps are routine, the others lead anywhere
around the value before. A token is a byte. A rollout takes what its problem's solutions still take on average behind the
prefix, times a lognormal factor; it does not repeat steps of the chain.
"""

import json
import math
from pathlib import Path
from random import Random

from pipeline.core.records import Finish, Request
from tests.bench.scale.engine import Reply
from tests.synthetic.families import JUMP_CONCENTRATION, ROUTINE

STEPS = (6, 14)
"""The least and the most steps of a chain; all numbers between are as likely."""
STEP_TOKENS = 30
SPREAD = 0.5
"""Standard deviation of the logarithm of a rollout's length."""
SHORTEST = 8
MAX_TOKENS = 1024
_FILLER = " and so on"


def write_chains(path: Path, count: int, seed: int) -> Path:
    """`count` problems with a chain each, as rows of a JSONL file."""
    random = Random(seed)
    with path.open("w") as file:
        for number in range(count):
            file.write(json.dumps(_row(number, random)) + "\n")
    return path


def steps_in(path: Path) -> int:
    with path.open() as file:
        return sum(len(json.loads(line)["steps"]) for line in file)


def reply_to(request: Request) -> Reply:
    """A pure function of the request's id, and of what its problem and prefix say."""
    random = Random(request.request_id)
    problem, written = request.problem, request.prefix.text
    right = random.random() < _shown(written or problem.text)
    left = max(STEP_TOKENS, int(problem.text.rpartition(" ")[2]) - len(written))
    tokens = max(SHORTEST, round(left * random.lognormvariate(-SPREAD * SPREAD / 2, SPREAD)))
    if tokens > MAX_TOKENS:
        return Reply(text="It goes on and on", tokens=MAX_TOKENS, finish=Finish.LENGTH)
    return Reply(text=f"The answer is {int(problem.golds[0]) + (0 if right else 1)}.", tokens=tokens)


def _row(number: int, random: Random) -> dict[str, object]:
    steps = random.randint(*STEPS)
    value = start = random.random()
    texts = []
    for step in range(1, steps):
        value = value if random.random() < ROUTINE else _moved(value, random)
        text = f"Step {step} [{value:.4f}]"
        length = random.randint(STEP_TOKENS // 2, STEP_TOKENS * 3 // 2)
        texts.append(
            text + (_FILLER * math.ceil(length / len(_FILLER)))[: max(0, length - len(text) - 2)].rstrip() + "."
        )
    answer = number if random.random() < value else number + 1
    tokens = steps * STEP_TOKENS
    return {
        "id": str(number),
        "problem": f"Sum {number} is worth [{start:.4f}] before its first step. Its solutions take tokens: {tokens}",
        "answer": str(number),
        "steps": [*texts, f"The answer is {answer}."],
    }


def _moved(value: float, random: Random) -> float:
    right, wrong = value * JUMP_CONCENTRATION, (1 - value) * JUMP_CONCENTRATION
    return random.betavariate(right, wrong) if right and wrong else value


def _shown(text: str) -> float:
    """The last value that a text states."""
    return float(text[text.rfind("[") + 1 : text.rfind("]")])
