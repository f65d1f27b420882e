"""A tool returns an image along with text. Its bytes lie beside the journal, not in it."""

import struct
import zlib

from examples.local import model, run, serving
from runlane.producer import ImageBlock, ToolMessage
from runlane.worker import Agent, App, Attachment, ToolEffect, tool


def png(width: int, height: int) -> bytes:
    """Return a black image."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + checksum

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes(width)) * height
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@tool(effect=ToolEffect.READ_ONLY)
async def screenshot(width: int, height: int) -> list[str | Attachment]:
    """Take a picture of the screen."""
    return ["The screen is off:", Attachment(png(width, height), "image/png", "screen.png")]


app = App([Agent("seeing", model(), tools=[screenshot])])


async def main() -> None:
    async with serving(app) as client:
        session = client.session("seeing-1", agent="seeing")
        await (await session.run('[[tool screenshot {"width": 32, "height": 16}]]'))
        for message in await session.messages():
            if isinstance(message, ToolMessage):
                print(message.content)
                for block in message.blocks:
                    if isinstance(block, ImageBlock) and block.blob is not None:
                        data = await session.blob(block.blob)
                        print(block.name, block.media_type, data == png(32, 16))


if __name__ == "__main__":
    run(main)
