// Tells which pieces of an answer are draft tokens that the model accepted, where the engine says enough for that.

// llama.cpp with `timings_per_token` counts with each piece: the tokens so far (predicted_n), and the draft tokens that were
// proposed (draft_n) and accepted (draft_n_accepted) so far. A verify step begins where draft_n grows; its accepted tokens come
// first, and the model's own one after them. A piece of several tokens, held back until a letter was whole, counts as its first.
export function marker() {
  let tokens = 0, proposed = 0, accepted = 0, left = 0;
  return (timings) => {
    if (timings?.draft_n == null) return false;
    if (timings.draft_n !== proposed) {
      left = timings.draft_n_accepted - accepted;
      [proposed, accepted] = [timings.draft_n, timings.draft_n_accepted];
    }
    const isAccepted = left > 0;
    left -= tokens ? timings.predicted_n - tokens : 1;
    tokens = timings.predicted_n;
    return isAccepted;
  };
}
