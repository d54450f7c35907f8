"""Ray's own processes as launches: what they are told, and what the engine beside them is not."""

from __future__ import annotations

from stoker.launch.ray import MOST_SOCKET_BYTES, as_ray, beside_ray, has_short_sockets, in_folder
from stoker.records import LaunchSpec
from stoker.records.ranks import Ray

ENGINE = LaunchSpec(
    ("vllm", "serve", "/m"), (("NCCL_DEBUG", "INFO"), ("NCCL_IB_HCA", "mlx5_0"), ("NCCL_SOCKET_IFNAME", "eth0")), "/health",
    "VLLM_API_KEY",
)  # fmt: skip
RAY = Ray(("ray", "start", "--head", "--block"), "10.0.0.1:6379")


def test_rays_processes_hand_the_boxes_own_variables_on_and_get_no_key() -> None:
    spec = in_folder(as_ray(ENGINE, RAY), "/state/ray/duo")
    assert spec.argv == ("ray", "start", "--head", "--block", "--temp-dir", "/state/ray/duo")
    assert spec.environment == ENGINE.environment
    assert (spec.health_path, spec.key_variable) == ("", None)


def test_the_engine_beside_ray_is_told_nothing_that_it_would_copy_to_other_boxes() -> None:
    assert beside_ray(ENGINE).environment == (("NCCL_DEBUG", "INFO"),)


def test_a_folder_is_too_long_where_the_kernel_would_not_take_its_sockets() -> None:
    sockets = "/session_2026-11-24_17-38-26_935081_4194304/sockets/plasma_store"
    longest = next(length for length in range(MOST_SOCKET_BYTES, 0, -1) if has_short_sockets("/" * length))
    assert MOST_SOCKET_BYTES - len(".1") <= longest + len(sockets) <= MOST_SOCKET_BYTES
    assert not has_short_sockets("ü" * (longest // 2 + 1))  # bytes, not letters
