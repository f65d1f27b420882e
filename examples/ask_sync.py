"""The same from synchronous code: one client per process, usable from all its threads."""

from runlane.producer import SyncClient


def main() -> None:
    with SyncClient.connect() as client:
        session = client.session("ask-sync-1", agent="support")
        handle = session.run("Is anybody there?", idempotency_key="message-17")
        again = session.run("Is anybody there?", idempotency_key="message-17")
        assert again.run_id == handle.run_id
        print(handle.result(timeout=30).output)


if __name__ == "__main__":
    main()
