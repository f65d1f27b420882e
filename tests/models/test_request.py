"""What a chat completions request makes of a transcript."""

from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.content import ImageBlock
from runlane.journal.wire.messages import ToolMessage
from runlane.worker.models import ModelConfig, ModelContext
from runlane.worker.models.adapters.openai_chat.request import request_body


def test_a_result_with_an_image_is_sent_as_its_text() -> None:
    ref = BlobRef(digest="ab" * 32, size=3, media_type="image/png")
    block = ImageBlock(media_type="image/png", blob=ref)
    message = ToolMessage("c", "draw", "[image: image/png, 3 bytes]", blocks=(block,))
    config = ModelConfig(base_url="http://127.0.0.1:1/v1", api_key="k", model="m")
    body = request_body(config, ModelContext(messages=(message,)))
    assert body["messages"] == [
        {"role": "tool", "tool_call_id": "c", "content": "[image: image/png, 3 bytes]"}
    ]
