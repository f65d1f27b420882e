"""What runs of a peer cost; it needs nothing but Python itself."""

import time
from collections.abc import Awaitable, Callable


async def costs(times: int, run: Callable[[], Awaitable[None]]) -> list[float]:
    """Return the CPU time and the time that each of so many runs took on average, in seconds."""
    began, cpu_began = time.perf_counter(), time.process_time()
    for _ in range(times):
        await run()
    return [
        (time.process_time() - cpu_began) / times,
        (time.perf_counter() - began) / times,
    ]
