"""The way in for asynchronous code: one client per process and event loop."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Self

import msgspec

from runlane.journal.errors import InvalidInputError
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.partition import Partition
from runlane.journal.settings import Settings, load_settings
from runlane.journal.wire.control import ControlReceipt
from runlane.producer.admission import check_name, check_reason, check_run
from runlane.producer.deployment import Deployment
from runlane.producer.handles import ABORT_REASON, RunHandle
from runlane.producer.hub import Hub
from runlane.producer.overview import SessionInfo, list_sessions
from runlane.producer.runs import RunInfo, read_place, read_run
from runlane.producer.session import Session


class Client:
    """Asks for runs, controls and observes them; an async context manager that closes itself.

    It holds two connections, whatever the number of sessions and subscribers, and nothing that
    would be lost with the process: every handle can be made again from its id.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._partition = deployment.partition

    @classmethod
    async def connect(cls, url: str | None = None, *, settings: Settings | None = None) -> Self:
        """Connect, and check that the server can be used.

        Args:
            url: `redis://…`, `rediss://…` or `unix://…`; None for the one of the settings.
            settings: None reads them from `RUNLANE_*` and `.env`.

        Raises:
            InvalidInputError: No server is named, or a setting is out of range.
            ServerUnavailableError: It does not answer.
            ServerUnsuitableError: Wrong password, too old, or the prefix was made otherwise.
        """
        if settings is None:
            settings = await asyncio.to_thread(load_settings, redis_url=url)
        elif url is not None:
            settings = msgspec.structs.replace(settings, redis_url=url)
        if settings.redis_url is None:
            raise InvalidInputError(
                "no Redis server is named: set RUNLANE_REDIS_URL or give a URL, such as "
                "redis://127.0.0.1:6379/0"
            )
        partition = Partition.of(settings.redis_url, settings)
        deployment = Deployment(partition=partition, hub=Hub(settings.redis_url), settings=settings)
        try:
            await partition.open()
        except BaseException:
            await deployment.close()
            raise
        return cls(deployment)

    def session(
        self, session_id: str, *, agent: str | None = None, branch: str = MAIN_BRANCH
    ) -> Session:
        """Return a handle on one branch of a session; nothing is sent.

        Args:
            session_id: The session; the first run in it creates it.
            agent: The agent to run; None for the one that the session is bound to.
            branch: The branch; with the session it names the lane.

        Raises:
            InvalidInputError: A name is not 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.
        """
        return Session(
            self._deployment,
            check_name("session id", session_id),
            check_name("branch", branch),
            None if agent is None else check_name("agent", agent),
        )

    def sessions(self) -> AsyncGenerator[SessionInfo, None]:
        """Return all sessions, the one that was asked for something last first, page by page.

        Raises:
            ServerUnavailableError: The server is away.
        """
        return list_sessions(self._partition)

    async def run_handle(self, run_id: str) -> RunHandle:
        """Return the handle of a run that anybody has asked for.

        Raises:
            InvalidInputError: The id is no UUID.
            UnknownRunError: No such run.
            ServerUnavailableError: The server is away.
        """
        return RunHandle(self._deployment, await read_place(self._partition, check_run(run_id)))

    async def status(self, run_id: str) -> RunInfo:
        """Return a run as of now.

        Raises:
            InvalidInputError: The id is no UUID.
            UnknownRunError: No such run.
            UndecodableError: The record of its end is damaged or lost.
            ArchiveError: That record is archived and cannot be read.
            ServerUnavailableError: The server is away.
        """
        return await read_run(self._partition, check_run(run_id))

    async def abort(self, run_id: str, reason: str = ABORT_REASON) -> ControlReceipt:
        """Ask a run to stop; asking again is accepted too, and the first reason stays.

        Raises:
            InvalidInputError: The id is no UUID, or the reason is refused.
            UnknownRunError: No such run.
            ServerUnavailableError: The server is away.
        """
        why = check_reason(reason)
        handle = await self.run_handle(run_id)
        return await handle.abort(why)

    async def close(self) -> None:
        """Close both connections; whoever still follows a run gets an error."""
        await self._deployment.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
