"""Schemas of `search`: which problems, with which policy, scorer and method, and where the result goes.

A search is a section with several implementations, like the policy (see `core.registry`). The class here holds the settings
that all methods share.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Interval as Range

from pipeline.config.choices import Aggregation
from pipeline.config.fields import BY_GROUP, FREE, ChosenSettings, Settings, refuse_equal
from pipeline.config.label import ClusterConfig, DataConfig, GraderConfig, PolicyConfig, RunConfig, SamplingConfig
from pipeline.config.score import ScorerConfig, check_calibration


@dataclass(kw_only=True, slots=True)
class SearchConfig(ChosenSettings):
    """The settings that all methods of search share; see `searches.registry`."""

    SECTION: ClassVar[str] = "search"
    CHOSEN_BY: ClassVar[str] = "method"
    method: Annotated[str, BY_GROUP] = "best_of_n"
    """How chains are searched, given as search=METHOD or search.method=METHOD."""
    n: Annotated[int, Range(ge=1, le=4096)] = 16
    """Chains, beams, particles or simulations of each problem."""
    aggregation: Aggregation = Aggregation.last
    """How step scores make the score of a chain, or of its beginning."""
    accept: Annotated[float | None, Range(gt=0, le=1)] = None
    """A confidence that is enough. A search samples no more once a chain reaches it, and a problem of which no chain reaches it
    is marked as not trusted. With a calibration it is a probability. null: all is sampled, and nothing is marked."""
    reliability: Annotated[float | None, Range(ge=0, le=1)] = None
    """With `accept`: the reliability that the scorer must state for the chosen chain's last step. null: it need not state
    any."""
    max_steps: Annotated[int, Range(ge=1, le=10_000)] = 64
    """A chain of this many steps ends there."""
    seed: int = 0
    """Seed of the choices that a method makes at random."""


_N = "search.n says how much is sampled"
_WITHOUT_EFFECT = {"rollouts": _N, "solutions": _N, "keep": _N, "store_tokens": "all tokens are stored"}
"""Settings of `sampling` -> what holds instead."""


@dataclass(kw_only=True, slots=True)
class SearchRunConfig(Settings):
    """All settings of `search`."""

    run_dir: str = "???"
    """The folder of the run. The same command goes on with it."""
    data: DataConfig = field(default_factory=DataConfig)
    """The problems, with or without a known answer. Its splitter says where a step ends."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    """The model that writes the steps."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    """How it writes them."""
    scorer: ScorerConfig = field(default_factory=ScorerConfig)
    """The model that scores the steps."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """The method."""
    grader: GraderConfig = field(default_factory=GraderConfig)
    """What finds the final answers of chains, and checks them where the right answer is known."""
    calibration: str | None = None
    """The file of a calibration, as `calibrate` writes it. Scores then are V, P(correct final answer), under its policy. null:
    the model's own scores."""
    other_model: Annotated[bool, FREE] = False
    """Also apply a calibration that was made for scores of a model with another name."""
    estimate: Annotated[bool, FREE] = False
    """Only say what a sample of the problems costs, and how long all would take; write nothing."""
    run: RunConfig = field(default_factory=RunConfig)
    """How the problems are divided into units, retried and stored."""
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """The Ray cluster and the workers."""

    def check(self) -> None:
        check_calibration(self.calibration, other_model=self.other_model)
        usual = SamplingConfig()
        for name, instead in _WITHOUT_EFFECT.items():
            if getattr(self.sampling, name) != getattr(usual, name):
                raise ValueError(f"sampling.{name} has no effect in `search`: {instead}")
        refuse_equal("search.n", self.search.n, "chains", self.sampling.temperature)
        if self.search.reliability is not None and self.search.accept is None:
            raise ValueError("search.reliability has no effect without search.accept: give both, or leave it out")
