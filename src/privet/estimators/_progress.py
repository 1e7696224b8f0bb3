"""What a fit is doing, on standard error, for ``verbose``."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds between two lines: a fit that takes less than that says nothing.
_BETWEEN = 1.0


class _Telling(logging.Handler):
    """Writes the latest message, if the last line is old enough."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._begun = self._last = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless one was written just now."""
        now = time.monotonic()
        if now - self._last >= _BETWEEN:
            self._last = now
            spent = f"{now - self._begun:.0f} s"
            sys.stderr.write(f"{self._name}, {spent}: {record.getMessage()}\n")


@contextmanager
def telling(name: str, *, wanted: bool) -> Iterator[None]:
    """Write, about once a second, what is asked of the table while something is learnt.

    Questions and numbers of cells are public: they follow from the schema, and from what was
    released before.
    """
    if not wanted:
        yield
        return
    logger, handler = logging.getLogger("privet"), _Telling(name)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(before, logging.INFO) if before else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
