"""
Questions without a tree
========================

A private table answers questions on its own: here how many of 20,000 invented patients there are
by age and class. Every bar has its noise; parts of a table share no record, so that asking all of
them costs once.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from privet import Budget, PrivateTable
from privet.datasets import PATIENTS, make_patients

patients = pd.DataFrame(make_patients(20_000))
table = PrivateTable(patients, None, PATIENTS, Budget(1.0))
by_age = table.root().partition("age")  # one part per bin, and one for what is missing
counts = np.asarray(by_age.noisy_class_counts(0.1))[:-1]
print("left of the budget:", float(table.ledger.left))

# %%
# With epsilon 0.1 the noise of a bar has a standard deviation of about 14 records: hardly
# visible at this scale. Ages that nobody has get a bar of noise, too. That there are none must
# not be seen.
age = PATIENTS.features["age"]
edges = [age.low, *age.edges, age.high]
fig, ax = plt.subplots(figsize=(6, 4))
for k, label in enumerate(PATIENTS.classes):
    ax.stairs(counts[:, k], edges, label=f"readmitted: {label}", fill=True, alpha=0.5)
ax.set(xlabel="age", ylabel="patients, with noise", title="Private counts at epsilon 0.1")
ax.legend()
fig.tight_layout()
plt.show()
