"""Prompts that open thinking: what they end in, and what the completions after them are worth."""

import json
from pathlib import Path

import pytest

from pipeline import open_run
from pipeline.config.choices import Thinking
from pipeline.config.label import PromptConfig
from pipeline.core.errors import PolicyError
from pipeline.core.records import Problem
from pipeline.data.prompts import Arguments, Messages, Prompter
from pipeline.engines.hugging_face import HfTokenizer
from pipeline.engines.oracle import ByteTokenizer
from tests.judges.scripted import Scripted
from tests.runtime.in_process import label_in_process
from tests.scorers.published import CHATML, qwen_tokenizer
from tests.settings import compose_label

pytestmark = pytest.mark.slow
ENDS = {
    **{f"<{each}>\n": f"\n</{each}>\n\n" for each in ("think", "thinking", "thought", "reasoning", "seed:think")},
    **{"[THINK]": "[/THINK]\n\n", "◁think▷": "◁/think▷\n\n", "<|START_THINKING|>": "<|END_THINKING|>\n\n"},
    **{"<|begin_of_thought|>\n\n": "\n\n<|end_of_thought|>\n\n", "<|think_start|>": "<|think_end|>\n\n"},
    **{"<|channel>thought\n": "<channel|>", "<cot>\n": "\n</cot>\n\n", "<inner_monologue>": "</inner_monologue>\n\n"},
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
    **dict.fromkeys(("", "</think>", "<think></think>", "<think>\n\n</think>\n\n", "[/THINK]", "<|END_THINKING|>")),
    **dict.fromkeys(("Let me think", "think>\n", "<thinker>", "a <think> b", "<|end_of_thought|>", "◁/think▷")),
}
OFF = "<think>\n\n</think>\n\n"


@pytest.mark.parametrize(("end", "closing"), ENDS.items())
def test_a_prompt_that_opens_thinking_needs_a_setting(end: str, closing: str | None) -> None:
    turn = f"{{% if think is false %}}{{{{ {OFF!r} }}}}{{% else %}}{{{{ {end!r} }}}}{{% endif %}}{{% endif %}}"
    tokenizer = HfTokenizer(qwen_tokenizer(template=CHATML.removesuffix("{% endif %}") + turn))

    def prompt(thinking: Thinking | None = None, **arguments: object) -> str:
        config = PromptConfig(thinking=thinking, template_arguments=arguments)
        made = Prompter(tokenizer, config, max_tokens=1, max_model_len=999)
        return tokenizer.decode(made.root(Problem(problem_id="p", text="1?<think>", golds=())).prompt_ids)

    usual = f"user\n1?<think>\nassistant\n{end}"
    refused, kept = (None, Thinking.inside) if closing else (Thinking.inside, None)
    assert prompt(kept).endswith(usual)
    assert prompt(Thinking.close).endswith(usual + (closing or ""))
    assert prompt(think=False).endswith(OFF)
    with pytest.raises(PolicyError, match=r"policy\.prompt\.thinking"):
        prompt(refused)
    with pytest.raises(PolicyError, match=r"template fails"):
        prompt(kept, conversation=1)


class Opening(ByteTokenizer):
    def chat_text(self, messages: Messages, arguments: Arguments = None) -> str:
        return self.decode(self.encode_chat(messages)) + ("<think>\n" if arguments == {"a": 1, "b": [2]} else "")

    def encode_opened(self, messages: Messages, opening: str, arguments: Arguments = None) -> list[int]:
        return self.encode(self.chat_text(messages, arguments) + opening)


@pytest.mark.parametrize("thinking", ["close", "inside"])
def test_what_a_policy_thinks_without_an_end_is_no_answer(tmp_path: Path, thinking: str) -> None:
    row = {"problem": "1 + 2?", "answer": "3", "steps": ["1 + 2 = 3.", "The answer is 3."]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    engine = Scripted(lambda _, vote: ("\n</think>\n" if vote % 2 else "\n") + "The answer is 3.")
    engine._tokenizer = Opening()
    arguments = [f"policy.prompt.template_arguments{each}" for each in ("={a:1}", ".b=[2]")]
    asked = [f"data.path={tmp_path}/rows.jsonl", "estimator=fixed", f"run_dir={tmp_path}/run", "policy=oracle"]
    asked += ["sampling.rollouts=4", *arguments]
    with pytest.raises(PolicyError, match=r"the model's chat template opens <think>"):
        label_in_process(compose_label(asked), engine=engine)
    label_in_process(compose_label([*asked, f"policy.prompt.thinking={thinking}"]), engine=engine)
    assert all((OFF in each) == (thinking == "close") for each in engine.prompts)
    run = open_run(tmp_path / "run")
    for _ in range(2):
        found = run.labels().select("outcome", "root_n_correct", "n_correct").row(0)
        assert found == ((None, 2, [2, 2]) if thinking == "inside" else (True, 4, [4, 0]))
        run.regrade(**{"grader.relative_tolerance": 1e-9})
