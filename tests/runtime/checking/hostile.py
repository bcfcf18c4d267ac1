"""A verifier that does what a step says, which is what hostile steps make of a careless one."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Annotated

from pipeline.config.fields import BY_GROUP
from pipeline.config.verify import VerifierConfig
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict, Verifier


@dataclass(kw_only=True, slots=True)
class ObedientConfig(VerifierConfig):
    kind: Annotated[str, BY_GROUP] = "obedient"
    note: str = ""
    """A file that it appends the text of each step to."""
    pause: float = 0.0
    """Seconds before each step."""


def _descend(depth: int) -> int:
    return _descend(depth + 1) + 1


class Obedient(Verifier):
    Config = ObedientConfig
    settings: ObedientConfig

    def verify(self, step: StepInContext) -> Finding:
        time.sleep(self.settings.pause)
        if self.settings.note:
            with open(self.settings.note, "a") as note:
                note.write(f"{step.step}\n")
        match step.step.split(maxsplit=1)[0]:
            case "right":
                return Finding(
                    verdict=StepVerdict.HOLDS, evidence=f"after {len(step.earlier)} steps", covers=Covers.WHOLE
                )
            case "wrong":
                return Finding(verdict=StepVerdict.REFUTED, evidence=step.problem)
            case "sleep":
                time.sleep(1_000)
            case "spin":
                while True:
                    pass
            case "exit":
                os._exit(7)
            case "fill":
                bytearray(1 << 40)
            case "descend":
                _descend(0)
            case "raise":
                raise ValueError("not my day")
            case "lie":
                return Finding(verdict=StepVerdict.REFUTED)
            case "print":
                print("what a library says", flush=True)
            case "breed":
                subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(1000)  # {self.settings.note}"])
                time.sleep(1_000)
        return UNKNOWN
