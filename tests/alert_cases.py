"""For each alert: series of a fault that it has to see, and of a health that looks like it. A sample a minute.

Values are promtool's: `a+bxn` climbs n times by b; `climb` writes several of them one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

DAY, LABELS = 1440, 'service="coder",engine="vllm"'
Series = dict[str, str]


class Case(NamedTuple):
    """`minutes`: when the alert is asked for; `alerts`: how many of it fire on the fault."""

    minutes: int
    fault: Series
    health: Series
    alerts: int = 1


def climb(*legs: tuple[int, float]) -> str:
    """Returns a counter that grows for so many minutes by so much, leg after leg."""
    at, words = 0.0, ["0"]
    for minutes, each in legs:
        words.append(f"{at + each:g}+{each:g}x{minutes - 1}")
        at += each * minutes
    return " ".join(words)


def level(*legs: tuple[int, float]) -> str:
    """Returns a gauge that stays for so many minutes at a value, leg after leg."""
    return " ".join(f"{value:g}x{minutes - 1}" if minutes > 1 else f"{value:g}" for minutes, value in legs)


def of(name: str, labels: str = LABELS) -> str:
    return f"{name}{{{labels}}}"


def speculates(*accepted: tuple[int, float]) -> Series:
    minutes = sum(one for one, _ in accepted)
    return {
        of("stoker_engine_draft_tokens_total"): climb((minutes, 100)),
        of("stoker_engine_accepted_tokens_total"): climb(*accepted),
        of("stoker_engine_verify_steps_total"): climb((minutes, 30)),
    }


def sglang(generated: float) -> Series:
    labels = LABELS.replace("vllm", "sglang")
    return {
        of("stoker_engine_generated_tokens_total", labels): climb((60, generated)),
        of("stoker_engine_verify_steps_total", labels): climb((60, 100)),
        of("stoker_engine_tokens_verified_per_step", labels): level((60, 4)),
    }


def slow_gaps(accepted: float) -> Series:
    gaps = {"0.05": 10.0, "0.5": 100.0, "+Inf": 100.0}
    found = {of("stoker_engine_inter_token_seconds_bucket", f'{LABELS},le="{le}"'): climb((30, n)) for le, n in gaps.items()}
    return found | {
        of("stoker_engine_accepted_tokens_total"): climb((30, accepted)),
        of("stoker_engine_verify_steps_total"): climb((30, 100)),
    }


def times(name: str, *slow: tuple[int, bool]) -> Series:
    """A histogram of which everything lies below 1 s, or between 10 and 20."""
    bounds = {"1": 0.0, "10": 0.0, "20": 10.0, "+Inf": 10.0}
    return {
        of(f"{name}_bucket", f'service="coder",le="{le}"'): climb(*((one, n if bad else 10.0) for one, bad in slow))
        for le, n in bounds.items()
    }


def requests(minutes: int, **by_status: float) -> Series:
    return {
        of("stoker_gateway_requests_total", f'path="/v1/chat/completions",service="coder",status="{status[1:]}"'):
            climb((minutes, each)) for status, each in by_status.items()
    }  # fmt: skip


def memory(available: str, floor: float = 5e8) -> Series:
    return {"stoker_machine_memory_available_bytes": available, "stoker_machine_memory_floor_bytes": level((2000, floor))}


def gpu(minutes: int, clock: float, slowed: int = 0) -> Series:
    return {
        of("stoker_gpu_busy_clock_hertz", 'gpu="0"'): level((minutes, clock)),
        of("stoker_gpu_clock_max_hertz", 'gpu="0"'): level((minutes, 3.003e9)),
        of("stoker_gpu_slowed", 'gpu="0",reason="heat (software)"'): level((minutes, slowed)),
    }


def state(name: str, minutes: int = 30) -> Series:
    return {of("stoker_service_state", f'service="coder",state="{one}"'): level((minutes, float(one == name)))
            for one in ("READY", "FAILED", "WEDGED", "WAITING_FOR_MEMORY", "STOPPED")}  # fmt: skip


def disk(free: str) -> Series:
    return {
        of("stoker_disk_free_bytes", 'holds="models"'): free,
        of("stoker_disk_total_bytes", 'holds="models"'): "4e12x900",
    }


def one(name: str, values: str, labels: str = LABELS) -> Series:
    return {of(name, labels): values}


MUCH_CACHED = {"stoker_machine_memory_page_cache_bytes": "9e10x30", "stoker_machine_memory_total_bytes": "12e10x30"}
PLANNED = "stoker_service_memory_planned_bytes"
OF_SERVICE, OF_GPU = 'service="coder"', 'gpu="0"'
DECAY = tuple((60, 35 - 2.1 * hour) for hour in range(16))
RIPPLE = tuple((120, 35 - 4 * (hour % 2)) for hour in range(10))

CASES = {
    "sglang-speculation-degraded": Case(60, sglang(120), sglang(190)),  # 0.07 and 0.30
    "accept-rate-dropped": Case(DAY + 60, speculates((DAY, 35), (60, 10)), speculates((DAY, 35), (60, 23))),
    "accept-rate-decayed": Case(DAY + 960, speculates((DAY, 35), *DECAY), speculates((DAY, 35), *RIPPLE)),
    "speculation-stalls": Case(30, slow_gaps(20), slow_gaps(150)),
    "engine-frozen": Case(
        10,
        one("stoker_service_silent_seconds", "0+60x20", OF_SERVICE) | one("stoker_engine_generated_tokens_total", "900x20"),
        one("stoker_service_silent_seconds", "0+60x20", OF_SERVICE) | one("stoker_engine_generated_tokens_total", "0+9x20"),
    ),
    "engine-metrics-vanished": Case(
        20, one("stoker_engine_up", level((10, 1), (15, 0))), one("stoker_engine_up", level((10, 1), (1, 0), (15, 1)))
    ),
    "engine-metrics-odd": Case(
        20,
        one("stoker_engine_metrics_problem", "1x30", f'{LABELS},problem="went back"'),
        one("stoker_engine_metrics_problem", "1x30", f'{LABELS},problem="unreachable"'),
    ),
    "daemon-down": Case(20, one("up", level((10, 1), (15, 0)), 'job="stoker"'), one("up", "1x30", 'job="stoker"')),
    "daemon-judges": Case(
        20, one("stoker_alert_firing", level((10, 0), (15, 1)), 'alert="canary-slow",service="coder",severity="warning"'),
        one("stoker_alert_firing", "1x30", 'alert="speculation-other-work",service="coder",severity="info"'),
    ),
    "memory-floor": Case(20, memory(level((10, 9e9), (15, 4e8))), memory("9e8x30")),
    "memory-trend": Case(60, memory("60e9-500000000x90"), memory("60e9-100000x90")),
    "memory-stalled": Case(
        20, {"stoker_machine_memory_stalled_ratio": "0.6x30"}, {"stoker_machine_memory_stalled_ratio": "0.1x30"}
    ),
    "swap-grows": Case(
        40, {"stoker_machine_swap_used_bytes": "0+200000000x60"}, {"stoker_machine_swap_used_bytes": "8e9x60"}
    ),
    "memory-beyond-plan": Case(
        20,
        {of("stoker_service_memory_bytes", OF_SERVICE): "1.9e9x30", of(PLANNED, OF_SERVICE): "3e8x30"},
        {of("stoker_service_memory_bytes", OF_SERVICE): "5e8x30", of(PLANNED, OF_SERVICE): "3e8x30"},
    ),
    "page-cache-in-the-way": Case(
        20,
        state("WAITING_FOR_MEMORY") | MUCH_CACHED,
        state("READY") | MUCH_CACHED,
    ),
    "gpu-slowed-by-heat": Case(
        20,
        one("stoker_gpu_slowed", level((10, 0), (15, 1)), f'{OF_GPU},reason="heat (software)"'),
        one("stoker_gpu_slowed", "1x30", f'{OF_GPU},reason="the power limit"'),
    ),
    "gpu-slowed-by-power": Case(
        30,
        one("stoker_gpu_slowed", "1x40", f'{OF_GPU},reason="the power limit"'),
        one("stoker_gpu_slowed", level((10, 1), (12, 0), (30, 1)), f'{OF_GPU},reason="the power limit"'),
    ),
    "gpu-clock-stuck": Case(20, gpu(30, 7.99e8), gpu(30, 2.236e9)),
    "gpu-busy-without-power": Case(
        DAY + 30,
        one("stoker_gpu_utilisation_ratio", "0.97x1500", OF_GPU)
        | one("stoker_gpu_power_watts", level((DAY, 47), (60, 15)), OF_GPU),
        one("stoker_gpu_utilisation_ratio", level((DAY, 0.97), (60, 0)), OF_GPU)
        | one("stoker_gpu_power_watts", level((DAY, 47), (60, 6)), OF_GPU),
    ),
    "queue-long": Case(
        30,
        one("stoker_service_requests_waiting", "3x40", OF_SERVICE) | one("stoker_engine_requests_waiting", "2x40"),
        one("stoker_service_requests_waiting", level((25, 50), (1, 0), (20, 50)), OF_SERVICE),
    ),
    "ttft-slow": Case(
        DAY + 40,
        times("stoker_service_ttft_seconds", (DAY, False), (60, True)),
        times("stoker_service_ttft_seconds", (DAY + 60, True)),  # long prompts, as ever
    ),
    "decode-slow": Case(
        DAY + 40,
        times("stoker_service_output_token_seconds", (DAY, False), (60, True)),
        times("stoker_service_output_token_seconds", (DAY + 60, False)),
    ),
    "errors": Case(30, requests(40, s200=18, s502=2), requests(40, s200=99, s502=1)),
    "client-errors": Case(40, requests(60, s200=1, s404=9), requests(60, s200=9, s404=1)),
    "requests-aborted": Case(
        40,
        requests(60, s200=10) | one("stoker_service_departures_total", climb((60, 4)), OF_SERVICE),
        requests(60, s200=10) | one("stoker_service_departures_total", climb((60, 1)), OF_SERVICE),
    ),
    "substituted-answers": Case(
        10, {"stoker_gateway_substituted_answers_total": "0 0 1x20"}, {"stoker_gateway_substituted_answers_total": "0x20"}
    ),
    "service-restarted": Case(
        10,
        one("stoker_service_recent_restarts", "2x20", OF_SERVICE),
        one("stoker_service_recent_restarts", "1x20", OF_SERVICE),
    ),
    "service-down": Case(10, state("FAILED"), state("STOPPED")),
    "box-away": Case(
        10,
        one("stoker_box_up", level((3, 1), (15, 0)), 'box="spark-b"'),
        one("stoker_box_up", level((3, 1), (1, 0), (15, 1)), 'box="spark-b"'),  # a daemon that started anew
    ),
    "disk-full": Case(20, disk("5e10x30"), disk("9e11x30")),
    "disk-trend": Case(600, disk("2e12-2000000000x700"), disk("2e12-100000000x700")),
}  # fmt: skip
