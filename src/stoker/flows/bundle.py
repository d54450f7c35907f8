"""Packs what a bug report needs into one archive, without secrets, names and what was said to the model."""

from __future__ import annotations

import io
import os
import pwd
import socket
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from stoker import __version__
from stoker.box import clock_s
from stoker.config import Config, Paths
from stoker.diagnose.redactor import Redactor
from stoker.errors import WrongUse
from stoker.facts.machine.boxes import THIS, read_box
from stoker.plan.secrets import hide_words, is_secret, without_secrets
from stoker.records import Diagnosis, LogLine, Plan, SavedService, Wish
from stoker.store.services import read_saved
from stoker.supervise.logs import LINE_LIMIT_BYTES, visible

HEAD_BYTES, TAIL_BYTES = 256 * 1024, 2 * 2**20
# Variables that change what engines do; of all others not even the name is told.
TELLING = ("CUDA_", "HF_", "LLAMA_", "NCCL_", "NVIDIA_", "PYTORCH_", "SGLANG_", "STOKER_", "TORCH", "TRITON_", "VLLM_")
README = """\
What Stoker {version} packed for a bug report about {source}:

{names}

Taken out: keys, tokens and passwords (those that this machine's files and variables hold, and whatever looks like one),
names of people's folders, of you and of this machine, mail addresses, and what clients and models said.
No program knows every secret: look through it before you send it.
"""


def write_bundle(
    paths: Paths, config: Config, log: Path, told: Diagnosis, render: Callable[[Diagnosis], str], file: Path
) -> tuple[str, ...]:
    """Writes a new archive, which only its owner may read, and returns the names of what is in it.

    `render` makes text of a diagnosis. Of a log that is no service's of this machine, nothing of this machine is packed.
    """
    saved = next((one for one in read_saved(paths.database) if paths.engine_log(one.plan.service) == log), None)
    wish = config.services.get(log.stem) if saved is not None else None
    redactor = Redactor(_secrets(paths, wish, saved), _names())
    shown = _without_words(told, redactor)
    parts = {
        "diagnosis.txt": redactor.text(render(shown)),
        "diagnosis.json": redactor.text(_json(shown)),
        "log.txt": "\n".join(redactor.log(_read_ends(log))),
    }
    if saved is not None:
        parts |= {name: redactor.text(text) for name, text in _of_service(saved, wish).items()}
        parts["state.txt"] = "\n".join(redactor.log([f"{saved.service.state}: {saved.service.why}"]))
        parts["daemon.log"] = "\n".join(redactor.log(_read_ends(paths.daemon_log) if paths.daemon_log.exists() else []))
    parts["README.txt"] = README.format(version=__version__, source=redactor.text(told.source), names=_list(parts))
    _write_archive(file, parts)
    return tuple(sorted(parts))


def _without_words(told: Diagnosis, redactor: Redactor) -> Diagnosis:
    """Returns a diagnosis whose lines hold nothing that was said to a model or by one."""

    def shown(lines: tuple[LogLine, ...]) -> tuple[LogLine, ...]:
        return tuple(msgspec.structs.replace(one, text=" ".join(redactor.log([one.text]))) for one in lines)

    return msgspec.structs.replace(
        told,
        findings=tuple(msgspec.structs.replace(one, evidence=shown(one.evidence)) for one in told.findings),
        noise=tuple(msgspec.structs.replace(one, evidence=shown(one.evidence)) for one in told.noise),
        unknown=shown(told.unknown),
    )


def _of_service(saved: SavedService, wish: Wish | None) -> dict[str, str]:
    parts = {
        "plan.json": _json(_shown_plan(saved.plan)),
        "machine.json": _json(read_box(THIS)),
        "variables.txt": "\n".join(_variables(os.environ)),
    }
    return parts | ({"service.json": _json(_shown_wish(wish))} if wish is not None else {})


def _shown_plan(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, settings=without_secrets(plan.settings), program=hide_words(plan.program))


def _shown_wish(wish: Wish) -> Wish:
    flags = {name: "***" if is_secret(f"--{name}", value) else value for name, value in wish.flags.items()}
    environment = {name: "***" if is_secret(f"${name}", value) else value for name, value in wish.environment.items()}
    return msgspec.structs.replace(wish, flags=flags, environment=environment, program=hide_words(wish.program))


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(environment.items()):
        if name.startswith(TELLING):
            yield f"{name}={'***' if is_secret(name, value) else value}"


def _secrets(paths: Paths, wish: Wish | None, saved: SavedService | None) -> Iterator[str]:
    """Every secret whose value is known here, so that it is found wherever it stands and whatever stands beside it."""
    cache = Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface")
    for file in (paths.key_file, paths.control_key_file, paths.engine_key_file, cache / "token"):
        yield from _words_of(file)
    yield from (value for name, value in os.environ.items() if is_secret(name, value))
    if wish is not None:
        yield from (value for name, value in wish.environment.items() if is_secret(f"${name}", value))
        yield from (str(value) for name, value in wish.flags.items() if is_secret(f"--{name}", value))
    if saved is not None:
        yield from (str(one.value) for one in saved.plan.settings if is_secret(one.name, one.value))


def _words_of(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except (OSError, ValueError):
        return []


def _names() -> dict[str, str]:
    """Those of the person and of the machine, and what is written in their place."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without an entry
        user = ""
    return {str(Path.home()): "/home/…", user: "someone", socket.gethostname(): "this-machine"}


def _read_ends(file: Path) -> Iterator[str]:
    """Yields the lines of a log's beginning and of its end, whole ones only: half a secret passes for none."""
    with file.open("rb") as source:
        size = source.seek(0, os.SEEK_END)
        source.seek(0)
        head = source.read(HEAD_BYTES if size > HEAD_BYTES + TAIL_BYTES else size)
        source.seek(max(len(head), size - TAIL_BYTES))
        tail = source.read(TAIL_BYTES)
    if not tail:
        yield from map(_shown, head.split(b"\n"))
        return
    yield from map(_shown, head.split(b"\n")[:-1])
    yield f"... {size - len(head) - len(tail):,} bytes are left out here ..."
    yield from map(_shown, tail.split(b"\n")[1:])


def _shown(line: bytes) -> str:
    """A line that is cut loses its end as a whole word."""
    return visible(line) if len(line) < LINE_LIMIT_BYTES else visible(line).rpartition(" ")[0] + " …"


def _list(parts: Mapping[str, str]) -> str:
    return "\n".join(f"  {name:16} {len(text.encode()):>10,} bytes" for name, text in sorted(parts.items()))


def _write_archive(file: Path, parts: Mapping[str, str]) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as problem:
        raise WrongUse(
            f"{file} cannot be written", why=problem.strerror or str(problem), next_step="name a file that is not there yet"
        ) from problem
    folder = file.name.partition(".")[0]
    with os.fdopen(descriptor, "wb") as out, tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in sorted(parts.items()):
            data = text.encode(errors="replace")
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), int(clock_s()), 0o600
            archive.addfile(entry, io.BytesIO(data))
