"""Says what a hub's refusal means, and what to do. No token and no signed address is ever part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stoker.errors import NotReadyInTime, Refused, StokerError, WrongUse

STALL_RULE = "hf-ipv6-xet-download-stall"
HOW_TO_SIGN_IN = "`hf auth login`, or HF_TOKEN in the environment, or `token_file` of [fetch]"


class Asked(NamedTuple):
    """What was asked of which hub, and whether with a token."""

    endpoint: str
    repository: str
    asked: str
    has_token: bool


def refusal(asked: Asked, status: int, headers: Mapping[str, str]) -> StokerError:
    """Returns the error for an answer that is none. Pure."""
    code = headers.get("x-error-code", "")
    if code == "GatedRepo":
        return _gated(asked)
    if code == "RevisionNotFound":
        return WrongUse(
            f"{asked.repository} has no revision `{asked.asked}`",
            next_step=f"{asked.endpoint}/{asked.repository}/tree/main lists branches and tags; a commit has 40 hex digits",
        )
    if code == "EntryNotFound":
        return StokerError(f"{asked.repository} lists a file that the hub does not have", next_step="tell its owner")
    if status == 404 or code == "RepoNotFound" or (status == 401 and not asked.has_token):
        return _not_found(asked)
    if status in (401, 403):
        return _not_allowed(asked, status)
    return StokerError(
        f"the hub answers {status} for {asked.repository}", why=f"asked {asked.endpoint}", next_step="try again later"
    )


def _gated(asked: Asked) -> Refused:
    page = f"{asked.endpoint}/{asked.repository}"
    if asked.has_token:
        why = "its owner has not let the account of your token in (the terms are not accepted, or the answer is pending)"
        return Refused(
            f"{asked.repository} is gated", why=why, next_step=f"open {page} with that account and ask for access"
        )
    why = "its owner lets in only accounts that accepted its terms, and no token was given"
    return Refused(
        f"{asked.repository} is gated", why=why, next_step=f"accept the terms at {page}, then give a token: {HOW_TO_SIGN_IN}"
    )


def _not_found(asked: Asked) -> Refused:
    why = "it does not exist, or it is private and " + (
        "your token's account may not see it" if asked.has_token else "no token was given"
    )
    next_step = "check the name" + ("" if asked.has_token else f"; for a private one give a token: {HOW_TO_SIGN_IN}")
    return Refused(f"the hub has no repository {asked.repository}", why=why, next_step=next_step)


def _not_allowed(asked: Asked, status: int) -> Refused:
    why = "the token is not valid any more" if status == 401 else "the token does not allow reading this repository"
    if not asked.has_token:
        why = "no token was given"
    return Refused(
        f"the hub does not let you read {asked.repository}",
        why=f"{why} (it answers {status})",
        next_step=f"give a token: {HOW_TO_SIGN_IN}",
    )


def unreachable(asked: Asked, problem: Exception, tries: int) -> NotReadyInTime:
    """Returns the error for a hub that cannot be talked to. Pure."""
    return NotReadyInTime(
        f"{asked.endpoint} cannot be reached",
        why=f"{tries} attempts (limit `tries` of [fetch]); the last: {type(problem).__name__}: {problem}",
        next_step="check the network; where IPv6 leads nowhere: --ipv4-only, or `ipv4_only = true` in [fetch]",
        rule=STALL_RULE,
    )


def stalled(name: str, problem: str, tries: int) -> NotReadyInTime:
    """Returns the error for a download that gets no byte any more. Pure."""
    return NotReadyInTime(
        f"the download of {name} stands still",
        why=f"{tries} attempts in a row brought no byte (limit `tries` of [fetch]); the last: {problem}",
        next_step="try --no-xet (`xet = false` in [fetch]) and --ipv4-only (`ipv4_only = true`); what came is kept",
        rule=STALL_RULE,
    )
