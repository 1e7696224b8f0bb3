"""Synthetic tables with a known structure, for examples, demonstrations and tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.schema import Categorical, Numeric, Schema

PATIENTS = Schema(
    {
        "age": Numeric(0, 100, edges=[30, 50, 65, 80]),
        "sex": Categorical(["female", "male"]),
        "admission": Categorical(["planned", "emergency", "transfer"]),
        "ward": Categorical(["medicine", "surgery", "cardiology", "neurology"]),
        "days_in_hospital": Numeric(0, 30, edges=[2, 4, 7, 14]),
        "medications": Numeric(0, 40, edges=[5, 10, 15, 20]),
        "previous_stays": Numeric(0, 10, edges=[1, 2, 4]),
        "diabetes": Categorical(["no", "yes"]),
        "systolic_pressure": Numeric(80, 220, edges=[120, 140, 160]),
        "creatinine": Numeric(0.2, 8.0, edges=[0.9, 1.3, 2.0, 4.0]),
    },
    target="readmitted",
    classes=("no", "yes"),
    table="synthetic patients",
)


def make_patients(rows: int = 50_000, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Make a table of invented hospital patients, as columns; its schema is ``PATIENTS``.

    The structure is known. The chance of coming back within a month is, for patients with

    * two or more previous stays: 0.85 after an emergency, else 0.65;
    * fewer previous stays and creatinine of 1.3 or more: 0.75 from the age of 65 on, else 0.30;
    * none of these: 0.08.

    Everything else is noise that is correlated with age and with the number of stays, as it is in
    real tables. One value in fifty of ``creatinine`` and ``systolic_pressure`` is missing.
    """
    generator = np.random.default_rng(seed)
    age = np.clip(generator.normal(62, 18, rows), 18, 99).round()
    frailty = generator.beta(2, 4, rows) + (age - 60) / 120
    stays = generator.poisson(np.clip(1.6 * frailty, 0.05, None))
    diabetes = generator.random(rows) < 0.1 + 0.3 * np.clip(frailty, 0, 1)
    admission = generator.choice(3, rows, p=[0.45, 0.45, 0.10])
    creatinine = np.exp(generator.normal(-0.05 + 0.35 * frailty + 0.15 * diabetes, 0.35))
    pressure = generator.normal(125 + 25 * frailty, 16)
    days = 1 + generator.poisson(3 + 4 * np.clip(frailty, 0, None) + 1.5 * (admission == 1))
    medications = 2 + generator.poisson(np.clip(6 + 8 * frailty + 4 * diabetes, 1, None))
    chance = np.where(
        stays >= 2,
        np.where(admission == 1, 0.85, 0.65),
        np.where(creatinine >= 1.3, np.where(age >= 65, 0.75, 0.30), 0.08),
    )
    readmitted = generator.random(rows) < chance
    creatinine = np.round(creatinine, 2)
    creatinine[generator.random(rows) < 0.02] = np.nan
    pressure = np.round(pressure)
    pressure[generator.random(rows) < 0.02] = np.nan
    return {
        "age": age,
        "sex": np.where(generator.random(rows) < 0.5, "female", "male"),
        "admission": np.array(["planned", "emergency", "transfer"])[admission],
        "ward": np.array(["medicine", "surgery", "cardiology", "neurology"])[
            generator.integers(0, 4, rows)
        ],
        "days_in_hospital": days.astype(np.float64),
        "medications": medications.astype(np.float64),
        "previous_stays": stays.astype(np.float64),
        "diabetes": np.where(diabetes, "yes", "no"),
        "systolic_pressure": pressure,
        "creatinine": creatinine,
        "readmitted": np.where(readmitted, "yes", "no"),
    }
