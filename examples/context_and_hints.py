"""What the model reads of a conversation; the journal keeps all of it, as it was said."""

from collections.abc import Sequence

from examples.local import model, run, serving
from runlane.producer import ContextMessage
from runlane.worker import Agent, App, TurnSnapshot

read: list[int] = []


def last_three(messages: Sequence[ContextMessage]) -> Sequence[ContextMessage]:
    """Keep the last three messages; a tool result whose call is gone is left out by itself."""
    kept = messages[-3:]
    read.append(len(kept))
    return kept


def clock(snapshot: TurnSnapshot) -> str:
    """Tell what is true only now: it stands at the very end, so that prompt caches stay warm."""
    return f"(It is turn {snapshot.turn + 1} of the run. Today is Tuesday.)"


app = App([Agent("forgetful", model(), context_transform=last_three, hint_provider=clock)])


async def main() -> None:
    async with serving(app) as client:
        session = client.session("forgetful-1", agent="forgetful")
        for question in ("Who are you?", "Where are you?", "What day is it?"):
            print((await (await session.run(question))).output)
        print("the model read", read, "messages")
        messages = await session.messages()
        print(f"the journal has {len(messages)} messages; the last question is", messages[-2])


if __name__ == "__main__":
    run(main)
