"""One worker process of a bench: `python -m bench.worker SYSTEM WORK`, both as JSON."""

import asyncio
import os
import sys
import threading

import msgspec
import uvloop

from bench.systems.protocol import Work
from bench.systems.runlane_fleet import Runlane
from bench.systems.stock_arq import StockArq

AnySystem = Runlane | StockArq


def command(system: AnySystem, work: Work) -> list[str]:
    """Return the command line of such a process."""
    words = [msgspec.json.encode(value).decode() for value in (system, work)]
    return [sys.executable, "-m", "bench.worker", *words]


def main(system: str, work: str) -> None:
    """Serve on uvloop, whatever the system, until killed or until standard input ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asyncio.set_event_loop(uvloop.new_event_loop())
    msgspec.json.decode(system, type=AnySystem).serve(msgspec.json.decode(work, type=Work))


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
