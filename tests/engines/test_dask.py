"""Rows on a Dask cluster: the same models, whoever is lost on the way."""

import itertools
import os
import signal
import time

import numpy as np
import pyarrow.parquet
import pytest

from privet import Budget, Numeric, PrivateTable, PrivateTreeClassifier, Schema
from privet.datasets import STAYS, make_stays
from privet.engines import View, memory_engine, parquet
from privet.engines.dask import DaskBlocks, dask_engine
from privet.errors import DataError, EngineError
from privet.tables import private

from ..golden.seeded import CASES, make_table  # noqa: TID252  # tests have no names of their own
from ..repeated import some_of  # noqa: TID252
from .walk import SCHEMAS, make_rows, walk_through

distributed = pytest.importorskip("distributed")
pytestmark = [
    # One process of a test run starts a cluster, and not each of them.
    pytest.mark.xdist_group("dask"),
    # Seeds are fixed here. The cluster's scheduler is a thread of this process, and what it does
    # about warnings of its own undoes what a test does about ours for a few lines only.
    pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::privet.errors.PublishedCostWarning"),
]

#: One of every kind of learner.
CHOSEN = (
    "topdown",
    "diffpid3",
    "privatree",
    "tree_depth_2",
    "tree_four",
    "boosting_rounds",
    "boosting_from_slopes",
    "regression_tree_sad",
    "boosting_number_depth",
    "diprime_classes_flip",
    "patil_singh_parts",
)
SCHEMA = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=None,
        ) as local,
        distributed.Client(local) as found,
    ):
        yield found


