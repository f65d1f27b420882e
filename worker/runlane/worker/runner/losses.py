"""What a server lost of runs that were given up while it was away: it is found out afterwards."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from runlane.journal.errors import RunlaneError, ServerError, SessionDivergedError

RETRY_S: Final = 1.0

logger = structlog.get_logger(__name__)


class Losses:
    """Looks for losses beside the runs of a worker, for as long as it takes."""

    def __init__(self) -> None:
        self._looking: set[asyncio.Task[None]] = set()

    def look(self, run_id: str, look: Callable[[], Awaitable[None]]) -> None:
        """Look once the server answers."""
        task = asyncio.create_task(_look(run_id, look))
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def stop(self, seconds: float) -> None:
        """Stop looking, after so many seconds at most."""
        looking = set(self._looking)
        if looking:
            await asyncio.wait(looking, timeout=seconds)
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)


async def _look(run_id: str, look: Callable[[], Awaitable[None]]) -> None:
    log = logger.bind(run_id=run_id)
    while True:
        try:
            await look()
        except SessionDivergedError as error:
            log.error("records_lost", error=str(error))
        except ServerError as error:
            log.info("losses_unknown_yet", error=str(error))
            await asyncio.sleep(RETRY_S)
            continue
        except asyncio.CancelledError:
            log.error("losses_unknown", error="the worker stops while the server is away")
            raise
        except RunlaneError as error:
            log.error("losses_unknown", error=str(error))
        return
