"""What the server knows of sessions and their lanes."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

from msgspec import Struct

from runlane.journal.errors import InvalidInputError, UnknownSessionError
from runlane.journal.partition import Partition
from runlane.journal.wire.results import StopReason

PAGE: Final = 200


class SessionInfo(Struct, frozen=True, kw_only=True):
    """One line of the list of sessions.

    Attributes:
        session_id: The session.
        agent: The agent that it is bound to; None if its first run will bind it.
        submitted_ms: When it was asked for something last, or imported, in server ms since the
            epoch.
    """

    session_id: str
    agent: str | None
    submitted_ms: int


class SessionStatus(Struct, frozen=True, kw_only=True):
    """A session and one lane of it, as of now.

    Attributes:
        session_id: The session.
        branch_id: The branch; with the session it names the lane.
        agent: The agent that the session is bound to; None if its first run will bind it.
        revision: The number of its last record.
        active_run: The run at the head of the lane, queued or running; None if it is idle.
        follow_ups: How many follow-ups come next.
        waiting: How many runs wait behind those.
        last_run: The run that ended last, of those that had begun; None if there is none.
        last_stop_reason: Why it ended.
    """

    session_id: str
    branch_id: str
    agent: str | None
    revision: int
    active_run: str | None
    follow_ups: int
    waiting: int
    last_run: str | None
    last_stop_reason: StopReason | None


async def read_agent(partition: Partition, session_id: str) -> str:
    """Return the agent that a session is bound to.

    Raises:
        UnknownSessionError: There is no such session.
        InvalidInputError: It is bound to none yet.
        ServerUnavailableError: The server is away.
    """
    agent, revision = await partition.call(
        "HMGET", partition.keys.session(session_id), "agent", "rev"
    )
    if agent is not None:
        return str(agent.decode())
    if revision is not None:
        raise InvalidInputError(
            f"session {session_id!r} is bound to no agent yet; name the agent that is to run in it"
        )
    advice = "name the agent that is to begin it, or check the id and RUNLANE_PREFIX"
    raise UnknownSessionError(session_id, advice=advice)


async def read_status(partition: Partition, session_id: str, branch_id: str) -> SessionStatus:
    """Return a session and one lane of it.

    Raises:
        UnknownSessionError: There is no such session.
        ServerUnavailableError: The server is away.
    """
    keys = partition.keys
    session, lane, follow_ups, waiting = await asyncio.gather(
        partition.call("HMGET", keys.session(session_id), "agent", "rev"),
        partition.call(
            "HMGET", keys.lane(session_id, branch_id), "active", "last_run", "last_stop"
        ),
        partition.call("LLEN", keys.follow_ups(session_id, branch_id)),
        partition.call("LLEN", keys.inbox(session_id, branch_id)),
    )
    agent, revision = session
    if revision is None:
        raise UnknownSessionError(session_id)
    active, last_run, last_stop = lane
    return SessionStatus(
        session_id=session_id,
        branch_id=branch_id,
        agent=agent and agent.decode(),
        revision=int(revision),
        active_run=active and active.decode(),
        follow_ups=follow_ups,
        waiting=waiting,
        last_run=last_run and last_run.decode(),
        last_stop_reason=last_stop and StopReason(last_stop.decode()),
    )


async def list_sessions(partition: Partition) -> AsyncGenerator[SessionInfo, None]:
    """Yield all sessions, the one that was asked for something last first, page by page.

    Raises:
        ServerUnavailableError: The server is away.
    """
    highest, known = "+inf", 0
    while page := await _page(partition, highest, known):
        found: list[list[bytes | None]] = await asyncio.gather(
            *(
                partition.call("HMGET", partition.keys.session(session_id), "agent", "rev")
                for session_id, _ in page
            )
        )
        for (session_id, submitted_ms), (agent, revision) in zip(page, found, strict=True):
            if revision is not None:
                name = None if agent is None else agent.decode()
                yield SessionInfo(session_id=session_id, agent=name, submitted_ms=submitted_ms)
        last = page[-1][1]
        ties = sum(submitted_ms == last for _, submitted_ms in page)
        known = known + ties if highest == str(last) else ties
        highest = str(last)


async def _page(partition: Partition, highest: str, known: int) -> list[tuple[str, int]]:
    """Return the next sessions from a time downwards, after the `known` ones of that time."""
    reply: list[Any] = await partition.call(
        *("ZRANGE", partition.keys.sessions(), highest, "-inf", "BYSCORE", "REV"),
        *("LIMIT", known, PAGE, "WITHSCORES"),
    )
    return [
        (session.decode(), int(float(score)))
        for session, score in zip(reply[::2], reply[1::2], strict=True)
    ]
