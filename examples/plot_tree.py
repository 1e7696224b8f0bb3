"""
A tree, what it goes by, and what it cost
=========================================

One private tree from the breast cancer table that comes with scikit-learn: 569 records, epsilon 1,
a fifth of the records set aside for a test score. All pictures are drawn from what is published, so
they cost nothing.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from privet import Numeric, PrivateTreeClassifier, Schema

table = load_breast_cancer(as_frame=True).frame
table["diagnosis"] = table["target"].map({0: "malignant", 1: "benign"})
schema = Schema(
    {
        "worst radius": Numeric(0, 50),
        "worst texture": Numeric(0, 60),
        "worst concave points": Numeric(0, 0.4),
    },
    target="diagnosis",
    classes=["benign", "malignant"],
    table="tumours",
)
model = PrivateTreeClassifier(epsilon=1.0, schema=schema, test_share=0.2).fit(table)
print(model.evaluation_.accuracy)

# %%
# The tree. Dashes around a leaf say that its counts are no more than noise.
model.plot()
plt.show()

# %%
# How much the model's answers differ by each feature.
model.plot("importances")
plt.show()

# %%
# Where epsilon went: the rows add up to the total on the card.
model.plot("budget")
plt.show()
