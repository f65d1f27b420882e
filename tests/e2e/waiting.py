"""Wait for things, with a deadline that says what was waited for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

DEADLINE_S: Final = 60.0
"""No test depends on the speed of the machine: this only ends a test that has failed."""

POLL_S: Final = 0.02


async def until(condition: Callable[[], bool | Awaitable[bool]], what: str) -> None:
    """Return once the condition holds."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                holds = condition()
                if holds if isinstance(holds, bool) else await holds:
                    return
                await asyncio.sleep(POLL_S)
    except TimeoutError as error:
        raise AssertionError(f"not so within {DEADLINE_S} s: {what}") from error
