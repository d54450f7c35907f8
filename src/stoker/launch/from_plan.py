"""A plan as a container, or as a program of systemd's: what the renderers take. Pure."""

from __future__ import annotations

import msgspec

from stoker.engines import find
from stoker.errors import Refused
from stoker.records import ContainerLaunch, Mount, Plan, Publish, Rule, Setting, UnitLaunch
from stoker.records.launch import ImageOverlay

MODEL_INSIDE, DRAFT_INSIDE = "/model", "/draft"
SHARED_MEMORY_BYTES = 16 * 1024**3
OPEN_FILES = 1_048_576
RESTART_PAUSE_S = 120  # the memory of a killed engine was seen to stay away for 30 to 120 s
OOM_SCORE = 500  # the engine goes before the shell of the person who has to look
LOOPBACK, EVERYWHERE = "127.0.0.1", "0.0.0.0"


def container_of(plan: Plan, port: int, key_file: str | None = None) -> ContainerLaunch:
    """Returns the container that a plan asks for: its models read-only, its port on loopback, no secret in sight."""
    if plan.image is None:
        raise Refused(f"{plan.service} names no image", next_step="give --image, or `image` in stoker.toml")
    inside, mounts = _inside(plan)
    spec = find(plan.engine).render(inside, port)
    words = tuple(EVERYWHERE if word == LOOPBACK else word for word in spec.argv)
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
        # vLLM's and SGLang's processes talk through shared memory; docker's default is 64 MiB. Not --ipc host: it would
        # share the host's with the container.
        shm_size_bytes=SHARED_MEMORY_BYTES,
        ulimits=(("memlock", -1), ("nofile", OPEN_FILES)),
        labels=(("stoker.plan", plan.plan_id), ("stoker.service", plan.service)),
    )


def _inside(plan: Plan) -> tuple[Plan, tuple[Mount, ...]]:
    """The plan with the paths that the container sees, and the mounts that make it so."""
    places = {plan.model_path: MODEL_INSIDE}
    for setting in plan.settings:
        path = _draft_path(setting)
        if path is not None and path.startswith("/"):
            places.setdefault(path, DRAFT_INSIDE)
    settings = tuple(msgspec.structs.replace(one, value=_moved(one, places)) for one in plan.settings)
    inside = msgspec.structs.replace(plan, model_path=MODEL_INSIDE, settings=settings)
    own = tuple(Mount(host, place.partition(":")[0], place.endswith(":ro")) for host, place in plan.mounts)
    return inside, (*(Mount(host, place) for host, place in places.items()), *own)


def _draft_path(setting: Setting) -> str | None:
    value = str(setting.value)
    if setting.name == "--speculative-config":
        found = msgspec.json.decode(value).get("model")
        return found if isinstance(found, str) else None
    return value if setting.name.endswith("draft-model-path") else None


def _moved(setting: Setting, places: dict[str, str]) -> object:
    path = _draft_path(setting)
    if path is None or path not in places or isinstance(setting.value, bool):
        return setting.value
    return str(setting.value).replace(path, places[path])


def unit_of(plan: Plan, port: int, user: str) -> UnitLaunch:
    """Returns the program of systemd's that a plan without a container is, for those who run it without Stoker.

    Not the name that `stoker install` gives: that unit asks the daemon, and the two exclude each other.
    """
    spec = find(plan.engine).render(plan, port)
    return UnitLaunch(
        name=f"engine-{plan.service}",
        description=f"{plan.model} on {plan.engine}, planned by Stoker ({plan.plan_id})",
        argv=spec.argv,
        user=user,
        environment=spec.environment,
        conditions=(plan.model_path,),
        restart_pause_s=RESTART_PAUSE_S,
        oom_score_adjust=OOM_SCORE,
    )


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
