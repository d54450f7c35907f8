"""A service's image, fetched from a real registry by `stoker fetch` before the service is started."""

from __future__ import annotations

from pathlib import Path

from container_home import container_home
from home import Home
from real_tools import OwnPodman
from registry import own_registry
from stoker.config import demo_model
from stoker.supervise.containers.images import own_arch


def test_a_services_image_is_fetched_once_and_refused_before_a_download_where_it_cannot_run(
    home: Home, podman: OwnPodman, tmp_path: Path
) -> None:
    settings = tmp_path / "registries.conf"
    with own_registry() as registry:
        settings.write_text(f'[[registry]]\nlocation = "{registry.address}"\ninsecure = true\n')
        with container_home(podman, tmp_path, CONTAINERS_REGISTRIES_CONF=str(settings)) as containers:
            home.environment |= podman.environment | containers.service.environment
            tree = (podman.folder / "tree.tar").read_bytes()
            registry.add("org/ours", "v1", tree, (own_arch(),))
            registry.add("org/theirs", "v1", tree, ("s390x",))
            home.configure(
                "".join(
                    f'[service.{name}]\nmodel = "{demo_model()}"\nengine = "llamacpp"\n'
                    f'image = "{registry.address}/org/{name}:v1"\n'
                    for name in ("ours", "theirs")
                )
            )
            assert "would be fetched" in home.run("fetch", "ours", "--dry-run").stderr
            assert "is not on this machine" in home.run("up", "ours", code=3).stderr
            assert f"{registry.address}/org/ours:v1 is here, " in home.run("fetch", "ours").stderr
            assert home.json("fetch", "ours")["image"] == f"{registry.address}/org/ours:v1"
            assert "arm64-manifest-needed" in home.run("fetch", "theirs", code=3).stderr
            assert not any("theirs/blobs" in path for path in registry.asked)
