"""What a GPU's clock means: why it is below the highest, and whether it was read while the GPU was at work. Pure."""

from __future__ import annotations

IDLE = "idle"
# The bits of nvmlDeviceGetCurrentClocksEventReasons, as nvml.h numbers them.
REASONS = {
    0x001: IDLE,
    0x002: "a clock that was set",
    0x004: "the power limit",
    0x008: "a hardware slowdown",
    0x010: "another GPU that it is kept in step with",
    0x020: "heat (software)",
    0x040: "heat (hardware)",
    0x080: "the power supply's brake",
    0x100: "the display's clock",
}
# A definition, not advice: NVML's utilisation is the share of its last sample in which any kernel ran. A desktop makes a
# few per cent and decoding over ninety; a clock that was read in between tells nothing of either.
AT_WORK_PCT = 90


def name_reasons(bits: int | None) -> tuple[str, ...] | None:
    """Returns the reasons for a lower clock in words; None where the driver gives none at all to know."""
    if bits is None:
        return None
    known = [word for bit, word in REASONS.items() if bits & bit]
    unknown = bits & ~sum(REASONS)
    return (*known, *([f"a reason that Stoker does not know ({unknown:#x})"] if unknown else []))


def busy_clock_mhz(clock_mhz: int | None, busy_pct: int | None, slowed_by: tuple[str, ...] | None) -> int | None:
    """Returns the clock where the GPU was at work, else None: an idle GPU clocks down, which says nothing of its health."""
    is_idle = busy_pct is None or busy_pct < AT_WORK_PCT or IDLE in (slowed_by or ())
    return None if is_idle else clock_mhz
