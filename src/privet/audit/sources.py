"""Sources of noise that follow answers instead of drawing them."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from queue import SimpleQueue
from threading import Thread
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.audit.laws import (
    Choice,
    Drawn,
    Grid,
    Question,
    Sums,
    exponential,
    permute_and_flip,
    uniform,
)
from privet.errors import AuditError
from privet.privacy import Noise

T = TypeVar("T")
#: What is audited: it takes a table and a source of noise, and returns all that it releases.
Program = Callable[[Any, Noise], Hashable]


class Unanswered(BaseException):
    """A question without an answer: the run ends here. No library may catch it."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question


class Follower:
    """A source of noise that gives prepared answers, and stops the run when they end."""

    private = False

    def __init__(self, answers: tuple[Any, ...]) -> None:
        self._answers = iter(answers)
        #: Whether what a sampler makes is one outcome, or each of its choices is.
        self.whole_draws = True
        #: Whoever keeps the source keeps this, and is told by it: no two runs have the same.
        self.secret = secrets.token_bytes(16)

    def _answer(self, question: Callable[[], Question]) -> Any:
        for answer in self._answers:
            return answer.copy() if isinstance(answer, np.ndarray) else answer
        raise Unanswered(question())

    def add_laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """See :class:`~privet.privacy.Noise`."""
        return np.asarray(self._answer(lambda: Sums("laplace", values.copy(), scale)))

    def add_gaussian(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """See :class:`~privet.privacy.Noise`."""
        return np.asarray(self._answer(lambda: Sums("gaussian", values.copy(), scale)))

    def permute_and_flip(self, scores: NDArray[np.int64], scale: float) -> int:
        """See :class:`~privet.privacy.Noise`."""
        return int(
            self._answer(lambda: Choice("permute-and-flip", scale, permute_and_flip(scores, scale)))
        )

    def exponential(self, scores: NDArray[np.int64], scale: float) -> int:
        """See :class:`~privet.privacy.Noise`."""
        return int(self._answer(lambda: Choice("exponential", scale, exponential(scores, scale))))

    def grid_point(
        self, scores: NDArray[np.int64], lengths: NDArray[np.int64], rate: Fraction
    ) -> int:
        """See :class:`~privet.privacy.Noise`."""
        return int(self._answer(lambda: Grid(scores.copy(), lengths.copy(), rate)))

    def grid_points(
        self, scores: NDArray[np.int64], lengths: NDArray[np.int64], rate: Fraction
    ) -> list[int]:
        """See :class:`~privet.privacy.Noise`."""
        return [self.grid_point(*row, rate) for row in zip(scores, lengths, strict=True)]

    def below(self, bound: int) -> int:
        """See :class:`~privet.privacy.Noise`."""
        return int(self._answer(lambda: uniform(bound)))

    def draw(self, sampler: Callable[[Any], T]) -> T:
        """See :class:`~privet.privacy.Noise`."""
        if not self.whole_draws:
            return sampler(self)
        answer: T = self._answer(lambda: Drawn(law_of(sampler)))
        return answer

    def add_shares(
        self, values: NDArray[np.int64], scale: float, weight: Fraction
    ) -> NDArray[np.int64]:
        """Return sums with what some shares of discrete Laplace noise add up to."""
        return np.asarray(self._answer(lambda: Sums("shares", values.copy(), scale, weight)))

    def draw_by(self, law: Callable[[], dict[Hashable, float]]) -> Any:
        """Return one of several outcomes, whose log probabilities are found if they are needed."""
        return self._answer(lambda: Drawn(law()))


class _Walker:
    """A source of noise that takes one path of finitely many choices and knows its probability."""

    private = False

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.taken: list[int] = []
        self.options: list[int] = []
        self.log_probability = 0.0

    def _pick(self, logs: NDArray[np.float64]) -> int:
        step = len(self.taken)
        chosen = self.path[step] if step < len(self.path) else 0
        self.taken.append(chosen)
        self.options.append(len(logs))
        self.log_probability += float(logs[chosen])
        return chosen

    def permute_and_flip(self, scores: NDArray[np.int64], scale: float) -> int:
        return self._pick(permute_and_flip(scores, scale))

    def exponential(self, scores: NDArray[np.int64], scale: float) -> int:
        return self._pick(exponential(scores, scale))

    def below(self, bound: int) -> int:
        return self._pick(uniform(bound).logs)

    def draw(self, sampler: Callable[[Any], T]) -> T:
        return sampler(self)

    def add_laplace(self, *_: Any) -> NoReturn:
        raise AuditError("a sampler of finitely many choices asks for no integers")

    def add_gaussian(self, *_: Any) -> NoReturn:
        raise AuditError("a sampler of finitely many choices asks for no integers")

    def grid_point(self, *_: Any) -> NoReturn:
        raise AuditError("a sampler of finitely many choices asks for no grid")

    def grid_points(self, *_: Any) -> NoReturn:
        raise AuditError("a sampler of finitely many choices asks for no grid")


@dataclass(frozen=True)
class Done:
    """The end of a run."""

    output: Hashable


class Live(Follower):
    """A program that runs in a thread of its own, and waits for the answer to every question."""

    def __init__(self, program: Program, table: Any) -> None:
        super().__init__(())
        self._questions: SimpleQueue[Any] = SimpleQueue()
        self._replies: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._work, args=(program, table), daemon=True)

    def _work(self, program: Program, table: Any) -> None:
        try:
            self._questions.put(Done(program(table, self)))
        except Unanswered:
            pass  # nobody wants to know any more
        except BaseException as error:
            self._questions.put(error)

    def _answer(self, question: Callable[[], Question]) -> Any:
        asked = question()
        self._questions.put(asked)
        reply = self._replies.get()
        if isinstance(reply, Done):
            raise Unanswered(asked)
        return reply.copy() if isinstance(reply, np.ndarray) else reply

    def next(self) -> Any:
        """Return the next question, or the end."""
        asked = self._questions.get()
        if isinstance(asked, BaseException):
            raise asked
        return asked

    def answer(self, reply: Any) -> None:
        """Answer the last question."""
        self._replies.put(reply)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._replies.put(Done(None))
        self._thread.join()


def law_of(sampler: Callable[[Noise], T]) -> dict[T, float]:
    """Return the log probabilities of what a sampler of finitely many choices makes."""
    path: list[int] = []
    law: dict[T, float] = {}
    while True:
        walker = _Walker(path)
        answer = sampler(walker)
        law[answer] = float(np.logaddexp(law.get(answer, -math.inf), walker.log_probability))
        path = walker.taken
        while path and path[-1] == walker.options[len(path) - 1] - 1:
            path = path[:-1]
        if not path:
            return law
        path = [*path[:-1], path[-1] + 1]


def run(program: Program, table: Any, answers: tuple[Any, ...]) -> Any:
    """Run a program with prepared answers; return its output, or the question after the last."""
    try:
        return program(table, Follower(answers))
    except Unanswered as asked:
        return asked.with_traceback(None)  # which would keep the whole run
