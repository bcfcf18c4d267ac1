"""The two tiny policies: where they lie and the settings under which they are used."""

from dataclasses import dataclass
from pathlib import Path

from tests.checkout import ROOT
from tests.tiny.arithmetic import ALPHABET, LETTERS, LONG_SIZE, POLICY_SIZE, Size

FOLDER = ROOT / "tests" / "tiny"


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyPolicy:
    """A model with what it was trained on, and its measured chains."""

    name: str
    size: Size
    alphabet: str
    parameters: int
    max_tokens: int
    """Of a completion. Right chains are shorter."""
    context: int
    """Tokens of a prompt and its completion."""
    max_steps: int
    """Of a measured chain."""
    asset: Path
    truth: Path

    @property
    def overrides(self) -> list[str]:
        """The settings with which `label` uses it. A row's chain is its column `steps`, which `data.separator` joins by line
        ends."""
        return [
            "policy=hf",
            f"policy.model={self.asset}",
            "policy.dtype=float32",
            "policy.max_num_seqs=256",
            "policy.prompt.style=plain",
            "policy.prompt.instruction=''",
            "policy.prompt.template='{problem}\n'",
            "grader.answer_pattern='#([0-9]+)'",
            "grader.fallback=none",
            f"sampling.max_tokens={self.max_tokens}",
        ]


SHORT = TinyPolicy(
    name="short",
    size=POLICY_SIZE,
    alphabet=ALPHABET,
    parameters=806_272,
    max_tokens=96,
    context=192,
    max_steps=6,
    asset=FOLDER / "asset",
    truth=FOLDER / "truth.jsonl",
)
LONG = TinyPolicy(
    name="long",
    size=LONG_SIZE,
    alphabet=ALPHABET + LETTERS[: LONG_SIZE.operators.stop - 1],
    parameters=808_704,
    max_tokens=256,
    context=512,
    max_steps=24,
    asset=FOLDER / "long" / "asset",
    truth=FOLDER / "long" / "truth.jsonl",
)
POLICIES = {policy.name: policy for policy in (SHORT, LONG)}

ASSET, TRUTH = SHORT.asset, SHORT.truth
PARAMETERS, MAX_TOKENS, OVERRIDES = SHORT.parameters, SHORT.max_tokens, SHORT.overrides
