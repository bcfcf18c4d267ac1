"""The command line: compose the settings, check them, dispatch. The only file that knows of Hydra."""

import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from rich.console import Console

from pipeline.config import LabelConfig
from pipeline.errors import Interrupted, StepvalueError, UsageError
from pipeline.overrides import check_overrides, first_line

_PACKAGED_CONF = Path(__file__).parent / "conf"
_CHECKOUT_CONF = Path(__file__).parents[1] / "conf"

_HELP = """\
stepvalue: Monte Carlo step values for process reward models.

usage: python -m pipeline COMMAND [setting=value ...]      (installed: stepvalue COMMAND ...)

  label    label the steps of reasoning chains; started again on the same run_dir it goes on with what is owed

-h behind a command explains it, --cfg job prints the settings it would run with.
exit codes: 0 done, 1 failed, 2 wrong usage or input, 75 interrupted: start the same command again to go on
"""

_LABEL_HELP = """\
label: sample completions from every step prefix, check their answers, write P(correct | prefix) as Parquet.

  python -m pipeline label data=sample run_dir=runs/sample
  python -m pipeline label data.path=my.jsonl run_dir=out sampling.rollouts=16
  python -m pipeline label data=gsm8k data.path='hf://openai/gsm8k/main:train' policy.model=Qwen/Qwen2.5-Math-7B-Instruct \\
      cluster.address=auto cluster.workers=8 run_dir=/shared/run

groups (choose with group=option):
{groups}
settings (now):
{settings}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A parsed command line."""

    overrides: list[str]
    show_config: bool
    show_help: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A user's mistake is one line on standard error, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        return _dispatch(arguments)
    except StepvalueError as error:
        errors.print(f"stepvalue: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        errors.print("stepvalue: interrupted before anything was started")
        return Interrupted.exit_code


def compose_label(overrides: Sequence[str]) -> LabelConfig:
    """The settings of `label` as plain objects. Raises UsageError with one line that names the key and the remedy."""
    config = OmegaConf.to_object(_composed("label", overrides))
    assert isinstance(config, LabelConfig)
    return config


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(_HELP)
        return 0 if arguments else UsageError.exit_code
    command, rest = arguments[0], arguments[1:]
    if command != "label":
        raise UsageError(f"there is no command {command!r}: choose label (-h lists them)")
    invocation = _parse(rest)
    if invocation.show_help:
        sys.stdout.write(_LABEL_HELP.format(groups=_groups_text(), settings=_yaml(invocation.overrides)))
        return 0
    if invocation.show_config:
        sys.stdout.write(_yaml(invocation.overrides))
        return 0
    return _label(invocation.overrides)


def _label(overrides: Sequence[str]) -> int:
    try:
        config = compose_label(overrides)
    except MissingMandatoryValue as error:
        key = error.full_key or "a setting"
        raise UsageError(f"{key} is not set: give {key}=...") from error
    _set_up_ray(config.cluster.address)
    # Ray and the readers behind these are slow to load, and a wrong setting should be told at once.
    from pipeline.report.labels import first_chains, reject_counts
    from pipeline.report.terminal import ProgressView, print_chains, print_rejects, print_summary
    from pipeline.run.driver import label
    from pipeline.run.stop import StopSignal

    console = Console(highlight=False)
    stop = StopSignal()
    stop.listen()
    try:
        with ProgressView(console) as view:
            summary = label(config, view, stop)
    finally:
        stop.release()
    if summary.totals.rejected:
        print_rejects(console, reject_counts(summary.run_dir))
    if config.run.show_chains:
        print_chains(console, first_chains(summary.run_dir, config.run.show_chains))
        console.print()
    print_summary(console, summary)
    return 0


def _set_up_ray(address: str | None) -> None:
    """Ray reads these when it is imported."""
    if "ray" in sys.modules:
        return
    if address is not None:
        # Ray 2.60 makes clusters that want a token, and clients that do not offer the one they have.
        if "RAY_AUTH_TOKEN" in os.environ or (Path.home() / ".ray" / "auth_token").exists():
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        return
    # Ray has no setting for it on Linux, but stays on 127.0.0.1 where it believes that there can be no cluster.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    # A token of its own, which Ray would else make, and leave in the user's home.
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


def _parse(arguments: Sequence[str]) -> Invocation:
    overrides = []
    show_config = show_help = False
    words = iter(arguments)
    for word in words:
        if word in ("-h", "--help"):
            show_help = True
        elif word in ("--cfg", "-c"):
            if next(words, "job") != "job":
                raise UsageError("--cfg knows one word: --cfg job")
            show_config = True
        elif word == "--cfg=job":
            show_config = True
        elif word.startswith("-"):
            raise UsageError(f"there is no option {word}: settings are written key=value, options are -h and --cfg job")
        else:
            overrides.append(word)
    return Invocation(overrides=overrides, show_config=show_config, show_help=show_help)


def _composed(command: str, overrides: Sequence[str]) -> object:
    folder = _conf_folder()
    ConfigStore.instance().store(name=f"{command}_schema", node=LabelConfig)
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        raise UsageError(
            f"{first_line(error)}: settings are written key=value, with quotes around blanks and commas"
        ) from error
    checked = check_overrides(parsed, LabelConfig, _groups(folder))
    try:
        with initialize_config_dir(str(folder), version_base="1.3"):
            config = compose(command, overrides=checked)
        OmegaConf.to_object(config)
    except MissingMandatoryValue:
        return config
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(_cause(error)) from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    return config


def _cause(error: BaseException) -> str:
    """The innermost complaint in one line, with the key it is about."""
    while error.__cause__ is not None:
        error = error.__cause__
    key = getattr(error, "full_key", None)
    return f"{key}: {first_line(error)}" if key else first_line(error)


def _yaml(overrides: Sequence[str]) -> str:
    return OmegaConf.to_yaml(_composed("label", overrides))


def _conf_folder() -> Path:
    folder = _PACKAGED_CONF if _PACKAGED_CONF.is_dir() else _CHECKOUT_CONF
    return folder.resolve()


def _groups(folder: Path) -> dict[str, list[str]]:
    return {
        group.name: sorted(option.stem for option in group.glob("*.yaml"))
        for group in sorted(folder.iterdir())
        if group.is_dir()
    }


def _groups_text() -> str:
    return "".join(f"  {name:<10} {' '.join(options)}\n" for name, options in _groups(_conf_folder()).items())


if __name__ == "__main__":
    sys.exit(main())
