"""What Stoker knows of the machine."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record


class Memory(Record, frozen=True):
    """What the kernel says of the machine's memory; None where it does not say.

    Source: /proc/meminfo and /proc/pressure/memory. `full_stall_pct` is the 10-second average of PSI's `full` line,
    `anonymous_bytes` what processes hold that is in no file, shared memory with it; what drivers hold is not in it.
    """

    total_bytes: int
    available_bytes: int
    free_bytes: int
    page_cache_bytes: int
    swap_total_bytes: int
    swap_free_bytes: int
    full_stall_pct: float | None = None
    anonymous_bytes: int | None = None


class Gpu(Record, frozen=True):
    """One NVIDIA GPU as its driver describes it; None where the driver answers 'not supported', as GB10 does.

    `slowed_by` holds the driver's reasons for a clock below the highest, in words; empty where it gives none.
    `busy_clock_mhz` is the SM clock where the GPU was at work while it was asked, else None.
    """

    name: str
    compute_capability: str | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    power_w: float | None
    power_limit_w: float | None
    sm_clock_mhz: int | None
    sm_clock_max_mhz: int | None = None
    power_limit_default_w: float | None = None
    utilisation_pct: int | None = None
    temperature_c: int | None = None
    slowed_by: tuple[str, ...] | None = None
    busy_clock_mhz: int | None = None


class ReadRate(Record, frozen=True):
    """How fast one file was read from its beginning, measured.

    Where `direct` is false the file system refused to go around the page cache, which may have made it look faster.
    """

    bytes_per_s: int
    read_bytes: int
    seconds: float
    direct: bool
    path: str


class Disk(Record, frozen=True):
    """A file system and its free space, and which of the folders that matter lie on it."""

    path: str
    total_bytes: int
    free_bytes: int
    kind: str | None = None
    device: str | None = None
    holds: tuple[str, ...] = ()
    read_rate: ReadRate | None = None
    not_measured: str | None = None


class MemoryHolder(Record, frozen=True):
    """A process and the resident memory it holds."""

    pid: int
    name: str
    resident_bytes: int


class GpuProcess(Record, frozen=True):
    """A process that computes on a GPU; what it holds there is None where the driver does not tell."""

    gpu: int
    pid: int
    name: str | None
    used_bytes: int | None


class CardMemory(Record, frozen=True):
    """The memory of a graphics card that has its own, and who holds it as far as the driver tells."""

    name: str
    total_bytes: int
    free_bytes: int
    processes: tuple[GpuProcess, ...] = ()

    @property
    def held_bytes(self) -> int | None:
        """What processes hold that live; None where the driver does not tell how much.

        It may tell for a moment of one that has ended: that one's memory is not held, it is not back yet.
        """
        living = [process.used_bytes for process in self.processes if process.name is not None]
        told = [one for one in living if one is not None]
        return sum(told) if len(told) == len(living) else None


class Listener(Record, frozen=True):
    """A TCP port that somebody listens on; who it is, is None where the kernel keeps it to itself."""

    host: str
    port: int
    pid: int | None
    name: str | None


class ContainerEngine(Record, frozen=True):
    """A container engine: whether it answers us, and whether it can hand NVIDIA's GPUs to a container; None is unknown."""

    name: Literal["docker", "podman"]
    program: str
    version: str | None
    answers: bool
    server_version: str | None = None
    runtimes: tuple[str, ...] | None = None
    storage: str | None = None
    cdi_files: tuple[str, ...] = ()
    offers_nvidia: bool | None = None


class InstalledEngine(Record, frozen=True):
    """An inference engine's program on the search path."""

    engine: str
    program: str
    version: str | None


class Environment(Record, frozen=True):
    """What an image or a virtual environment holds, told by what is written about it: nothing was run or imported.

    `runtime` is the container engine that has the image.
    """

    kind: Literal["image", "venv"]
    name: str
    engine: str | None = None
    version: str | None = None
    cuda: str | None = None
    arch: str | None = None
    python: str | None = None
    torch: str | None = None
    ray: str | None = None
    digest: str | None = None
    size_bytes: int | None = None
    entrypoint: tuple[str, ...] = ()
    runtime: Literal["docker", "podman"] | None = None


class NetworkPort(Record, frozen=True):
    """A port that RDMA may go through, as the kernel describes it; None where it does not say.

    `device` is what NCCL calls it, `interface` its network device. `gid_index` is that of the RoCE v2 address with IPv4,
    `address`; it differs from machine to machine.
    """

    device: str
    port: int
    is_up: bool | None
    layer: Literal["ethernet", "infiniband"] | None
    rate_gbit: float | None
    interface: str | None = None
    mtu: int | None = None
    address: str | None = None
    gid_index: int | None = None
    firmware: str | None = None


class MachineDetails(Record, frozen=True):
    """What takes longer to find out, or is out of date at once: only `stoker facts` asks for it."""

    disks: tuple[Disk, ...] = ()
    container_engines: tuple[ContainerEngine, ...] = ()
    programs: tuple[InstalledEngine, ...] = ()
    listeners: tuple[Listener, ...] = ()
    holders: tuple[MemoryHolder, ...] = ()
    gpu_processes: tuple[GpuProcess, ...] = ()
    environments: tuple[Environment, ...] = ()


class Machine(Record, frozen=True):
    """What Stoker knows of this machine.

    `unified_memory` tells whether processor and first GPU share one memory: None without a GPU, or where its driver does
    not say (see `facts.nvidia`). `cuda_visible_bytes` is what CUDA calls the first GPU's memory, None unless measured.
    `driver_options` holds what modprobe's files tell NVIDIA's kernel modules, by file. `ports` are those that RDMA may go
    through, None where nobody looked.
    """

    hostname: str
    arch: str
    kernel: str
    cpu_model: str | None
    cpu_count: int
    memory: Memory
    gpus: tuple[Gpu, ...]
    driver: str | None
    cuda: str | None
    disk: Disk | None
    engines: dict[str, str | None]
    unified_memory: bool | None = None
    cuda_visible_bytes: int | None = None
    os: str | None = None
    product: str | None = None
    firmware: str | None = None
    driver_options: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - msgspec copies it
    ports: tuple[NetworkPort, ...] | None = None
    details: MachineDetails | None = None
