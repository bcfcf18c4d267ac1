"""What vLLM's front end takes of a worker's processor time for each token that the engine generates, with our settings.

The worker's event loop pays this for every token of every request, so it bounds the tokens per second of a worker on a fast
GPU. No model runs: outputs of engine steps are made here, and vLLM's own code processes them.
"""

import os
import time
from statistics import median

REQUESTS = 1_024
"""As many as an engine on an H100 runs at once."""
PROMPT_TOKENS = 200
STEPS = 50
ROUNDS = 7
MICRO = 1e6


def frontend() -> None:
    """Print microseconds per token, with environment variables looked up each time and cached."""
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    from vllm import envs

    print(
        f"\nfront end: {REQUESTS:,} requests, {STEPS} steps with a token each; processor time, median of {ROUNDS} rounds"
    )
    _show("environment looked up at each token", answers=False)
    envs.enable_envs_cache()
    try:
        _show("environment cached, as in a worker", answers=False)
        _show("... and stops at the final answer", answers=True)
    finally:
        envs.disable_envs_cache()


def _show(name: str, *, answers: bool) -> None:
    found = [_seconds(answers=answers) / (REQUESTS * STEPS) * MICRO for _ in range(ROUNDS)]
    print(f"  {name:<36}{median(found):6.2f} us per token, {min(found):.2f} to {max(found):.2f}")


def _seconds(*, answers: bool) -> float:
    """Processor time for all steps."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams
    from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest
    from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector
    from vllm.v1.metrics.stats import IterationStats

    from pipeline.engines.embedded import embedded_model
    from pipeline.engines.hugging_face import load_tokenizer
    from pipeline.engines.vllm.detokenize import AnswerStop, StoppingDetokenizer
    from pipeline.engines.vllm.meter import SlotMeter, TokenMeter
    from pipeline.graders.math.extract import AnswerSeen

    tokenizer = load_tokenizer(str(embedded_model()), None, "policy.model")
    words = tokenizer.encode("The baskets hold 3 * 5 = 15 mangoes, and so on until the line ends here.\n" * 8)
    processor, meter = OutputProcessor(None, log_stats=True), TokenMeter(SlotMeter())
    stop = AnswerStop(AnswerSeen(), tokenizer.decode)
    params = SamplingParams(
        max_tokens=STEPS + 1,
        detokenize=False,
        include_stop_str_in_output=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
    names = [f"request-{number}" for number in range(REQUESTS)]
    for name in names:
        request = EngineCoreRequest(
            request_id=name,
            external_req_id=name,
            prompt_token_ids=[1] * PROMPT_TOKENS,
            mm_features=None,
            sampling_params=params,
            pooling_params=None,
            arrival_time=time.time(),
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
        )
        processor.add_request(request, None, queue=RequestOutputCollector(params.output_kind, name))
        if answers:
            state = processor.request_states[name]
            state.detokenizer = StoppingDetokenizer(state.detokenizer, stop)
    steps = [
        [EngineCoreOutput(request_id=name, new_token_ids=[words[step % len(words)]]) for name in names]
        for step in range(STEPS)
    ]
    began = time.process_time()
    for outputs in steps:
        stats = IterationStats()
        processor.process_outputs(outputs, time.monotonic(), stats)
        meter.record(None, stats)
    seconds = time.process_time() - began
    assert meter.work.generated == REQUESTS * STEPS
    return seconds
