"""What a tool is: a name, what it asks for as a record, and a call of a flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec

from stoker.errors import WrongUse
from stoker.mcp.desk import Desk


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool asks for; anything else that an agent sends is refused with its path."""


OneBox = Annotated[str | None, msgspec.Meta(description="A linked box.")]


def named(service: str | None) -> str:
    """Returns a service's name, which has to be said where another box is asked."""
    if service is None:
        raise WrongUse("name the service, of a linked box", next_step="service_status with the box lists them")
    return service


class Tool(NamedTuple):
    """A tool. `changes`: what it does may stop what somebody else uses."""

    name: str
    title: str
    says: str
    asks: type[Arguments]
    call: Callable[[Desk, Any], object]
    changes: bool = False

    def view(self) -> dict[str, Any]:
        """Returns the tool as a client's list has it."""
        hints = {"readOnlyHint": not self.changes, "destructiveHint": self.changes, "openWorldHint": False}
        return {
            "name": self.name, "title": self.title, "description": self.says, "inputSchema": schema_of(self.asks),
            "annotations": {"title": self.title, **hints},
        }  # fmt: skip

    def read(self, arguments: object) -> Arguments:
        """Returns an agent's arguments; raises WrongUse that names what is wrong with them."""
        try:
            return msgspec.convert({} if arguments is None else arguments, self.asks)
        except msgspec.ValidationError as problem:
            names = ", ".join(self.asks.__struct_fields__) or "nothing"
            raise WrongUse(f"wrong arguments for {self.name}: {problem}", next_step=f"it takes: {names}") from problem


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """Returns the JSON schema of a record, in one piece: some clients cannot follow references."""
    whole = msgspec.json.schema(kind)
    schema: dict[str, Any] = dict(whole["$defs"][kind.__name__])
    schema.pop("title", None)
    schema.pop("description", None)  # the tool's own says it
    return schema
