"""Rows in Spark: the same models, whoever is lost on the way. Run with ``make spark``."""

import os
import signal
import sys

import numpy as np
import pyarrow.parquet
import pytest

from privet import Numeric, Schema
from privet.datasets import STAYS, make_stays
from privet.engines import View, memory_engine
from privet.engines.spark import SparkBlocks, spark_engine
from privet.errors import ColumnTypeError, DataError, EngineError
from privet.tables import private

from ..golden.seeded import CASES, make_table  # noqa: TID252  # tests have no names of their own
from .walk import SCHEMAS, make_rows, walk_through

pytestmark = [
    pytest.mark.spark,
    # pyspark's own: it has not caught up with pandas and pyarrow.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SCHEMA = Schema({"x": Numeric(0, 1)}, "y", classes=[0, 1])


@pytest.fixture(scope="module")
def session():
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    found = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    yield found
    found.stop()


@pytest.fixture(scope="module")
def frames(session, tmp_path_factory):
    """The tables of the seeded models."""
    root = tmp_path_factory.mktemp("parquet")
    found = {}
    for name in ("two", "number"):
        for k in range(3):
            part = make_table(name)[0].slice(700 * k, 700)
            (root / name).mkdir(exist_ok=True)
            pyarrow.parquet.write_table(part, root / name / f"{k}.parquet")
        found[name] = session.read.parquet(str(root / name))
    return found


def kill_processes(context):
    """Kill the Python processes that would run the next tasks."""
    for pid in set(context.parallelize([0, 0], 2).map(lambda _: os.getpid()).collect()):
        os.kill(pid, signal.SIGKILL)


def saved(model, path):
    model.save(path)
    return path.read_bytes()


def fit_on(monkeypatch, frame, case, folder):
    def make(table, target, schema):
        engine = spark_engine(frame, schema, folder=folder)
        assert list(folder.iterdir())
        return engine

    with monkeypatch.context() as patch:
        patch.setattr(private, "memory_engine", make)
        model = CASES[case].fit()
    assert not list(folder.iterdir())  # the fit ends its table
    return model


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_question_has_the_answer_of_plain_counting(session, tmp_path, kind):
    table = make_rows(kind, 150)
    for k in range(3):
        pyarrow.parquet.write_table(table.slice(50 * k, 50), tmp_path / f"{k}.parquet")
    frame = session.read.parquet(str(tmp_path))
    engine = spark_engine(frame, SCHEMAS[kind], gather=kind != "two")
    walk_through(engine, table, SCHEMAS[kind], 0)
    engine.close()


@pytest.mark.parametrize(
    "case", ["topdown", "diffpid3", "tree_depth_2", "boosting_from_slopes", "boosting_number_depth"]
)
def test_models_are_those_of_memory(frames, monkeypatch, tmp_path, case):
    (tmp_path / "blocks").mkdir()
    found = fit_on(monkeypatch, frames[CASES[case].table], case, tmp_path / "blocks")
    assert saved(found, tmp_path / "found") == saved(CASES[case].fit(), tmp_path / "memory")


def test_persons_come_together(session, tmp_path):
    table = pyarrow.table(make_stays(300, most=8, seed=1))
    pyarrow.parquet.write_table(table, tmp_path / "stays.parquet", row_group_size=150)
    frame = session.read.parquet(str(tmp_path / "stays.parquet")).repartition(3)
    view = View.of_bins(STAYS)
    here, there = memory_engine(table, None, STAYS), spark_engine(frame, STAYS)
    for make in (lambda e: e.root(view), lambda e: e.parts(view, 4, 11)):
        assert there.class_counts(make(there)).tolist() == here.class_counts(make(here)).tolist()
    there.close()
    with pytest.raises(ColumnTypeError, match="make it text or whole numbers"):
        spark_engine(frame.withColumn("patient_id", frame.creatinine), STAYS)


def test_killed_processes_and_lost_files_change_nothing(frames, monkeypatch, tmp_path):
    folder = tmp_path / "blocks"
    folder.mkdir()
    send, asked = SparkBlocks._send, []

    def send_and_harm(blocks, messages, **options):
        asked.append(messages)
        if len(asked) in (3, 7):
            kill_processes(blocks._context)
        if len(asked) in (5, 7):
            (inside,) = folder.iterdir()
            (inside / "1").unlink(missing_ok=True)
        return send(blocks, messages, **options)

    monkeypatch.setattr(SparkBlocks, "_send", send_and_harm)
    found = fit_on(monkeypatch, frames["two"], "topdown", folder)
    assert saved(found, tmp_path / "found") == saved(CASES["topdown"].fit(), tmp_path / "memory")
    assert len(asked) > 8


def test_rows_that_change_stop_the_fit(session, tmp_path):
    from pyspark.sql import functions

    source = tmp_path / "rows"
    session.range(1000).select(
        (functions.col("id") / 1000).alias("x"), (functions.col("id") % 2).alias("y")
    ).write.parquet(str(source))
    seed = tmp_path / "seed"
    seed.write_text("0")

    def shift(batches):
        more = float(seed.read_text())
        for batch in batches:
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.compute.add(batch["x"], more), batch["y"]], names=["x", "y"]
            )

    frame = session.read.parquet(str(source)).mapInArrow(shift, "x double, y long")
    engine = spark_engine(frame, SCHEMA, folder=tmp_path / "blocks")
    root = engine.root(View.of_bins(SCHEMA))
    engine.class_counts(root)
    seed.write_text("0.25")
    (inside,) = (tmp_path / "blocks").iterdir()
    for file in inside.iterdir():
        file.unlink()
    kill_processes(session.sparkContext)  # which have mapped the files
    with pytest.raises(DataError, match="changed under the fit"):
        engine.class_counts(root)
    engine.close()


def test_a_reader_that_fails_quotes_nothing(session, tmp_path):
    def read(batches):
        raise ValueError("the row of Mrs Miller, aged 63")

    frame = session.range(10).mapInArrow(read, "x double, y long")
    with pytest.raises(EngineError, match="nothing was spent") as caught:
        spark_engine(frame, SCHEMA, folder=tmp_path)
    assert "Miller" not in str(caught.value)
    assert caught.value.__context__ is None


def test_no_rows_are_a_table_too(session, tmp_path):
    frame = session.createDataFrame([], "x double, y long")
    engine = spark_engine(frame, SCHEMA, folder=tmp_path)
    assert engine.rows == 0
    assert not engine.class_counts(engine.root(View.of_bins(SCHEMA))).any()
    engine.close()


def test_an_open_cluster_is_refused(session, tmp_path, monkeypatch):
    monkeypatch.setattr(session.sparkContext, "master", "spark://192.0.2.7:7077")
    frame = session.createDataFrame([(0.5, 1)], "x double, y long")
    with pytest.raises(EngineError, match="is open"):
        spark_engine(frame, SCHEMA, folder=tmp_path)


def test_columns_are_checked(session, tmp_path):
    frame = session.createDataFrame([(0.5, 1)], "x double, z long")
    with pytest.raises(DataError, match="no column 'y'"):
        spark_engine(frame, SCHEMA, folder=tmp_path)
    with pytest.raises(EngineError, match="a dataframe of pyspark"):
        spark_engine(memory_engine, SCHEMA, folder=tmp_path)
    assert np.array(list(tmp_path.iterdir())).size == 0
