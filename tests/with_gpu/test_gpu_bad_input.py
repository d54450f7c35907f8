"""Starts that cannot work on a GPU: refused before they begin, or diagnosed by what the engine says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoints import Tensors, write_checkpoint
from gpu_home import MODELS, SGLANG, VLLM, Engine, GpuHome, kept

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
NARROW = 128
# A compiled part of each engine, and a function of torch that it asks for.
ASKS_TORCH = {
    "sglang": ("sgl_kernel/sm90/common_ops.abi3.so", b"\0_ZN5torch11CppFunctionD1Ev\0"),
    "vllm": ("vllm/_C_stable_libtorch.abi3.so", b"\0aoti_torch_delete_tensor_object\0"),
}
EXPLAINS = {
    ("sglang", "kernel"): "sglang-fa3-missing", ("vllm", "kernel"): "vllm-flash-attention-missing",
    ("sglang", "mtp"): "sglang-tied-draft", ("vllm", "mtp"): "speculation-not-of-this-model",
    ("sglang", "narrow-eagle3"): "sglang-draft-head-width", ("vllm", "narrow-eagle3"): "vllm-draft-head-width",
}  # fmt: skip
# Nothing is told here of memory, and the host's does not come back while other engines of the run take it.
LIMITS = "settle_s = 5"
pytestmark = [
    pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)"),
]


def write_narrow_head(folder: Path, kind: str) -> Path:
    """Writes an EAGLE head of half the target's width: nothing but zeros, in the shapes that such a head would have."""
    config = json.loads((MODELS / f"hf-{kind}" / "config.json").read_text())
    layer = "midlayer" if kind == "eagle3" else "layers.0"
    reads = 2 * NARROW if kind == "eagle3" else NARROW
    shapes = {
        "fc.weight": (NARROW, (3 if kind == "eagle3" else 2) * NARROW),
        f"{layer}.post_attention_layernorm.weight": (NARROW,),
        f"{layer}.self_attn.q_proj.weight": (256, reads), f"{layer}.self_attn.k_proj.weight": (128, reads),
        f"{layer}.self_attn.v_proj.weight": (128, reads), f"{layer}.self_attn.o_proj.weight": (NARROW, 256),
        f"{layer}.mlp.gate_proj.weight": (640, NARROW), f"{layer}.mlp.up_proj.weight": (640, NARROW),
        f"{layer}.mlp.down_proj.weight": (NARROW, 640),
    }  # fmt: skip
    if kind == "eagle3":
        shapes |= {f"midlayer.{name}.weight": (NARROW,) for name in ("input_layernorm", "hidden_norm")}
        shapes["norm.weight"] = (NARROW,)
    tensors: Tensors = {name: ("BF16", shape) for name, shape in shapes.items()}
    return write_checkpoint(folder, tensors, config | {"hidden_size": NARROW})


@pytest.fixture(params=ENGINES, ids=[one.name for one in ENGINES])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with services that cannot work."""
    engine: Engine = request.param.beside_others
    folder = tmp_path_factory.mktemp("bad")
    narrow = {kind: write_narrow_head(folder / kind, kind) for kind in ("eagle", "eagle3")}
    tables = [engine.table(f"narrow-{kind}", f'speculation = "{kind}"\ndraft = "{path}"') for kind, path in narrow.items()]
    tables.append(_ask_for_a_missing_kernel(engine))
    tables.append(engine.table("mtp", flags=_own_heads(engine)))
    with kept(GpuHome(folder, engine, "".join(tables), LIMITS)) as home:
        yield home


def _ask_for_a_missing_kernel(engine: Engine) -> str:
    """Returns a service that wants kernels which the unpacked engine came without."""
    if engine.name == "sglang":
        return engine.table("kernel").replace('backend = "triton"', 'backend = "fa3"')
    table = engine.table("kernel", flags=", attention-config = '{\"flash_attn_version\": 2}'")
    return table.replace("TRITON_ATTN", "FLASH_ATTN").replace("float32", "float16")  # which it has no kernels for at all


def _own_heads(engine: Engine) -> str:
    """Words for heads of the model's own, which this architecture has in neither engine; said past the plan."""
    if engine.name == "sglang":
        sizes = {"num-steps": 2, "eagle-topk": 1, "num-draft-tokens": 3}
        return ', speculative-algorithm = "NEXTN"' + "".join(
            f", speculative-{name} = {size}" for name, size in sizes.items()
        )
    return ', speculative-config = \'{"method": "mtp", "num_speculative_tokens": 2}\''


@pytest.mark.parametrize("service", ["narrow-eagle", "narrow-eagle3", "kernel", "mtp"])
def test_a_start_that_cannot_work_is_refused_or_explained(home: GpuHome, service: str) -> None:
    done = home.run("up", service, code=None)
    if done.returncode == 0:
        home.note("bad input", service, outcome="works")
    elif done.returncode == 3 and not home.paths.engine_log(service).exists():
        home.note("bad input", service, outcome="refused", said=done.stderr[-600:])
        assert service == "narrow-eagle"
    else:
        first = told(home, service)
        assert first is not None
        assert first["rule"] == EXPLAINS[home.engine.name, service]
    assert done.returncode != 0


def told(home: GpuHome, service: str) -> dict[str, Any] | None:
    """Returns what diagnosis says first of a start that failed; None where it knows nothing."""
    found = json.loads(home.run("diagnose", service, "--json", code=None).stdout)
    first: dict[str, Any] | None = found["findings"][0] if found["findings"] else None
    home.note("bad input", service, outcome="failed", first=first and {name: first[name] for name in ("rule", "confidence")})
    return first


def site_for_another_torch(site: Path, folder: Path, library: Path, function: bytes) -> Path:
    """Returns a folder like the engine's, where one library asks for a function by a name that this torch does not have."""
    package = folder / library.parts[0]
    package.mkdir(parents=True)
    for one in site.iterdir():
        if one.name != package.name:
            (folder / one.name).symlink_to(one)
    for one in (site / package.name).iterdir():  # the package's own files look for the library beside themselves
        if one.name != library.parts[1]:
            shutil.copy(one, package) if one.suffix == ".py" else (package / one.name).symlink_to(one)
    content = (site / library).read_bytes()
    assert function in content
    (folder / library).parent.mkdir(exist_ok=True)
    (folder / library).write_bytes(content.replace(function, function[:-2] + b"Z\0"))
    return folder


@pytest.mark.parametrize("engine", ENGINES, ids=[one.name for one in ENGINES])
def test_an_engine_that_was_built_for_another_torch_is_told_as_such(engine: Engine, tmp_path: Path) -> None:
    library, function = ASKS_TORCH[engine.name]
    if not Path(engine.site, library).exists():
        pytest.skip(f"this build has no {library}")
    site = site_for_another_torch(Path(engine.site), tmp_path / "site", Path(library), function)
    other = engine.beside_others._replace(site=str(site))
    with kept(GpuHome(tmp_path, other, other.table("other-torch"), LIMITS)) as home:
        assert home.run("up", "other-torch", code=None).returncode != 0
        first = told(home, "other-torch")
    assert first is not None
    assert first["rule"] == "built-for-another-torch"
