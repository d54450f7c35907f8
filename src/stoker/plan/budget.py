"""Predicts the memory a service needs before it is started."""

from __future__ import annotations

from stoker.records import MIB, Model

# Measured on x86-64 with build 11549 and the demo model: the server process holds 80 MiB before any weights, and its
# compute buffers grow with the vocabulary (512 positions of float32 logits) and the width of the model.
PROCESS_BYTES = 96 * MIB
COMPUTE_FLOOR_BYTES = 64 * MIB
COMPUTE_SHARE = 0.05


def predict_need_bytes(models: list[Model], context_total: int) -> tuple[int, str]:
    """Returns the memory that these models need with a KV cache of `context_total` tokens, and how it was counted."""
    weights_bytes = sum(model.file_bytes for model in models)
    kv_bytes = sum((model.kv_bytes_per_token or 0) * context_total for model in models)
    compute_bytes = COMPUTE_FLOOR_BYTES + int(weights_bytes * COMPUTE_SHARE)
    need_bytes = weights_bytes + kv_bytes + compute_bytes + PROCESS_BYTES
    unknown = [model.name for model in models if model.kv_bytes_per_token is None]
    because = (
        f"weights {weights_bytes / MIB:,.0f} MiB + KV cache {kv_bytes / MIB:,.0f} MiB for {context_total:,} tokens"
        f" + buffers {compute_bytes / MIB:,.0f} MiB + process {PROCESS_BYTES / MIB:,.0f} MiB"
    )
    if unknown:
        because += f"; the KV cache of {', '.join(unknown)} is unknown and not counted"
    return need_bytes, because
