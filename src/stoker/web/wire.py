"""What the control API's routes share: reading what is asked, writing what is answered."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from stoker.errors import WrongUse
from stoker.records import Record

WAIT_LIMIT_S = 30.0  # how long one request waits for news; who wants to wait longer asks again
T = TypeVar("T", bound=Record)


def answer_json(value: object, status: int = 200) -> Response:
    """Returns a value as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def read_body(request: Request, kind: type[T]) -> T:
    """Returns the body as a record; raises WrongUse where it is none."""
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise WrongUse("the request's body is not a wish", why=str(problem)) from problem


def read_number(request: Request, name: str, default: float) -> float:
    """Returns a number of the query, which are all counts or times; raises WrongUse where it is none, or below 0."""
    try:
        number = float(request.query_params.get(name, default))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise WrongUse(f"`{name}` should be a number")
    if number < 0:
        raise WrongUse(f"`{name}` is {number:g}", next_step="give 0 or more")
    return number
