"""A run's speed beside what its hardware allows, in words."""

from pipeline.core.hardware import Hardware, Throughput
from pipeline.core.words import percent


def speed_lines(speed: Throughput) -> list[str]:
    """Two lines: tokens/s beside the bound, then what the engines did beside generating."""
    engines = round(speed.engines)
    of_engines = f" of {engines} engines" if engines > 1 else ""
    batch = "" if speed.batch is None else f"batch {speed.batch:,.0f} and "
    where = f"{batch}context {speed.context:,.0f}"
    first = f"{speed.tokens_per_second:,.0f} tokens/s{of_engines}"
    if speed.share is None or speed.prefill_share is None:
        first += f" at {where}; no bound: {speed.hardware.unknown}"
    else:
        with_prompts = percent(speed.share + speed.prefill_share)
        first += (
            f" = {percent(speed.share)} of the decode bound of {_name(speed.hardware)} at {where} "
            f"({with_prompts} with prompts)"
        )
    parts = [f"idle {percent(speed.idle)}" + ("" if speed.tail is None else f" (tail {percent(speed.tail)})")]
    if speed.prefill_ratio is not None:
        parts.append(f"prompt tokens computed {speed.prefill_ratio:.2f} x distinct")
    parts.append(f"grading {percent(speed.grading)}")
    return [first, "; ".join(parts)]


def _name(hardware: Hardware) -> str:
    assert hardware.device is not None
    return f"{hardware.devices} x {hardware.device.name}" if hardware.devices > 1 else hardware.device.name
