"""How each command gets at the server."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, Final

import click
from msgspec import Struct

from runlane.journal.errors import ServerUnavailableError
from runlane.journal.settings import load_settings
from runlane.producer.client import Client

RETRY_S: Final = 2.0
CONNECT_TIMEOUT_S: Final = 4.0
"""A server that refuses is given up after `RETRY_S`, one that is silent after this long."""


class Connection(Struct, frozen=True):
    """Which deployment a command speaks to.

    Attributes:
        redis_url: The server; None for RUNLANE_REDIS_URL.
        prefix: The prefix of every key; None for RUNLANE_PREFIX.
    """

    redis_url: str | None
    prefix: str | None

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Client, None]:
        """Connect for the length of the `with` block.

        Raises:
            InvalidInputError: No server is named, or a setting is out of range.
            ServerUnavailableError: It does not answer within about 3 s.
            ServerUnsuitableError: It cannot be used.
        """
        settings = load_settings(redis_url=self.redis_url, prefix=self.prefix, retry_s=RETRY_S)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                client = await Client.connect(settings=settings)
        except TimeoutError as error:
            raise ServerUnavailableError(
                f"the Redis server gave no answer within {CONNECT_TIMEOUT_S:g} s"
            ) from error
        async with client:
            yield client


def with_connection(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command --redis-url and --prefix, which reach it as one `connection`."""

    @click.option("--redis-url", metavar="URL", help="The server; default: RUNLANE_REDIS_URL.")
    @click.option(
        "--prefix", metavar="NAME", help="The deployment on it; default: RUNLANE_PREFIX, or rl."
    )
    @wraps(command)
    def wrapper(*args: Any, redis_url: str | None, prefix: str | None, **options: Any) -> None:
        command(*args, connection=Connection(redis_url, prefix), **options)

    return wrapper
