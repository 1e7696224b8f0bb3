"""A study: which parties, by which fingerprints, learn together; and how a model is learnt.

``study.toml`` is the coordinator's file::

    name = "sepsis"                  # what the parties' policies call it
    listen = "0.0.0.0:8443"          # the only port
    schema = "schema.toml"           # the parties have the same
    protocol = "secure-sum"          # or local-rnm, noisy-counts

    [tls]
    key = "coordinator.key"          # privet coordinator keygen
    certificate = "coordinator.pem"

    [parties.north]
    certificate = "north.pem"        # as its owner has sent it
    fingerprint = "6f1c 02ab ..."    # as its owner has read it out

and perhaps ``honest``, ``least`` (see :class:`~privet.federation.FederatedTable`), ``patience``
(seconds from a question to its answer, a party's restart and approval included; default 3600) and
``runs`` (a folder for what runs keep; default "runs"). For ``secure-sum`` there may be a dealer
that is not the coordinator::

    [dealer.notary]                  # privet dealer serve
    certificate = "notary.pem"
    fingerprint = "01f3 77c2 ..."

Paths are relative to the file.
"""

from __future__ import annotations

import gc
import time
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from itertools import chain, count
from pathlib import Path
from threading import Event, Thread
from typing import Any

from privet import __version__
from privet.errors import FederationError
from privet.federation import PROTOCOLS, FederatedTable
from privet.federation.wire import MAGIC
from privet.network.coordinator import Desk, at_the_desk, find
from privet.network.interface import NVFLARE, digest_of
from privet.network.keys import Certificate, Identity, read_fingerprint
from privet.network.links import NetworkLink, check_first
from privet.network.runs import Run
from privet.network.transport import Line, Port
from privet.privacy import Budget
from privet.privacy.coins import drawing_from
from privet.schema import Schema

#: Seconds that a party may let everybody wait, unless the study says otherwise.
PATIENCE = 3600.0
#: Seconds after which it is said who is being waited for, again and again.
_SLOW = 5.0

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Check:
    """What a study would allow, found out without spending anything.

    Attributes
    ----------
    epsilon : amount
        What a fit may spend, of every party.
    left : dict of str to amount
        What every party has left for the study.
    """

    epsilon: Any
    left: dict[str, Fraction | float]


