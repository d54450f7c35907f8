"""What a form asks for: its one field `model`, wherever it stands, and nothing that only looks like it."""

from __future__ import annotations

import pytest

from door_stage import Engine, Stage, act, json_answer, run
from gateway_client import Answer
from stoker.gateway.directory import Entry
from stoker.gateway.exchange import Headers

FILE = (
    b'content-disposition: form-data; name="file"; filename="model"\r\ncontent-type: audio/wav\r\n\r\n'
    b'\0\xff\r\nname="model"\r\n\r\nother'
)
MODEL = b'Content-Disposition: form-data; name="model"\r\n\r\nm'


def form(*parts: bytes, boundary: bytes = b"b-1", ends: bool = True) -> bytes:
    whole = b"".join(b"--%s\r\n%s\r\n" % (boundary, part) for part in parts)
    return whole + (b"--%s--\r\n" % boundary if ends else b"")


def transcribe(body: bytes, kind: bytes = b"multipart/form-data; boundary=b-1") -> tuple[Answer, Engine]:
    answers: list[Answer] = []

    async def story(stage: Stage) -> None:
        client = await stage.request(b"POST", b"/v1/audio/transcriptions", b"content-type: " + kind, body=body)
        answers.append(await client.read_answer())

    engine = run(json_answer(b'{"text": "hi"}'), story)
    return answers[0], engine


@pytest.mark.parametrize(
    "body",
    [
        form(FILE, MODEL), form(MODEL, FILE), form(MODEL), b"preamble\r\n" + form(MODEL, FILE),
        form(b"content-type: text/plain\r\ncontent-disposition: form-data; name=model\r\n\r\nm"),
        form(b'content-disposition: form-data; name="model"; x=y\r\ncontent-type: text/plain\r\n\r\nm'),
        form(b'content-disposition: form-data; name="model_x"\r\n\r\nother', MODEL),
    ],
)  # fmt: skip
def test_a_form_reaches_the_model_that_it_names_byte_for_byte(body: bytes) -> None:
    answer, engine = transcribe(body)
    assert (answer.status, answer.headers["x-stoker-model"]) == (200, "m")
    assert engine.asked[0][1] == body


@pytest.mark.parametrize("kind", [b'multipart/form-data; boundary="b-1"', b"Multipart/Form-Data; charset=x; Boundary=b-1"])
def test_a_boundary_may_be_written_in_several_ways(kind: bytes) -> None:
    assert transcribe(form(FILE, MODEL), kind)[0].status == 200


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (form(FILE), b"multipart/form-data; boundary=b-1"),
        (form(MODEL, MODEL), b"multipart/form-data; boundary=b-1"),
        (form(MODEL, FILE, MODEL), b"multipart/form-data; boundary=b-1"),
        (form(MODEL), b"multipart/form-data; boundary=other"),
        (form(MODEL), b"multipart/form-data"),
        (b"", b"multipart/form-data; boundary=b-1"),
        (form(FILE, MODEL, ends=False), b"multipart/form-data; boundary=b-1"),
        (form(FILE) + form(MODEL), b"multipart/form-data; boundary=b-1"),
        (form(b'content-disposition: form-data; name="other"\r\n\r\n' + MODEL), b"multipart/form-data; boundary=b-1"),
        (form(b'content-disposition: form-data; x-name="model"\r\n\r\nm'), b"multipart/form-data; boundary=b-1"),
        (form(b"content-disposition: form-data; name=x\r\n\r\n--b-10\r\n" + MODEL), b"multipart/form-data; boundary=b-1"),
    ],
    ids=[
        "absent", "twice", "around", "other boundary", "no boundary", "empty", "unfinished", "after the end",
        "in a value", "another name",
        "half a boundary",
    ],
)  # fmt: skip
def test_a_form_without_one_model_is_refused(body: bytes, kind: bytes) -> None:
    answer, engine = transcribe(body, kind)
    assert (answer.status, answer.code) == (400, "invalid_model")
    assert engine.asked == []


def test_a_form_that_names_another_model_is_refused() -> None:
    answer, _ = transcribe(form(FILE, MODEL + b"2"))
    assert (answer.status, answer.code) == (404, "model_not_found")


class Aliased(Stage):
    """`coder` is another name for the service's model."""

    def find(self, model: str, headers: Headers | None = None) -> Entry | None:
        return self.entries()[0]._replace(model="coder", alias_of=self.model) if model == "coder" else None


NAMES_CODER = b'content-disposition: form-data; name="model"\r\n\r\ncoder'
SPEAKS_OF_CODER = b'content-disposition: form-data; name="prompt"\r\n\r\ncoder\r\n"model": "coder"'


@pytest.mark.parametrize("path", [b"/v1/audio/transcriptions", b"/v1/images/edits"])
@pytest.mark.parametrize("model", ["m", "org/a-longer-name-\N{LATIN SMALL LETTER E WITH ACUTE}"], ids=["shorter", "longer"])
def test_a_forms_alias_becomes_the_real_model_and_nothing_else_changes(path: bytes, model: str) -> None:
    stage = Aliased(Engine(json_answer(b'{"text": "hi"}')), (), model=model)
    before, kind = form(FILE, NAMES_CODER, SPEAKS_OF_CODER), b"content-type: multipart/form-data; boundary=b-1"

    async def story(_: Stage) -> None:
        answer = await (await stage.request(b"POST", path, kind, body=before)).read_answer()
        assert (answer.status, answer.headers["x-stoker-filters"]) == (200, "alias")

    act(stage, story)
    [(head, body)] = stage.engine.asked
    assert body == form(FILE, NAMES_CODER[: -len("coder")] + model.encode(), SPEAKS_OF_CODER)
    assert b"\r\ncontent-length: %d\r\n" % len(body) in head
    assert kind in head
