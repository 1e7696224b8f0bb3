"""
What epsilon promises
=====================

Somebody attacks a published model: was this record in the table? A good attack finds many who
were, and wrongly accuses few who were not. Epsilon limits how good the best attack can be.
"""

import matplotlib.pyplot as plt
import numpy as np

accused = np.linspace(0, 1, 400)
fig, ax = plt.subplots(figsize=(6, 5))
for epsilon in (5, 3, 1, 0.5, 0.1):
    found = np.minimum(np.exp(epsilon) * accused, 1 - np.exp(-epsilon) * (1 - accused))
    ax.plot(100 * accused, 100 * found, label=f"epsilon {epsilon}")
ax.plot([0, 100], [0, 100], "k:", label="guessing")
ax.set(
    xlabel="wrongly accused, per cent of those not in the table",
    ylabel="found, per cent of those in the table",
    title="The best attack that the promise allows",
)
ax.legend(loc="lower right")
fig.tight_layout()
plt.show()
