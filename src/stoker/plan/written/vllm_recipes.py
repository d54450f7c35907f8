"""The vLLM project's own recipes: a model, its variants and features, and what each kind of GPU changes."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.errors import StokerError
from stoker.plan.written.start import Start, read_words
from stoker.plan.written.table import Table
from stoker.plan.written.tree import read_tree
from stoker.records import Recipe

KEYS = frozenset({
    "meta", "model", "dependencies", "features", "opt_in_features", "variants", "compatible_strategies",
    "strategy_min_gpus", "strategy_hardware", "hardware_overrides", "strategy_overrides", "omni", "guide",
})  # fmt: skip
# The GPU's names in these recipes, from the widest: brand, generation, the very machine (their taxonomy.yaml).
GPU = "dgx_spark_gb10"
NAMES = ("default", "nvidia", "blackwell", GPU)
VARIANT = "default"
STRATEGY = "single_node_tp"  # one machine with one GPU has nothing to choose


def looks_like(tree: object, name: str) -> bool:
    """Tells whether a parsed file is a recipe of the vLLM project."""
    return isinstance(tree, dict) and isinstance(tree.get("model"), dict) and isinstance(tree.get("variants"), dict)


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns the launch of the default variant on one GB10, with all features that are on unless chosen away."""
    tree = read_tree(text, name)
    top = Table(tree.value, said=tree.complaints())
    top.check_keys(KEYS, "vLLM's recipes")
    model, variants = top.table("model"), top.table("variants")
    variant = variants.table(VARIANT)
    model_id = variant.text("model_id") or model.text("model_id")
    if model_id is None:
        raise StokerError(f"{name} names no model", why="neither `model.model_id` nor its default variant has one")
    _say_hardware(top)
    _say_others(top)
    parts = list(_parts(top, model, variant))
    start = Start(
        name=top.table("meta").text("title") or name,
        source=name,
        line=tree.line(f"variants.{VARIANT}") or tree.line("variants"),
        model=model_id,
        image=_image(model, variant),
        environment={key: value for part in parts for key, value in part.environment.items()},
    )
    words = ("vllm", "serve", model_id, *_last_wins([word for part in parts for word in part.words]))
    return (read_words(start, words, top.said),)


class Part:
    """Words and variables that one part of the file adds."""

    def __init__(self, table: Table, prefix: str = "extra_") -> None:
        self.words = table.texts(f"{prefix}args")
        self.environment = table.table(f"{prefix}env").pairs()


def _parts(top: Table, model: Table, variant: Table) -> Iterator[Part]:
    """Yields what the recipe adds, the later stronger: base, features, hardware, the variant, the variant's hardware."""
    yield Part(model, "base_")
    yield from _features(top)
    yield Part(_nearest(top.table("hardware_overrides")))
    yield Part(variant)
    overrides = variant.table("hardware_overrides")
    for name in NAMES:  # inside a variant all of the names add up
        yield Part(overrides.table(name))


def _nearest(overrides: Table) -> Table:
    """Returns the one block that speaks of this GPU most exactly; elsewhere than in a variant only that one counts."""
    return overrides.table(next((name for name in reversed(NAMES) if name in overrides), GPU))


def _features(top: Table) -> Iterator[Part]:
    features, chosen = top.table("features"), set(top.texts("opt_in_features"))
    for key in features.values:
        feature = features.table(key)
        if key in chosen:
            top.said.append(f"the feature `{key}` is off unless chosen, so it was left out")
        elif "strategies" in feature and STRATEGY not in feature.texts("strategies"):
            top.said.append(f"the feature `{key}` is not for the strategy {STRATEGY}, so it was left out")
        elif feature.table("hardware").text(GPU) == "unsupported":
            top.said.append(f"the feature `{key}` does not work on {GPU}, so it was left out")
        else:
            yield _feature(feature)


def _feature(feature: Table) -> Part:
    modes = feature.table("modes")
    if modes.values:
        mode = feature.text("default_mode") or next(iter(modes.values))
        others = ", ".join(name for name in modes.values if name != mode)
        feature.said.append(f"`{feature.path}` was taken in its mode `{mode}`; there are also: {others}")
        feature = modes.table(mode)
    override = _nearest(feature.table("hardware_overrides"))
    return Part(override if "args" in override else feature, "")


def _image(model: Table, variant: Table) -> str | None:
    """Returns the image: text, or a map by brand, CUDA version, or both."""
    pinned = _nearest(variant.table("hardware_overrides")).text("docker_image")
    if pinned or variant.text("docker_image"):
        return pinned or variant.text("docker_image")
    image = _of_brand(_of_brand(model.values.get("docker_image")))
    if isinstance(image, str):
        return image
    wanted = "a nightly build of vLLM" if model.is_on("nightly_required") else f"vLLM {model.text('min_vllm_version') or ''}"
    model.said.append(f"it names no image; it asks for {wanted.strip()} or newer")
    return None


def _of_brand(image: object) -> object:
    """Returns NVIDIA's part of a map, or that of its newest CUDA; what is no map stays."""
    if not isinstance(image, dict):
        return image
    values = Table(image).values
    newest = max((key for key in values if key.startswith("cu")), default="")
    return values.get("nvidia", values.get(newest))


def _last_wins(words: list[str]) -> Iterator[str]:
    """Yields the words with each flag once, at its last place, since there the same flag later wins."""
    flags: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word.partition("=")[0]
            flags.pop(name, None)
        flags.setdefault(name, []).append(word)
    for group in flags.values():
        yield from group


def _say_hardware(top: Table) -> None:
    known = top.table("meta").table("hardware")
    standing = known.text(GPU)
    if standing is None:
        top.said.append(f"it does not list {GPU}: nobody says there that it runs on a DGX Spark")
    elif standing != "verified":
        top.said.append(f"it lists {GPU} as {standing}")


def _say_others(top: Table) -> None:
    variants = top.table("variants")
    others = [f"{key} ({variants.table(key).text('precision') or '?'})" for key in variants.values if key != VARIANT]
    if VARIANT not in variants:
        top.said.append("it has no default variant, which its own site requires")
    if others:
        top.said.append(f"this is its default variant; there are also: {', '.join(others)}")
    for key, holds in (("dependencies", "commands to run before"), ("strategy_overrides", "changes by strategy")):
        if top.values.get(key):
            top.said.append(f"`{key}` holds {holds}; it was not read")
