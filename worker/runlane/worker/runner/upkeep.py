"""Keep the deployment small, beside the runs: archive sessions, and drop what has had its time."""

import asyncio
import random
import time
from typing import Final

import structlog

from runlane.journal.errors import (
    ArchiveError,
    ArchiveMismatchError,
    ArchiverFencedError,
    InvalidInputError,
    RunlaneError,
    UndecodableError,
)
from runlane.journal.ownership import own_archive
from runlane.journal.partition import Partition
from runlane.journal.settings import Settings
from runlane.journal.transitions import ArchiveClaim, archive_claim, archive_release
from runlane.journal.upkeep import archive_session, drop_expired, resume_deletions
from runlane.observability import metrics

POLL_S: Final = 1.0
SWEEP_S: Final = 10.0
"""How often one worker of the deployment looks for what has had its time."""
RETRY_MAX_S: Final = 30.0

logger = structlog.get_logger(__name__)


class Upkeep:
    """What a worker does for the deployment. It may die in the middle of it: another one goes on.

    Args:
        partition: The deployment.
        settings: For how long what is kept.
        worker_id: This worker.
    """

    def __init__(self, partition: Partition, settings: Settings, worker_id: str) -> None:
        self._partition = partition
        self._settings = settings
        self._worker_id = worker_id
        self._sweep_at = 0.0

    async def check_archive(self) -> None:
        """Refuse an archive that is not this deployment's; one that is away may come back.

        Raises:
            ArchiveMismatchError: It is not.
            ServerUnavailableError: The server is away.
        """
        if self._partition.archive is None:
            return
        try:
            await own_archive(self._partition)
        except ArchiveMismatchError:
            raise
        except ArchiveError as error:
            logger.warning("archive_away", error=str(error))

    async def run(self) -> None:
        """Go on until cancelled, whatever is away meanwhile."""
        delay, failure = POLL_S, ""
        while True:
            await asyncio.sleep(delay * random.uniform(0.75, 1.25))  # noqa: S311 (jitter)
            try:
                busy = await self._pass()
            except RunlaneError as error:
                delay = min(max(delay, POLL_S) * 2, RETRY_MAX_S)
                if str(error) != failure:
                    failure = str(error)
                    logger.warning("upkeep_put_off", error=failure)
            except Exception:  # the runs of this worker go on, and so does what it can still do
                delay = RETRY_MAX_S
                logger.exception("upkeep_failed")
            else:
                delay, failure = 0.0 if busy else POLL_S, ""

    async def _pass(self) -> bool:
        """Do what is due; return whether there may be more."""
        claims: list[ArchiveClaim] = []
        if self._partition.archive is not None:
            claims = await archive_claim(self._partition, worker_id=self._worker_id, count=1)
        for claim in claims:
            await self._archive(claim)
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP_S
            await self._sweep()
        return bool(claims)

    async def _archive(self, claim: ArchiveClaim) -> None:
        log = logger.bind(session_id=claim.session_id)
        try:
            archived = await archive_session(self._partition, claim)
        except ArchiverFencedError as error:
            log.info("archiving_lost", error=str(error))
        except (UndecodableError, InvalidInputError) as error:
            log.error("session_not_archived", error=str(error))  # its lease puts it off
        except ArchiveError:
            await archive_release(self._partition, claim)
            raise
        else:
            metrics.RECORDS_ARCHIVED.inc(archived)
            log.info("session_archived", records=archived)

    async def _sweep(self) -> None:
        """Look for what has had its time, unless another worker has just done so."""
        keys, keep_dead_s = self._partition.keys, self._settings.keep_dead_s
        turn = await self._partition.call(
            "SET", keys.upkeep(), self._worker_id, "NX", "PX", int(1000 * SWEEP_S)
        )
        if turn is None:
            return
        resumed = await resume_deletions(self._partition, keep_s=keep_dead_s)
        deleted = await drop_expired(
            self._partition,
            keep_sessions_s=self._settings.keep_sessions_s,
            keep_dead_s=keep_dead_s,
        )
        metrics.SESSIONS_EXPIRED.inc(deleted)
        if resumed or deleted:
            logger.info("swept", deletions_resumed=resumed, sessions_expired=deleted)
