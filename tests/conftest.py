"""Tables and schemas that several rooms test with."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings

from privet.datasets import PATIENTS, make_patients

# The same examples in every run, and no opinion on a slow machine: a test fails for a reason.
settings.register_profile(
    "privet", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
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
