"""An archive belongs to one deployment: that of another is neither read nor written."""

from pathlib import Path

import pytest
from tests.journal.driving import Driver, open_driver
from tests.upkeep.support import Keeper

from runlane.journal.archive import Archive, FileStore
from runlane.journal.errors import ArchiveMismatchError
from runlane.journal.ownership import own_archive


async def test_the_first_worker_claims_it_for_its_deployment(driver: Driver, store: Path) -> None:
    await own_archive(driver.partition)
    owner = await driver.partition.call("HGET", driver.keys.meta(), "deployment")
    assert (store / "deployment").read_bytes() == owner
    driver.partition.archive = Archive(FileStore(store))
    await own_archive(driver.partition)
    assert (store / "deployment").read_bytes() == owner


async def test_another_deployments_is_refused(driver: Driver, keeper: Keeper, prefix: str) -> None:
    await own_archive(driver.partition)
    async with open_driver(driver.partition.url, prefix=f"{prefix}-2") as other:
        other.partition.archive = Archive(FileStore(keeper.store))
        with pytest.raises(ArchiveMismatchError, match="belongs to deployment"):
            await own_archive(other.partition)
        theirs = Keeper(other, keeper.store)
        await theirs.trace(checkpoint=True)
        with pytest.raises(ArchiveMismatchError):
            await theirs.archive()
        assert len(await theirs.stream()) == 5
    assert keeper.files() == []


async def test_an_empty_one_is_not_taken_for_the_one_that_holds_the_records(
    driver: Driver, keeper: Keeper, tmp_path: Path
) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    driver.partition.archive = Archive(FileStore(tmp_path / "elsewhere"))
    with pytest.raises(ArchiveMismatchError, match="is empty, or was emptied"):
        await own_archive(driver.partition)
    with pytest.raises(ArchiveMismatchError, match="RUNLANE_ARCHIVE"):
        await driver.records()
    await keeper.trace(checkpoint=True)
    with pytest.raises(ArchiveMismatchError):
        await keeper.archive()
    assert not (tmp_path / "elsewhere").exists()


async def test_a_claim_that_was_not_finished_is_taken_up(driver: Driver, store: Path) -> None:
    await own_archive(driver.partition)
    owner = (store / "deployment").read_bytes()
    await driver.partition.call("HDEL", driver.keys.meta(), "archive_claimed")
    await own_archive(driver.partition)
    assert (store / "deployment").read_bytes() == owner
    assert await driver.partition.call("HGET", driver.keys.meta(), "archive_claimed") == b"1"


async def test_a_reader_asks_once(driver: Driver, keeper: Keeper) -> None:
    await keeper.trace(checkpoint=True)
    await keeper.archive()
    driver.partition.archive = Archive(FileStore(keeper.store))
    assert len(await driver.records()) == 5
    (keeper.store / "deployment").write_text("other")
    assert len(await driver.records()) == 5
    await keeper.trace(checkpoint=True)
    with pytest.raises(ArchiveMismatchError):
        await keeper.archive()
