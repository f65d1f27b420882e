"""What the demo plays on: a folder, a Redis server, a model, and the settings of its workers."""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Self, cast
from uuid import uuid4

import msgspec
from msgspec import Struct

from runlane.journal.link import CONNECT_TIMEOUT_S, blocking_client_for
from runlane.journal.server import launch
from runlane.journal.settings import Settings, load_settings
from runlane.worker.demo.errors import DemoError
from runlane.worker.demo.ledger import LEDGER_VARIABLE, Ledger
from runlane.worker.demo.scenario import SESSION_COUNT
from runlane.worker.models import ModelConfig
from runlane.worker.testing.process import scripted_model

LEASE_MS: Final = 2000
RETRY_S: Final = 5.0


class Stage(Struct, frozen=True, kw_only=True):
    """Everything but the workers.

    Attributes:
        settings: Server and prefix; what the demo's own client uses.
        folder: Data of the server, logs of the workers, the ledger.
        ledger: What really happened to the outside world.
        server: The Redis server, for people.
        model: The model, for people.
        scripted: Whether the model is the scripted one.
        exports: What a shell needs to reach the deployment.
        environ: The environment of a worker.
    """

    settings: Settings
    folder: Path
    ledger: Ledger
    server: str
    model: str
    scripted: bool
    exports: dict[str, str]
    environ: dict[str, str]


@contextmanager
def set_stage() -> Generator[Stage, None, None]:
    """Start what is not there yet; end it with the block.

    Raises:
        RunlaneError: A part cannot be started; the message says what to do.
    """
    configured = load_settings()
    with ExitStack() as parts:
        folder = parts.enter_context(_Folder(configured.data_dir)).path
        exports: dict[str, str] = {}
        if configured.redis_url is None:
            running = parts.enter_context(launch(folder / "redis"))
            exports["RUNLANE_REDIS_URL"] = url = running.url
            prefix, server = configured.prefix, f"{running.version} on {url}"
            if prefix != Settings().prefix:
                exports["RUNLANE_PREFIX"] = prefix
        else:
            url = configured.redis_url
            if "@" not in url:  # a password is not shown
                exports["RUNLANE_REDIS_URL"] = url
            exports["RUNLANE_PREFIX"] = prefix = f"demo-{uuid4().hex[:8]}"
            parts.enter_context(_Keys(url, prefix))
            server = f"the one of RUNLANE_REDIS_URL, keys below {prefix}"
        scripted = not ModelConfig.present()
        model_environ = parts.enter_context(scripted_model()) if scripted else {}
        label = "scripted, since no MODEL_URL is set" if scripted else ModelConfig.from_env().label
        ledger = Ledger(folder / "ledger")
        yield Stage(
            settings=msgspec.structs.replace(
                configured, redis_url=url, prefix=prefix, retry_s=RETRY_S
            ),
            folder=folder,
            ledger=ledger,
            server=server,
            model=label,
            scripted=scripted,
            exports=exports,
            environ={
                **os.environ,
                **model_environ,
                LEDGER_VARIABLE: str(ledger.path),
                "RUNLANE_REDIS_URL": url,
                "RUNLANE_PREFIX": prefix,
                "RUNLANE_LEASE_MS": str(LEASE_MS),
                "RUNLANE_MAX_RUNS": str(SESSION_COUNT),
                "RUNLANE_LOG_JSON": "true",
                "RUNLANE_LOG_LEVEL": "info",
            },
        )


class _Folder:
    """A fresh folder; if workers failed in the block, it stays, for their logs to be read."""

    def __init__(self, data_dir: str) -> None:
        try:
            parent = Path(data_dir, "demo").resolve()
            parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(dir=parent))
        except OSError as error:
            raise DemoError(
                f"the demo cannot write in {data_dir} ({error.strerror}): "
                "choose another directory by RUNLANE_DATA_DIR"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not (_failed(kind) and any(self.path.glob("*.log"))):
            shutil.rmtree(self.path)


class _Keys:
    """The demo's keys on a server that is not its own."""

    def __init__(self, url: str, prefix: str) -> None:
        self._url = url
        self._prefix = prefix

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not _failed(kind):
            with blocking_client_for(self._url, timeout_s=CONNECT_TIMEOUT_S) as client:
                pattern = f"{self._prefix}:*"
                for key in cast("Iterator[bytes]", client.scan_iter(pattern, count=1000)):
                    client.unlink(key, *_arq_mirrors(key))


def _arq_mirrors(key: bytes) -> list[bytes]:
    """Return the keys of arq, outside of any prefix, that belong to the key of a run."""
    _, is_run, run_id = key.partition(b":run:")
    kinds = (b"job", b"in-progress", b"result") if is_run else ()
    return [b"arq:%s:%s" % (kind, run_id) for kind in kinds]


def _failed(kind: type[BaseException] | None) -> bool:
    """Return whether a block failed; being interrupted by the user is no failure."""
    return kind is not None and issubclass(kind, Exception)
