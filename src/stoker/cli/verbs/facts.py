"""`stoker facts`: what Stoker knows of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.records import Machine

HELP = """Show what Stoker knows of this machine. '-' is unknown, which is not zero.

\b
Example:
  stoker facts
  stoker facts --json
"""


@click.command(help=HELP, short_help="Show what is known of this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def facts(as_json: bool) -> None:
    """Prints the machine's facts."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.facts import read_facts

    machine = read_facts(find_paths())
    if as_json:
        say_json(machine)
    else:
        click.echo("\n".join(f"{name:<12}{text}" for name, text in _lines(machine)))


COMMAND = facts


def _lines(machine: Machine) -> list[tuple[str, str]]:
    from stoker.cli.show import size

    memory, disk = machine.memory, machine.disk
    stall = "-" if memory.full_stall_pct is None else f"{memory.full_stall_pct:.0f} %"
    lines = [
        ("host", f"{machine.hostname}, {machine.arch}, Linux {machine.kernel}"),
        ("processor", f"{machine.cpu_model or '-'}, {machine.cpu_count} usable"),
        ("memory", f"{size(memory.available_bytes)} available of {size(memory.total_bytes)}"),
        (
            "",
            f"free {size(memory.free_bytes)}, page cache {size(memory.page_cache_bytes)}, stalled {stall} of the time",
        ),
        ("swap", f"{size(memory.swap_free_bytes)} free of {size(memory.swap_total_bytes)}"),
        ("disk", f"{size(disk.free_bytes)} free of {size(disk.total_bytes)} at {disk.path}" if disk else "-"),
        ("driver", f"{machine.driver or '-'}, CUDA {machine.cuda or '-'}"),
    ]
    lines += [("gpu", _gpu_line(gpu.name, gpu.compute_capability, gpu.memory_total_bytes)) for gpu in machine.gpus]
    if not machine.gpus:
        lines.append(("gpu", "none that NVIDIA's driver knows of"))
    return lines + [("engine", f"{name} {version or '- (not installed)'}") for name, version in machine.engines.items()]


def _gpu_line(name: str, capability: str | None, memory_bytes: int | None) -> str:
    from stoker.cli.show import size

    held = f"{size(memory_bytes)} of its own" if memory_bytes else "shares the machine's memory, or does not tell"
    return f"{name}, SM {capability or '-'}, {held}"
