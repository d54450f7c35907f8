"""One door over two boxes that serve the same model: who answers, what is said of it, and who counts it."""

from __future__ import annotations

import json
import ssl
from collections.abc import Generator

import httpx
import pytest

from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Trio, question

pytestmark = IN_NAMESPACES
MODEL = "stoker-demo"
LONG = 400


def link_of(door: Box, name: str) -> dict[str, str]:
    links = json.loads(door.paths.links_file.read_text())
    return next(one for one in links["boxes"] if one["name"] == name)


def over_link(trio: Trio, method: str, path: str, key: str) -> httpx.Response:
    """Asks box b's port for doors as anybody on the network could."""
    trust_all = ssl.create_default_context()
    trust_all.check_hostname, trust_all.verify_mode = False, ssl.CERT_NONE
    with trio.a.inside(), httpx.Client(verify=trust_all) as client:
        return client.request(method, trio.b.url + path, headers={"authorization": f"Bearer {key}"})


def test_a_model_is_listed_once_with_all_its_replicas(trio: Trio) -> None:
    with trio.a.client() as client:
        (model,) = client.get("/v1/models").json()["data"]
    assert (model["id"], model["state"], model["box"]) == (MODEL, "READY", "b")
    assert [(one["box"], one["service"], one["state"]) for one in model["replicas"]] == [
        ("b", "demo", "READY"), ("c", "demo", "READY"),
    ]  # fmt: skip
    assert len({(one["revision"], one["plan_id"]) for one in model["replicas"]}) == 1


def test_the_header_names_the_box_and_exactly_what_answered(trio: Trio) -> None:
    reply = trio.a.chat(headers={"x-stoker-box": "c"})
    assert reply.status_code == 200
    assert "Stoker" in reply.json()["choices"][0]["message"]["content"]
    there = trio.c.chat()
    for name in ("box", "service", "model", "revision", "plan"):
        assert reply.headers.get_list(f"x-stoker-{name}") == [{"box": "c"}.get(name) or there.headers[f"x-stoker-{name}"]]
    assert "x-stoker-rerouted" not in reply.headers


def test_two_long_streams_go_to_two_boxes(trio: Trio) -> None:
    body = question(max_tokens=LONG, stream=True, ignore_eos=True)
    with trio.a.client() as client, client.stream("POST", "/v1/chat/completions", json=body) as one:
        with client.stream("POST", "/v1/chat/completions", json=body) as other:
            assert {one.headers["x-stoker-box"], other.headers["x-stoker-box"]} == {"b", "c"}
            assert [*other.iter_lines()][-2] == "data: [DONE]"
        assert [*one.iter_lines()][-2] == "data: [DONE]"


def test_an_affinity_stays_on_its_box_and_others_are_spread(trio: Trio) -> None:
    def box(key: str) -> str:
        return str(trio.a.chat(max_tokens=1, headers={"x-stoker-affinity": key}).headers["x-stoker-box"])

    first = {key: box(key) for key in "abcdefgh"}
    assert set(first.values()) == {"b", "c"}
    assert {key: box(key) for key in first} == first


@pytest.mark.parametrize("header", [{"x-stoker-box": "nowhere"}, {"x-stoker-revision": "0123456789ab"}])
def test_what_no_box_has_is_refused_and_nothing_answers_instead(trio: Trio, header: dict[str, str]) -> None:
    reply = trio.a.chat(headers=header)
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "no_such_replica")


def test_usage_is_kept_at_the_door_that_was_asked_and_nowhere_else(trio: Trio) -> None:
    def requests(box: Box) -> int:
        return sum(line["requests"] for line in box.json("usage")["lines"])

    there_before = requests(trio.b)
    here_before = requests(trio.a)
    assert trio.a.chat(headers={"x-stoker-box": "b"}).status_code == 200
    wait_for("the request to be counted", lambda: requests(trio.a) == here_before + 1)
    assert requests(trio.b) == there_before


def test_a_named_keys_scope_holds_for_models_of_other_boxes(trio: Trio) -> None:
    key = trio.a.json("keys", "add", "narrow", "--models", "something-else")["key"]
    reply = trio.a.chat(headers={"authorization": f"Bearer {key}"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "model_not_allowed")


def test_a_link_opens_what_it_is_for_and_no_more(trio: Trio) -> None:
    key = link_of(trio.a, "b")["key"]
    assert over_link(trio, "GET", "/api/status", key).status_code == 200
    for method, path in [
        ("GET", "/api/keys"), ("POST", "/api/services"), ("POST", "/api/switch"), ("POST", "/api/stop"), ("GET", "/metrics"),
        ("POST", "/api/join-codes"), ("DELETE", "/api/services/demo"), ("POST", "/api/adopt"), ("GET", "/v1/models"),
    ]:  # fmt: skip
        reply = over_link(trio, method, path, key)
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "not_of_this_link"), path


def test_no_other_key_opens_the_port_of_links(trio: Trio) -> None:
    for file in (trio.b.paths.key_file, trio.b.paths.control_key_file, trio.b.paths.engine_key_file):
        reply = over_link(trio, "GET", "/api/status", file.read_text().strip())
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unknown_link")


