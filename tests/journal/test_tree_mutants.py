"""The proof that the tests of the tree bite: each broken script is noticed."""

from typing import Final

import pytest
from tests.journal.mutants import Mutant
from tests.journal.test_mutants import install, is_noticed_by
from tests.journal.tree_machine import TreeMachine

from runlane.journal.server import Server

ADD: Final = ("append", "finish")
MUTANTS: Final = (
    Mutant("there is no fence", "lane.fence == fence and", ""),
    Mutant("any head will do", "found ~= ARGV[6]", "false", ADD),
    Mutant("a request that comes again is a new one", "run[1] == ARGV[5]", "false", ("append",)),
    Mutant("any request is the last one", "run[1] == ARGV[5]", "run[1]", ("append",)),
    Mutant(
        "a revision is not stored",
        "redis.call('HSET', key('s', session), 'rev', revision)",
        "redis.call('HSETNX', key('s', session), 'rev', revision)",
    ),
    Mutant("a head is not stored", "redis.call('HSET', key('heads', session), branch, head)", ""),
    Mutant(
        "a record is nobody's child",
        "branch = branch, parent = head, kind",
        "branch = branch, parent = '', kind",
    ),
    Mutant("an id is its number", "string.format('%.0f', tonumber(id, 16))", "'0'"),
    Mutant("a branch takes the place of another", "if found or branch == 'main'", "if false"),
    Mutant("a branch begins at nothing", "now_ms(), base)", "now_ms(), '')", ("create_branch",)),
    Mutant("a jump is not noted", "redis.call('HSET', key('jumps', session), head, jump)", ""),
    Mutant(
        "a checkpoint is noted too late",
        "string.match(checkpoint, '^%d+'))",
        "string.match(checkpoint, '^%d+') + 1)",
    ),
    Mutant("a begun run ends beside its branch", "has_begun(run_id) and run.branch or", ""),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.says for mutant in MUTANTS])
def test_a_broken_script_is_noticed_by_the_tree(
    mutant: Mutant, bundled_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(mutant, monkeypatch)

    class Machine(TreeMachine):
        url = bundled_server.url

    is_noticed_by(Machine, max_examples=200, stateful_step_count=40)
