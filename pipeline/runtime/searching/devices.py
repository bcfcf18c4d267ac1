"""What the workers of a search need of their devices: a policy and a scorer side by side."""

from dataclasses import replace

from pipeline.config.search import SearchRunConfig
from pipeline.engines.base import EngineNeeds, OnDevices, Policy
from pipeline.engines.registry import policy_for
from pipeline.scorers.base import Scorer
from pipeline.scorers.registry import scorer_for
from pipeline.searches.registry import search_for

POLICY_SHARE, SCORER_SHARE = 0.5, 0.38
"""Shares of a GPU's memory where a policy and a scorer share it and neither setting says otherwise. The rest is for activations
and for the two contexts of the device. A policy needs more, for it holds long chains while a scorer only reads them."""


class SharedDevices(OnDevices):
    """See the module. `scorer`: None for a method that asks for no scores."""

    def __init__(self, policy: Policy, scorer: Scorer | None) -> None:
        self._policy = policy
        self._both: tuple[OnDevices, ...] = (policy,) if scorer is None else (policy, scorer)
        self.loads_model = any(each.loads_model for each in self._both)

    def devices(self) -> int | None:
        return self._policy.devices()

    def choose_tensor_parallel(self, gpus: int, memory: float | None) -> int:
        share = None if memory is None or len(self._both) < 2 else memory / 2
        return max(each.choose_tensor_parallel(gpus, share or memory) for each in self._both)

    def given_tensor_parallel(self) -> int | None:
        return max((parts for each in self._both if (parts := each.given_tensor_parallel()) is not None), default=None)

    def needs(self, gpus: float) -> EngineNeeds:
        needs = [each.needs(gpus) for each in self._both if each.loads_model] or [self._policy.needs(gpus)]
        return EngineNeeds(
            memory_share=min(1.0, sum(each.memory_share for each in needs)),
            folder=needs[0].folder,
            hub_names=tuple(name for each in needs for name in each.hub_names),
        )

    def uses_gpus(self) -> bool | None:
        said = [each.uses_gpus() for each in self._both]
        return True if True in said else None if None in said else False

    def check_gpus(self, gpus: float) -> None:
        for each in self._both:
            each.check_gpus(gpus)


def shared_devices(config: SearchRunConfig) -> SharedDevices:
    """What a worker needs. Raises UsageError for a policy, a scorer or a method that is not installed."""
    scorer = scorer_for(config.scorer) if search_for(config.search).scores else None
    return SharedDevices(policy_for(config.policy), scorer)


def divided(config: SearchRunConfig) -> SearchRunConfig:
    """The settings with a share of the GPU's memory for each of two models that are loaded, unless the settings say so."""
    if not search_for(config.search).scores:
        return config
    policy, scorer = config.policy, config.scorer
    both = policy_for(policy).loads_model and scorer_for(scorer).loads_model
    if not both or any(getattr(each, "memory_share", 0.0) is not None for each in (policy, scorer)):
        return config
    return replace(
        config,
        policy=replace(policy, memory_share=POLICY_SHARE),  # type: ignore[call-arg]
        scorer=replace(scorer, memory_share=SCORER_SHARE),  # type: ignore[call-arg]
    )
