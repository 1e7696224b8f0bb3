"""Blocks in mapped files: the same models as in memory, and nothing left behind."""

from __future__ import annotations

import errno
import gc
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privet import Budget, Categorical, LedgerStore, Numeric, PrivateTable, Schema, Source, encode
from privet.engines import _kernels, encode_stream, memory_engine, open_blocks, stored
from privet.errors import (
    BudgetExceeded,
    DataError,
    EngineError,
    PrivacyLeakWarning,
    PrivetError,
    SchemaError,
)
from privet.estimators import DiffPID3Classifier, PrivateTreeClassifier
from privet.reading import stream_of, streams

from ..golden.seeded import CASES, SEED, make_table  # noqa: TID252
from .behind import blocks_of

SCHEMA = Schema({"a": Numeric(0, 1), "b": Categorical(["u", "v"])}, "y", classes=[0, 1])
NUMBER = Schema({"a": Numeric(0, 1), "b": Categorical(["u", "v"])}, "y", bounds=(0, 4))
seeds = pytest.mark.filterwarnings(f"ignore::{PrivacyLeakWarning.__module__}.PrivacyLeakWarning")


@pytest.fixture
def many_blocks(monkeypatch):
    """Small blocks of small batches, all of whose state is in files."""
    monkeypatch.setattr(stored, "BLOCK_ROWS", 300)
    monkeypatch.setattr(streams, "BATCH_ROWS", 170)
    monkeypatch.setattr(stored.Scratch, "smallest", 1)


def make_rows(rows=1_000, seed=1):
    rng = np.random.default_rng(seed)
    a, b = rng.random(rows), rng.choice(["u", "v", "w"], rows)
    return pa.table({"a": a, "b": b, "y": ((a > 0.5) ^ (b == "u")).astype(int)})


def stored_engine(table, directory, schema=SCHEMA):
    return encode_stream(stream_of(table, schema), directory)


def make_kept(tmp_path, table=None, schema=SCHEMA):
    kept = tmp_path / "kept"
    encode(make_rows() if table is None else table, schema, kept)
    return kept


