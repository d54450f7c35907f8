// A small chat through the gateway, as every client's: how soon the first token came, how fast the rest, and the request as curl.

import { h, say } from "./dom.js";
import { number, seconds } from "./format.js";
import { marker } from "./drafted.js";
import { stream } from "./stream.js";

const PATH = "/v1/chat/completions";

function curl(body) {
  const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `curl ${location.origin}${PATH} \\\n  -H "Authorization: Bearer $(cat ~/.local/state/stoker/gateway.key)" \\\n`
    + `  -H "Content-Type: application/json" \\\n  -d '${quoted}'`;
}

function measured(began, firstAt, tokens, timings) {
  const ended = performance.now();
  const rate = timings?.predicted_per_second ?? (tokens > 1 ? (tokens - 1) / ((ended - firstAt) / 1000) : null);
  const drafts = timings?.draft_n ? `, ${timings.draft_n_accepted} of ${timings.draft_n} draft tokens accepted` : "";
  return `TTFT ${seconds((firstAt - began) / 1000)}, ${number(rate)} tokens / s, ${tokens} tokens${drafts}`;
}

export function chatTab(place, name, { looksOn }) {
  const talk = h("div", { class: "talk", "aria-live": "polite" }), question = h("textarea", { id: "question", rows: 2, required: true });
  const send = h("button", { type: "submit", class: "main" }, "Ask"), stop = h("button", { type: "button", hidden: true }, "Stop");
  const request = h("pre", { tabindex: "0", role: "group", "aria-label": "The request as curl" }), shown = h("details", { hidden: true }, h("summary", {}, "The request as curl"), request);
  const messages = [];
  let model = null, cut = null, isReady = false, tellsSteps = false;

  async function answer(body, words, told) {
    const began = performance.now();
    const mark = marker();
    let firstAt = 0, tokens = 0, timings = null, text = "", hasDrafts = false;
    for await (const event of stream(PATH, body, cut.signal)) {
      if (event.error) throw new Error(event.error.message);
      const delta = event.choices?.[0]?.delta ?? {}, piece = delta.content ?? "", thought = delta.reasoning_content || delta.reasoning;
      timings = event.timings ?? timings;
      if (piece || thought) { firstAt ||= performance.now(); tokens += 1; }
      text += piece;
      const isDrafted = Boolean(piece || thought) && mark(event.timings); // thoughts count too, and are not shown
      hasDrafts ||= isDrafted && Boolean(piece);
      if (piece) words.append(isDrafted ? h("span", { class: "drafted" }, piece) : piece);
      if (event.usage?.completion_tokens) tokens = event.usage.completion_tokens;
    }
    if (firstAt) say(told, measured(began, firstAt, tokens, timings) + (hasDrafts ? " (underlined)" : ""));
    return text;
  }

  async function submit(event) {
    event.preventDefault();
    if (!question.value.trim() || cut) return;
    messages.push({ role: "user", content: question.value.trim() });
    const body = { model, messages, stream: true, stream_options: { include_usage: true }, max_tokens: 512, ...(tellsSteps ? { timings_per_token: true } : {}) };
    say(request, curl(body));
    shown.hidden = false;
    const words = h("p", { class: "answer" }), told = h("p", { class: "dim measured" });
    talk.append(h("p", { class: "question" }, question.value.trim()), words, told);
    question.value = "";
    cut = new AbortController();
    stop.hidden = false;
    try {
      messages.push({ role: "assistant", content: await answer(body, words, told) });
    } catch (problem) {
      messages.pop();
      say(told, problem.name === "AbortError" ? "stopped" : problem.message);
    } finally {
      cut = null;
      stop.hidden = true;
      update();
    }
  }

  function update(card) {
    if (card) [model, isReady, tellsSteps] = [card.model, card.state === "READY" && card.answers, card.engine === "llamacpp"];
    send.disabled = !isReady || looksOn || Boolean(cut);
    question.placeholder = looksOn ? "this browser only looks on" : isReady ? `Ask ${model}` : "it has to be READY first";
  }

  stop.addEventListener("click", () => cut?.abort());
  question.addEventListener("keydown", (event) => event.key === "Enter" && !event.shiftKey && submit(event));
  place.replaceChildren(talk, h("form", { onsubmit: submit }, h("label", { for: "question", class: "hidden" }, "Question"), question,
    h("div", { class: "row" }, send, stop)), shown);
  return { update, close: () => cut?.abort() };
}
