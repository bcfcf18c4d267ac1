"""The methods of search by name: built-in ones and those of installed plug-ins. To add a built-in one, add a line to
`SEARCHES`."""

from typing import TYPE_CHECKING

from pipeline.config.recorded_settings import complete_settings
from pipeline.config.search import SearchConfig
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    from pipeline.searches.base import Search

SEARCHES: "Registry[type[Search]]" = Registry(
    "searches",
    noun="search",
    setting="search",
    ours={
        "best_of_n": "pipeline.searches.chains:BestOfN pipeline.searches.settings:BestOfNConfig",
        "majority": "pipeline.searches.chains:Majority pipeline.searches.settings:MajorityConfig",
        "weighted": "pipeline.searches.chains:Weighted pipeline.searches.settings:WeightedConfig",
        "beam": "pipeline.searches.beam:Beam pipeline.searches.settings:BeamConfig",
        "dvts": "pipeline.searches.beam:Dvts pipeline.searches.settings:DvtsConfig",
        "particle": "pipeline.searches.particle:Particle pipeline.searches.settings:ParticleConfig",
        "mcts": "pipeline.searches.mcts:Mcts pipeline.searches.settings:MctsConfig",
        "regenerate": "pipeline.searches.regenerate:Regenerate pipeline.searches.settings:RegenerateConfig",
    },
    needs=("Config", "search"),
)


def search_for(settings: SearchConfig) -> "Search":
    """The search that the settings name. Raises UsageError where no search of that name is installed."""
    usable: Search = SEARCHES.create(settings.method, complete_settings(settings, SEARCHES))
    return usable
