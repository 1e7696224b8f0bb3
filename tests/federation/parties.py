"""Parties for the tests, importable by other processes."""

import os
import pickle
import struct
import sys
import time
from multiprocessing import connection

import numpy as np

from privet import Budget, Categorical, Numeric, Schema
from privet.errors import DataError
from privet.federation import Party
from privet.federation.wire import MOST_BYTES, Reply, Request, encode

SCHEMA = Schema(
    {"x": Numeric(0, 1, bins=8), "c": Categorical(list("uvw"))}, target="y", classes=[0, 1]
)


def rows(count, seed):
    generator = np.random.default_rng(seed)
    x, c = generator.random(count), generator.choice(list("uvw"), count)
    y = ((x > 0.5) ^ (generator.random(count) < 0.05)).astype(int)
    return np.array([[a, b] for a, b in zip(x, c, strict=True)], dtype=object).reshape(-1, 2), y


def make(name, count=500, seed=0, epsilon=4.0, random_state=None):
    features, target = rows(count, seed)
    return Party(name, features, target, SCHEMA, Budget(epsilon), random_state=random_state)


def make_with_ledger(name, ledger):
    return Party(name, *rows(50, 0), SCHEMA, Budget(1.0), ledger=ledger)


class Bomb:
    """Runs code where it is unpickled: a file is made."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def forbid_pickle(*_, **__):
    raise AssertionError("something was unpickled")


def make_poisoned(name, count, seed, epsilon):
    """Make a party whose process cannot unpickle anything from here on."""
    party = make(name, count, seed, epsilon)
    pickle.loads = pickle.load = pickle.Unpickler = forbid_pickle
    connection._ForkingPickler.loads = forbid_pickle
    return party


class Dies(Party):
    """Ends its process at the first question that is charged."""

    def answer(self, target, question, *given, **options):
        if question in self.allowed:
            os._exit(1)
        return super().answer(target, question, *given, **options)


class Sleeps(Party):
    """Answers the first question that is charged too late."""

    def answer(self, target, question, *given, **options):
        if question in self.allowed and not getattr(self, "slept", False):
            self.slept = True
            time.sleep(4)
        return super().answer(target, question, *given, **options)


class Chatters(Party):
    """Says something every half second, but no answer: for a minute."""

    def answer(self, target, question, *given, **options):
        if question in self.allowed:
            line = sys._getframe(2).f_locals["pipe"]  # of the loop that serves this party
            for _ in range(120):
                line.send_bytes(encode(Reply(0, "answer")))
                time.sleep(0.5)
        return super().answer(target, question, *given, **options)


class Babbles(Party):
    """Answers what is charged in ways in which nobody answers."""

    def answer(self, target, question, *given, **options):
        if question in self.allowed:
            frame = sys._getframe(2).f_locals  # of the loop that serves this party
            line, number = frame["pipe"], frame["question"].number
            if self.how == "garbage":
                line.send_bytes(b"garbage")
            elif self.how.startswith("/"):
                line.send_bytes(pickle.dumps(Bomb(self.how)))
            elif self.how == "number":
                line.send_bytes(encode_answer(np.zeros(3, np.int64), "answer", 1))
            elif self.how == "kind":
                line.send_bytes(encode_answer(number, np.zeros(3, np.int64), 1))
            elif self.how == "text":
                line.send_bytes(encode_answer(number, "refused", np.zeros(3, np.int64)))
            elif self.how == "question":
                line.send_bytes(encode(Request(number, 0, "root")))
            elif self.how == "long":
                os.write(line.fileno(), struct.pack("!i", MOST_BYTES + 1))
            elif self.how == "half":
                os.write(line.fileno(), struct.pack("!i", 1000) + b"x")
                time.sleep(60)
        return super().answer(target, question, *given, **options)


def encode_answer(*fields):
    """Return the bytes of an answer that its class does not allow."""
    answer = object.__new__(Reply)
    answer.__dict__.update(zip(("number", "kind", "value"), fields, strict=True))
    return encode(answer)


class Strays(Party):
    """Answers what is charged with its own table."""

    def answer(self, target, question, *given, **options):
        if question in self.allowed:
            return self.table
        return super().answer(target, question, *given, **options)


KINDS = {"dies": Dies, "sleeps": Sleeps, "chatters": Chatters, "strays": Strays}


def make_babbling(how, name):
    party = Babbles(name, *rows(50, 9), SCHEMA, Budget(4.0))
    party.how = how
    return party


def make_nothing(how):
    if how == "own":
        raise DataError("the rows are not here")
    if how == "long":
        raise DataError("x" * 100_000)
    if how == "other":
        raise ValueError("record 17 has value 42")


def make_odd(kind, name):
    features, target = rows(50, 9)
    return KINDS[kind](name, features, target, SCHEMA, Budget(4.0))


def make_sleepy(name, ledger):
    features, target = rows(50, 9)
    return Sleeps(name, features, target, SCHEMA, Budget(4.0), ledger=ledger)
