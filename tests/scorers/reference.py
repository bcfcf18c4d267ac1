"""What published code computes, written again from it: the text that each PRM reads and the arithmetic of its scores.

One chain at a time, unpadded, over the whole vocabulary, from the tensors of the file; nothing of `pipeline` is used. Each
function returns the token ids of the chain and the scores of its steps.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoConfig, AutoTokenizer, LlamaForCausalLM, MistralForCausalLM, Qwen2Model

Read = tuple[list[int], list[float]]
QWEN_SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."


def qwen(folder: Path, problem: str, steps: Sequence[str]) -> Read:
    """Model card of Qwen/Qwen2.5-Math-PRM-7B; the class of its modeling_qwen2_rm.py."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    input_ids = torch.tensor([qwen_ids(tokenizer, problem, steps)])
    hidden, weights = _qwen2_hidden(folder, input_ids)
    inner = functional.relu(hidden @ weights["score.0.weight"].T + weights["score.0.bias"])
    logits = inner @ weights["score.2.weight"].T + weights["score.2.bias"]
    token_masks = input_ids == tokenizer.encode("<extra_0>")[0]
    return input_ids[0].tolist(), _make_step_rewards(logits, token_masks)[0]


def qwen_ids(tokenizer: Any, problem: str, steps: Sequence[str]) -> list[int]:
    messages = [
        {"role": "system", "content": QWEN_SYSTEM},
        {"role": "user", "content": problem},
        {"role": "assistant", "content": "<extra_0>".join(steps) + "<extra_0>"},
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=False)
    return list(tokenizer.encode(text))


def _make_step_rewards(logits: torch.Tensor, token_masks: torch.Tensor) -> list[list[float]]:
    probabilities = functional.softmax(logits, dim=-1) * token_masks.unsqueeze(-1)
    scores = []
    for sample in probabilities:
        positive = sample[sample != 0].view(-1, 2)[:, 1]
        scores.append(positive.tolist())
    return scores


def math_shepherd(folder: Path, problem: str, steps: Sequence[str]) -> Read:
    """Model card of peiyi9979/math-shepherd-mistral-7b-prm."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = MistralForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    candidate_tokens = tokenizer.encode("+ -")[1:]
    step_tag_id = tokenizer.encode("ки")[-1]
    input_ids = torch.tensor([math_shepherd_ids(tokenizer, problem, steps)])
    with torch.no_grad():
        logits = model(input_ids).logits[:, :, candidate_tokens]
        scores = logits.softmax(dim=-1)[:, :, 0]
    return input_ids[0].tolist(), scores[input_ids == step_tag_id].tolist()


def math_shepherd_ids(tokenizer: Any, problem: str, steps: Sequence[str]) -> list[int]:
    output = "\n".join(f"{step} ки" for step in steps)
    return list(tokenizer.encode(f"{problem} {output}"))


def rlhflow(folder: Path, problem: str, steps: Sequence[str], *, between: str = " ") -> Read:
    """`math-rm/prm_evaluate.py` of RLHFlow/RLHF-Reward-Modeling: a pass for each step, read at position -3. `between`: two
    newlines in `code/run_eval_prm_rlhflow.py` of QwenLM/ProcessBench."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    candidate_tokens = [tokenizer.encode("+")[-1], tokenizer.encode("-")[-1]]
    found: list[float] = []
    ids: list[int] = []
    for number, _ in enumerate(steps, start=1):
        ids = rlhflow_ids(tokenizer, problem, steps[:number], between=between)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[:, -3, candidate_tokens]
        found.append(float(logits.softmax(dim=-1)[0, 0]))
    return ids, found


def rlhflow_ids(tokenizer: Any, problem: str, steps: Sequence[str], *, between: str = " ") -> list[int]:
    conversation = []
    for number, step in enumerate(steps):
        conversation.append({"role": "user", "content": step if number else problem + between + step})
        conversation.append({"role": "assistant", "content": "+"})
    return _chat_ids(tokenizer, conversation)


