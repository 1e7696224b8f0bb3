"""Tables, schemas and the command, which several rooms test with."""

import math
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings

from privet.cli import main
from privet.datasets import PATIENTS, make_patients

# The same examples in every run, and no opinion on a slow machine: a test fails for a reason.
settings.register_profile(
    "privet",
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("privet")


@pytest.fixture(scope="session")
def patients() -> pa.Table:
    """Invented patients, target included."""
    return pa.table(make_patients(6_000, seed=3))


@pytest.fixture(scope="session")
def patient_schema():
    return PATIENTS


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(20_261_115)


@pytest.fixture
def call_privet(monkeypatch, capsys):
    """Run ``privet`` with arguments in this process: exit code, output, error output."""

    def call_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["privet", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return caught.value.code or 0, captured.out, captured.err

    monkeypatch.setattr("warnings.showwarning", None)
    # Lines of progress come by the clock, as while loops are compiled: no test compares them.
    monkeypatch.setattr("privet.cli._terminal._SECONDS", math.inf)
    return call_main
