"""Trains the demo model, then distils the draft model from it, on one GPU in less than 20 minutes."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import layout
import torch
from data import TOOL_SHARE, Batch, Plan, batches, held_out
from model import Llama, Packed, load_hf, save_hf
from muon import StackedMuon
from shape import SHAPES
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW

PEAK_RATE = {"target": 3e-3, "draft": 5e-3, "eagle": 3e-3, "eagle3": 3e-3}
WEIGHT_DECAY = 0.05
WARM_UP_STEPS = 100
DECAY_FROM = 0.6
FINAL_RATE = 0.01
CLIP = 1.0
# Which batches make one step, before and after the rate begins to fall: towards the end mostly conversations.
EARLY, LATE = ("talk", "text", "talk"), ("talk", "talk", "text", "talk")
PACE_STEPS = (100, 300)
REPORT_STEPS, RECORDED_STEPS = 25, 600
TEXT_WORKERS_SHARE = 5

Loss = Callable[[nn.Module, Batch, int], Tensor]


@dataclass
class Progress:
    """How far a run has come; its length is fitted to the time limit once the pace is known."""

    steps: int
    limit_s: float
    started_s: float
    step: int = 0

    @property
    def done(self) -> float:
        """The finished share of the run, 0 to 1."""
        return self.step / self.steps

    def fit(self, pace_s: float) -> None:
        """Shortens the run so that it ends in time; later steps are half as long again."""
        left_s = self.limit_s - (time.monotonic() - self.started_s)
        mean_s = pace_s * (DECAY_FROM + (1 - DECAY_FROM) * len(LATE) / len(EARLY))
        self.steps = min(self.steps, self.step + max(1, int(left_s / mean_s)))


def forward(model: nn.Module, batch: Batch, longest: int) -> Tensor:
    """Logits of every token of a batch."""
    out: Tensor = model(batch.tokens, Packed(batch.starts, batch.positions, longest))
    return out


def weighted(losses: Tensor, weights: Tensor) -> Tensor:
    """The mean loss, each token counting by its weight."""
    return (losses * weights).sum() / weights.sum()


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """How badly the targets were foreseen, in nats."""
    return weighted(functional.cross_entropy(logits.float(), batch.targets, reduction="none"), batch.weights)


def divergence(logits: Tensor, wanted: Tensor, batch: Batch) -> Tensor:
    """How far the draft's next-token probabilities lie from the target's, in nats."""
    own, target = (x.float().log_softmax(-1) for x in (logits, wanted))
    return weighted((target.exp() * (target - own)).sum(-1), batch.weights)


def imitate(teacher: Llama) -> Loss:
    """The loss of a draft that learns to say what its teacher would."""
    compare = torch.compile(divergence) if torch.cuda.is_available() else divergence

    def loss(model: nn.Module, batch: Batch, longest: int) -> Tensor:
        with torch.no_grad():
            wanted = forward(teacher, batch, longest)
        out: Tensor = compare(forward(model, batch, longest), wanted, batch)
        return out

    return loss


def predict() -> Loss:
    """The loss of a model that learns from the texts themselves."""
    score = torch.compile(cross_entropy) if torch.cuda.is_available() else cross_entropy

    def loss(model: nn.Module, batch: Batch, longest: int) -> Tensor:
        out: Tensor = score(forward(model, batch, longest), batch)
        return out

    return loss


class Optimizers:
    """Muon for matrices, AdamW for embeddings and norms."""

    def __init__(self, model: nn.Module) -> None:
        matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and not name.startswith("embed_tokens")]
        chosen = {id(p) for p in matrices}
        rest = [p for p in model.parameters() if id(p) not in chosen]
        self.model = model
        self.muon = StackedMuon(matrices, WEIGHT_DECAY)
        self.adam = AdamW(rest, betas=(0.9, 0.95), weight_decay=0.0, fused=rest[0].is_cuda)

    def step(self, rate: float) -> None:
        """Moves the weights by the gathered gradients and forgets these."""
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.adam.param_groups[0]["lr"] = rate
        self.adam.step()
        self.muon.step(rate)
        self.model.zero_grad(set_to_none=True)


def rate_factor(progress: Progress) -> float:
    """Warm-up, a plateau, then a straight fall."""
    warm = min(1.0, (progress.step + 1) / min(WARM_UP_STEPS, 1 + progress.steps // 10))
    fall = min(1.0, (1 - progress.done) / (1 - DECAY_FROM))
    return warm * max(FINAL_RATE, fall)


def on_device(batch: Batch, device: torch.device) -> Batch:
    """The batch where the model is."""
    return Batch(*(part.to(device, non_blocking=True) for part in batch))


def train_step(
    model: nn.Module, loss: Loss, sources: dict[str, Iterator[Batch]], plans: dict[str, Plan], progress: Progress
) -> dict[str, Tensor]:
    """Adds up the gradients of one step; returns the losses by kind."""
    kinds = EARLY if progress.done < DECAY_FROM else LATE
    device = next(model.parameters()).device
    losses: dict[str, Tensor] = {}
    for kind in kinds:
        batch = on_device(next(sources[kind]), device)
        with torch.autocast(device.type, torch.bfloat16):
            value = loss(model, batch, plans[kind].longest)
        torch.autograd.backward(value / len(kinds))
        losses[kind] = value.detach()
    return losses


def fit(role: str, model: nn.Module, loss: Loss, args: argparse.Namespace) -> list[dict[str, float]]:
    """Trains one model; returns the losses along the way."""
    folder = layout.HF_FOLDERS["target"] / "tokenizer.json"
    plans = {
        kind: Plan(kind, args.batch_tokens, args.seed + (role == "draft"), layout.TOKENS, folder, args.tool_share)
        for kind in ("text", "talk")
    }
    few = max(1, args.workers // TEXT_WORKERS_SHARE) if args.workers else 0
    sources = {"text": batches(plans["text"], few), "talk": batches(plans["talk"], args.workers - few)}
    optimizers = Optimizers(model)
    peak_rate = args.rate or PEAK_RATE[role]
    progress = Progress(args.steps, args.minutes[role] * 60, time.monotonic())
    marks: dict[int, float] = {}
    log: list[dict[str, float]] = []
    while progress.step < progress.steps:
        losses = train_step(model, loss, sources, plans, progress)
        optimizers.step(peak_rate * rate_factor(progress))
        progress.step += 1
        if progress.step in PACE_STEPS:
            sum(losses.values(), torch.zeros(())).item()  # waits for the GPU, so that the clock is right
            marks[progress.step] = time.monotonic()
            if len(marks) == len(PACE_STEPS):
                progress.fit((marks[PACE_STEPS[1]] - marks[PACE_STEPS[0]]) / (PACE_STEPS[1] - PACE_STEPS[0]))
        if progress.step % REPORT_STEPS == 0 or progress.step == progress.steps:
            entry = {
                "step": progress.step,
                "of": progress.steps,
                "seconds": round(time.monotonic() - progress.started_s, 1),
            }
            log.append(entry | {kind: round(value.item(), 4) for kind, value in losses.items()})
            print(role, json.dumps(log[-1]), flush=True)
    return log


@torch.no_grad()
def held_out_scores(models: dict[str, Llama], args: argparse.Namespace) -> dict[str, float]:
    """Held-out loss of each model, and how often the draft's likeliest token is the target's."""
    scores: dict[str, float] = {}
    plan = Plan("text", args.batch_tokens, args.seed, layout.TOKENS, layout.HF_FOLDERS["target"] / "tokenizer.json")
    for kind in ("code", "prose"):
        batch = on_device(held_out(plan, kind), next(iter(models.values())).embed_tokens.weight.device)
        with torch.autocast(batch.tokens.device.type, torch.bfloat16, enabled=batch.tokens.is_cuda):
            logits = {role: forward(model, batch, plan.longest) for role, model in models.items()}
        scores |= {f"{role}_loss_{kind}": round(cross_entropy(x, batch).item(), 4) for role, x in logits.items()}
        if len(logits) == 2:
            same = logits["draft"].argmax(-1) == logits["target"].argmax(-1)
            scores[f"agreement_{kind}"] = round(weighted(same.float(), batch.weights).item(), 4)
    return scores


def prepared(model: Llama, device: torch.device) -> Llama:
    """The model on the device, its layers compiled where that pays."""
    model = model.to(device)
    if device.type == "cuda":
        for layer in model.layers:
            layer.compile()
    return model


def save(role: str, model: Llama, out: Path) -> None:
    """Writes the weights, and beside the draft's a copy of the tokenizer."""
    folder = out / layout.HF_FOLDERS[role].name
    save_hf(model, folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        source = layout.HF_FOLDERS["target"] / name
        if not (folder / name).exists() or not source.samefile(folder / name):
            shutil.copy(source, folder / name)


def recorded(log: list[dict[str, float]]) -> list[dict[str, float]]:
    """The losses worth keeping: some along the way and the last."""
    return [entry for entry in log if entry["step"] % RECORDED_STEPS == 0 or entry is log[-1]]


def remember(path: Path, entry: dict[str, Any]) -> None:
    """Records the training of one model in place of its former one."""
    results = json.loads(path.read_text()) if path.exists() else {}
    others = [run for run in results.get("training", []) if run["role"] != entry["role"]]
    results["training"] = [*others, entry]
    path.write_text(json.dumps(results, indent=1) + "\n")


def teacher_of(role: str, models: dict[str, Llama], args: argparse.Namespace, device: torch.device) -> Llama | None:
    """The model that a draft learns from: the one just trained, or the one stored."""
    if role != "draft":
        return None
    if "target" not in models:
        models["target"] = prepared(load_hf(args.out / layout.HF_FOLDERS["target"].name, SHAPES["target"]), device)
    return models["target"]


def run(args: argparse.Namespace) -> None:
    """Trains the wanted models, saves them and records the runs."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(args.seed)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    models: dict[str, Llama] = {}
    for role in args.roles:
        started_s = time.monotonic()
        teacher = teacher_of(role, models, args, device)
        models[role] = prepared(Llama(SHAPES[role]), device)
        log = fit(role, models[role], imitate(teacher) if teacher else predict(), args)
        save(role, models[role], args.out)
        entry = {"role": role, "device": name, "seed": args.seed, "batch_tokens": args.batch_tokens}
        entry |= {
            "seconds": round(time.monotonic() - started_s, 1),
            "held_out": held_out_scores(models, args),
            "log": recorded(log),
        }
        remember(args.out / layout.RESULTS.name, entry)


def main() -> None:
    """Reads the options and trains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roles", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument(
        "--steps", type=int, default=100_000, help="most steps a model; the time limit usually ends it first"
    )
    parser.add_argument("--target-minutes", type=float, default=9.5)
    parser.add_argument("--draft-minutes", type=float, default=2.5)
    parser.add_argument("--batch-tokens", type=int, default=32_768)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--rate", type=float, help="peak learning rate; without it the one of the role")
    parser.add_argument("--tool-share", type=float, default=TOOL_SHARE, help="share of the conversations that offer tools")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--out", type=Path, default=layout.HERE)
    args = parser.parse_args()
    args.minutes = {"target": args.target_minutes, "draft": args.draft_minutes}
    args.out.mkdir(parents=True, exist_ok=True)
    run(args)


if __name__ == "__main__":
    main()
