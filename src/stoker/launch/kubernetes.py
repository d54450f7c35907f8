"""A plan as Kubernetes manifests: a Deployment of one box, a LeaderWorkerSet of several, and a Service; reasons as comments.

Pure. Source of the keys: the API reference of Kubernetes 1.3x, and https://lws.sigs.k8s.io (leaderworkerset.x-k8s.io/v1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stoker.engines import find
from stoker.errors import Refused
from stoker.launch.beside import check_nothing_beside
from stoker.launch.commented import Reasons, Word
from stoker.launch.exported import OWN_ADDRESSES, Exported, sentence, told, variables
from stoker.launch.from_plan import SHARED_MEMORY_BYTES, container_of
from stoker.launch.names import check_no_secret, is_volume
from stoker.launch.places import plan_inside
from stoker.plan.engine_choice import LLAMACPP
from stoker.plan.spread.telling import RENDEZVOUS_PORT
from stoker.records import ContainerLaunch, Record, Setting

PORT = 8000
PROBE_S, LOAD_TRIES, LIVE_TRIES = 10, 180, 6
LEADER, SIZE, INDEX = "$(LWS_LEADER_ADDRESS)", "$(LWS_GROUP_SIZE)", "$(LWS_WORKER_INDEX)"
GIB = 1024**3
FOLDER = {"type": "Directory"}


class Cluster(Record, frozen=True):
    """What only the owner of a cluster knows: its namespace, and what its device plugin calls a port for RDMA."""

    namespace: str | None = None
    rdma_resource: str | None = None


def render_kubernetes(exported: Exported, cluster: Cluster) -> str:
    """Returns the manifests; raises Refused where the plan has no image, or something in it cannot be written down."""
    plan = exported.plan
    if plan.image is None:
        raise Refused(
            f"{plan.service} names no image, and a cluster runs nothing else",
            next_step="give --image, or `image` in stoker.toml",
        )
    spoken = [(one.name[1:], str(one.value)) for one in variables(exported)]
    check_no_secret(plan.service, spoken, [word for one in told(exported) for word in _words(one)])
    reasons = Reasons()
    check_nothing_beside(plan)
    exported, launch = _inside(exported)
    work = (
        _group(exported, launch, cluster, reasons) if exported.size > 1 else _deployment(exported, launch, cluster, reasons)
    )
    head = (f"Written by Stoker: {plan.model} ({plan.plan_id}); `kubectl apply -f FILE`.", *_notes(exported, cluster))
    return reasons.write([work, _service(exported, cluster, reasons)], head)


def _inside(exported: Exported) -> tuple[Exported, ContainerLaunch]:
    """Returns what the pods are told, with their own paths, and the container without the settings.

    llama.cpp's are said in neutral names, so there the container's own words hold all of them.
    """
    plan = exported.plan
    whole = container_of(plan, PORT)
    for mount in whole.mounts:
        if is_volume(mount.host):
            raise Refused(
                f"{plan.service} mounts {mount.host}, a volume of a container engine's, and a cluster has none of that name",
                next_step="name a folder of the boxes in `mounts`",
            )
    if plan.engine == LLAMACPP:
        spoken = tuple(one for one in exported.common if one.name.startswith("$"))
        return msgspec.structs.replace(exported, common=spoken), msgspec.structs.replace(whole, environment=())
    moved, _ = plan_inside(plan)
    inside = {(one.name, str(one.value)): at for one, at in zip(plan.settings, moved.settings, strict=True)}
    common = tuple(inside[one.name, str(one.value)] for one in exported.common)
    bare = container_of(msgspec.structs.replace(plan, settings=()), PORT)
    return msgspec.structs.replace(exported, common=common), msgspec.structs.replace(bare, mounts=whole.mounts)


def _notes(exported: Exported, cluster: Cluster) -> Iterator[str]:
    if exported.because:
        yield sentence(exported.because)
    yield "The model's files have to lie at the same path on every box; nothing is downloaded."
    if exported.size > 1:
        yield "Needs LeaderWorkerSet (https://lws.sigs.k8s.io), and kubelets whose --node-ip is the link's address."
    if exported.size > 1:
        yield f"On the boxes' own network port {PORT} is open to whoever reaches them: close it with a firewall."
    if exported.size > 1 and cluster.rdma_resource is None:
        yield "No resource for RDMA is asked for (--rdma-resource): without one NCCL goes over sockets, which is slower."


def _meta(exported: Exported, cluster: Cluster) -> dict[str, Any]:
    space = {"namespace": Word(cluster.namespace)} if cluster.namespace else {}
    return {"name": Word(exported.name), **space, "labels": _labels(exported)}


def _labels(exported: Exported) -> dict[str, Any]:
    return {"app.kubernetes.io/name": Word(exported.name), "app.kubernetes.io/managed-by": Word("stoker")}


def _deployment(exported: Exported, launch: ContainerLaunch, cluster: Cluster, reasons: Reasons) -> dict[str, Any]:
    pod = _pod(exported, launch, cluster, reasons, "engine", _arguments(exported, launch, reasons, None))
    if exported.copies > 1:
        term = {"labelSelector": {"matchLabels": _labels(exported)}, "topologyKey": Word("kubernetes.io/hostname")}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        pod = {**reasons.key("One copy a box: each has one GPU."), "affinity": apart, **pod}
    return {
        "apiVersion": Word("apps/v1"), "kind": "Deployment", "metadata": _meta(exported, cluster),
        "spec": {
            "replicas": exported.copies,
            **reasons.key("The old one has to be gone first: two do not fit one GPU."),
            "strategy": _strategy(exported),
            "selector": {"matchLabels": _labels(exported)},
            "template": {"metadata": {"labels": _labels(exported)}, "spec": pod},
        },
    }  # fmt: skip


def _strategy(exported: Exported) -> dict[str, Any]:
    if exported.copies == 1:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def _group(exported: Exported, launch: ContainerLaunch, cluster: Cluster, reasons: Reasons) -> dict[str, Any]:
    leader = _pod(exported, launch, cluster, reasons, "leader", _arguments(exported, launch, reasons, "leader"))
    worker = _pod(exported, launch, cluster, reasons, "worker", _arguments(exported, launch, reasons, "worker"))
    return {
        "apiVersion": Word("leaderworkerset.x-k8s.io/v1"), "kind": "LeaderWorkerSet", "metadata": _meta(exported, cluster),
        "spec": {
            "replicas": exported.copies,
            "leaderWorkerTemplate": {
                "size": exported.size,
                **reasons.key("One rank that ends takes all with it: what is left waits for it in vain."),
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {"metadata": {"labels": {**_labels(exported), "role": "leader"}}, "spec": leader},
                "workerTemplate": {"metadata": {"labels": {**_labels(exported), "role": "worker"}}, "spec": worker},
            },
        },
    }  # fmt: skip


def _arguments(exported: Exported, launch: ContainerLaunch, reasons: Reasons, role: str | None) -> list[str]:
    words = [Word(_plain(word)) for word in launch.words]
    found: list[str] = list(words)
    settings = [*told(exported), *(_places(exported, role) if role else ())]
    for one in settings:
        found += [reasons.item(one.because), *(Word(_plain(word)) for word in _words(one))]
    return found


def _words(one: Setting) -> list[str]:
    if one.value is True:
        return [one.name]
    return [one.name, *(str(value) for value in (one.value if isinstance(one.value, tuple) else (one.value,)))]


def _places(exported: Exported, role: str) -> list[Setting]:
    """The words by which a rank finds the others, in the names that a LeaderWorkerSet gives them."""
    rank = 0 if role == "leader" else 1
    words = find(exported.plan.engine).spread(1, 1, rank, LEADER, RENDEZVOUS_PORT, "mp")
    known = {"--nnodes": SIZE, "--node-rank": INDEX}
    because = "as LeaderWorkerSet tells each pod"
    named = {one.name for one in told(exported)}
    return [Setting(name, known.get(name, value), because) for name, value in words.items() if name not in named]


def _plain(word: str) -> str:
    """Kubernetes puts variables into `$(NAME)`: ours stay, and what only looks like one is doubled."""
    return word if any(name in word for name in (LEADER, SIZE, INDEX)) else word.replace("$(", "$$(")


def _pod(
    exported: Exported, launch: ContainerLaunch, cluster: Cluster, reasons: Reasons, role: str, words: list[str]
) -> dict[str, Any]:
    own = {host for host, _ in exported.plan.mounts}  # of the user's, which may be files
    volumes = [{"name": f"files-{number}", "hostPath": {"path": Word(one.host), **({} if one.host in own else FOLDER)}}
               for number, one in enumerate(launch.mounts)]  # fmt: skip
    memory = {"medium": "Memory", "sizeLimit": Word(f"{SHARED_MEMORY_BYTES // GIB}Gi")}
    network: dict[str, Any] = {}
    if exported.size > 1:
        network = {**reasons.key("The host's network: the link's interfaces are there, and not in the pods' own."),
                   "hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}  # fmt: skip
    return {**network, "containers": [_container(exported, launch, cluster, reasons, role, words)],
            "volumes": [reasons.item("The engine's processes talk through shared memory, of which a pod gets 64 MiB else."),
                        {"name": "shared-memory", "emptyDir": memory}, *volumes]}  # fmt: skip


def _container(
    exported: Exported, launch: ContainerLaunch, cluster: Cluster, reasons: Reasons, role: str, words: list[str]
) -> dict[str, Any]:
    limits: dict[str, Any] = {"nvidia.com/gpu": 1}
    safety: dict[str, Any] = {}
    if exported.size > 1 and cluster.rdma_resource:
        limits[cluster.rdma_resource] = 1
        safety = {**reasons.key("RDMA pins its buffers."), "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}
    mounts = [{"name": f"files-{number}", "mountPath": Word(one.inside), "readOnly": one.read_only}
              for number, one in enumerate(launch.mounts)]  # fmt: skip
    answers = role != "worker"
    return {
        "name": role, "image": Word(launch.image), "command": [Word(launch.entrypoint or "")], "args": words,
        "env": _environment(exported, reasons),
        **reasons.key("One GPU a box, and nobody else beside it."),
        "resources": {"limits": limits, "requests": dict(limits)},
        **safety,
        **({"ports": [{"name": "http", "containerPort": PORT}], **_probes(exported, reasons)} if answers else {}),
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}, *mounts],  # noqa: S108 - the container's own
    }  # fmt: skip


def _environment(exported: Exported, reasons: Reasons) -> list[Any]:
    found: list[Any] = []
    for one in variables(exported):
        found += [reasons.item(one.because), {"name": one.name[1:], "value": Word(str(one.value))}]
    own = [one for one in exported.plan.settings if one.name in OWN_ADDRESSES] if exported.size > 1 else []
    for one in own:
        field = {"fieldRef": {"fieldPath": "status.podIP"}}
        found += [reasons.item(one.because), {"name": one.name[1:], "valueFrom": field}]
    variable = find(exported.plan.engine).render(exported.plan, PORT).key_variable
    if variable is not None:
        secret = {"name": Word(f"{exported.name}-key"), "key": "key", "optional": True}
        because = f"Clients need this key: kubectl create secret generic {exported.name}-key --from-file=key=FILE"
        found += [reasons.item(because), {"name": variable, "valueFrom": {"secretKeyRef": secret}}]
    return found


def _probes(exported: Exported, reasons: Reasons) -> dict[str, Any]:
    path = find(exported.plan.engine).render(exported.plan, PORT).health_path
    asked = {"httpGet": {"path": Word(path), "port": "http"}, "periodSeconds": PROBE_S}
    return {
        **reasons.key("Loading takes minutes: half an hour, as Stoker's own load_s."),
        "startupProbe": {**asked, "failureThreshold": LOAD_TRIES},
        **reasons.key("Health is no proof of tokens: Stoker asks for some, and a cluster's probe cannot."),
        "readinessProbe": {**asked, "timeoutSeconds": 5},
        **reasons.key("A long prompt may keep health waiting, so that a minute of silence counts and not one miss."),
        "livenessProbe": {**asked, "timeoutSeconds": 10, "failureThreshold": LIVE_TRIES},
    }


def _service(exported: Exported, cluster: Cluster, reasons: Reasons) -> dict[str, Any]:
    selector = {**_labels(exported), **({"role": "leader"} if exported.size > 1 else {})}
    return {
        "apiVersion": Word("v1"), "kind": "Service", "metadata": _meta(exported, cluster),
        "spec": {
            **reasons.key("Inside the cluster alone; who may come from outside is for an ingress with TLS."),
            "type": "ClusterIP", "selector": selector,
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }  # fmt: skip
