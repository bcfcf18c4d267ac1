"""Where the tiny policy lies and the settings under which it is used."""

from tests.checkout import ROOT

ASSET = ROOT / "tests" / "tiny" / "asset"
TRUTH = ROOT / "tests" / "tiny" / "truth.jsonl"

PARAMETERS = 806_272
MAX_TOKENS = 96
"""Of a completion. The longest right chain is shorter."""
OVERRIDES = [
    "policy=hf",
    f"policy.model={ASSET}",
    "policy.dtype=float32",
    "policy.max_num_seqs=256",
    "policy.prompt.style=plain",
    "policy.prompt.instruction=''",
    "policy.prompt.template='{problem}\n'",
    "grader.answer_pattern='#([0-9]+)'",
    "grader.fallback=none",
    f"sampling.max_tokens={MAX_TOKENS}",
]
"""The settings with which `label` uses it. A row's chain is its column `steps`, which `data.separator` joins by line ends."""
