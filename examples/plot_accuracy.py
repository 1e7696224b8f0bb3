"""
Accuracy and epsilon
====================

The same invented patients, with smaller and larger epsilons: a private tree against the larger
class and against a tree without privacy. More rows would move the curve to the left, since rows
times epsilon is what counts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from privet import PrivateTreeClassifier
from privet.datasets import PATIENTS, make_patients

train, test = pd.DataFrame(make_patients(10_000)), pd.DataFrame(make_patients(10_000, seed=1))
truth = test["readmitted"]
epsilons = [0.01, 0.03, 0.1, 0.3, 1.0]

# %%
# Five fits at each epsilon. On a table that is secret this would cost five times as much; these
# patients are invented.
scores = np.array(
    [
        [
            np.mean(PrivateTreeClassifier(e, PATIENTS).fit(train).predict(test) == truth)
            for _ in range(5)
        ]
        for e in epsilons
    ]
)
coded, coded_test = (pd.get_dummies(rows.drop(columns="readmitted")) for rows in (train, test))
open_tree = DecisionTreeClassifier(max_depth=6).fit(coded, train["readmitted"])
without = np.mean(open_tree.predict(coded_test) == truth)

# %%
# Dots are single fits, the line is their mean.
fig, ax = plt.subplots(figsize=(6, 4))
ax.semilogx(epsilons, scores, "C0.", alpha=0.5)
ax.semilogx(epsilons, scores.mean(axis=1), "C0-", label="private tree")
ax.axhline(without, color="C1", label="scikit-learn's tree, not private")
ax.axhline(np.mean(truth == "no"), color="k", linestyle=":", label="always the larger class")
ax.set(xlabel="epsilon", ylabel="accuracy on further patients", title="10,000 invented patients")
ax.legend(loc="lower right")
fig.tight_layout()
plt.show()
