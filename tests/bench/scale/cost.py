"""What a million labelled steps cost: a formula, and the pieces that it is made of, each with where it comes from. Pure."""

from dataclasses import dataclass, replace

from tests.bench.scale.pace import Pace

MILLION = 1_000_000
EFFICIENCY = {"Qwen2.5-7B": 0.62, "Qwen2.5-1.5B": 0.40}
"""Tokens/s reached over the bound. No GPU was measured here. 0.62 is vLLM 0.10.2 with Qwen3-8B on an H100: 5,409 tokens/s with
1,024 tokens of input and 2,048 of output (github.com/vllm-project/vllm/issues/25915) over a bound of 8,694. 0.40 is assumed:
small models wait for the host."""
SAVINGS = {"decisive steps": 9.6, "drift": 4.0, "steps that tell nothing": 1.36}
"""How many times fewer tokens `pooled` takes at the error of `fixed` with N = 8, on chains of 8 steps, as
`make bench-estimators` measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Of one policy and estimator: tokens generated and prompt tokens computed per labelled step; sequences at once and tokens
    before each generated one, on average; the share of places that stood empty; worker and driver CPU seconds per step."""

    name: str
    pace: Pace
    generated: float
    prefilled: float
    running: int
    context: float
    idle: float
    cpu_seconds: float

    @property
    def bound(self) -> float:
        """Tokens per second of decoding at most."""
        return self.pace.tokens_per_second(self.running, self.context)

    @property
    def gpu_hours(self) -> float:
        """For a million steps: (generated / bound + prefill at its bound) / efficiency / (1 - idle)."""
        seconds = self.generated / self.bound + self.prefilled * self.pace.prefill_seconds(1)
        return MILLION * seconds / EFFICIENCY[self.pace.name] / (1 - self.idle) / 3600

    @property
    def cpu_hours(self) -> float:
        return MILLION * self.cpu_seconds / 3600


def costs(fixed: Pieces, pooled: Pieces) -> list[Pieces]:
    """Both as they are, and `pooled` at the error of `fixed`, where it takes more rollouts or fewer of the same kind."""
    at_its_error = []
    for family, factor in SAVINGS.items():
        generated = fixed.generated / factor
        share = generated / pooled.generated
        at_its_error.append(
            replace(
                pooled,
                name=f"pooled, same error: {family}",
                generated=generated,
                prefilled=pooled.prefilled * share,
                cpu_seconds=pooled.cpu_seconds * share,
            )
        )
    return [fixed, *at_its_error, pooled]
