"""What the command of a workflow's step finds in its environment. Pure.

The gateway's key goes in as a variable, where every OpenAI client looks for it: a variable is read by its user alone, a word
of the command by everybody on the machine. It opens the models and nothing else, and is that user's already.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.launch.process import MARKER_VARIABLE
from stoker.records import Record, ServiceView, WorkflowStep

BASE_URL, API_KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"


class Access(Record, frozen=True):
    """How the gateway is asked: its address, its key, and the file that holds the key."""

    url: str
    key: str
    key_file: str


def step_environment(
    step: WorkflowStep, inherited: Mapping[str, str], access: Access, service: ServiceView | None, marker: str
) -> dict[str, str]:
    """Returns the caller's environment with the gateway's address and key, the step's service, and the step's own variables.

    A step that says one of the two itself gets neither: our key must not reach another's address, nor another's key ours.
    """
    own = step.environment.keys() & {BASE_URL, API_KEY}
    gateway = {} if own else {BASE_URL: access.url, API_KEY: access.key}
    return {
        **inherited, **gateway, "STOKER_KEY_FILE": access.key_file, **_service_variables(service), **step.environment,
        MARKER_VARIABLE: marker,
    }  # fmt: skip


def _service_variables(service: ServiceView | None) -> dict[str, str]:
    """What a command asks for: a model by its name at the gateway, or a program that is no model at its own address."""
    if service is None:
        return {}
    if service.answers:
        return {"STOKER_SERVICE": service.name, "STOKER_MODEL": service.model}
    address = {"STOKER_SERVICE_URL": service.address} if service.address else {}
    return {"STOKER_SERVICE": service.name, **address}
