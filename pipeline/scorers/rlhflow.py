"""RLHFlow's PRMs (Llama3.1-8B-PRM-Mistral-Data, Llama3.1-8B-PRM-Deepseek-Data) and others of their format: a turn for each
step, which the model answers with `+` or `-`. See `turns`.

The first turn is `PROBLEM STEP`, as `math-rm/prm_evaluate.py` of RLHFlow/RLHF-Reward-Modeling has it.
`code/run_eval_prm_rlhflow.py` of QwenLM/ProcessBench has two newlines in place of the blank: `scorer.between='\\n\\n'`. The
score is the softmax of the logits of `+` and `-`, where RLHFlow's code reads position -3 of the chat so far and ProcessBench
generates one token.
"""

from typing import Any

from pipeline.scorers.layouts import word_ids
from pipeline.scorers.model import CausalScorer, Reading
from pipeline.scorers.settings import RlhflowConfig, unescaped
from pipeline.scorers.turns import turn_reading


class Rlhflow(CausalScorer):
    """See the module."""

    Config = RlhflowConfig
    settings: RlhflowConfig
    what = "a causal language model that answers every step with one token"

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        own = self.settings
        between = unescaped(own.between)
        word_ids(tokenizer, [("scorer.good", own.good), ("scorer.bad", own.bad)])
        return turn_reading(
            tokenizer,
            lambda problem, step: f"{problem}{between}{step}",
            model=own.model,
            good=own.good,
            bad=own.bad,
            system=own.system,
        )
