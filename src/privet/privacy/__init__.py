"""Noise, mechanisms, budgets and books. Knows nothing of tables or trees."""

from privet.privacy.budget import ADJACENCY, REPLACE_ONE_FACTOR, Budget, Cost, exact, zcdp_epsilon
from privet.privacy.ledger import Entry, Ledger, Scopes
from privet.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Exponential,
    GridExponential,
    JointQuantiles,
    PermuteAndFlip,
    Quantiles,
    Released,
    TopOf,
    WholeTree,
    noise_for,
    spread_of,
)
from privet.privacy.noise import Noise, SecureNoise, SeededNoise, noise_of
from privet.privacy.store import Draw, LedgerStore, Reservation

__all__ = [
    "ADJACENCY",
    "REPLACE_ONE_FACTOR",
    "Budget",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Draw",
    "Entry",
    "Exact",
    "Exponential",
    "GridExponential",
    "JointQuantiles",
    "Ledger",
    "LedgerStore",
    "Noise",
    "PermuteAndFlip",
    "Quantiles",
    "Released",
    "Reservation",
    "Scopes",
    "SecureNoise",
    "SeededNoise",
    "TopOf",
    "WholeTree",
    "exact",
    "noise_for",
    "noise_of",
    "spread_of",
    "zcdp_epsilon",
]
