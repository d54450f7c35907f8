"""A plan as a container, or as a program of systemd's: what the renderers take. Pure."""

from __future__ import annotations

import msgspec

from stoker.errors import Refused
from stoker.launch.beside import check_nothing_beside
from stoker.launch.command import render_engine
from stoker.launch.container import render_docker_run
from stoker.launch.container_api import LABEL_INSTANCE, LABEL_LAUNCH, LABEL_PLAN, LABEL_SERVICE
from stoker.launch.places import plan_inside
from stoker.launch.process import MARKER_VARIABLE
from stoker.records import ContainerLaunch, LaunchSpec, Plan, Publish, Rule, UnitLaunch
from stoker.records.launch import ImageOverlay

SHARED_MEMORY_BYTES = 16 * 1024**3
OPEN_FILES = 1_048_576
RESTART_PAUSE_S = 120  # the memory of a killed engine was seen to stay away for 30 to 120 s
STOP_S = 60
OOM_SCORE = 500  # the engine goes before the shell of the person who has to look
LOOPBACK, EVERYWHERE = "127.0.0.1", "0.0.0.0"
ADDRESS = ("--host", "--port")
RDMA_DEVICES = "/dev/infiniband"


def launch_of(plan: Plan, port: int) -> LaunchSpec:
    """Returns the words of a plan's engine, which say once where it listens: on a port of loopback."""
    check_nothing_beside(plan)
    settings = tuple(one for one in plan.settings if one.name.replace("_", "-") not in ADDRESS)
    return render_engine(msgspec.structs.replace(plan, settings=settings), port)


def container_of(plan: Plan, port: int, key_file: str | None = None) -> ContainerLaunch:
    """Returns the container that a plan asks for: its models read-only, its port on loopback, no secret in sight."""
    check_is_engine(plan)
    if plan.image is None:
        raise Refused(f"{plan.service} names no image", next_step="give --image, or `image` in stoker.toml")
    inside, mounts = plan_inside(plan)
    spec = launch_of(inside, port)
    words = _on_all_addresses(spec.argv)
    return ContainerLaunch(
        name=f"stoker-{plan.service}",
        image=plan.image,
        entrypoint=words[0],
        words=words[1:],
        environment=spec.environment,
        env_file=key_file if spec.key_variable else None,
        mounts=mounts,
        publish=(Publish(port, port),),
        gpus="all",
        shm_size_bytes=SHARED_MEMORY_BYTES,
        ulimits=(("memlock", -1), ("nofile", OPEN_FILES)),
        labels=((LABEL_PLAN, plan.plan_id), (LABEL_SERVICE, plan.service)),
    )


def supervised_container_of(plan: Plan, port: int, marker: str, has_gpu: bool) -> ContainerLaunch:
    """Returns the container as Stoker itself starts it: it can be found again by its labels."""
    launch = container_of(plan, port)
    launch = on_own_network(launch, plan.has_rdma) if plan.is_rank else launch
    own = {LABEL_INSTANCE: marker.partition("/")[0], LABEL_LAUNCH: marker}
    return msgspec.structs.replace(
        launch,
        image=plan.image_id or launch.image,
        environment=tuple({"PYTHONUNBUFFERED": "1", MARKER_VARIABLE: marker, **dict(launch.environment)}.items()),
        labels=tuple(sorted({**dict(launch.labels), **own}.items())),
        gpus=launch.gpus if has_gpu else None,
        stop_timeout_s=STOP_S,
    )


def on_own_network(launch: ContainerLaunch, has_rdma: bool) -> ContainerLaunch:
    """Returns a rank's container: on the host's own network, where the link is, with its RDMA devices.

    Nothing is published there, so the engine itself listens on loopback alone.
    """
    place = launch.words.index(EVERYWHERE) if EVERYWHERE in launch.words else None
    words = launch.words if place is None else (*launch.words[:place], LOOPBACK, *launch.words[place + 1 :])
    devices = (RDMA_DEVICES,) if has_rdma else ()
    return msgspec.structs.replace(launch, words=words, publish=(), network="host", devices=devices)


def check_is_engine(plan: Plan) -> None:
    """Raises Refused for a program of the user's, which no container or image can be made for."""
    if not plan.is_engine:
        raise Refused(
            f"{plan.service} is a program of this machine, and no image is known that holds it",
            why="Stoker knows what goes into the container of an engine, and not what this program needs",
            next_step="`--render unit` or `--render argv` prints it as it is",
        )


def _on_all_addresses(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Lets the engine listen on the container's own address too: who reaches it there is decided by what is published."""
    place = argv.index(LOOPBACK, argv.index(ADDRESS[0])) if ADDRESS[0] in argv else -1
    return (*argv[:place], EVERYWHERE, *argv[place + 1 :]) if place > 0 else argv


def unit_of(plan: Plan, port: int, user: str) -> UnitLaunch:
    """Returns the program of systemd's that a plan without a container is, for those who run it without Stoker.

    Not the name that `stoker install` gives: that unit asks the daemon, and the two exclude each other.
    """
    spec = launch_of(plan, port)
    return UnitLaunch(
        name=f"engine-{plan.service}",
        description=_description(plan),
        argv=spec.argv,
        user=user,
        environment=spec.environment,
        conditions=(plan.model_path,) if plan.model_path else (),
        restart_pause_s=RESTART_PAUSE_S,
        oom_score_adjust=OOM_SCORE,
    )


def container_unit_of(plan: Plan, launch: ContainerLaunch, docker: str) -> UnitLaunch:
    """Returns the unit that runs a plan's container; `docker` is the program's whole path.

    Not detached: systemd would take the client's end for the engine's. It is removed at its end, so that a restart gets
    the name again. As root, since whoever may talk to docker can become root.
    """
    argv = render_docker_run(msgspec.structs.replace(launch, at_exit="remove"), detached=False)
    return UnitLaunch(
        name=f"engine-{plan.service}",
        description=_description(plan),
        argv=(docker, *argv[1:]),
        stop_argv=(docker, "stop", "-t", str(STOP_S), launch.name),
        user="root",
        wants=("docker.service", "network-online.target"),
        conditions=(launch.mounts[0].host,),
        restart_pause_s=RESTART_PAUSE_S,
        stop_timeout_s=STOP_S + 30,
    )


def _description(plan: Plan) -> str:
    return f"{plan.model} on {plan.engine}, planned by Stoker ({plan.plan_id})"


def overlay_of(image: str, rule: Rule) -> ImageOverlay | None:
    """Returns the image that a rule asks for in the place of one, or None where it asks for none."""
    if rule.overlay is None:
        return None
    base, _, digest = image.partition("@")
    return ImageOverlay(
        base=base,
        digest=digest or None,
        package=rule.overlay.package,
        repository=rule.overlay.repository,
        commit=rule.overlay.commit,
        because=f"{rule.title} (rule {rule.id})",
    )
