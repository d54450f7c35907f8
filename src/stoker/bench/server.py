"""Finds out what an endpoint is: which engine, how long its context, how it counts tokens, and what it wants to be told.

One small chat is asked and has to be answered; everything else may be missing, and is then unknown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stoker.bench.asking import Asker
from stoker.bench.origin import Origin
from stoker.bench.reading import Answered, read_request
from stoker.counters import Counters, read_counters
from stoker.engines import find, names
from stoker.errors import Refused, StokerError
from stoker.records import Target

Body = Mapping[str, Any]
HELLO = ({"role": "user", "content": "Say hello."},)
HELLO_TOKENS = 4
CONTEXT_FIELDS = ("max_model_len", "context_tokens", "context_length", "context_window")
REFUSES_WORDS = (400, 422)  # statuses by which servers refuse words that they do not know

# What makes an engine say how many tokens each chunk has, and go on to the length that was asked for. An engine that does
# not know a word ignores it, and one that refuses it is asked without.
RUNNING_COUNT = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
PLAIN = {"stream_options": {"include_usage": True}}
WHOLE_LENGTH = {"ignore_eos": True}
BY_ENGINE: dict[str | None, Body] = {
    "vllm": RUNNING_COUNT,
    "sglang": {**RUNNING_COUNT, "return_spec_tokens_details": True},
    "llamacpp": {**PLAIN, "timings_per_token": True},
    None: RUNNING_COUNT,
}
NO_CACHE: dict[str | None, Body] = {"llamacpp": {"cache_prompt": False}}
UNCOUNTED = ("sglang",)  # it counts verify calls, and not what they were about
SERVER_INFO = ("/server_info", "/get_server_info")  # the second is its older name
SALTED = ("vllm", "sglang")  # of requests with another `cache_salt` their prefix caches know nothing


class Server(NamedTuple):
    """Who is measured: `extra` goes into every chat, `tokenizes` where its `/tokenize` answers.

    `reuses`: connections may be kept; llama.cpp holds one of its few threads for each.

    `chat` asks under `/v1`, `root` beside it, `engine_asker` the engine's own pages; None where those cannot be reached.
    `drafts_a_step`: how many tokens each verify step is asked about, where the engine tells and does not count them.
    """

    target: Target
    chat: Asker
    root: Asker
    engine_asker: Asker
    engine: str | None
    context_tokens: int | None
    tokenizes: bool
    extra: Body
    reuses: bool
    drafts_a_step: int | None = None

    def counters(self) -> Counters | None:
        """Returns what the engine has counted so far; None where it does not tell."""
        return read_counters(self.engine_asker.read("/metrics"))

    def body(self, messages: Sequence[Body], new_tokens: int, more: Body) -> Body:
        """Returns a chat as it is asked."""
        plain = {"model": self.target.model, "messages": messages, "max_tokens": new_tokens, "stream": True}
        return {**plain, **self.extra, **more}

    def salt(self) -> Body:
        """Returns what keeps a run from finding in the engine's cache what one before it asked with the same seed."""
        return {"cache_salt": os.urandom(16).hex()} if self.engine in SALTED else {}

    def close(self) -> None:
        """Closes all connections."""
        for asker in {self.chat, self.root, self.engine_asker}:
            asker.close()


def meet(target: Target, known_engine: str | None = None) -> Server:
    """Returns what an endpoint is; raises StokerError where it does not answer a chat as a stream."""
    chat = Asker(Origin(target.url, target.key, target.headers))
    root = Asker(Origin(target.url.removesuffix("/v1"), target.key, target.headers))
    engine_asker = Asker(Origin(target.engine_url, target.engine_key)) if target.engine_url else root
    counters = read_counters(engine_asker.read("/metrics"))
    listed = _listed(chat, target.model)
    engine = known_engine or (counters.engine if counters else _owner(listed))
    context = target.context_tokens or _context(listed)
    is_direct = target.box is None and (target.engine_url is None or target.url.startswith(target.engine_url))
    reuses = not is_direct or engine is None or find(engine).reuses_connections
    if engine is not None and not find(engine).reuses_connections:
        for asker in {engine_asker, *((chat, root) if is_direct else ())}:
            asker.keep_none()
    try:
        extra = _ask_hello(chat, target, engine)
    except StokerError:
        for asker in {chat, root, engine_asker}:
            asker.close()
        raise
    tokenizes = _tokenizes(root, target.model)
    drafts = _drafts_a_step(engine_asker) if engine in UNCOUNTED else None
    return Server(target, chat, root, engine_asker, engine, context, tokenizes, extra, reuses, drafts)