@pytest.fixture
def client(cluster):
    """A cluster whose workers answer: the last one that was killed is noticed, and back."""
    end = time.monotonic() + 60
    while True:
        cluster.wait_for_workers(2, timeout=60)
        alive = cluster.run(os.getpid, on_error="return").values()
        if len(alive) == 2 and all(isinstance(each, int) for each in alive):
            return cluster
        assert time.monotonic() < end, "a worker that was killed did not come back"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The tables of the seeded models, each as a folder of files."""
    root = tmp_path_factory.mktemp("parquet")
    for name in ("two", "four", "number"):
        table, _ = make_table(name)
        (root / name).mkdir()
        for k in range(3):
            part = table.slice(700 * k, 700)
            pyarrow.parquet.write_table(part, root / name / f"{k}.parquet", row_group_size=200)
    return root


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(parquet, "PIECE_ROWS", 250)


def saved(model, path):
    model.save(path)
    return path.read_bytes()


def fit_on(monkeypatch, client, source, case, **options):
    """Fit a case of the catalogue to rows on the cluster instead of the table it is given."""
    engines = []

    def make(table, target, schema):
        assert len(target) == len(table)
        engines.append(dask_engine(source, schema, client=client, **options))
        return engines[-1]

    with monkeypatch.context() as patch:
        patch.setattr(private, "memory_engine", make)
        try:
            model = CASES[case].fit()
        finally:
            for engine in engines:
                engine.close()
    assert len(engines) == 1
    return model


def write(path, rows, seed=0):
    rng = np.random.default_rng(seed)
    table = pyarrow.table({"x": rng.random(rows), "y": rng.integers(0, 2, rows)})
    pyarrow.parquet.write_table(table, path, row_group_size=250)
    return table


@pytest.mark.parametrize(
    ("kind", "gather"),
    some_of(
        itertools.product(SCHEMAS, [True, False]),
        lambda kind, gather: (kind, gather) in {("two", True), ("number", False)},
    ),
)
def test_every_question_has_the_answer_of_plain_counting(client, tmp_path, kind, gather):
    table = make_rows(kind, 150)
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=40)
    engine = dask_engine(tmp_path, SCHEMAS[kind], client=client, gather=gather)
    walk_through(engine, table, SCHEMAS[kind], 0)
    engine.close()


@pytest.mark.parametrize(
    "case",
    some_of(CHOSEN, {"topdown", "tree_depth_2", "boosting_number_depth"}.__contains__),
)
def test_models_are_those_of_memory(client, folder, monkeypatch, tmp_path, case):
    source = folder / CASES[case].table
    found = fit_on(monkeypatch, client, source, case)
    assert saved(found, tmp_path / "found") == saved(CASES[case].fit(), tmp_path / "memory")


@pytest.mark.parametrize(
    "case",
    some_of(["tree_depth_2", "tree_four", "regression_tree_depth"], "tree_depth_2".__eq__),
)
def test_models_are_the_same_if_no_row_leaves_the_cluster(
    client, folder, monkeypatch, tmp_path, case
):
    found = fit_on(monkeypatch, client, folder / CASES[case].table, case, gather=False)
    assert saved(found, tmp_path / "found") == saved(CASES[case].fit(), tmp_path / "memory")


def test_a_dask_dataframe_is_encoded_where_it_is(client, folder, monkeypatch, tmp_path):
    from dask import dataframe

    frame = dataframe.read_parquet(folder / "two")
    assert frame.npartitions == 3
    found = fit_on(monkeypatch, client, frame, "topdown")
    assert saved(found, tmp_path / "found") == saved(CASES["topdown"].fit(), tmp_path / "memory")
    plain = frame.compute()
    shuffled = dataframe.from_pandas(plain, npartitions=4).persist()
    found = fit_on(monkeypatch, client, shuffled, "diffpid3")
    assert saved(found, tmp_path / "found") == saved(CASES["diffpid3"].fit(), tmp_path / "memory")


def kill_at(monkeypatch, client, question, *, inside):
    """Kill a worker at a question: before it is sent, or while it is answered."""
    send, asked = DaskBlocks._send, []

    def kill_itself():
        import os
        import signal

        from privet.engines import _workers

        _workers._answer = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

    def send_and_kill(blocks, messages, **options):
        if len(asked) == question:
            home = messages[0][0]
            if inside:
                client.run(kill_itself, workers=[home])
            else:
                os.kill(client.run(os.getpid, workers=[home])[home], signal.SIGKILL)
        asked.append(messages)
        return send(blocks, messages, **options)

    monkeypatch.setattr(DaskBlocks, "_send", send_and_kill)
    return asked


@pytest.mark.parametrize(
    ("case", "question", "gather", "inside"),
    some_of(
        [
            ("topdown", 0, True, False),
            ("topdown", 6, True, True),
            ("boosting_rounds", 9, True, False),
            ("tree_depth_2", 3, False, True),
        ],
        lambda case, question, gather, inside: inside and not gather,
    ),
)
def test_a_killed_worker_changes_nothing(
    client, folder, monkeypatch, tmp_path, case, question, gather, inside
):
    asked = kill_at(monkeypatch, client, question, inside=inside)
    found = fit_on(monkeypatch, client, folder / CASES[case].table, case, gather=gather)
    assert len(asked) > question + 1
    assert saved(found, tmp_path / "found") == saved(CASES[case].fit(), tmp_path / "memory")


def persons(path):
    """Write rows of persons, whose records lie in all pieces; return the table and its schema."""
    table = pyarrow.table(make_stays(300, most=8, seed=1))
    pyarrow.parquet.write_table(table, path, row_group_size=150)
    return table


def test_persons_span_workers(client, tmp_path):
    table = persons(tmp_path / "stays.parquet")
    view = View.of_bins(STAYS)
    here, there = memory_engine(table, None, STAYS), dask_engine(tmp_path, STAYS, client=client)
    assert there._blocks._count > 3
    expected = here.class_counts(here.root(view)).tolist()
    assert np.sum(expected) == 60 * 300
    assert there.class_counts(there.root(view)).tolist() == expected
    lose_a_worker(client)
    assert there.class_counts(there.root(view)).tolist() == expected
    parts = [engine.parts(view, 4, 11) for engine in (here, there)]
    assert there.class_counts(parts[1]).tolist() == here.class_counts(parts[0]).tolist()
    there.close()


def test_a_killed_worker_changes_no_weights(client, tmp_path, monkeypatch):
    table = persons(tmp_path / "stays.parquet")

    def fitted(given):
        opened = PrivateTable(given, None, None, Budget(1.0), random_state=5)
        return PrivateTreeClassifier(1.0).fit(opened).to_model().to_json()

    expected = fitted(memory_engine(table, None, STAYS))
    asked = kill_at(
        monkeypatch, client, 1, inside=False
    )  # while records are weighed, or soon after
    there = dask_engine(tmp_path, STAYS, client=client)
    assert fitted(there) == expected
    assert len(asked) > 2
    there.close()


def lose_a_worker(client):
    """Make a worker forget everything, as if it were another one."""

    def forget():
        from privet.engines import _workers

        _workers._tables.clear()

    client.run(forget, workers=[next(iter(client.nthreads()))])


def test_only_what_is_missing_is_sent(client, tmp_path, monkeypatch):
    write(tmp_path / "rows.parquet", 1_000)
    engine = dask_engine(tmp_path, SCHEMA, client=client)
    sent, send = [], DaskBlocks._send

    def keep(blocks, messages, **options):
        sent.append(sum(len(message.steps) for _, message in messages))
        return send(blocks, messages, **options)

    monkeypatch.setattr(DaskBlocks, "_send", keep)
    root = engine.root(View.of_bins(SCHEMA))
    first = engine.class_counts(root)
    told, again = sent[-1], engine.class_counts(root)
    assert told > 2 * sent[-1]  # an empty list
    np.testing.assert_array_equal(first, again)
    lose_a_worker(client)
    np.testing.assert_array_equal(first, engine.class_counts(root))
    assert len(sent) == 4  # the last question was asked again
    assert told / 3 < sent[-1] < told * 2 / 3  # of one worker, which is told what it lost
    engine.close()


def test_workers_forget_what_nobody_has(client, tmp_path):
    write(tmp_path / "rows.parquet", 1_000)
    engine = dask_engine(tmp_path, SCHEMA, client=client)
    for _ in range(20):
        root = engine.root(View.of_bins(SCHEMA))
        below = engine.take(root, np.array([0]))
        engine.class_counts(root)
        engine.class_counts(below)

    mine = engine._blocks.engine

    def remembered():
        from privet.engines import _workers

        return [
            (len(block._cells), len(table.known))
            for name, table in _workers._tables.items()
            for block, _ in table.blocks.values()
            if name == mine
        ]

    assert all(
        cells <= 4 and known <= 5
        for found in client.run(remembered).values()
        for cells, known in found
    )
    engine.close()
    assert not any(client.run(remembered).values())


@pytest.mark.parametrize("change", ["other rows", "fewer rows", "no file"])
def test_a_source_that_changes_stops_the_fit(client, tmp_path, change):
    path = tmp_path / "rows.parquet"
    write(path, 1_000)
    engine = dask_engine(path, SCHEMA, client=client)
    table = PrivateTable(engine, None, None, Budget(2.0), random_state=1)
    cells = table.root()
    cells.noisy_counts(0.5)
    if change == "no file":
        path.unlink()
    else:
        write(path, 1_000 if change == "other rows" else 600, seed=1)
    lose_a_worker(client)
    with pytest.raises(DataError, match=r"changed|any more"):
        cells.noisy_counts(0.5)
    assert float(table.ledger.left) == 1.0  # what was asked is paid for
    engine.close()


def test_a_question_that_fails_is_paid_for_and_released_to_nobody(client, tmp_path):
    write(tmp_path / "rows.parquet", 1_000)
    engine = dask_engine(tmp_path, SCHEMA, client=client)
    table = PrivateTable(engine, None, None, Budget(2.0), random_state=1)

    def fail():
        from privet.engines import _workers

        _workers._kept = _workers._answer

        def always(*_):
            raise ValueError("the row of Mrs Miller, aged 63")

        _workers._answer = always

    def mend():
        from privet.engines import _workers

        _workers._answer = _workers._kept

    client.run(fail)
    try:
        with pytest.raises(EngineError, match="stands in the ledger") as caught:
            table.root().noisy_counts(0.5)
    finally:
        client.run(mend)
    assert "ValueError" in str(caught.value)
    assert "Miller" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert float(table.ledger.left) == 1.5
    table.root().noisy_counts(0.5)  # the cluster is well again
    engine.close()


def test_a_reader_that_fails_quotes_nothing(client, tmp_path):
    import pandas
    from dask import dataframe

    frame = dataframe.from_pandas(pandas.DataFrame({"x": [0.5, 0.25], "y": [0, 1]}), npartitions=1)

    def read(part):
        raise ValueError("the row of Mrs Miller, aged 63")

    with pytest.raises(EngineError, match="nothing was spent") as caught:
        dask_engine(frame.map_partitions(read, meta=frame._meta), SCHEMA, client=client)
    assert "Miller" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "address", ["tcp://192.0.2.7:8786", "192.0.2.7:8786", "scheduler.example:8786", "ws://a:1"]
)
def test_an_open_scheduler_is_refused(address, tmp_path):
    with pytest.raises(EngineError, match="is open"):
        dask_engine(tmp_path, SCHEMA, client=address)


def test_a_client_of_an_open_scheduler_is_refused(client, tmp_path, monkeypatch):
    info = client.scheduler_info(n_workers=-1)
    known = {**info, "address": "tcp://192.0.2.7:8786"}
    monkeypatch.setattr(type(client), "scheduler_info", lambda *_, **__: known)
    write(tmp_path / "rows.parquet", 10)
    with pytest.raises(EngineError, match="is open"):
        dask_engine(tmp_path, SCHEMA, client=client)
    dask_engine(tmp_path, SCHEMA, client=client, insecure=True).close()


def test_another_version_is_refused(client, tmp_path, monkeypatch):
    write(tmp_path / "rows.parquet", 1_000)
    engine = dask_engine(tmp_path, SCHEMA, client=client)

    def pretend(version):
        def change():
            import privet
            from privet.engines import _workers

            privet.__version__ = _workers.__version__ = version

        return change

    import privet

    client.run(pretend("0.0.1"))
    try:
        with pytest.raises(EngineError, match=r"version 0\.0\.1 of privet"):
            dask_engine(tmp_path, SCHEMA, client=client)
        # One that joins later says so itself.
        with pytest.raises(EngineError, match=r"version 0\.0\.1 of privet"):
            engine.class_counts(engine.root(View.of_bins(SCHEMA)))
    finally:
        client.run(pretend(privet.__version__))
    engine.close()


def test_a_worker_without_the_library_is_refused(client, tmp_path):
    write(tmp_path / "rows.parquet", 1_000)

    def hide():
        import sys

        sys.hidden = sys.modules["privet"]
        sys.modules["privet"] = None

    def show():
        import sys

        sys.modules["privet"] = sys.hidden

    dask_engine(tmp_path, SCHEMA, client=client).close()  # which has imported it
    one = [next(iter(client.nthreads()))]
    client.run(hide, workers=one)
    try:
        with pytest.raises(EngineError, match="a worker lacks privet: install version"):
            dask_engine(tmp_path, SCHEMA, client=client)
    finally:
        client.run(show, workers=one)
    dask_engine(tmp_path, SCHEMA, client=client).close()


def test_files_that_differ_are_refused(client, tmp_path):
    with pytest.raises(DataError, match="no Parquet"):
        dask_engine(tmp_path, SCHEMA, client=client)
    table = write(tmp_path / "1.parquet", 100)
    other = table.set_column(0, "x", table["x"].cast("string"))
    pyarrow.parquet.write_table(other, tmp_path / "2.parquet")
    with pytest.raises(DataError, match="different types"):
        dask_engine(str(tmp_path / "*.parquet"), SCHEMA, client=client)
    pyarrow.parquet.write_table(table.drop_columns(["y"]), tmp_path / "2.parquet")
    with pytest.raises(DataError, match="has no column 'y'"):
        dask_engine(tmp_path, SCHEMA, client=client)
    (tmp_path / "2.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match="no Parquet file"):
        dask_engine(tmp_path, SCHEMA, client=client)
    with pytest.raises(DataError, match="named twice"):
        dask_engine([tmp_path / "1.parquet"] * 2, SCHEMA, client=client)
    with pytest.raises(DataError, match="dask dataframe"):
        dask_engine(42, SCHEMA, client=client)


def test_a_cluster_of_ones_own_is_encrypted_and_ends_with_the_engine(tmp_path):
    table = write(tmp_path / "rows.parquet", 1_000)
    engine = dask_engine(tmp_path, SCHEMA)
    blocks = engine._blocks
    assert blocks._client.scheduler.address.startswith("tls://127.0.0.1:")
    expected = memory_engine(table, None, SCHEMA)
    view = View.of_bins(SCHEMA)
    np.testing.assert_array_equal(
        engine.class_counts(engine.root(view)), expected.class_counts(expected.root(view))
    )
    engine.close()
    assert blocks._client.status == "closed"
