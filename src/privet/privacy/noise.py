"""Where randomness comes from.

:class:`SecureNoise` is the only source for private answers: exact integer samplers on the operating
system's cryptographic generator. Laplace noise is OpenDP's. Gaussian noise and selections, of which
learners need tens of thousands, are our own (``gaussians``, ``stretches``, ``flips``). OpenDP has
no seed, by design, so :class:`SeededNoise` reimplements the same laws on numpy's generator, for
tests and experiments only; it is fast and repeatable, hence worthless as protection, and whatever
uses it is marked as not private.

All values are integers. A scale of zero means no noise (an infinite epsilon).
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privet.privacy.flips import permute_and_flip as draw_flip
from privet.privacy.gaussians import LARGEST_SCALE, draw_gaussians
from privet.privacy.stretches import draw_stretch, draw_stretches

#: How the reason begins why a model with repeatable noise is not private.
SEEDED = "random_state is fixed"

Integers = NDArray[np.int64]
T = TypeVar("T")

# OpenDP's samplers take about 10 us per draw and run outside the interpreter lock.
_THREADS = os.cpu_count() or 1
_PER_THREAD = 4_096


@runtime_checkable
class Noise(Protocol):
    """A source of randomness for mechanisms: a few laws to draw from.

    The audit has one more, which follows every outcome of every law (``privet.audit.exact``).
    """

    @property
    def private(self) -> bool:
        """Whether answers drawn from this source keep their guarantee."""

    def add_laplace(self, values: Integers, scale: float) -> Integers:
        """Add independent discrete Laplace noise: P(k) proportional to exp(-abs(k)/scale)."""

    def add_gaussian(self, values: Integers, scale: float) -> Integers:
        """Add independent discrete Gaussian noise: P(k) proportional to exp(-k^2/(2 scale^2))."""

    def permute_and_flip(self, scores: Integers, scale: float) -> int:
        """Return the argmax of the scores after adding exponential noise."""

    def exponential(self, scores: Integers, scale: float) -> int:
        """Return index i with probability proportional to exp(scores[i]/scale)."""

    def grid_point(self, scores: Integers, lengths: Integers, rate: Fraction) -> int:
        """Return a point of a grid in stretches, with weights ``exp(rate * scores[stretch])``.

        The points are numbered from the start of the first stretch.
        """

    def grid_points(self, scores: Integers, lengths: Integers, rate: Fraction) -> list[int]:
        """Return a point as :meth:`grid_point` does for every row, each a grid of its own."""

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound)."""

    def draw(self, sampler: Callable[[Noise], T]) -> T:
        """Return ``sampler(self)``: of all that it draws, only the result is released."""


class _Bitwise(ABC):
    """What both sources have in common: laws that are made of fair bits."""

    @abstractmethod
    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2^count)."""

    def grid_point(self, scores: Integers, lengths: Integers, rate: Fraction) -> int:
        """See :class:`Noise`."""
        return self.grid_points(scores[None], lengths[None], rate)[0]

    def grid_points(self, scores: Integers, lengths: Integers, rate: Fraction) -> list[int]:
        """See :class:`Noise`."""
        starts = np.cumsum(lengths, axis=1) - lengths
        return [
            int(starts[row, stretch]) + self.below(int(lengths[row, stretch]))
            for row, stretch in enumerate(draw_stretches(scores, lengths, rate, self))
        ]

    def below(self, bound: int) -> int:
        """See :class:`Noise`. By rejection."""
        count = (bound - 1).bit_length()
        while True:
            drawn = self.bits(count) if count else 0
            if drawn < bound:
                return drawn

    def draw(self, sampler: Callable[[Any], T]) -> T:
        """See :class:`Noise`."""
        return sampler(self)


class SecureNoise(_Bitwise):
    """Exact integer noise from cryptographic bits."""

    private = True

    def add_laplace(self, values: Integers, scale: float) -> Integers:
        """See :class:`Noise`."""
        return self._add(_laplace, values, scale)

    def add_gaussian(self, values: Integers, scale: float) -> Integers:
        """See :class:`Noise`."""
        if 0 < scale < LARGEST_SCALE:
            noise = draw_gaussians(values.size, scale, self).reshape(values.shape)
            return _saturating_sum(values, noise)
        return self._add(_gaussian, values, scale)

    @staticmethod
    def _add(make: Any, values: Integers, scale: float) -> Integers:
        if scale == 0 or not values.size:
            return values.copy()
        sampler = make(scale)
        parts = np.array_split(values.ravel(), min(_THREADS, 1 + values.size // _PER_THREAD))
        if len(parts) == 1:
            noisy = [sampler(parts[0].tolist())]
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                noisy = list(pool.map(lambda part: sampler(part.tolist()), parts))
        return np.concatenate([np.array(part, dtype=np.int64) for part in noisy]).reshape(
            values.shape
        )

    def permute_and_flip(self, scores: Integers, scale: float) -> int:
        """See :class:`Noise`."""
        return int(np.argmax(scores)) if scale == 0 else draw_flip(scores.tolist(), scale, self)

    def exponential(self, scores: Integers, scale: float) -> int:
        """See :class:`Noise`. A grid on which every point is a stretch of its own."""
        if scale == 0:
            return int(np.argmax(scores))
        return draw_stretch(scores, np.ones(len(scores), np.int64), _inverse(scale), self)

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2^count)."""
        return secrets.randbits(count)