def _drafts_a_step(asker: Asker) -> int | None:
    """Returns how many drafts SGLang says that a step has: one place of those that it verifies is the step's own token."""
    for path in SERVER_INFO:
        said = asker.read_json("GET", path)
        verified = said.get("speculative_num_draft_tokens") if isinstance(said, dict) else None
        if isinstance(verified, int) and verified > 1:
            return verified - 1
    return None


def _listed(chat: Asker, model: str) -> Body:
    """Returns what the server says of the model, empty where it says nothing."""
    said = chat.read_json("GET", "/models")
    models = said.get("data") if isinstance(said, dict) else None
    known = [one for one in models if isinstance(one, dict)] if isinstance(models, list) else []
    mine = [one for one in known if one.get("id") == model] or (known if len(known) == 1 else [])
    return mine[0] if mine else {}


def _owner(listed: Body) -> str | None:
    owner = str(listed.get("owned_by", "")).lower()
    return owner if owner in names() else None


def _context(listed: Body) -> int | None:
    meta = listed.get("meta")
    said = [*(listed.get(field) for field in CONTEXT_FIELDS), meta.get("n_ctx") if isinstance(meta, dict) else None]
    return next((one for one in said if isinstance(one, int) and one > 0), None)


def _tokenizes(root: Asker, model: str) -> bool:
    return count_at_server(root, model, "one two") is not None


def count_at_server(root: Asker, model: str, text: str) -> int | None:
    """Returns how many tokens a text is by the server's `/tokenize`; None where it has none.

    `prompt` is what vLLM and SGLang call it, `content` llama.cpp; nothing is added to either.
    """
    body = {"model": model, "prompt": text, "content": text, "add_special_tokens": False, "add_special": False}
    said = root.read_json("POST", "/tokenize", body)
    tokens = said.get("tokens") if isinstance(said, dict) else None
    return len(tokens) if isinstance(tokens, list) else None


def _ask_hello(chat: Asker, target: Target, engine: str | None) -> Body:
    """Returns the words that the server takes, the most telling that it does; raises StokerError where none will do."""
    tried = [{**BY_ENGINE.get(engine, RUNNING_COUNT), **WHOLE_LENGTH}, {**PLAIN, **WHOLE_LENGTH}, PLAIN, {}]
    for extra in tried:
        answer = _hello(chat, target, extra)
        if not answer.seen.error:
            return extra
        if answer.seen.status not in REFUSES_WORDS:
            break
    raise _no_chat(target, answer)


def _hello(chat: Asker, target: Target, extra: Body) -> Answered:
    plain = {"model": target.model, "messages": HELLO, "max_tokens": HELLO_TOKENS, "stream": True}
    exchange = chat.send("POST", "/chat/completions", {**plain, **extra})
    return read_request(exchange, exchange.sent_s, HELLO_TOKENS)


def _no_chat(target: Target, answer: Answered) -> StokerError:
    """Returns what to tell of an endpoint that cannot be measured."""
    steps = {
        401: "name the file with its key: --key-file", 403: "name the file with its key: --key-file",
        404: "GET /v1/models lists the names that it knows", 429: "wait until others have finished, or ask with another key",
    }  # fmt: skip
    kind = Refused if answer.seen.status in steps else StokerError
    return kind(
        f"{target.url} does not answer a chat for {target.model}, so there is nothing to measure",
        why=answer.seen.error,
        next_step=steps.get(answer.seen.status or 0, "`stoker verify` finds out what it does wrong"),
    )


def read_version(server: Server) -> str | None:
    """Returns the engine's version as it tells it: vLLM and SGLang at /version, llama.cpp among its properties."""
    for path, field in (("/version", "version"), ("/props", "build_info")):
        said = server.engine_asker.read_json("GET", path)
        told = said.get(field) if isinstance(said, dict) else None
        if isinstance(told, str) and told:
            return told
    return None
