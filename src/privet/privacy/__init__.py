"""Noise, mechanisms, budgets and books. Knows nothing of tables or trees."""

from privet.privacy.blind_choice import (
    MOST_OPTIONS,
    Ballot,
    batches,
    deal,
    openings,
    winners,
)
from privet.privacy.budget import ADJACENCY, REPLACE_ONE_FACTOR, Budget, Cost, exact, zcdp_epsilon
from privet.privacy.coins import Coins
from privet.privacy.ledger import Entry, Ledger, Scopes
from privet.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Exponential,
    GridExponential,
    JointQuantiles,
    LaplaceShare,
    NoisyMaxShare,
    PermuteAndFlip,
    Quantiles,
    Released,
    ReportNoisyMax,
    TopOf,
    WholeTree,
    noise_for,
    spread_of,
)
from privet.privacy.noise import Noise, SecureNoise, SeededNoise, noise_of
from privet.privacy.secure_sum import Seat, open_sum
from privet.privacy.store import Draw, LedgerStore, Reservation

__all__ = [
    "ADJACENCY",
    "MOST_OPTIONS",
    "REPLACE_ONE_FACTOR",
    "Ballot",
    "Budget",
    "Coins",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Draw",
    "Entry",
    "Exact",
    "Exponential",
    "GridExponential",
    "JointQuantiles",
    "LaplaceShare",
    "Ledger",
    "LedgerStore",
    "Noise",
    "NoisyMaxShare",
    "PermuteAndFlip",
    "Quantiles",
    "Released",
    "ReportNoisyMax",
    "Reservation",
    "Scopes",
    "Seat",
    "SecureNoise",
    "SeededNoise",
    "TopOf",
    "WholeTree",
    "batches",
    "deal",
    "exact",
    "noise_for",
    "noise_of",
    "open_sum",
    "openings",
    "spread_of",
    "winners",
    "zcdp_epsilon",
]
