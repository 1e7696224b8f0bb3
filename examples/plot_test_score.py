"""
A test score with an interval
=============================

``test_share`` sets records aside before anything is asked and counts, with noise, how often the
model is right about them. The interval covers both the noise and the luck of having these
records. Here it can be compared with the truth, because the patients are invented and there are
as many as we like.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from privet import PrivateTreeClassifier
from privet.datasets import PATIENTS, make_patients

many = pd.DataFrame(make_patients(100_000, seed=1))
rows = [1_000, 2_000, 5_000, 10_000, 20_000]
scores, truths = [], []
for n in rows:
    model = PrivateTreeClassifier(1.0, PATIENTS, test_share=0.2, n_rows=n)
    model.fit(pd.DataFrame(make_patients(n)))
    scores.append(model.evaluation_.accuracy)
    truths.append(np.mean(model.predict(many) == many["readmitted"]))

# %%
# Bars are what the card says, crosses what is true. Of twenty such bars about one may miss its
# cross.
fig, ax = plt.subplots(figsize=(6, 4))
middle = [score.value for score in scores]
ax.errorbar(
    rows,
    middle,
    yerr=[
        [score.value - score.low for score in scores],
        [score.high - score.value for score in scores],
    ],
    fmt="o",
    capsize=4,
    label="private score, 95 % interval",
)
ax.plot(rows, truths, "kx", label="truth, on 100,000 further patients")
ax.set(xscale="log", xlabel="patients in the table", ylabel="accuracy", title="Epsilon 1")
ax.legend()
fig.tight_layout()
plt.show()
