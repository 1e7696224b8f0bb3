"""What the docstrings of estimators have in common, written once.

A line ``<name>`` of an estimator's docstring stands for the text of that name. The section
*Privacy*, which numpydoc does not know and warns of, becomes its *Notes*.
"""

from __future__ import annotations

import re

TEXTS = {
    "epsilon": """
epsilon : float, default=1.0
    The privacy budget of one fit. ``inf`` switches the noise off; the model is then marked.
""",
    "delta": """
delta : float, optional
    With it the guarantee is (epsilon, delta), and the same epsilon buys more. Choose it far
    below one over the number of rows. None: pure epsilon.
""",
    "schema": """
schema : Schema
    What is public about the table. If None, it is drafted from the data, which leaks: the fit
    warns and the model is marked as not private.
""",
    "schema with bounds": """
schema : Schema
    What is public about the table, with ``bounds`` of the target. If None, it is drafted from
    the data, which leaks: the fit warns and the model is marked as not private.
""",
    "merge_tests": """
merge_tests : bool, default=True
    Whether tests that divide the records alike share their work. False makes the running time
    depend less on the data, and longer.
""",
    "ledger": """
ledger : path or LedgerStore, optional
    The table's ledger file, from which the fit draws.
""",
    "random_state": """
random_state : int, RandomState or None, default=None
    None: cryptographic noise. Anything else is for tests and experiments: the fit can be
    repeated, warns, and its model is marked as not private.
""",
    "test_share": """
test_share : float, optional
    The part of the records, between 0 and 1, that a hash sets aside before anything is asked: the
    model is learnt from the others, and these say how well it predicts (``evaluation_``). They are
    other records, so that the score needs no further epsilon; it costs rows. None: no score.
""",
    "test_by": """
test_by : str, optional
    A feature by whose values (a number: bins) the score is told for groups of records, too.
""",
    "verbose": """
verbose : bool, default=False
    Whether to say on standard error, about once a second, what is being asked.
""",
    "class_weight": """
class_weight : mapping of class to float, optional
    Public weights, declared and not counted in the data, by which the published probabilities are
    multiplied: mistakes on a class of weight 5 count five times. Costs nothing. Classes that are
    not named have weight 1; a leaf without probabilities keeps its label.
""",
    "tree_": """
tree_ : Tree
    The published tree.
""",
    "classes_": """
classes_ : ndarray
    The schema's classes.
""",
    "schema_": """
schema_ : Schema
    The schema in use.
""",
    "privacy_": """
privacy_ : PrivacyCard
    What was spent on what, and whether the guarantee holds.
""",
    "evaluation_": """
evaluation_ : Evaluation
    With ``test_share``: how well the model predicts the records that were set aside.
""",
}


def filled(text: str) -> str:
    """Return a docstring with the common texts where their names are; others stay as they are."""

    def insert(found: re.Match[str]) -> str:
        lines = TEXTS.get(found["name"], f"<{found['name']}>").strip("\n").split("\n")
        return "\n".join(found["indent"] + line for line in lines)

    text = re.sub(r"^(?P<indent> *)<(?P<name>[a-z_ ]+)>$", insert, text, flags=re.MULTILINE)
    heading = r"^(?P<indent> *)Privacy\n *-{7}\n *"
    return re.sub(
        heading, r"\g<indent>Notes\n\g<indent>-----\n\g<indent>**Privacy.** ", text, flags=re.M
    )
