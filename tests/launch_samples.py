"""Launches with everything filled in, for the tests of what is rendered from them."""

from __future__ import annotations

from typing import Any

from stoker.records import GIB, ContainerLaunch, ImageOverlay, Mount, Publish, UnitLaunch

HOSTILE_WORDS = (
    "a b", "%h", "%%", "$HOME", "${HOME}", "$$", ";", "#c", "\\", "\\n", "a\\", '"', "'", "''", "`id`", "$(id)", "|", "*",
    '{"method": "mtp", "n": 4}', "é 😀", "--x=a b", " ", "a;b", "&&", "on", "1e3", "0o17", "1:30", "null", "- x", "@x",
    "!x", "~",
)  # fmt: skip


def make_container(**changes: Any) -> ContainerLaunch:
    """Returns an SGLang container with a draft model, published on loopback."""
    facts: dict[str, Any] = {
        "name": "stoker-coder",
        "image": "lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a",
        "entrypoint": "python3",
        "words": (
            "-m",
            "sglang.launch_server",
            "--model-path",
            "/model",
            "--port",
            "30000",
            "--tool-call-parser",
            "mistral",
        ),
        "environment": (("SGLANG_ENABLE_SPEC_V2", "True"), ("HF_HUB_OFFLINE", "1")),
        "env_file": "/home/alice/.config/stoker/coder.env",
        "mounts": (Mount("/models/coder nvfp4", "/model"), Mount("/home/alice/.cache/sglang", "/root/.cache", False)),
        "publish": (Publish(30000, 30000),),
        "gpus": "all",
        "shm_size_bytes": 16 * GIB,
        "ulimits": (("memlock", -1), ("stack", 67108864)),
        "labels": (("stoker.service", "coder"),),
        "at_exit": "on-failure",
        "stop_timeout_s": 30,
    }
    return ContainerLaunch(**{**facts, **changes})


def make_small_container(**changes: Any) -> ContainerLaunch:
    """Returns a container with nothing but a name and an image, on the host's network."""
    return ContainerLaunch(**{"name": "small", "image": "ubuntu", "network": "host", "ipc": "host", **changes})


def make_unit(**changes: Any) -> UnitLaunch:
    """Returns a unit whose program is a vLLM of a venv."""
    facts: dict[str, Any] = {
        "name": "stoker-coder", "description": "coder, 100 % local", "user": "alice", "group": "alice",
        "argv": (
            "/opt/vllm/bin/vllm", "serve", "/models/coder nvfp4", "--served-model-name", "coder", "--host", "127.0.0.1",
            "--speculative-config", '{"method": "mtp", "num_speculative_tokens": 3}', "--enable-auto-tool-choice",
        ),
        "environment": (("VLLM_NO_USAGE_STATS", "1"), ("EXTRA", 'a "b" $c %d')),
        "env_file": "/etc/stoker/coder.env", "working_directory": "/srv/coder", "conditions": ("/models/coder nvfp4",),
        "start_timeout_s": 1800, "stop_timeout_s": 60, "restart_pause_s": 120, "oom_score_adjust": 500,
    }  # fmt: skip
    return UnitLaunch(**{**facts, **changes})


def make_overlay(**changes: Any) -> ImageOverlay:
    """Returns the overlay of an image whose draft code has to be replaced."""
    facts: dict[str, Any] = {
        "base": "vllm/vllm-openai:gemma4-0505-cu130", "package": "vllm",
        "repository": "https://github.com/vllm-project/vllm.git", "commit": "0123456789abcdef0123456789abcdef01234567",
        "because": "rule gemma4-mtp-drafter-half-sized", "checksums": (("vllm/config/draft.py", "ab" * 32),),
    }  # fmt: skip
    return ImageOverlay(**{**facts, **changes})
