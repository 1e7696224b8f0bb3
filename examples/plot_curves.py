"""
One curve per feature
=====================

An additive model says what every feature does: its prediction is a sum of curves. Here from the
breast cancer table that comes with scikit-learn, 569 records, at epsilon 1.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from privet import Numeric, PrivateAdditiveClassifier, Schema

table = load_breast_cancer(as_frame=True)
schema = Schema(
    {
        "mean radius": Numeric(0, 40),
        "mean texture": Numeric(0, 50),
        "worst smoothness": Numeric(0, 0.3),
        "worst concave points": Numeric(0, 0.4),
    },
    target="target",
    classes=[0, 1],  # malignant, benign
    table="tumours",
)
model = PrivateAdditiveClassifier(epsilon=1.0, schema=schema, delta=1e-6).fit(table.frame)

# %%
# Above zero a value speaks for a benign tumour, below zero against it. The band is two standard
# deviations of the noise that was added; it says nothing about how few records there are.
model.plot()
plt.show()
