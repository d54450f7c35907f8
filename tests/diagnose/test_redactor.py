"""What leaves the machine holds no secret, no name, and nothing that was said to a model or by one."""

from __future__ import annotations

import pytest

from stoker.diagnose.redactor import Redactor

REDACTOR = Redactor(
    ["plainword-of-mine", 'quo"ted\\one', "a&b/c=d"], {"jane": "someone", "janes-spark": "this-machine", "root": "x"}
)


def redacted(*lines: str) -> str:
    return "\n".join(REDACTOR.log(lines))


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("the value plainword-of-mine stands alone", "plainword-of-mine"),
        (r'{"x": "quo\"ted\\one"}', "ted"),
        ("GET /v1?k=a%26b%2Fc%3Dd HTTP/1.1", "a%26b"),
        ('"GET /v1/models?anything=short HTTP/1.1" 200', "short"),
        ("OPENAI_API_KEY=abc", "=abc"),
        ("export HF_TOKEN='abc def'", "def"),
        ("vllm serve m --api-key abc --port 1", "abc"),
        ("vllm serve m --hf-token=abc", "abc"),
        ("'--ssl-keyfile-password', 'abc'", "'abc'"),
        ('"client_secret": "abc",', "abc"),
        ("Set-Cookie: session=abcdef", "abcdef"),
        ("Authorization: Bearer abcd.efgh", "efgh"),
        ("authorization: Basic amFuZTpwdw==", "amFu"),
        ("postgres://jane:pw@db/x", "pw@"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl here", "eyJ"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA"),
        ("password=2024-Summer!x", "Summer"),
        ("api_key='7-abc-def'", "abc"),
        ("api_key=12345678-9abc-4def-8123-456789abcdef", "9abc"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalr"),
        ("'s3_secret_access_key': 'wJalrXUtnFEMI/K7MDENG',", "wJalr"),
        ("LITELLM_MASTER_KEY=master-1234-abcd", "1234"),
        ("key AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIza"),
        ("xoxb-1234567890-abcdef", "xoxb"),
        ("github_pat_11ABCDEFG0abcdefghijkl", "pat_11"),
        ("glpat-abcdefghijklmnopqrst", "glpat"),
        ("mistral said Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2 no", "Q7w8"),
        ("from jane.doe@example.org", "jane"),
        ("/home/jane/models and /Users/jane/models", "jane"),
        ("run by jane on janes-spark", "jane"),
        ("Received request cmpl-1: prompt: 'my diary', params: n=1", "diary"),
        ('{"messages": [{"role": "user", "content": "my diary"}]}', "diary"),
        ("GenerateReqInput(rid='1', text='my diary', input_ids=[1, 2])", "diary"),
        ('out={"text": "my diary"}', "diary"),
        ("delta: {\"reasoning_content\": \"my diary\"}", "diary"),
        ("prompt_token_ids: [1, 15043, 3186]", "15043"),
    ],
)  # fmt: skip
def test_what_is_nobodys_business_is_taken_out(line: str, secret: str) -> None:
    assert secret in line
    assert secret not in redacted(line)


def test_a_short_secret_is_hidden_by_its_name_and_blots_out_no_other_word() -> None:
    redactor = Redactor(["open", "true"], {})
    assert list(redactor.log(["MY_SECRET=open", "open is true"])) == ["MY_SECRET=***", "open is true"]


def test_what_goes_over_several_lines_is_taken_out_to_its_end() -> None:
    said = redacted(
        "INFO 11-20 08:00:00 prompt: 'dear diary,", "today I", "2 things", "INFO 11-20 08:00:01 next",
        "-----BEGIN RSA PRIVATE KEY-----", "MIIE", "-----END RSA PRIVATE KEY-----", "after",
    )  # fmt: skip
    assert said.split("\n") == [
        "INFO 11-20 08:00:00 prompt: *** (what was said is left out)",
        "INFO 11-20 08:00:01 next",
        *("***", "***", "***"),
        "after",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 119.00 GiB total)",
        "(EngineCore pid=7) ERROR 11-20 08:00:00 [core.py:12] EngineCore failed to start.",
        "max_tokens=512 tokenizer='./m' revision=9f3a1c0d4e5b6a7f8091a2b3c4d5e6f708192a3b",
        "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEE",
        "error: unrecognized arguments: --num-nodes",
        'File "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 1, in run',
        "the root of all, run by root",
    ],
)
def test_what_a_report_needs_stays(line: str) -> None:
    assert redacted(line) == line
