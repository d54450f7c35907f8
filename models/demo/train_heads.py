"""Trains EAGLE and EAGLE-3 heads for the demo model from what it computes itself, on one GPU in a few minutes each.

Both learn to make several guesses in a row, as they will: the first from the target's features, each further one from the
guess before it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import layout
import torch
from data import TOOL_SHARE, Batch, Plan, held_out
from heads import HEADS, Head, Keys, look, save_head
from model import Llama, Packed, load_hf
from shape import SHAPES
from torch import Tensor
from torch.nn import functional
from train import Loss, fit, on_device, prepared, recorded, remember

GUESSES = 5
LATER_COUNTS = 0.8
WINDOW_TOKENS = 1024


class Rows:
    """A packed batch cut into windows, so that attention's table stays small; a guess never crosses a document's end."""

    def __init__(self, batch: Batch, window: int) -> None:
        self.batch, self.window = batch, window
        places = torch.arange(batch.tokens.shape[0], device=batch.tokens.device)
        self.documents = torch.searchsorted(batch.starts, places.to(batch.starts.dtype), right=True)
        order = torch.arange(window, device=places.device)
        same = self.rows(self.documents)[:, :, None] == self.rows(self.documents)[:, None, :]
        self.allowed = (same & (order[:, None] >= order[None, :]))[:, None]

    def rows(self, flat: Tensor) -> Tensor:
        """One row a window."""
        return flat.unflatten(0, (-1, self.window))

    def ahead(self, flat: Tensor, by: int) -> Tensor:
        """What lies `by` tokens further on."""
        return self.rows(flat.roll(-by, 0))

    def counts(self, by: int) -> Tensor:
        """How much the guess of what follows the token `by` further on counts."""
        return self.ahead(self.batch.weights, by) * (self.rows(self.documents) == self.ahead(self.documents, by))


def distances(head: Head, target: Llama, batch: Batch, longest: int, window: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each guess: the head's logits, the target's, and what each counts."""
    inner, matrix = head.inner, target.embed_tokens.weight
    seen = look(target, batch.tokens, Packed(batch.starts, batch.positions, longest), inner=inner)
    rows, steps = Rows(batch, window), list[Keys]()
    hidden, found = head.enter(rows.rows(seen.features)), []
    for ahead in range(1, GUESSES + 1):
        embedded = functional.embedding(rows.ahead(batch.tokens, ahead), matrix)
        positions = rows.rows(batch.positions) + ahead - 1
        out, hidden = head.guess(embedded, hidden, positions, steps, rows.allowed)
        found.append((functional.linear(out, matrix), rows.ahead(seen.logits, ahead), rows.counts(ahead)))
    return found


def divergence(own: Tensor, wanted: Tensor, counts: Tensor) -> Tensor:
    """How far the head's probabilities lie from the target's, in nats."""
    ours, theirs = (x.float().log_softmax(-1) for x in (own, wanted))
    return ((theirs.exp() * (theirs - ours)).sum(-1) * counts).sum() / counts.sum()


def follow(target: Llama, window: int) -> Loss:
    """The loss of a head: all its guesses, the later ones counting less."""
    compare = torch.compile(divergence) if torch.cuda.is_available() else divergence

    def loss(model: torch.nn.Module, batch: Batch, longest: int) -> Tensor:
        assert isinstance(model, Head)
        parts = distances(model, target, batch, longest, window)
        total = [LATER_COUNTS**place * compare(*part) for place, part in enumerate(parts)]
        return torch.stack(total).sum() / sum(LATER_COUNTS**place for place in range(GUESSES))

    return loss


@torch.no_grad()
def held_out_scores(head: Head, target: Llama, args: argparse.Namespace) -> dict[str, list[float]]:
    """How often each guess in a row is the target's likeliest token, the words before it being given."""
    scores: dict[str, list[float]] = {}
    plan = Plan("text", args.batch_tokens, args.seed, layout.TOKENS, layout.HF_FOLDERS["target"] / "tokenizer.json")
    for kind in ("code", "prose"):
        batch = on_device(held_out(plan, kind), head.fc.weight.device)
        with torch.autocast(batch.tokens.device.type, torch.bfloat16, enabled=batch.tokens.is_cuda):
            parts = distances(head, target, batch, plan.longest, args.window)
        same = [((own.argmax(-1) == wanted.argmax(-1)) * counts).sum() / counts.sum() for own, wanted, counts in parts]
        scores[f"agreement_{kind}"] = [round(one.item(), 4) for one in same]
    return scores


def run(args: argparse.Namespace) -> None:
    """Trains the wanted heads, saves them and records the runs."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    target = prepared(load_hf(layout.HF_FOLDERS["target"], SHAPES["target"]), device)
    for role in args.roles:
        torch.manual_seed(args.seed)
        started_s = time.monotonic()
        head = HEADS[role](SHAPES["target"]).to(device)
        log = fit(role, head, follow(target, args.window), args)
        save_head(head, args.out / layout.HF_FOLDERS[role].name)
        entry = {"role": role, "device": name, "seed": args.seed, "batch_tokens": args.batch_tokens}
        entry |= {"seconds": round(time.monotonic() - started_s, 1), "held_out": held_out_scores(head, target, args)}
        print(role, entry, flush=True)
        remember(args.out / layout.RESULTS.name, entry | {"log": recorded(log)})


def main() -> None:
    """Reads the options and trains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roles", nargs="+", choices=list(HEADS), default=list(HEADS))
    parser.add_argument("--steps", type=int, default=100_000, help="most steps a head; the time limit usually ends it first")
    parser.add_argument("--minutes", type=float, default=3.0, help="for each head")
    parser.add_argument("--batch-tokens", type=int, default=32_768)
    parser.add_argument("--window", type=int, default=WINDOW_TOKENS)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--rate", type=float, help="peak learning rate; without it the one of the role")
    parser.add_argument("--tool-share", type=float, default=TOOL_SHARE, help="share of the conversations that offer tools")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--out", type=Path, default=layout.HERE)
    args = parser.parse_args()
    args.minutes = dict.fromkeys(HEADS, args.minutes)
    args.out.mkdir(parents=True, exist_ok=True)
    run(args)


if __name__ == "__main__":
    main()
