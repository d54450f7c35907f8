"""How a machine's facts look on a terminal: a name and what is known by it, a line each; '-' is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stoker.cli.show import printable, size
from stoker.records import (
    ContainerEngine,
    Disk,
    Environment,
    Gpu,
    GpuProcess,
    Listener,
    Machine,
    MachineDetails,
    MemoryHolder,
)
from stoker.records.machine import NetworkPort

NAME_WIDTH = 12
MOST_LISTENERS = 12
Line = tuple[str, str]


def facts_text(machine: Machine) -> str:
    """Returns all facts; what belongs to one thing stands under its name once."""
    lines = [*_system(machine), *_memory(machine), *_graphics(machine)]
    lines += [("link", _port(port)) for port in machine.ports or ()]
    lines += [("engine", f"{name} {version or '- (not installed)'}") for name, version in machine.engines.items()]
    if machine.details:
        lines += _details(machine.details)
    said, before = [], ""
    for name, text in lines:
        said.append(f"{'' if name == before else name:<{NAME_WIDTH}}{printable(text)}")
        before = name
    return "\n".join(said)


def _port(port: NetworkPort) -> str:
    """A port that RDMA may go through: its device, whether it is up, its rate, and its address."""
    state = {True: "up", False: "down", None: "-"}[port.is_up]
    rate = "-" if port.rate_gbit is None else f"{port.rate_gbit:g} Gb/s"
    return f"{port.device} ({port.interface or '-'}) {state}, {rate}, address {port.address or '-'}, MTU {port.mtu or '-'}"


def _system(machine: Machine) -> Iterator[Line]:
    yield "host", f"{machine.hostname}, {machine.arch}, Linux {machine.kernel}"
    yield "system", machine.os or "-"
    if machine.product or machine.firmware:
        yield "product", f"{machine.product or '-'}, firmware {machine.firmware or '-'}"
    yield "processor", f"{machine.cpu_model or '-'}, {machine.cpu_count} usable"


def _memory(machine: Machine) -> Iterator[Line]:
    memory = machine.memory
    stall = _percent(memory.full_stall_pct)
    yield "memory", f"{size(memory.available_bytes)} available of {size(memory.total_bytes)}, {_sharing(machine)}"
    yield (
        "memory",
        f"free {size(memory.free_bytes)}, page cache {size(memory.page_cache_bytes)}, stalled {stall} of the time",
    )
    if machine.gpus:
        yield (
            "memory",
            f"CUDA sees {size(machine.cuda_visible_bytes)}{'' if machine.cuda_visible_bytes else ' (--measure asks it)'}",
        )
    yield "swap", f"{size(memory.swap_free_bytes)} free of {size(memory.swap_total_bytes)}"


def _sharing(machine: Machine) -> str:
    if not machine.gpus:
        return "no GPU to share it with"
    said = {True: "shared with the GPU", False: "the GPU has its own", None: "shared with the GPU or not: -"}
    return said[machine.unified_memory]


def _graphics(machine: Machine) -> Iterator[Line]:
    yield "driver", f"{machine.driver or '-'}, CUDA {machine.cuda or '-'}"
    for path, options in machine.driver_options.items():
        yield "driver", f"{path}: {'; '.join(options)}"
    for gpu in machine.gpus:
        yield from (("gpu", text) for text in _gpu(gpu))
    if not machine.gpus:
        yield "gpu", "none that NVIDIA's driver knows of"


def _gpu(gpu: Gpu) -> Iterator[str]:
    held = f"{size(gpu.memory_used_bytes)} used of {size(gpu.memory_total_bytes)}" if gpu.memory_total_bytes else "memory -"
    yield f"{gpu.name}, SM {gpu.compute_capability or '-'}, {held}"
    yield (
        f"clock {_of(gpu.sm_clock_mhz, 'MHz')} of {_of(gpu.sm_clock_max_mhz, 'MHz')}, busy {_percent(gpu.utilisation_pct)},"
        f" {_of(gpu.temperature_c, 'C')}"
    )
    why = "-" if gpu.slowed_by is None else ", ".join(gpu.slowed_by) or "nothing"
    limits = f"limit {_of(gpu.power_limit_w, 'W')}, {_of(gpu.power_limit_default_w, 'W')} by default"
    yield f"power {_of(gpu.power_w, 'W')}, {limits}; slowed by: {why}"


def _of(amount: float | None, unit: str) -> str:
    return "-" if amount is None else f"{amount:.0f} {unit}"


def _percent(amount: float | None) -> str:
    return _of(amount, "%")


def _details(details: MachineDetails) -> Iterator[Line]:
    for program in details.programs:
        yield "program", f"{program.engine} {program.version or '-'} at {program.program}"
    for found in details.environments:
        yield found.kind, _environment(found)
    for engine in details.container_engines:
        yield "containers", _container_engine(engine)
    if not details.container_engines:
        yield "containers", "neither docker nor podman"
    for disk in details.disks:
        yield from (("disk", text) for text in _disk(disk))
    yield from (("gpu memory", _gpu_process(process)) for process in details.gpu_processes)
    yield from (("held by", _holder(holder)) for holder in details.holders)
    yield from _ports(details)


def _environment(found: Environment) -> str:
    parts = {"CUDA": found.cuda, "torch": found.torch, "Python": found.python}
    said = "".join(f", {name} {value}" for name, value in parts.items() if value)
    large = f", {size(found.size_bytes)}" if found.size_bytes else ""
    return (
        f"{found.name}: {found.engine or 'engine -'} {found.version or '-'}, {found.arch or 'architecture -'}{said}{large}"
    )


def _container_engine(engine: ContainerEngine) -> str:
    said = f"{engine.name} {engine.version or '-'}"
    if not engine.answers:
        return f"{said}, does not answer: it does not run, or this user may not ask it"
    gpus = {True: "offers NVIDIA's GPUs", False: "no NVIDIA runtime or CDI file", None: "GPUs: -"}[engine.offers_nvidia]
    return f"{said}, answers, runtimes {', '.join(engine.runtimes or ()) or '-'}, storage {engine.storage or '-'}, {gpus}"


def _disk(disk: Disk) -> Iterator[str]:
    where = f"{disk.path} ({disk.kind or '-'} on {disk.device or '-'})"
    yield f"{size(disk.free_bytes)} free of {size(disk.total_bytes)} at {where}"
    yield f"  holds {', '.join(disk.holds)}"
    if rate := disk.read_rate:
        way = "around the page cache" if rate.direct else "through the page cache, which may have helped"
        yield f"  reads {size(rate.bytes_per_s)}/s: {size(rate.read_bytes)} in {rate.seconds:.2f} s, {way}"
    elif disk.not_measured:
        yield f"  reads -: {disk.not_measured}"


def _gpu_process(process: GpuProcess) -> str:
    return f"{size(process.used_bytes)} of GPU {process.gpu} by {process.name or '-'} (pid {process.pid})"


def _holder(holder: MemoryHolder) -> str:
    return f"{holder.name} (pid {holder.pid}), {size(holder.resident_bytes)}"


def _ports(details: MachineDetails) -> Iterable[Line]:
    texts = [_listener(one) for one in details.listeners]
    more = len(texts) - MOST_LISTENERS
    shown = texts[:MOST_LISTENERS] + ([f"and {more} more; --json lists all"] if more > 0 else [])
    return [("listens", text) for text in shown]


def _listener(one: Listener) -> str:
    host = f"[{one.host}]" if ":" in one.host else one.host
    return f"{host}:{one.port} {one.name or '-'}{f' (pid {one.pid})' if one.pid else ''}"
