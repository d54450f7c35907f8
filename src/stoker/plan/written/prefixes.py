"""What people put before an engine's program: `sudo`, `exec`, `env A=b`, `numactl ...`, and what that does to variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class _Prefix(NamedTuple):
    """Which of a prefix's options take a word of their own, and how many words come before the program."""

    valued: frozenset[str] = frozenset()
    positional: int = 0


def _prefix(valued: str = "", positional: int = 0) -> _Prefix:
    return _Prefix(frozenset(valued.split()), positional)


PREFIXES = {
    "exec": _prefix("-a"), "command": _prefix(), "nohup": _prefix(), "setsid": _prefix(), "time": _prefix("-f -o"),
    "env": _prefix("-u --unset -C --chdir -S"),
    "sudo": _prefix("-u --user -g --group -h --host -p --prompt -C -D --chdir -R -r -t -T"),
    "nice": _prefix("-n --adjustment"), "ionice": _prefix("-c --class -n --classdata -p"), "stdbuf": _prefix("-i -o -e"),
    "taskset": _prefix("", 1), "chrt": _prefix("", 1), "timeout": _prefix("-k --kill-after -s --signal", 1),
    "numactl": _prefix("-i --interleave -p --preferred -m --membind -N --cpunodebind -C --physcpubind"),
    "systemd-inhibit": _prefix("--what --who --why --mode"),
    "systemd-run": _prefix("-p --property -u --unit --slice -E --setenv --description --uid --gid -M -H"),
    "uv run": _prefix("-p --python --with --with-editable --with-requirements --project --directory --env-file --extra "
                      "--group --index-url --index --extra-index-url -m"),
    "uvx": _prefix("-p --python --with --from"), "poetry run": _prefix(), "pdm run": _prefix(), "pixi run": _prefix("-e"),
    "torchrun": _prefix("--nnodes --nproc-per-node --nproc_per_node --node-rank --node_rank --master-addr --master_addr "
                        "--master-port --master_port --rdzv-backend --rdzv_backend --rdzv-endpoint --rdzv_endpoint "
                        "--rdzv-id --rdzv_id --max-restarts --max_restarts --log-dir --log_dir"),
    "mpirun": _prefix("-np -n -H --host -hostfile --hostfile -x --map-by --bind-to"),
    "srun": _prefix("-N --nodes -n --ntasks -p --partition -w --nodelist -J --job-name -t --time -c --cpus-per-task"),
    "gosu": _prefix("", 1), "su-exec": _prefix("", 1), "tini": _prefix("-p -e"), "dumb-init": _prefix(),
    "unbuffer": _prefix(),
    "conda run": _prefix("-n --name -p --prefix --cwd"), "micromamba run": _prefix("-n --name -p --prefix"),
}  # fmt: skip


class Stripped(NamedTuple):
    """A command without its prefixes, the prefixes themselves, and the variables that reach it and that do not.

    `A=b` at the very beginning is no part of the prefix; what stands behind `env` or `sudo` is.
    """

    prefix: tuple[str, ...]
    words: tuple[str, ...]
    environment: dict[str, str]
    lost: dict[str, str]


def strip_prefixes(words: Sequence[str], environment: Mapping[str, str]) -> Stripped:
    """Takes `A=b`, `sudo`, `exec` and their kin off a command; `environment` is what it would be started with."""
    rest = list(words)
    reaching, lost = dict(environment), dict[str, str]()
    while rest:
        if found := VARIABLE.fullmatch(rest[0]):
            reaching[found[1]] = found[2]
            lost.pop(found[1], None)
            rest = rest[1:]
            continue
        name, count = _find(rest)
        if name is None:
            break
        end = _end(rest, count, PREFIXES[name])
        options = rest[count:end]
        if _resets_environment(name, options):
            lost, reaching = {**lost, **reaching}, {}
        rest = rest[end:]
    prefix = list(words[: len(words) - len(rest)])
    while prefix and VARIABLE.fullmatch(prefix[0]):
        del prefix[0]
    return Stripped(tuple(prefix), tuple(rest), reaching, lost)


def program_name(word: str) -> str:
    """Returns a program without its folder: `vllm` of `/opt/venv/bin/vllm`."""
    return PurePosixPath(word).name


def _find(words: Sequence[str]) -> tuple[str | None, int]:
    one = program_name(words[0])
    two = f"{one} {words[1]}" if len(words) > 1 else one
    return (two, 2) if two in PREFIXES else (one, 1) if one in PREFIXES else (None, 0)


def _end(words: Sequence[str], start: int, prefix: _Prefix) -> int:
    """Returns where the prefix's own words end."""
    place = start
    while place < len(words) and words[place].startswith("-"):
        if words[place] == "--":
            place += 1
            break
        if words[place] == "-m" and words[0] != "numactl":  # `uv run -m module` is python's own -m
            break
        place += 2 if words[place] in prefix.valued else 1
    return min(place + prefix.positional, len(words))


def _resets_environment(name: str, options: Sequence[str]) -> bool:
    if name == "sudo":
        return not any(option == "-E" or option.startswith("--preserve-env") for option in options)
    return name == "env" and any(option in ("-i", "-", "--ignore-environment") for option in options)
