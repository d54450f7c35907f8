"""Starts that cannot work on a GPU: refused before they begin, or diagnosed by what the engine says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints import Tensors, write_checkpoint
from gpu_home import MODELS, SGLANG, VLLM, Engine, GpuHome, kept
from stoker.records import State

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
NARROW = 128
pytestmark = [
    pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)"),
    pytest.mark.xdist_group("bad input"),
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
    absent = "fa3" if engine.name == "sglang" else "FLASHINFER"
    tables.append(
        engine.table("kernel").replace('backend = "triton"', f'backend = "{absent}"').replace("TRITON_ATTN", absent)
    )
    tables.append(engine.table("mtp", flags=_own_heads(engine)))
    with kept(GpuHome(folder, engine, "".join(tables))) as home:
        yield home


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
    if done.returncode == 0:  # which some builds may: then it has to be as good as said
        home.note("bad input", service, outcome="works")
        assert home.service(service).state is State.READY
        return
    if done.returncode == 3 and not home.paths.engine_log(service).exists():
        home.note("bad input", service, outcome="refused", said=done.stderr[-600:])
        return
    found = json.loads(home.run("diagnose", service, "--json", code=None).stdout)
    first = found["findings"][0] if found["findings"] else None
    home.note("bad input", service, outcome="failed", first=first and {name: first[name] for name in ("rule", "confidence")})
    assert first is not None, found["unknown"]