def one_token(folder: Path, problem: str, steps: Sequence[str]) -> list[float]:
    """`code/run_eval_prm_rlhflow.py` of QwenLM/ProcessBench: the distribution of the one token that the model would generate
    after each step, of + and - alone. The evaluation itself takes the most probable token."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    messages: list[dict[str, str]] = []
    found = []
    for number, step in enumerate(steps):
        messages.append({"role": "user", "content": step if number else f"{problem}\n\n{step}"})
        ids = _chat_ids(tokenizer, messages, add_generation_prompt=True)
        with torch.no_grad():
            last = model(torch.tensor([ids])).logits[0, -1]
        found.append(float(last[[tokenizer.encode("+")[-1], tokenizer.encode("-")[-1]]].softmax(dim=-1)[0]))
        messages.append({"role": "assistant", "content": "+"})
    return found


FOVER_TEMPLATE = (
    "** Problem **\n{problem}\n\n** Task **\nYour task is to evaluate the accuracy of each step in the provided solution to "
    'the above question. For each step, respond with "correct" if the reasoning is logically valid and mathematically sound, '
    "or if the step is a general statement or transition that does not contain reasoning. "
    'Respond with "incorrect" if the step includes any errors or flawed logic.\n\n** Sotluion **\n{first_step}'
)


def fover(folder: Path, problem: str, steps: Sequence[str]) -> Read:
    """`src/prm/preprocessing.py` and `postprocessing.py` of psunlpgroup/FoVer, for Llama."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = fover_ids(tokenizer, problem, steps)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0][fover_positions(tokenizer, ids, "llama")]
    good, bad = (tokenizer.encode(word, add_special_tokens=False)[0] for word in ("correct", "incorrect"))
    scores = functional.softmax(torch.stack([logits[:, bad], logits[:, good]], dim=1), dim=1)[:, 1]
    return ids, scores.tolist()


def fover_positions(tokenizer: Any, ids: Sequence[int], model_type: str) -> list[int]:
    found = np.array(ids)

    def after(text: str, distance: int) -> Any:
        mask = np.zeros_like(found, dtype=bool)
        mask[np.where(found == tokenizer.encode(text, add_special_tokens=False)[0])[0] + distance] = True
        return mask

    if model_type == "llama":
        masks = [after("\n\n", 0), after("assistant", 2), after("<|end_header_id|>", 1)]
    else:
        masks = [after("\n", 0), after("assistant", 1), after("<|im_start|>", 2)]
    return [int(position) for position in np.where(np.logical_and.reduce(masks))[0]]


def fover_ids(tokenizer: Any, problem: str, steps: Sequence[str]) -> list[int]:
    first = FOVER_TEMPLATE.format(problem=problem, first_step=steps[0])
    conversation = []
    for step in (first, *steps[1:]):
        conversation += [{"role": "user", "content": step}, {"role": "assistant", "content": "correct"}]
    return _chat_ids(tokenizer, conversation)


def skywork(folder: Path, problem: str, steps: Sequence[str]) -> Read:
    """`prepare_input`, `ValueHead` and `derive_step_rewards` of SkyworkAI/skywork-o1-prm-inference."""
    ids, flags = prepare_input(AutoTokenizer.from_pretrained(folder), problem, steps)
    hidden, weights = _qwen2_hidden(folder, torch.tensor([ids]))
    value = functional.linear(hidden, weights["v_head.summary.weight"], weights["v_head.summary.bias"]).squeeze(-1)
    rewards = torch.sigmoid(value)[0]
    return ids, rewards[torch.tensor(flags) == 1].tolist()


def skywork_ids(tokenizer: Any, problem: str, steps: Sequence[str]) -> list[int]:
    return prepare_input(tokenizer, problem, steps)[0]


def prepare_input(tokenizer: Any, problem: str, steps: Sequence[str]) -> tuple[list[int], list[int]]:
    ids = list(tokenizer.encode(tokenizer.bos_token + problem + "\n"))
    flags = [0] * len(ids)
    step_token_id = tokenizer.encode("\n")[-1]
    for step in "\n".join(steps).split("\n"):
        step_ids = [*(tokenizer.encode(step) if step != "" else []), step_token_id]
        ids += step_ids
        flags += [*([0] * (len(step_ids) - 1)), 1]
    return ids, flags


def _qwen2_hidden(folder: Path, input_ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The last hidden states of the layers named `model.*`, shape (1, tokens, width), and all tensors of the files."""
    weights: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights.update(load_file(file))
    model = Qwen2Model(AutoConfig.from_pretrained(folder)).eval()
    model.load_state_dict({name.removeprefix("model."): weights[name] for name in weights if name.startswith("model.")})
    with torch.no_grad():
        return model(input_ids).last_hidden_state, weights


def _chat_ids(tokenizer: Any, messages: list[dict[str, str]], **how: bool) -> list[int]:
    found = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True, **how)["input_ids"]
    return [int(token) for token in found]