def is_left(folder):
    """Return what is in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


# The same models ---------------------------------------------------------------------------------

LEARNT = [
    "tree_four",
    "boosting_delta_four",
    "boosting_number_reach",
    "diffpid3",
    "topdown_four",
    "diprime_forest_four",
    "regression_tree",
    "additive_no_noise",
    "privatree_joint_quantile_usual",
]


@seeds
@pytest.mark.parametrize("fast", [False, True], ids=["numpy", "numba"])
@pytest.mark.parametrize("name", LEARNT)
def test_same_model_as_in_memory(name, fast, many_blocks, monkeypatch, tmp_path):
    case = CASES[name]
    table, schema = make_table(case.table)
    monkeypatch.setattr(_kernels, "compiled", lambda _: fast)
    options = {"schema": schema, "random_state": SEED, **case.options}
    before = case.make(**options).fit(table).to_model().to_json()
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=450)
    (tmp_path / "blocks").mkdir()
    source = Source(tmp_path / "rows.parquet", tmp_path / "blocks")
    assert case.make(**options).fit(source).to_model().to_json() == before
    assert is_left(tmp_path / "blocks") == []


@seeds
def test_every_way_to_a_mapped_table_gives_the_same_model(many_blocks, tmp_path):
    table = make_rows()
    pq.write_table(table, tmp_path / "rows.parquet")
    encode(tmp_path / "rows.parquet", SCHEMA, tmp_path / "kept")
    options = {"epsilon": 1.0, "max_depth": 2}
    expected = DiffPID3Classifier(**options, schema=SCHEMA, random_state=1).fit(table).to_model()
    opened = [
        PrivateTable.from_parquet(tmp_path / "rows.parquet", SCHEMA, Budget(1.0), random_state=1),
        PrivateTable.from_batches(table.to_reader(), SCHEMA, Budget(1.0), random_state=1),
        PrivateTable.from_blocks(tmp_path / "kept", Budget(1.0), schema=SCHEMA, random_state=1),
        PrivateTable.from_blocks(tmp_path / "kept", Budget(1.0), random_state=1),
    ]
    for one in opened:
        with one:
            model = DiffPID3Classifier(**options).fit(one).to_model()
        assert model.predictor.to_dict() == expected.predictor.to_dict()
        with pytest.raises(PrivetError):
            one.root().noisy_counts(0.1)  # it is closed


@pytest.mark.parametrize("schema", [SCHEMA, NUMBER], ids=["classes", "number"])
def test_no_rows_at_all(schema, tmp_path):
    engine = stored_engine(make_rows(0), tmp_path, schema)
    assert engine.rows == 0
    (block,) = blocks_of(engine)
    assert len(block) == 0
    engine.close()
    kept = make_kept(tmp_path, make_rows(0), schema)
    assert open_blocks(kept, schema).rows == 0


@seeds
def test_a_model_of_no_rows(tmp_path):
    pq.write_table(make_rows(0), tmp_path / "rows.parquet")
    model = PrivateTreeClassifier(1.0, schema=SCHEMA, random_state=1)
    one = model.fit(tmp_path / "rows.parquet").to_model().to_json()
    assert model.fit(make_rows(0)).to_model().to_json() == one


@pytest.mark.parametrize("rows", [1, 299, 300, 301, 600, 999])
def test_blocks_are_the_rows_in_their_order(rows, many_blocks, tmp_path):
    table = make_rows(rows)
    engine, known = stored_engine(table, tmp_path), memory_engine(table, None, SCHEMA)
    assert [len(block) for block in blocks_of(engine)][:-1] == [300] * ((rows - 1) // 300)
    for feature in range(2):
        mine, theirs = (
            np.concatenate([block.grid_codes(feature) for block in blocks_of(one)])
            for one in (engine, known)
        )
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    mine = np.concatenate([block.labels for block in blocks_of(engine)])
    np.testing.assert_array_equal(mine, np.concatenate([b.labels for b in blocks_of(known)]))
    engine.close()


# Files -------------------------------------------------------------------------------------------


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder):
    return {stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*") if path.is_file()}


def test_only_their_owner_can_read_files(no_umask, many_blocks, tmp_path):
    engine = stored_engine(make_rows(), tmp_path)
    (place,) = tmp_path.iterdir()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert modes(place) == {0o600}
    engine.close()
    kept = make_kept(tmp_path)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert modes(kept) == {0o600}
    assert is_left(kept) == ["block-000000", "block-000001", "block-000002", "block-000003",
                             "blocks.json"]  # fmt: skip


def test_files_are_removed_at_the_end(tmp_path):
    engine = stored_engine(make_rows(), tmp_path)
    assert len(is_left(tmp_path)) == 1
    engine.close()
    assert is_left(tmp_path) == []
    engine.close()  # once more is harmless


def test_files_are_removed_when_nobody_has_them(tmp_path):
    engine = stored_engine(make_rows(), tmp_path)
    del engine
    gc.collect()
    assert is_left(tmp_path) == []
    table = PrivateTable.from_batches(make_rows(), SCHEMA, Budget(1.0), directory=tmp_path)
    cells = table.root()
    del table
    gc.collect()
    assert len(is_left(tmp_path)) == 1  # the cells still have them
    del cells
    gc.collect()
    assert is_left(tmp_path) == []


def test_files_are_removed_if_the_table_cannot_be_made(tmp_path):
    with pytest.raises(Exception, match="random_state"):
        PrivateTable.from_batches(
            make_rows(), SCHEMA, Budget(1.0), directory=tmp_path, random_state="nonsense"
        )
    assert is_left(tmp_path) == []


def test_files_are_removed_at_the_end_of_the_program(tmp_path):
    run_program(tmp_path, "pass")
    assert is_left(tmp_path) == []


def test_a_child_leaves_its_parents_files_alone(tmp_path):
    run_program(
        tmp_path,
        "child = os.fork()\n"
        "if not child:\n    sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "assert len(os.listdir(sys.argv[1])) == 1",
    )
    assert is_left(tmp_path) == []


PROGRAM = """
import os, sys, pyarrow as pa
from privet import Budget, Categorical, Numeric, PrivateTable, Schema
schema = Schema({"a": Numeric(0, 1), "b": Categorical(["u", "v"])}, "y", classes=[0, 1])
rows = pa.table({"a": [0.5], "b": ["u"], "y": [1]})
table = PrivateTable.from_batches(rows, schema, Budget(1.0), directory=sys.argv[1])
"""


def run_program(folder, rest, **options):
    command = [sys.executable, "-c", PROGRAM + rest, str(folder)]
    return subprocess.run(command, check=True, **options)


def test_leftovers_of_a_killed_process_are_removed_those_of_a_living_one_are_not(tmp_path):
    rest = "print('made', flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", PROGRAM + rest, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"made\n"
        (theirs,) = tmp_path.iterdir()
        stored_engine(make_rows(), tmp_path).close()
        assert is_left(tmp_path) == [theirs.name]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert is_left(tmp_path) == [theirs.name]
    stored_engine(make_rows(), tmp_path).close()
    assert is_left(tmp_path) == []


def test_what_is_not_a_leftover_is_not_touched(tmp_path):
    foreign = tmp_path / f"{stored.PREFIX}foreign"  # a name like ours, and no lock
    foreign.mkdir()
    (foreign / "paper.txt").write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (tmp_path / f"{stored.PREFIX}link").symlink_to(elsewhere)
    linked = tmp_path / f"{stored.PREFIX}linked"  # whose lock is somewhere else
    linked.mkdir()
    (linked / "lock").symlink_to(elsewhere / "lock")
    (tmp_path / f"{stored.PREFIX}file").touch()
    kept = tmp_path / f"{stored.PREFIX}kept"
    encode(make_rows(), SCHEMA, kept)
    (kept / "lock").touch()
    before = sorted(map(str, tmp_path.rglob("*")))
    stored_engine(make_rows(), tmp_path).close()
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    assert open_blocks(kept, SCHEMA).rows == 1_000


def test_directories_of_others_are_not_touched(tmp_path, monkeypatch):
    left = tmp_path / f"{stored.PREFIX}left"
    left.mkdir()
    (left / "lock").touch()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert list(stored.leftovers(tmp_path)) == []
    monkeypatch.setattr(os, "geteuid", lambda: mine)
    assert list(stored.leftovers(tmp_path)) == [left]


@seeds
def test_fits_in_one_directory_do_not_meet(many_blocks, tmp_path):
    tables = [make_rows(seed=seed) for seed in range(4)]

    def learn(table, place):
        model = DiffPID3Classifier(1.0, schema=SCHEMA, max_depth=2, random_state=1)
        return model.fit(place(table)).to_model().to_json()

    expected = [learn(table, lambda table: table) for table in tables]
    found = {}

    def work(number):
        found[number] = learn(tables[number], lambda table: Source(table.to_reader(), tmp_path))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(4)] == expected
    assert is_left(tmp_path) == []


# Disks -------------------------------------------------------------------------------------------

Usage = namedtuple("Usage", "total used free")
FULL = OSError(errno.ENOSPC, "No space left on device")


def test_a_small_disk_is_found_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10, 10, 0))
    with pytest.raises(DataError, match="too little disk space"):
        stored_engine(make_rows(), tmp_path)
    assert is_left(tmp_path) == []


def test_room_for_the_fit_is_looked_at_before_it_begins(many_blocks, tmp_path, monkeypatch):
    kept = make_kept(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10, 10, 9_999))
    with pytest.raises(DataError, match="too little disk space"):
        stored_engine(make_rows().to_reader(), tmp_path)
    with pytest.raises(DataError, match="too little disk space"):
        open_blocks(kept, SCHEMA)
    assert is_left(tmp_path) == ["kept"]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_is_full_while_blocks_are_written(
    number, keep, many_blocks, tmp_path, monkeypatch
):
    class Full:
        def __init__(self, path, *_, **__):
            self.opened = path.open("wb")
            self.full = path.name == "block-000002"

        def write(self, content):
            if self.full:
                raise OSError(number, "about a secret")
            self.opened.write(content)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.opened.close()

    monkeypatch.setattr(stored, "open", Full, raising=False)
    said = "could not be written" if number == errno.EIO else "too little disk space"
    with pytest.raises(DataError, match=said) as caught:
        make_kept(tmp_path) if keep else stored_engine(make_rows(), tmp_path)
    assert "secret" not in str(caught.value)
    assert is_left(tmp_path) == []


@seeds
def test_a_disk_that_is_full_in_the_middle_of_a_fit(many_blocks, tmp_path, monkeypatch):
    ledger, blocks = tmp_path / "ledger", tmp_path / "blocks"
    store = LedgerStore.create(ledger, Budget(3.0), columns=["a", "b", "y"])
    blocks.mkdir()
    left = [5]

    def full(*_):
        left[0] -= 1
        if not left[0]:
            raise FULL

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr(stored, "_allocate", lambda f, size: (full(), os.ftruncate(f, size)))
    model = DiffPID3Classifier(1.0, schema=SCHEMA, max_depth=2, ledger=store)
    with pytest.raises(EngineError, match=r"too little disk space.*stays reserved"):
        model.fit(Source(make_rows().to_reader(), blocks))
    assert is_left(blocks) == []
    assert LedgerStore(ledger).spent == 1  # all that was reserved


@seeds
def test_a_fit_without_budget_reads_no_row(tmp_path):
    store = LedgerStore.create(tmp_path / "ledger", Budget(1.5), columns=["a", "b", "y"])
    model = DiffPID3Classifier(1.0, schema=SCHEMA, max_depth=1, ledger=store)
    read = []

    def batches(before=lambda: None):
        read.append(1)
        before()
        yield from make_rows().to_batches()

    model.fit(Source(batches(), tmp_path))
    assert len(read) == 1
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        model.fit(Source(batches(), tmp_path))
    assert len(read) == 1
    # Who draws while the rows are read was first: they are read in vain, and not published.
    model = DiffPID3Classifier(0.25, schema=SCHEMA, max_depth=1, ledger=store)
    draw = batches(lambda: store.reserve(Budget(0.4), "another", columns=["a"]))
    spent = store.spent
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        model.fit(Source(draw, tmp_path))
    assert len(read) == 2
    assert float(store.spent - spent) == 0.4
    assert is_left(tmp_path) == ["ledger"]


def test_disks_that_cannot_reserve_room(many_blocks, tmp_path, monkeypatch):
    def cannot(*_):
        raise OSError(errno.EOPNOTSUPP, "")

    monkeypatch.setattr(os, "posix_fallocate", cannot)
    array = stored.Scratch(tmp_path)((3, 5), np.int32)
    array[:] = 7
    assert array.sum() == 105
    assert is_left(tmp_path) == []


def test_scratch_is_used_again_when_nobody_has_it(many_blocks, tmp_path):
    scratch = stored.Scratch(tmp_path)
    first, second = scratch((2, 8), np.int32), scratch((16,), np.int32)
    assert not np.shares_memory(first, second)
    first[:], place = 5, first.ctypes.data
    row = first[1]
    del first
    third = scratch((16,), np.float32)
    third[:] = 0
    assert row.tolist() == [5] * 8
    del row
    fourth = scratch((4, 4), np.int32)
    assert fourth.ctypes.data == place
    assert not np.shares_memory(fourth, second)
    assert not np.shares_memory(fourth, third)


@pytest.mark.parametrize("place", ["nowhere", "file"])
def test_no_place_for_blocks(place, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="there is no directory"):
        stored_engine(make_rows(), tmp_path / place)
    with pytest.raises(DataError, match="there is no directory"):
        encode(make_rows(), SCHEMA, tmp_path / place / "kept")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
@pytest.mark.parametrize("keep", [False, True])
def test_an_interrupted_stream_leaves_nothing(error, keep, many_blocks, tmp_path):
    def rows():
        yield make_rows()
        raise error("about a secret")

    expected = DataError if error is ZeroDivisionError else error
    with pytest.raises(expected) as caught:
        make_kept(tmp_path, rows()) if keep else stored_engine(rows(), tmp_path)
    assert error is not ZeroDivisionError or "secret" not in str(caught.value)
    assert is_left(tmp_path) == []


# Kept ones ---------------------------------------------------------------------------------------


def test_kept_blocks_stay(many_blocks, tmp_path):
    kept = make_kept(tmp_path)
    before = {file.name: file.read_bytes() for file in kept.iterdir()}
    for _ in range(2):
        engine = open_blocks(kept)
        assert engine.schema == SCHEMA
        engine.close()
    del engine
    gc.collect()
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == before


@pytest.mark.parametrize("made", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nix")])
def test_blocks_are_not_kept_where_something_is(made, tmp_path):
    made(tmp_path / "kept")
    with pytest.raises(DataError, match="is there already"):
        make_kept(tmp_path)
    assert is_left(tmp_path) == ["kept"]


def test_blocks_are_not_kept_where_something_came_meanwhile(tmp_path):
    def rows():
        yield make_rows()
        (tmp_path / "kept").mkdir()

    with pytest.raises(DataError, match="is there already"):
        make_kept(tmp_path, rows())
    assert is_left(tmp_path) == ["kept"]
    assert is_left(tmp_path / "kept") == []


def test_a_header_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(json, "dumps", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make_kept(tmp_path)
    assert is_left(tmp_path) == []


def test_kept_blocks_of_another_schema(tmp_path):
    kept = make_kept(tmp_path)
    other = Schema({**SCHEMA.features, "a": Numeric(0, 2)}, "y", classes=[0, 1])
    with pytest.raises(SchemaError, match="another schema"):
        PrivateTable.from_blocks(kept, Budget(1.0), schema=other)
    with pytest.raises(SchemaError, match="another schema"):
        DiffPID3Classifier(1.0, schema=other).fit(kept)


def test_kept_blocks_whose_scratch_has_no_place(tmp_path):
    kept = make_kept(tmp_path)
    with pytest.raises(DataError, match="choose another directory"):
        open_blocks(kept, scratch=tmp_path / "nowhere")


@pytest.mark.parametrize("place", [0, 64, 320, 1_000])
def test_a_flipped_byte(place, many_blocks, tmp_path):
    kept = make_kept(tmp_path)
    file = kept / "block-000001"
    content = bytearray(file.read_bytes())
    content[place] ^= 4
    file.write_bytes(content)
    with pytest.raises(DataError, match="missing or damaged"):
        open_blocks(kept)


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: os.truncate(file, 10),
        lambda file: os.truncate(file, 0),
        lambda file: file.write_bytes(file.read_bytes() + bytes(64)),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: (file.unlink(), file.symlink_to("nix")),
        lambda file: (file.unlink(), file.symlink_to(".")),
    ],
)
def test_damaged_blocks(damage, many_blocks, tmp_path):
    kept = make_kept(tmp_path)
    damage(kept / "block-000002")
    with pytest.raises(DataError, match="missing or damaged"):
        open_blocks(kept)


@pytest.mark.parametrize(
    ("schema", "name"), [(SCHEMA, "target"), (SCHEMA, "a"), (NUMBER, "target")]
)
def test_codes_beyond_their_list(schema, name, tmp_path):
    """Whoever can write checksums as well must not make loops look outside of their arrays."""
    kept = make_kept(tmp_path, schema=schema)
    header = json.loads((kept / "blocks.json").read_text())
    encoder = stored.Encoder(schema)
    found = stored._mapped(kept / "block-000000", encoder, 1_000)
    target, *codes = (array.copy() for array in stored._in_order(found))
    if name == "a":
        codes[0][3] = encoder.sizes[0]
    else:
        target[3] = 3
    arrays = [target, *codes]
    content = b"".join(array.tobytes() + bytes(-array.nbytes % 64) for array in arrays)
    (kept / "block-000000").write_bytes(content)
    header["checksums"] = [stored._checksum(arrays)]
    (kept / "blocks.json").write_text(json.dumps(header))
    with pytest.raises(DataError, match="damaged"):
        open_blocks(kept)


def test_another_version(tmp_path):
    kept = make_kept(tmp_path)
    header = json.loads((kept / "blocks.json").read_text())
    for change in ({"version": 2, "schema": "new"}, {"byte_order": "other"}):
        (kept / "blocks.json").write_text(json.dumps({**header, **change}))
        with pytest.raises(DataError, match="another version"):
            open_blocks(kept, SCHEMA)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "1", "[" * 100_000, '{"format": "privet blocks"}', "\ud800"]
)
def test_a_header_that_is_none(text, tmp_path):
    kept = make_kept(tmp_path)
    (kept / "blocks.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(DataError, match="holds no blocks"):
        open_blocks(kept)


def test_hostile_headers(tmp_path):
    kept = make_kept(tmp_path)
    known = (kept / "blocks.json").read_bytes()
    values = [None, True, -1, 0, 10**30, 1e308, "x", [], {}, [None], [-1], [10**12], [1.0], [True]]
    rng = random.Random(18)

    def changed():
        header = json.loads(known)
        place = header
        while True:
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
                place = place[key]
                continue
            if isinstance(place, dict) and rng.random() < 0.3:
                del place[key]
            else:
                place[key] = rng.choice(values)
            return json.dumps(header).encode()

    refused = 0
    for number in range(300):
        content = bytearray(changed() if number % 3 else known)
        if number % 3 == 0:
            for _ in range(rng.randint(1, 4)):
                content[rng.randrange(len(content))] = rng.randrange(256)
        (kept / "blocks.json").write_bytes(content)
        try:
            open_blocks(kept, SCHEMA if rng.random() < 0.5 else None).close()
        except PrivetError:
            refused += 1
    assert refused > 250
