"""What was ever stored stays readable: bytes of every version of every type, kept as files.

`tests/data/wire/v<n>` holds bytes as version n of a type wrote them (.bin), and what is read from
them now (.json). A file of bytes is never changed; a new type, or a new version, adds one.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct

from runlane.journal.archive import segment
from runlane.journal.archive.segment import Segment, decode_segment
from runlane.journal.reader import record_of
from runlane.journal.wire import versions
from runlane.journal.wire.codec import decode, decode_body, decode_job, decode_jump
from runlane.journal.wire.jobs import AnyJob, ContinueJob, FollowUpJob, RunJob
from runlane.journal.wire.records import KINDS
from runlane.journal.wire.results import AgentRunResult
from runlane.journal.wire.tree import Jump
from runlane.journal.wire.versions import Upgrades, stored_name

DATA: Final = Path(__file__).parents[1] / "data/wire"
SEGMENT: Final = (
    "a0/a045eb33f8797f35ea7d5fad7c5e0d021e2142e9c1bb6e9dc9f45b4f503b03e8/41-43-ba9876543210.jsonl"
)
JOBS: Final[dict[str, type[AnyJob]]] = {
    "run": RunJob,
    "follow_up": FollowUpJob,
    "continue": ContinueJob,
}


class Form(Struct, frozen=True):
    """One version of a stored type."""

    name: str
    version: int
    type: type[Struct]
    read: Callable[[bytes], Any]

    @property
    def path(self) -> Path:
        return DATA / f"v{self.version}/{self.name}.bin"

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


def _read_result(data: bytes) -> AgentRunResult:
    return decode(data, msgspec.msgpack.Decoder(AgentRunResult))


def _versions(name: str, upgrades: Upgrades) -> range:
    return range(1, len(upgrades.get(name, ())) + 2)


def _forms() -> Iterator[Form]:
    for kind, body in KINDS.items():
        for version in _versions(kind, versions.RECORD_UPGRADES):
            stored = stored_name(kind, version)
            yield Form(kind, version, body, partial(decode_body, stored))
    for tag, job in JOBS.items():
        for version in _versions(tag, versions.JOB_UPGRADES):
            yield Form(f"job.{tag}", version, job, decode_job)
    for version in _versions("jump", versions.JUMP_UPGRADES):
        yield Form("jump", version, Jump, decode_jump)
    for version in range(1, segment.VERSION + 1):
        yield Form("segment", version, Segment, partial(decode_segment, SEGMENT))
    yield Form("result", 1, AgentRunResult, _read_result)


FORMS: Final = list(_forms())
MAPS: Final = [form for form in FORMS if form.type is not Segment]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_version_of_every_type_is_read_for_ever(form: Form) -> None:
    value = form.read(form.path.read_bytes())
    expected = form.path.with_suffix(".json").read_bytes()
    assert value == msgspec.json.decode(expected, type=form.type)


def test_no_file_of_bytes_is_changed_or_left_out() -> None:
    listed: dict[Path, str] = {}
    for sums in DATA.glob("v*/SHA256SUMS"):
        for line in sums.read_text("utf-8").splitlines():
            digest, name = line.split("  ")
            listed[sums.with_name(name)] = digest
    files = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in DATA.rglob("*.bin")}
    assert files == listed
    assert files.keys() == {form.path for form in FORMS}


def with_unknown_fields(value: Any) -> Any:
    match value:
        case {**known}:
            fields = {name: with_unknown_fields(each) for name, each in known.items()}
            return {"field_of_tomorrow": [1], **fields, "another": {"one": None}}
        case [*each]:
            return [with_unknown_fields(one) for one in each]
        case _:
            return value


@pytest.mark.parametrize("form", MAPS, ids=str)
def test_fields_that_a_newer_process_has_added_are_ignored(form: Form) -> None:
    data = form.path.read_bytes()
    plain = decode(data, msgspec.msgpack.Decoder())
    newer = msgspec.msgpack.encode(with_unknown_fields(plain))
    assert form.read(newer) == form.read(data)


def test_an_archived_segment_holds_records() -> None:
    (form,) = (form for form in FORMS if form.type is Segment and form.version == 1)
    read: Segment = form.read(form.path.read_bytes())
    records = [record_of(entry) for entry in read.entries]
    assert [record.kind for record in records] == ["run_started", "message_appended", "checkpoint"]
    assert [record.parent_id for record in records[1:]] == [
        record.record_id for record in records[:-1]
    ]
