"""Noise, mechanisms, budgets and books. Knows nothing of tables or trees."""

from privet.privacy.budget import (
    ADJACENCY,
    REPLACE_ONE_FACTOR,
    Budget,
    Cost,
    as_float,
    exact,
    zcdp_epsilon,
)
from privet.privacy.coins import Coins
from privet.privacy.entries import (
    EXPONENTIAL_KINDS,
    Entry,
    MechanismFacts,
    MechanismKind,
    Place,
    Question,
    QuestionKind,
)
from privet.privacy.ledger import Ledger, LedgerCells
from privet.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Exponential,
    GridExponential,
    LaplaceShare,
    NoisyMaxShare,
    PermuteAndFlip,
    Released,
    ReportNoisyMax,
    TopOf,
    WholeTree,
    noise_for,
    spread_of,
)
from privet.privacy.noise import SEEDED, Noise, SecureNoise, SeededNoise, noise_of
from privet.privacy.polya import SMALLEST_RATE, draw_polya, draw_shares
from privet.privacy.quantiles import (
    JointQuantiles,
    Quantiles,
    grid_counts,
    private_quantiles,
)
from privet.privacy.store import Books, LedgerStore, Reservation, Withdrawal
from privet.privacy.versions import read_entry
from privet.privacy.words import mechanism_words, place_words, question_words

__all__ = [
    "ADJACENCY",
    "EXPONENTIAL_KINDS",
    "REPLACE_ONE_FACTOR",
    "SEEDED",
    "SMALLEST_RATE",
    "Books",
    "Budget",
    "Coins",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Entry",
    "Exact",
    "Exponential",
    "GridExponential",
    "JointQuantiles",
    "LaplaceShare",
    "Ledger",
    "LedgerCells",
    "LedgerStore",
    "MechanismFacts",
    "MechanismKind",
    "Noise",
    "NoisyMaxShare",
    "PermuteAndFlip",
    "Place",
    "Quantiles",
    "Question",
    "QuestionKind",
    "Released",
    "ReportNoisyMax",
    "Reservation",
    "SecureNoise",
    "SeededNoise",
    "TopOf",
    "WholeTree",
    "Withdrawal",
    "as_float",
    "draw_polya",
    "draw_shares",
    "exact",
    "grid_counts",
    "mechanism_words",
    "noise_for",
    "noise_of",
    "place_words",
    "private_quantiles",
    "question_words",
    "read_entry",
    "spread_of",
    "zcdp_epsilon",
]