class SeededNoise(_Bitwise):
    """Repeatable noise for tests and experiments. It protects nobody."""

    private = False

    def __init__(self, seed: int | np.random.Generator | np.random.RandomState) -> None:
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(0, 2**31 - 1))
        self._generator = np.random.default_rng(seed)

    def add_laplace(self, values: Integers, scale: float) -> Integers:
        """See :class:`Noise`."""
        return _saturating_sum(values, self._laplace(values.shape, scale))

    def add_gaussian(self, values: Integers, scale: float) -> Integers:
        """See :class:`Noise`."""
        if scale == 0:
            return values.copy()
        # Rejection from discrete Laplace (Canonne, Kamath & Steinke 2020, Algorithm 3).
        width = int(scale) + 1
        noise = np.zeros(values.size, dtype=np.int64)
        pending = np.arange(values.size)
        while pending.size:
            drawn = self._laplace(pending.shape, float(width))
            with np.errstate(over="ignore"):  # a tiny scale: surely rejected
                excess = (np.abs(drawn) / scale - scale / width) ** 2 / 2
            accepted = self._generator.random(pending.size) < np.exp(-excess)
            noise[pending[accepted]] = drawn[accepted]
            pending = pending[~accepted]
        return _saturating_sum(values, noise.reshape(values.shape))

    def _laplace(self, shape: tuple[int, ...], scale: float) -> Integers:
        if scale == 0:
            return np.zeros(shape, dtype=np.int64)
        stop = -np.expm1(-1 / scale)
        difference = self._generator.geometric(stop, shape) - self._generator.geometric(stop, shape)
        return np.asarray(difference, dtype=np.int64)

    def permute_and_flip(self, scores: Integers, scale: float) -> int:
        """See :class:`Noise`."""
        noise = self._generator.exponential(scale, scores.shape) if scale else 0.0
        return int(np.argmax((scores - scores.max()) + noise))

    def exponential(self, scores: Integers, scale: float) -> int:
        """See :class:`Noise`."""
        noise = self._generator.gumbel(0.0, scale, scores.shape) if scale else 0.0
        return int(np.argmax((scores - scores.max()) + noise))

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2^count)."""
        whole, rest = divmod(count, 8)
        drawn = int.from_bytes(self._generator.bytes(whole + (rest > 0)), "little")
        return drawn >> ((8 - rest) % 8)


def noise_of(random_state: Any) -> Noise:
    """Return cryptographic noise for None, repeatable noise for a seed, and a source as it is."""
    if random_state is None:
        return SecureNoise()
    return random_state if isinstance(random_state, Noise) else SeededNoise(random_state)


def _saturating_sum(values: Integers, noise: Integers) -> Integers:
    """Return the sum, cut off at the ends of the range as OpenDP does it."""
    total = values + noise
    wrapped = ((values ^ total) & (noise ^ total)) < 0
    ends = np.iinfo(np.int64)
    return np.where(wrapped, np.where(noise > 0, ends.max, ends.min), total)


@lru_cache(maxsize=64)
def _inverse(scale: float) -> Fraction:
    return 1 / Fraction(scale)


# OpenDP builds a measurement in about 0.1 ms: keep those in use. Its modules are imported on first
# use, one by one: `opendp.prelude` would load everything OpenDP integrates with.


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    _enable_opendp()
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _gaussian(scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    _enable_opendp()
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)


@lru_cache(maxsize=1)
def _enable_opendp() -> None:
    from opendp.mod import enable_features

    enable_features("contrib")
