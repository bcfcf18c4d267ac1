"""FoVer's PRMs: a turn for each step, which the model answers with "correct" or "incorrect". See `turns`.

The first turn holds the problem, a task and the first step, word for word as in `src/prm/preprocessing.py` of
psunlpgroup/FoVer: its heading "** Sotluion **" is the one that the models are trained with. The score is that of
`src/prm/postprocessing.py`: the softmax of the logits of the first tokens of the two words, before the answer.
"""

from typing import Any

from pipeline.scorers.model import CausalScorer, Reading
from pipeline.scorers.settings import FoverConfig, unescaped
from pipeline.scorers.turns import turn_reading


class Fover(CausalScorer):
    """See the module."""

    Config = FoverConfig
    settings: FoverConfig
    what = 'a causal language model that answers every step with "correct" or "incorrect"'

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        own = self.settings
        before, _, rest = unescaped(own.first_turn).partition("{problem}")
        middle, _, after = rest.partition("{step}")
        return turn_reading(
            tokenizer,
            lambda problem, step: f"{before}{problem}{middle}{step}{after}",
            model=own.model,
            good=own.good,
            bad=own.bad,
        )
