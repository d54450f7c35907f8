"""`stoker.toml` and the XDG folders, turned into one typed Config; an unknown key is an error that names its path."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from stoker.door_tables import check_doors, parse_aliases, parse_service
from stoker.errors import WrongUse
from stoker.records import MIB, DoorSettings, FetchSettings, IdleSettings, KnowledgeSettings, Record, Wish, Workflow
from stoker.records.boxes import BoxesSettings
from stoker.records.door import Running, Wait, Waiting
from stoker.records.watching import WatchSettings
from stoker.tables import SERVICE_NAME as SERVICE_NAME
from stoker.tables import check_keys, check_name, parse_table, read_tables
from stoker.workflow_tables import check_services, parse_workflow, with_whole_folders
from stoker.written_paths import is_there, whole_path

SERVICE_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,246}\.service")
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(:[\w.-]+)?")
DEMO = "demo"
TABLES = {"boxes", "gateway", "limits", "fetch", "idle", "watch", "knowledge", "alias", "service", "workflow"}
Seconds = Annotated[float, msgspec.Meta(ge=0, le=7 * 24 * 3600)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1000)]


Content = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]


class GatewayConfig(Record, frozen=True):
    """The `[gateway]` table."""

    host: Annotated[str, msgspec.Meta(min_length=1)] = "127.0.0.1"
    port: Port = 8700
    allowed_hosts: tuple[str, ...] = ()
    body_limit_bytes: Bytes = 32 * MIB
    cors_origins: tuple[str, ...] = ()
    tls_certificate: str | None = None
    tls_key: str | None = None
    head_limit_s: Seconds = 10.0
    body_limit_s: Seconds = 10.0
    engine_silence_limit_s: Seconds = 900.0
    running: Running | None = None
    waiting: Waiting = 64
    wait_s: Wait = 600.0
    wait_comment_s: Annotated[float, msgspec.Meta(ge=0.1, le=3600)] = 10.0
    identity_check_s: Annotated[float, msgspec.Meta(ge=0.1, le=24 * 3600)] = 60.0
    usage_days: Annotated[int, msgspec.Meta(ge=0, le=36500)] = 90
    usage_rows: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 1_000_000
    dashboard: Literal["on", "read-only", "off"] = "on"
    contents: Annotated[tuple[Content, ...], msgspec.Meta(max_length=16)] = ()


class LimitsConfig(Record, frozen=True):
    """The `[limits]` table: every wait has one, and its name is what an error calls it."""

    memory_wait_s: Seconds = 120.0
    load_s: Seconds = 1800.0
    prove_s: Seconds = 300.0
    gate_s: Seconds = 120.0
    drain_s: Seconds = 30.0
    stop_grace_s: Seconds = 15.0
    settle_s: Seconds = 120.0
    frozen_s: Seconds = 300.0
    restart_window_s: Seconds = 600.0
    restarts: Count = 3
    switch_cooldown_s: Seconds = 10.0
    memory_floor_bytes: Bytes = 512 * MIB
    read_ahead_bytes: Bytes = 0
    drop_page_cache: bool = False
    log_bytes: Bytes = 16 * MIB


class Config(Record, frozen=True):
    """Everything that `stoker.toml` says, checked."""

    gateway: GatewayConfig = GatewayConfig()
    limits: LimitsConfig = LimitsConfig()
    fetch: FetchSettings = FetchSettings()
    idle: IdleSettings = IdleSettings()
    watch: WatchSettings = WatchSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    boxes: BoxesSettings = BoxesSettings()
    services: dict[str, Wish] = {}  # noqa: RUF012 - msgspec copies it
    doors: dict[str, DoorSettings] = {}  # noqa: RUF012
    aliases: dict[str, str] = {}  # noqa: RUF012
    workflows: dict[str, Workflow] = {}  # noqa: RUF012
    source: str | None = None


class Paths(Record, frozen=True):
    """Where Stoker keeps things; nothing is written elsewhere."""

    state: Path
    config: Path

    @property
    def key_file(self) -> Path:
        """The gateway's key, mode 0600."""
        return self.state / "gateway.key"

    @property
    def control_key_file(self) -> Path:
        """The control API's key, mode 0600: it can start programs, so clients of the models never get it."""
        return self.state / "control.key"

    @property
    def engine_key_file(self) -> Path:
        """The key between the daemon and its engines, mode 0600."""
        return self.state / "engine.key"

    @property
    def completed(self) -> Path:
        """Models whose release lacks files: links to what was fetched, and the missing files from elsewhere."""
        return self.state / "models"

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.state / "stoker.db"

    @property
    def usage_database(self) -> Path:
        """The SQLite file of who used what; it may be thrown away."""
        return self.state / "usage.db"

    @property
    def bench_database(self) -> Path:
        """The SQLite file of benchmarks; it grows with each, and nothing else waits for it."""
        return self.state / "bench.db"

    @property
    def bench_lock(self) -> Path:
        """The file of which each byte is locked while the run of that number is measured."""
        return self.state / "bench.lock"

    @property
    def watch_database(self) -> Path:
        """The SQLite file of what watching saw; it may be thrown away."""
        return self.state / "watch.db"

    @property
    def lock(self) -> Path:
        """The file whose lock says which daemon owns this folder."""
        return self.state / "daemon.lock"

    @property
    def daemon_log(self) -> Path:
        """What the daemon itself has to say."""
        return self.state / "daemon.log"

    @property
    def address_file(self) -> Path:
        """The address of the daemon that owns this folder."""
        return self.state / "daemon.address"

    @property
    def sessions_file(self) -> Path:
        """Who is logged in at the dashboard, by digests."""
        return self.state / "sessions.json"

    @property
    def fix_file(self) -> Path:
        """The fix that is tried, with what stoker.toml is to say, mode 0600."""
        return self.state / "fix.json"

    @property
    def links_file(self) -> Path:
        """The links to other boxes with their keys, and the digests of the doors that may come here, mode 0600."""
        return self.state / "links.json"

    @property
    def box_identity(self) -> Path:
        """This box's certificate for other boxes, and its private key, mode 0600."""
        return self.state / "box.pem"

    def box_seen(self, name: str) -> Path:
        """What another box served when it was last heard."""
        return self.state / "boxes" / f"{name}.json"

    @property
    def run_lock(self) -> Path:
        """The file whose lock says which workflow runs."""
        return self.state / "run.lock"

    @property
    def audit(self) -> Path:
        """What agents proposed, and what they and alerts did."""
        return self.state / "agents.jsonl"

    def run_state(self, workflow: str) -> Path:
        """How far a workflow came."""
        return self.state / "runs" / f"{workflow}.json"

    @property
    def plan_files(self) -> Path:
        """What engines read beside their words, named by content; what was printed to be run needs it as well."""
        return self.state / "plan-files"

    def ray_folder(self, service: str) -> Path:
        """Where Ray keeps its sockets and logs while it starts a service's processes; short, as the paths of sockets are."""
        return self.state / "ray" / service

    def engine_log(self, service: str) -> Path:
        """What one service's engine prints."""
        return self.state / "logs" / f"{service}.log"


