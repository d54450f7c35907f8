"""Who is told of whom: a refusal names service and model to those who may ask it, and to nobody else."""

from __future__ import annotations

from hashlib import sha256

import pytest

from door_stage import Stage, json_answer, run
from stoker.records import NamedKey

BODY = b'{"model": "%s"}'
NARROW = NamedKey("narrow", sha256(b"narrow").hexdigest(), 0.0, models=("other",))
WIDE = NamedKey("wide", sha256(b"wide").hexdigest(), 0.0)


@pytest.mark.parametrize(
    ("key", "target", "model", "status"),
    [
        (b"wrong", b"/v1/chat/completions", b"m", 401), (b"wrong", b"/service/chat/health", b"m", 401),
        (b"wrong", b"/metrics", b"m", 401), (b"narrow", b"/v1/chat/completions", b"m", 403),
        (b"narrow", b"/service/chat/health", b"m", 403), (b"narrow", b"/upstream/m/health", b"m", 403),
        (b"key", b"/v1/chat/completions", b"nothing", 404), (b"key", b"/v1/nothing", b"m", 404),
        (b"key", b"/service/nothing/x", b"m", 404),
    ],
)  # fmt: skip
def test_who_may_not_know_and_what_is_not_there_get_the_requests_id_alone(
    key: bytes, target: bytes, model: bytes, status: int
) -> None:
    async def story(stage: Stage) -> None:
        stage.keyring.load([NARROW, WIDE])
        method = b"GET" if target == b"/metrics" else b"POST"
        answer = await (await stage.request(method, target, key=key, body=BODY % model)).read_answer()
        assert answer.status == status
        assert answer.headers["x-request-id"]
        assert not [name for name in answer.headers if name.startswith("x-stoker-")]

    assert run(json_answer(b"{}"), story).asked == []


def test_a_key_that_may_ask_a_model_is_told_whose_path_stays_shut() -> None:
    async def story(stage: Stage) -> None:
        stage.keyring.load([NARROW, WIDE])
        answer = await (await stage.request(b"POST", b"/service/chat/slots/0", key=b"wide", body=b"{}")).read_answer()
        assert (answer.status, answer.code) == (403, "path_not_allowed")
        assert (answer.headers["x-stoker-service"], answer.headers["x-stoker-model"]) == ("chat", "m")

    assert run(json_answer(b"{}"), story).asked == []
