"""Content goes beside the journal, before a record names it."""

from typing import Final

from runlane.journal.blobs import pack
from runlane.journal.errors import PayloadTooLargeError, SessionFencedError
from runlane.journal.ids import new_request_id
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.wire.blobs import BlobRef

KEEP_MS: Final = 600_000
"""How long the server waits for the next piece."""


async def put_blob(
    partition: Partition, lease: Lease, content: bytes, media_type: str, *, retry_s: float
) -> BlobRef:
    """Keep content for the session of a run and return its name; the same content again is one.

    What no record names within an hour is dropped.

    Args:
        partition: Where the session lives.
        lease: Proof that the caller may write.
        content: At most `blob_bytes_max` bytes.
        media_type: What it is, such as `text/plain`.
        retry_s: How long to go on while the server is away, in seconds.

    Raises:
        PayloadTooLargeError: The content is over the limit.
        SessionFencedError: The lease was lost; nothing was kept.
        SessionOutcomeUnknownError: No reply came in that time.
        ServerUnavailableError: The server is away, and nothing was sent.
    """
    if len(content) > partition.blob_bytes_max:
        raise PayloadTooLargeError(
            what="the content", size=len(content), limit=partition.blob_bytes_max
        )
    packed = await pack(content, media_type)
    upload, index = new_request_id(), 0
    while True:
        code, found = await partition.transition(
            "put_blob",
            upload,
            lease.run_id,
            lease.session_id,
            lease.branch_id,
            lease.fence,
            packed.ref.digest,
            packed.ref.size,
            media_type,
            upload,
            index,
            len(packed.pieces),
            packed.pieces[index],
            KEEP_MS,
            retry_s=retry_s,
        )
        match code:
            case b"MORE":
                index = found
            case b"LOST":
                index = 0
            case b"FENCED":
                raise SessionFencedError(
                    run_id=lease.run_id, fence=lease.fence, fence_held=found.decode()
                )
            case _:
                return packed.ref