def find_paths(environment: Mapping[str, str] = os.environ) -> Paths:
    """Returns the XDG folders; `STOKER_STATE` and `STOKER_CONFIG` move them."""
    home = Path(environment.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    state = _xdg(environment, "XDG_STATE_HOME") or home / ".local/state"
    config = _xdg(environment, "XDG_CONFIG_HOME") or home / ".config"
    return Paths(
        state=Path(environment.get("STOKER_STATE") or state / "stoker").absolute(),
        config=Path(environment.get("STOKER_CONFIG") or config / "stoker/stoker.toml").absolute(),
    )


def _xdg(environment: Mapping[str, str], name: str) -> Path | None:
    path = Path(environment.get(name) or ".")
    return path if path.is_absolute() else None  # the XDG specification: a relative path is to be ignored


def read_config(path: Path) -> Config:
    """Reads `stoker.toml`; a missing file is an empty one. Raises WrongUse with the path of what is wrong."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Config()
    except OSError as problem:
        raise WrongUse(f"{path} cannot be read", why=str(problem)) from problem
    import tomllib  # not waited for where there is no such file

    try:
        tree = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as problem:  # not UTF-8, not TOML, a number or a nesting beyond Python's limits
        raise WrongUse(f"{path} is not valid TOML", why=str(problem), next_step="mend that line and try again") from problem
    return parse_config(tree, str(path))


def parse_config(tree: Mapping[str, Any], source: str) -> Config:
    """Turns a parsed TOML tree into a Config."""
    folder = Path(source).absolute().parent
    check_keys(tree, TABLES, "", source)
    tables = read_tables(tree, "service", source)
    parsed = {name: parse_service(table, name, source) for name, table in tables.items()}
    wishes, doors = ({name: pair[0] for name, pair in parsed.items()}, {name: pair[1] for name, pair in parsed.items()})
    _check_models(wishes, source)
    workflows = {
        name: parse_workflow(table, check_name(name, source, "workflow"), source)
        for name, table in read_tables(tree, "workflow", source).items()
    }
    idle = parse_table(tree.get("idle", {}), IdleSettings, "idle", source)
    check_services(workflows.values(), idle, {*wishes, DEMO}, source)
    check_doors(wishes, doors, idle, source)
    gateway = parse_table(tree.get("gateway", {}), GatewayConfig, "gateway", source)
    return Config(
        gateway=_with_whole_files(gateway, folder),
        limits=parse_table(tree.get("limits", {}), LimitsConfig, "limits", source),
        fetch=parse_table(tree.get("fetch", {}), FetchSettings, "fetch", source),
        idle=idle,
        watch=parse_table(tree.get("watch", {}), WatchSettings, "watch", source),
        knowledge=_with_whole_folders(
            parse_table(tree.get("knowledge", {}), KnowledgeSettings, "knowledge", source), folder
        ),
        boxes=parse_table(tree.get("boxes", {}), BoxesSettings, "boxes", source),
        services={name: with_whole_paths(wish, folder) for name, wish in wishes.items()},
        doors=doors,
        aliases=parse_aliases(tree.get("alias", {}), wishes, source),
        workflows={name: with_whole_folders(one, folder) for name, one in workflows.items()},
        source=source,
    )


def _check_models(wishes: Mapping[str, Wish], source: str) -> None:
    for name, wish in wishes.items():
        if not wish.model and wish.engine != "command":
            raise WrongUse(
                f"{source}: Object missing required field `model` - at `service.{name}`",
                next_step='name a GGUF, a folder or a hub name; a program that is no engine has engine = "command"',
            )


def with_whole_paths(wish: Wish, folder: Path) -> Wish:
    """Returns the wish with its paths made whole: `~` is the user's home, other relative paths begin in the folder."""
    paths = {name: value for name in ("model", "draft", "server") if (value := getattr(wish, name))}
    if "/" not in paths.get("server", "/"):  # a bare word is a program on PATH
        paths["server"] = shutil.which(paths["server"]) or paths["server"]
    whole = {name: value if is_hub_name(value, folder) else whole_path(value, folder) for name, value in paths.items()}
    mounts = tuple(_whole_mount(one, folder) for one in wish.mounts)
    boxes = tuple(_whole_box(one, folder) for one in wish.boxes)
    return msgspec.structs.replace(wish, **whole, mounts=mounts, boxes=boxes)


def _whole_box(name: str, folder: Path) -> str:
    """A box is named, or told by a file that `stoker facts --json` wrote on it."""
    return whole_path(name, folder) if "/" in name or name.endswith(".json") else name


def _with_whole_files(gateway: GatewayConfig, folder: Path) -> GatewayConfig:
    files = {"tls_certificate": gateway.tls_certificate, "tls_key": gateway.tls_key}
    whole = {name: whole_path(file, folder) for name, file in files.items() if file is not None}
    return msgspec.structs.replace(gateway, **whole)


def _with_whole_folders(knowledge: KnowledgeSettings, folder: Path) -> KnowledgeSettings:
    whole = tuple(whole_path(one, folder) for one in knowledge.folders)
    return msgspec.structs.replace(knowledge, folders=whole)


def _whole_mount(mount: str, folder: Path) -> str:
    host, colon, inside = mount.partition(":")
    if not host.startswith(("~", ".")):  # a whole path, or the name of a volume
        return mount
    return f"{whole_path(host, folder)}{colon}{inside}"


def is_hub_name(value: str, folder: Path) -> bool:
    """Tells whether this is a hub's `org/name` and no path: nothing of that name lies in the folder."""
    return HUB_NAME.fullmatch(value) is not None and not is_there(folder / value)


def demo_model(draft: bool = False) -> Path:
    """Returns the bundled demo model, or its draft model."""
    # Not importlib.resources, whose import takes 10 ms of each command: a GGUF has to be a real file anyway.
    return Path(__file__).parent / "demo_model" / ("stoker-demo-draft-Q8_0.gguf" if draft else "stoker-demo-Q8_0.gguf")


def docs_folder() -> Path:
    """Returns the folder with Stoker's own pages."""
    return Path(__file__).parent / "pages"