@dataclass(frozen=True)
class Study:
    """Parties that learn together over a network, from the coordinator's side.

    Attributes
    ----------
    name : str
        What the parties' policies call it.
    listen : str
        ``host:port`` of the only port; "nvflare" if jobs of NVFlare carry the messages.
    schema : Schema
        What is public; the parties have the same.
    identity : Identity
        The coordinator's key and certificate.
    parties : dict of str to Certificate
        Who takes part; each certificate is of the key with the party's fingerprint.
    protocol, honest, least
        As for :class:`~privet.federation.FederatedTable`.
    patience : float
        Seconds from a question to its answer.
    runs : path
        Where runs are kept.
    dealer : dict of str to Certificate
        Who deals for secret choices; the coordinator if empty.
    """

    name: str
    listen: str
    schema: Schema
    identity: Identity
    parties: Mapping[str, Certificate]
    protocol: str = "secure-sum"
    honest: int | None = None
    least: int | None = None
    patience: float = PATIENCE
    runs: Path = Path("runs")
    dealer: Mapping[str, Certificate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise FederationError(f"protocol must be one of {', '.join(map(repr, PROTOCOLS))}")
        keys = {each.fingerprint for each in self._all.values()}
        if len(keys | {self.identity.fingerprint}) < len(self.parties) + len(self.dealer) + 1:
            raise FederationError(
                "two parties, or a party and the coordinator or the dealer, have the same key or "
                "name: every site makes its own"
            )
        if self.dealer and (len(self.dealer) > 1 or self.protocol != "secure-sum"):
            raise FederationError("a study has one dealer at most, and for secure-sum only")

    @property
    def _all(self) -> dict[str, Certificate]:
        """Everybody who dials."""
        return {**self.parties, **self.dealer}

    @classmethod
    def from_toml(cls, path: str | Path) -> Study:
        """Read a study from its file."""
        path = Path(path)
        read = _Reader(path)
        found = read.table(
            {"name": str, "listen": str, "schema": str, "tls": dict, "parties": dict},
            {
                "protocol": str,
                "honest": int,
                "least": int,
                "patience": (int, float),
                "runs": str,
                "dealer": dict,
            },
        )
        tls = read.table({"key": str, "certificate": str}, {}, "tls")
        given = found["parties"]
        if not given:
            raise FederationError(f"{path} has no parties: [parties.NAME] names one")
        pinned = {name: read.certificate("parties", name) for name in given}
        dealer = {name: read.certificate("dealer", name) for name in found.get("dealer", {})}
        patience = float(found.get("patience", PATIENCE))
        if not 0 < patience < 30_000_000:
            raise FederationError(f"{path}: patience is a number of seconds above 0")
        return cls(
            name=found["name"],
            listen=found["listen"],
            schema=Schema.from_toml(path.parent / found["schema"]),
            identity=Identity(
                path.parent / tls["key"], path.parent / tls["certificate"], "the coordinator"
            ),
            parties=pinned,
            protocol=found.get("protocol", "secure-sum"),
            honest=found.get("honest"),
            least=found.get("least"),
            patience=patience,
            runs=path.parent / found.get("runs", "runs"),
            dealer=dealer,
        )

    @contextmanager
    def open(self) -> Iterator[dict[str, Line]]:
        """Listen at the study's port, or use it where it is served; yield lines to the parties."""
        connection = find(self._desk)
        if connection is not None:
            with at_the_desk(connection, list(self._all)) as lines:
                yield lines
        else:
            with self._port() as port:
                yield port.lines

    def serve(self, tell: Tell = lambda _: None) -> Desk:
        """Keep the port open, so that parties stay connected from one fit to the next.

        Close what is returned, or use it in a ``with`` statement. Fits of the same user on this
        machine find it by themselves.
        """
        return Desk(self._port, list(self._all), self._desk, tell)

    def _port(self, lines: Mapping[str, Line] | None = None) -> Port:
        if self.listen == NVFLARE:
            raise FederationError(
                "the study is asked through NVFlare (listen = 'nvflare'): submit a job "
                "(privet.flare.write_job), or give listen a port. Nothing was asked"
            )
        digest = digest_of(self.schema)
        dealer = next(iter(self.dealer), None)
        return Port(self.listen, self.identity, self._all, self.name, digest, lines, dealer=dealer)

    @property
    def _desk(self) -> Path:
        return self.runs / "serving"

    def fit(
        self,
        estimator: Any,
        *,
        run: str | Path | None = None,
        resume: str | Path | None = None,
        tell: Tell = lambda _: None,
    ) -> Any:
        """Let an estimator learn from the parties; return it, fitted.

        Parameters
        ----------
        estimator : estimator
            One that learns from a federation, such as ``TopDownClassifier(epsilon=1.0)``.
        run : path, optional
            The directory in which what is asked and answered is kept; a new one in ``runs`` if
            None.
        resume : path, optional
            The directory of a run that has stopped, to go on with it: nothing that was answered is
            asked, or paid, again.
        tell : function, optional
            Is told, in a sentence, who came and who is being waited for.
        """
        plan = self._plan(estimator)
        directory = self._new_run() if run is None else Path(run)
        begun = None if resume is None else Run.resume(Path(resume), plan)
        with ExitStack() as stack:
            if begun is not None:
                stack.enter_context(closing(begun))
            lines = stack.enter_context(self._gathered(tell, without=begun.lost if begun else ()))
            kept = begun
            if kept is None:
                kept = stack.enter_context(closing(Run.create(directory, self._begin(plan, lines))))
            tell(f"the run is kept in {kept.directory}")
            with (
                drawing_from(kept.draw),
                _without_cycles(),
                self._table(FederatedTable, lines, kept) as table,
            ):
                return estimator.fit(table)

    def check(self, estimator: Any, *, tell: Tell = lambda _: None) -> Check:
        """Find out whether all parties are here, and would let an estimator learn. Free."""
        with (
            self._gathered(tell) as lines,
            Run.passing(self._begin(self._plan(estimator), lines)) as run,
            self._table(_Rehearsal, lines, run) as table,
        ):
            try:
                estimator.fit(table)
            except _Allowed as found:
                return found.check
        raise FederationError("nothing was checked: this learner asks the parties for nothing")

    @contextmanager
    def _gathered(self, tell: Tell, without: Collection[str] = ()) -> Iterator[dict[str, Line]]:
        """Yield what there is of every party, when all that are needed are here."""
        with self.open() as lines, _Watch(lines.values(), tell):
            deadline = time.monotonic() + self.patience
            for name, line in lines.items():
                if name in without or line.wait(max(0.0, deadline - time.monotonic())):
                    continue
                why = "" if line.trouble is None else f" ({line.trouble})"
                whose = "dealer" if name in self.dealer else "party"
                raise FederationError(
                    f"{whose} {name!r} did not come{why}. Nothing was asked; its owner looks at "
                    f"what its process says (privet {whose} serve, or NVFlare's client)"
                )
            yield lines

    def _begin(self, plan: dict[str, Any], lines: Mapping[str, Line]) -> dict[str, Any]:
        """Return the plan of a new run, whose numbers follow those that the parties know."""
        return {**plan, "first": {name: _last(line) + 1 for name, line in lines.items()}}

    def _table(
        self, kind: type[FederatedTable], lines: Mapping[str, Line], run: Run
    ) -> FederatedTable:
        """Return a table of the parties, for a run that is new or resumed."""
        for name in self.parties:
            if name not in run.lost:
                check_first(name, _last(lines[name]), run.asked(name))
        first = run.plan["first"]
        links = {
            name: NetworkLink(line, first[name], run, self.patience) for name, line in lines.items()
        }
        return kind(
            [links[name] for name in self.parties],
            protocol=self.protocol,
            honest=self.honest,
            least=self.least,
            dealer=next((links[name] for name in self.dealer), None),
        )

    def _new_run(self) -> Path:
        """Return where a run is kept that nobody has named: by the time of day."""
        name = f"{datetime.now():%Y%m%d-%H%M%S}"
        names = chain([name], (f"{name}-{more}" for more in count(2)))
        return next(path for each in names if not (path := self.runs / each).exists())

    def _plan(self, estimator: Any) -> dict[str, Any]:
        """Return what a run is, so that another one is not taken for it."""
        return {
            "format": 1,
            "privet": __version__,
            "wire": MAGIC[3],
            "study": self.name,
            "schema": digest_of(self.schema),
            "protocol": self.protocol,
            "honest": self.honest,
            "least": self.least,
            "parties": {name: each.fingerprint for name, each in self.parties.items()},
            "dealer": {name: each.fingerprint for name, each in self.dealer.items()},
            "learner": type(estimator).__name__,
            "parameters": {
                name: repr(value)
                for name, value in sorted(estimator.get_params().items())
                if name != "schema"
            },
        }


class _Watch:
    """Tells who comes, who leaves, and who is being waited for."""

    def __init__(self, lines: Iterable[Line], tell: Tell) -> None:
        self._lines, self._tell = list(lines), tell
        self._end = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        here: dict[str, bool] = {}
        troubles: dict[str, str | None] = {}
        told = time.monotonic()
        over = False
        while not over:  # a last time when all is over
            over = self._end.wait(0.2)
            for line in self._lines:
                if line.connected != here.get(line.name, False):
                    here[line.name] = line.connected
                    self._tell(f"{line.name} is {'here' if line.connected else 'gone'}")
                if line.trouble is not None and line.trouble != troubles.get(line.name):
                    self._tell(f"waiting for {line.name}: {line.trouble}")
                troubles[line.name] = line.trouble
            if time.monotonic() - told < _SLOW:
                continue
            told = time.monotonic()
            waits = {line.name: line.waited for line in self._lines}
            slow = {name: waited for name, waited in waits.items() if waited and waited > _SLOW}
            missing = [name for name in waits if not here.get(name) and name not in slow]
            if slow:
                names = ", ".join(f"{name} ({seconds:.0f} s)" for name, seconds in slow.items())
                self._tell(f"waiting for {names}")
            elif missing:
                whys = (troubles.get(name) for name in missing)
                said = (
                    f"{name} ({why or 'not here'})" for name, why in zip(missing, whys, strict=True)
                )
                self._tell(f"waiting for {', '.join(said)}")


class _Allowed(Exception):
    """Raised where a fit would begin to spend."""

    def __init__(self, check: Check) -> None:
        super().__init__()
        self.check = check


class _Rehearsal(FederatedTable):
    """A federated table that stops a fit where it would begin to spend: where it takes a budget."""

    def session(self, budget: Budget, asks: Iterable[str] = ()) -> FederatedTable:
        """See :class:`~privet.federation.FederatedTable`."""
        super().session(budget, asks)
        left = {name: found[0] for name, found in self._connections.ask_all("left")}
        raise _Allowed(Check(budget.limit, left))


@contextmanager
def _without_cycles() -> Iterator[None]:
    """Let no garbage be looked for.

    Parties are told which cells are not needed any more when Python drops them. Where that depends
    on when it looks for cycles, a run that is resumed would ask in other words.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _last(line: Line) -> int:
    assert line.greeting is not None  # it is here
    last: int = line.greeting["last"]
    return last


class _Reader:
    """Reads a study file strictly: what is not known is refused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._all = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError:
            raise FederationError(f"there is no study file {path}, or it is not readable") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise FederationError(f"{path} is no TOML file: {error}") from None

    def certificate(self, *where: str) -> Certificate:
        """Return somebody's certificate, which must be of the key with the fingerprint."""
        entry = self.table({"certificate": str, "fingerprint": str}, {}, *where)
        kind = "dealer" if where[0] == "dealer" else "party"
        found = Certificate.read(self._path.parent / entry["certificate"], f"{kind} {where[-1]!r}")
        found.check_pinned(read_fingerprint(entry["fingerprint"]))
        return found

    def table(
        self, needed: Mapping[str, type], more: Mapping[str, Any], *where: str
    ) -> dict[str, Any]:
        """Return a table of the file, with what it needs and what else it may have."""
        found: Any = self._all
        for name in where:
            found = found[name]
        place = f"[{'.'.join(where)}]" if where else "the file"
        if not isinstance(found, dict):
            raise FederationError(f"{self._path}: {place} is no table")
        for name, value in found.items():
            kind = needed.get(name) or more.get(name)
            if kind is None:
                raise FederationError(
                    f"{self._path}: {place} has an unknown key {name!r}; known are "
                    f"{', '.join((*needed, *more))}"
                )
            if not isinstance(value, kind) or isinstance(value, bool):
                raise FederationError(f"{self._path}: {name!r} in {place} has the wrong type")
        for name in needed:
            if name not in found:
                raise FederationError(f"{self._path}: {place} has no {name!r}")
        return found
