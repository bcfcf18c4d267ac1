"""The pickers by name: built-in ones and those of installed plug-ins. To add a built-in one, add a line to `PICKERS`."""

from typing import TYPE_CHECKING

from pipeline.config.grow import PickerConfig
from pipeline.config.recorded_settings import complete_settings
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    from pipeline.pickers.base import Picker

PICKERS: "Registry[type[Picker]]" = Registry(
    "pickers",
    noun="picker",
    setting="grow",
    ours={
        "pairs": "pipeline.pickers.pairs:Pairs pipeline.pickers.settings:PairsConfig",
        "errors": "pipeline.pickers.errors:Errors pipeline.pickers.settings:ErrorsConfig",
        "uncertain": "pipeline.pickers.uncertain:Uncertain pipeline.pickers.settings:UncertainConfig",
        "omegaprm": "pipeline.pickers.omegaprm:OmegaPRM pipeline.pickers.settings:OmegaPRMConfig",
    },
    needs=("Config", "picks"),
)


def picker_for(settings: PickerConfig) -> "Picker":
    """The picker that the settings name. Raises UsageError where no picker of that name is installed.

    Each pick of a plug-in is checked when it is taken: a wrong one raises PluginError, as does what the plug-in raises."""
    usable: Picker = PICKERS.create(settings.pick, complete_settings(settings, PICKERS))
    if PICKERS.plugin(settings.pick) is None:
        return usable
    from pipeline.pickers.base import CheckedPicker

    return CheckedPicker(usable, settings)