def test_a_link_reaches_only_the_plan_that_it_names(trio: Trio) -> None:
    reply = over_link(trio, "POST", "/box/demo/000000000000/v1/chat/completions", link_of(trio.a, "b")["key"])
    assert (reply.status_code, reply.json()["error"]["code"]) == (421, "replica_changed")


def test_secrets_of_links_are_for_their_user_alone_and_in_no_log(trio: Trio) -> None:
    key = link_of(trio.a, "b")["key"]
    for file in (trio.a.paths.links_file, trio.b.paths.links_file, trio.b.paths.box_identity):
        assert file.stat().st_mode & 0o777 == 0o600
    assert key not in trio.b.paths.links_file.read_text()
    assert all(key not in box.paths.daemon_log.read_text() for box in (trio.a, trio.b))
    for box in (trio.a, trio.b):
        assert key.encode() not in box.paths.database.read_bytes()


def test_a_box_tells_ages_and_no_times_so_that_clocks_may_be_apart(trio: Trio) -> None:
    trust_all = ssl.create_default_context()
    trust_all.check_hostname, trust_all.verify_mode = False, ssl.CERT_NONE
    headers = {"authorization": f"Bearer {link_of(trio.a, 'b')['key']}"}
    words = f"{trio.b.url}/words"
    with trio.a.inside(), httpx.Client(verify=trust_all) as client, client.stream("GET", words, headers=headers) as stream:
        (service,) = json.loads(next(stream.iter_lines()))["services"]
    assert 0 < service["age_s"] < 3600
    assert not [name for name, value in service.items() if isinstance(value, float) and value > 1e6]


def test_metrics_and_status_show_the_boxes(trio: Trio) -> None:
    with trio.a.client() as client:
        page = client.get("/metrics").text
    assert 'stoker_box_up{box="b"} 1.0' in page
    assert 'stoker_box_service_ready{box="c",service="demo"} 1.0' in page
    said = trio.a.run("status").stdout
    assert "box b  here for " in said and "box c  here for " in said


def test_a_link_may_act_only_where_its_code_said_so(trio: Trio) -> None:
    assert "Stoker" in trio.b.chat().text
    assert [one["name"] for one in trio.a.json("status", "--on", "c")["services"]] == ["demo"]
    assert trio.a.run("logs", "demo", "--on", "b").stdout
    assert trio.a.json("plan", "demo", "--on", "b")["plan_id"] == trio.b.chat().headers["x-stoker-plan"]
    for words in (("down", "demo"), ("up", "demo"), ("switch", "demo"), ("logs", "demo"), ("plan", "demo")):
        said = trio.a.run(*words, "--on", "c", code=3).stderr
        assert "may ask its models and look, and no more" in said
    assert "no box called `d`" in trio.a.run("status", "--on", "d", code=2).stderr


def test_a_service_of_another_box_is_stopped_and_started_from_here(trio: Trio) -> None:
    trio.a.run("down", "demo", "--on", "b")
    wait_for("the door to see it", lambda: not trio.a.serves(trio.b), 2.0)
    reply = trio.a.chat(headers={"x-stoker-box": "b"})
    # By then it is STOPPED; the door may not have heard the last of it yet.
    assert (reply.status_code, reply.json()["error"]["code"][:8]) == (503, "service_")
    assert trio.a.chat().headers["x-stoker-box"] == "c"
    trio.a.run("up", "demo", "--on", "b")
    wait_for("the door to see it", lambda: trio.a.serves(trio.b), 2.0)


def test_two_doors_answer_at_once_and_a_door_may_serve_too(trio: Trio) -> None:
    trio.b.join(trio.c)
    wait_for("it to serve", lambda: trio.b.serves(trio.c))
    body = question(max_tokens=LONG, stream=True, ignore_eos=True)

    def answer(box: Box, name: str) -> Generator[str, None, None]:
        with box.client() as client, client.stream(
            "POST", "/v1/chat/completions", json=body, headers={"x-stoker-box": name}
        ) as one:  # fmt: skip
            assert one.headers["x-stoker-box"] == name
            yield name
            lines = [*one.iter_lines()]
            yield lines[-2]

    both = [answer(trio.a, "c"), answer(trio.b, "c")]
    assert [next(one) for one in both] == ["c", "c"]
    for one in reversed(both):
        assert next(one) == "data: [DONE]"
        one.close()
    own = {"x-stoker-box": "b"}
    much = question(max_tokens=5 * LONG, stream=True, ignore_eos=True)
    with trio.b.client() as client, client.stream("POST", "/v1/chat/completions", json=much, headers=own) as stream:
        assert stream.headers["x-stoker-box"] == "b"

        def next_box() -> str:
            with trio.a.client() as other:
                reply = other.post("/v1/chat/completions", json=question(max_tokens=1))
            return str(reply.headers["x-stoker-box"])

        wait_for("door a to hear what door b has in flight", lambda: next_box() == "c", 3.0)
    trio.b.run("boxes", "remove", "c")
    trio.c.run("boxes", "remove", "b")
