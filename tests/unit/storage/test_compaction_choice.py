"""Which data files a compaction rewrites: a function of what the manifests say, without tables."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from lakeward.storage.arms.iceberg.compaction_choice import Bin, DataFileFacts, choose
from lakeward.storage.settings import CompactionPolicy

POLICY = CompactionPolicy(target_bytes=16_000)
ASKED = POLICY.thorough()
SMALL, LARGE = 100, 5_000


def facts(number: int, rows: int = 100, size: int = SMALL, **more: int) -> DataFileFacts:
    return DataFileFacts(f"f{number:05d}", rows, size, first=number, last=number, **more)


def chosen(files: list[DataFileFacts], policy: CompactionPolicy = POLICY) -> list[list[str]]:
    return [[file.path for file in each] for each in choose(files, policy)]


WORN = {
    "nothing deleted": (facts(1, size=LARGE), False),
    "seven delete files": (facts(1, size=LARGE, delete_files=7, deleted=20), False),
    "eight delete files": (facts(1, size=LARGE, delete_files=8, deleted=20), True),
    "30 % of its rows": (facts(1, size=LARGE, delete_files=1, deleted=30), False),
    "31 % of its rows": (facts(1, size=LARGE, delete_files=1, deleted=31), True),
    "all rows": (facts(1, size=LARGE, delete_files=1, deleted=100), True),
    "eight times one row of many": (facts(1, 10_000, LARGE, delete_files=8, deleted=8), False),
    "64 times one row of many": (facts(1, 10_000, LARGE, delete_files=64, deleted=64), True),
    "a small one alone": (facts(1, delete_files=8, deleted=8), True),
}


@pytest.mark.parametrize("name", WORN)
def test_deleted_rows(name: str) -> None:
    file, rewritten = WORN[name]
    assert chosen([file]) == ([[file.path]] if rewritten else [])
    assert chosen([file, facts(2, size=LARGE)]) == ([[file.path]] if rewritten else [])


def test_who_asks_gets_many_small_deletes_rewritten() -> None:
    file = facts(1, 10_000, LARGE, delete_files=8, deleted=8)
    assert chosen([file]) == [] and chosen([file], ASKED) == [[file.path]]


def test_small_files_wait_until_there_are_enough() -> None:
    files = [facts(number) for number in range(31)]
    assert chosen(files) == []
    assert chosen([*files, facts(31)]) == [[f"f{number:05d}" for number in range(32)]]
    assert chosen([*files, facts(31, size=LARGE)]) == [], "a large one does not count"
    assert chosen(files[:2], ASKED) == [["f00000", "f00001"]]
    assert chosen(files[:1], ASKED) == chosen([], ASKED) == []


def test_neighbours_are_merged_in_the_order_of_their_versions() -> None:
    files = [facts(number, size=900) for number in range(40)]
    random.Random(1).shuffle(files)
    bins = choose(files, POLICY)
    assert [len(each) for each in bins] == [17, 17, 6], "up to the target, 16,000 bytes"
    numbers = [file.first for each in bins for file in each]
    assert numbers == sorted(numbers) == list(range(40))


def test_partitions_are_not_mixed() -> None:
    files = [replace(facts(number), group=(0, str(number % 2))) for number in range(64)]
    bins = choose(files, POLICY)
    assert [{file.group for file in each} for each in bins] == [{(0, "0")}, {(0, "1")}]
    assert choose(files[:62], POLICY) == [], "31 of each"


def test_what_was_merged_before_is_not_merged_with_each_that_comes() -> None:
    merged = facts(0, rows=100_000, size=900)
    files = [merged, *(facts(number, rows=1) for number in range(1, 32))]
    assert chosen(files) == [[f"f{number:05d}" for number in range(1, 32)]]
    # Nor does asking again and again rewrite it.
    assert chosen([merged, facts(1, rows=1), facts(2, rows=1)], ASKED) == [["f00001", "f00002"]]
    assert chosen([merged, facts(1, rows=2)], ASKED) == []


def test_where_much_is_rewritten_small_files_ride_along() -> None:
    worn = facts(0, rows=1_000, size=LARGE, delete_files=8, deleted=100)
    files = [worn, *(facts(number) for number in range(1, 6))]
    assert chosen(files) == [[f"f{number:05d}" for number in range(1, 6)], ["f00000"]]
    # Not with it: who reads since a version would have to read both. And not more than it.
    assert chosen([worn, *(facts(number, rows=301) for number in range(1, 4))]) == [["f00000"]]


def simulate(policy: CompactionPolicy, sizes: list[int], every: int = 1) -> tuple[int, int]:
    """Append files of so many rows, compact whenever the policy finds something; return rows rewritten, most files."""
    files: list[DataFileFacts] = []
    rewritten = most = 0
    for number, rows in enumerate(sizes, 1):
        files.append(facts(number, rows, size=rows))
        if number % every == 0:
            bins = choose(files, policy)
            rewritten += sum(file.live for each in bins for file in each)
            gone = {file.path for each in bins for file in each}
            files = [file for file in files if file.path not in gone] + [joined(each) for each in bins]
        most = max(most, len(files))
    assert sum(file.rows for file in files) == sum(sizes)
    return rewritten, most


def joined(files: Bin) -> DataFileFacts:
    rows = sum(file.live for file in files)
    first, last = min(file.first for file in files), max(file.last for file in files)
    return DataFileFacts(f"m{first:05d}-{last:05d}", rows, rows, first, last)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("largest", [1, 50, 1_000])
def test_all_rewriting_is_n_log_n(asked: bool, largest: int, rng: random.Random) -> None:
    policy = CompactionPolicy(target_bytes=1 << 40)
    policy = policy.thorough() if asked else policy
    sizes = [rng.randint(1, largest) for _ in range(1_000)]
    rewritten, most = simulate(policy, sizes)
    total = sum(sizes)
    assert rewritten <= total * (math.log(total, policy.tier) + 1)
    assert most <= (2 * math.log2(total) if asked else 64 + policy.tier * math.log(total, policy.tier))


def test_rewriting_ends(rng: random.Random) -> None:
    for _ in range(100):
        files = []
        for number in range(rng.randint(0, 80)):
            rows, deletes = rng.randint(10, 999), rng.randint(0, 9)
            files.append(facts(number, rows, rng.randint(1, 2_000), delete_files=deletes, deleted=deletes))
        for policy in (POLICY, ASKED):
            left = list(files)
            for _ in range(12):
                bins = choose(left, policy)
                if not bins:
                    break
                assert all(len(each) > 1 or each[0].delete_files for each in bins)
                gone = [file.path for each in bins for file in each]
                assert len(gone) == len(set(gone))
                left = [file for file in left if file.path not in gone] + [joined(each) for each in bins]
            assert choose(left, policy) == []
