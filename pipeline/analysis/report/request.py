"""One whole request of a run, as a user can send it to a server: what its policy was asked after the first step of a chain."""

import json
from collections.abc import Mapping
from typing import Any

from pipeline.config.choices import PromptStyle
from pipeline.config.label import FewShotExample, PromptConfig
from pipeline.config.recorded_settings import Settings, settings_section
from pipeline.data.prompts import chat_messages, plain_prompt

_SAMPLED = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "stop")


def request_text(settings: Settings, chain: Mapping[str, Any]) -> str:
    """The request as JSON. `settings`: of the run; `chain`: a row of its labels.

    A server that continues the assistant's turn needs no more; which setting says so is its own."""
    config = settings_section(settings, "policy.prompt", PromptConfig)
    recorded: Any = config.examples
    config.examples = [FewShotExample(**each) for each in recorded]
    begun = f"{chain['steps'][0]}{settings.get('data.separator', '')}"
    if config.style is PromptStyle.plain:
        asked: dict[str, object] = {"prompt": plain_prompt(config, chain["problem"]) + begun}
    else:
        asked = {"messages": [*chat_messages(config, chain["problem"]), {"role": "assistant", "content": begun}]}
    sampled = {name: settings[f"sampling.{name}"] for name in _SAMPLED if settings.get(f"sampling.{name}")}
    request = {"model": settings.get("policy.model", ""), **asked, **sampled}
    return json.dumps(request, indent=1, ensure_ascii=False)
