"""A session remembers: each run goes on with one conversation, on whatever worker."""

from examples.local import model, run, serving
from runlane.worker import Agent, App

app = App([Agent("chat", model(), system_prompt="Answer in one sentence.")])


async def main() -> None:
    async with serving(app) as client:
        chat = client.session("chat-1", agent="chat")
        for question in ("My name is Ada.", "What is my name?"):
            result = await (await chat.run(question))
            print(f"{question} -> {result.output}")
        messages = await chat.messages()
        print(f"the next run reads {len(messages)} messages, the first of them: {messages[0]}")


if __name__ == "__main__":
    run(main)
