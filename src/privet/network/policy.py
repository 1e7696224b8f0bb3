"""What the owner of rows allows: ``party.toml``, read strictly.

A key that is not known is refused, not ignored: a limit with a slip in its name would be none.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from privet.errors import DataError, PrivetError
from privet.federation.party import CHARGED
from privet.network.interface import NVFLARE
from privet.network.keys import Certificate, Identity, read_fingerprint
from privet.privacy import Budget
from privet.visible import quoted


class PolicyError(PrivetError, ValueError):
    """A policy file is wrong; the message says which line to change."""


#: A name of a party or a study: letters and digits, points, hyphens and underscores.
_LONGEST_NAME = 64


@dataclass(frozen=True)
class Limits:
    """What a coordinator may ask of a party in one study, besides what it pays for.

    Attributes
    ----------
    cells : int
        Cells that are kept at a time, of all levels.
    options : int
        Splits that a question may offer for a cell.
    choices : int
        Secret choices that are under way at a time.
    message : int
        Bytes of a question.
    free_per_minute : int
        Free questions, steps of secret choices among them, in any minute.
    seconds : float
        For one question.
    journal : int
        Bytes of the study's journal.
    """

    cells: int = 2**20
    options: int = 2**17
    choices: int = 8
    message: int = 2**27
    free_per_minute: int = 20_000
    seconds: float = 600.0
    journal: int = 2**32


@dataclass(frozen=True)
class TlsFiles:
    """Where a site's key and the certificates are.

    Attributes
    ----------
    key, certificate : Path
        The site's own.
    coordinator : Path
        The certificate of the coordinator.
    fingerprint : str
        That of the coordinator's key, as its owner has told it.
    proxy : str or None
        An HTTP proxy on the way, if the environment names none.
    """

    key: Path
    certificate: Path
    coordinator: Path
    fingerprint: str
    proxy: str | None = None

    def open_identity(self, name: str) -> Identity:
        """Return the key and certificate of a member of that name, valid now."""
        found = Identity(self.key, self.certificate, name)
        found.certificate.check_dates()
        return found

    def open_coordinator(self) -> Certificate:
        """Return the coordinator's certificate: of the key that is pinned, and valid now."""
        found = Certificate.read(self.coordinator, "the coordinator")
        found.check_pinned(self.fingerprint)
        found.check_dates()
        return found


@dataclass(frozen=True)
class StudyPolicy:
    """What the owner allows in one study.

    Attributes
    ----------
    name : str
    epsilon : float
        All that may be spent on the rows.
    until : datetime
        The end of the last day; after it nothing is answered.
    questions : frozenset of str
        The questions that are allowed; all if the file does not say.
    trusted : int or None
        How many parties, this one included, are taken for honest; all if None.
    peers : dict of str to str
        The other parties, with the fingerprints of their keys as their owners have told them.
    approve : {"ask", "policy"}
        Whether a person at the site has to approve the study (``privet party approve``).
    dealer : dict of str to str
        Who deals for secret choices, with its key's fingerprint; the coordinator if empty.
    """

    name: str
    epsilon: float
    until: datetime
    questions: frozenset[str]
    trusted: int | None
    peers: dict[str, str]
    approve: str
    dealer: dict[str, str] = field(default_factory=dict)

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        return Budget(self.epsilon)

    @property
    def digest(self) -> str:
        """What an approval names: the same as long as the study's part of the file is."""
        plain = asdict(self) | {
            "until": self.until.isoformat(),
            "questions": sorted(self.questions),
        }
        if not self.dealer:  # as approvals were written before there were any
            del plain["dealer"]
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode("ascii")).hexdigest()

    def check_date(self, now: datetime) -> None:
        """Raise if the study's last day is over."""
        if now > self.until:
            raise PolicyError(
                f"the study {quoted(self.name)} was allowed until {self.until:%Y-%m-%d}, which is "
                "over; its owner may allow more time"
            )


@dataclass(frozen=True)
class Policy:
    """A party's configuration: who it is, where things are, and what it allows.

    Attributes
    ----------
    name : str
        By which the studies know the party.
    coordinator : str
        ``host:port`` of the coordinator; "nvflare" if it asks through jobs of NVFlare.
    data, schema, ledger, state : Path
        The rows, what is public of them, the ledger file, and the directory for journals.
    tls : TlsFiles
    limits : Limits
    studies : dict of str to StudyPolicy
    """

    path: Path
    name: str
    coordinator: str
    data: Path
    schema: Path
    ledger: Path
    state: Path
    tls: TlsFiles
    limits: Limits = field(default_factory=Limits)
    studies: dict[str, StudyPolicy] = field(default_factory=dict)

    @classmethod
    def from_toml(cls, path: str | Path) -> Policy:
        """Read a policy file; paths in it are relative to its folder."""
        path = Path(path)
        return _Reader(path).policy(_plain(path))

    def study(self, name: str) -> StudyPolicy:
        """Return what is allowed in a study, or raise."""
        if name not in self.studies:
            raise PolicyError(
                f"party {quoted(self.name)} takes part in no study {quoted(name)}: its owner would "
                "have to allow it, by a section [studies.NAME]"
            )
        return self.studies[name]

    def check_data(self) -> None:
        """Raise if there is no file with the rows."""
        if not self.data.is_file():
            raise DataError(f"there is no file {self.data}: data must be a CSV or Parquet file")


def check_name(name: Any, what: str) -> str:
    """Return a name of a party or a study; raise if it is none."""
    if (
        not isinstance(name, str)
        or not name.isascii()
        or not 0 < len(name) <= _LONGEST_NAME
        or name.startswith(".")
        or not all(each.isalnum() or each in "-_." for each in name)
    ):
        raise PolicyError(
            f"{what} must be a name of up to {_LONGEST_NAME} letters, digits, hyphens, "
            "underscores and points"
        )
    return name


@dataclass(frozen=True)
class DealerPolicy:
    """A dealer's configuration, ``dealer.toml``.

    .. code-block:: toml

        name = "notary"                          # as the study calls it
        coordinator = "study.example.org:443"

        [tls]                                    # as in a party's policy
        key = "notary.key"
        certificate = "notary.pem"
        coordinator = "coordinator.pem"
        fingerprint = "77aa 01c4 ..."

        [studies.readmission]                    # the parties' fingerprints, from their owners
        north = "3c1d 0e52 ..."
        south = "9b20 ..."

    Attributes
    ----------
    name : str
        By which the studies know it.
    coordinator : str
        ``host:port`` of the coordinator.
    tls : TlsFiles
    studies : dict of str to dict of str to str
        For which it deals: the fingerprints of the parties' keys, by name.
    """

    name: str
    coordinator: str
    tls: TlsFiles
    studies: dict[str, dict[str, str]]

    @classmethod
    def from_toml(cls, path: str | Path) -> DealerPolicy:
        """Read a dealer's file; paths in it are relative to its folder."""
        path = Path(path)
        read = _Reader(path)
        found = read.table(_plain(path), "", ("name", "coordinator", "tls", "studies"))
        name = read.name(found["name"], "name")
        studies = read.table(found["studies"], "studies", (), tuple(found["studies"]))
        return cls(
            name=name,
            coordinator=read.address(found["coordinator"], "coordinator"),
            tls=read.tls(found["tls"]),
            studies={
                read.name(study, "a study's name"): read.fingerprints(
                    parties, f"studies.{study}", name
                )
                for study, parties in studies.items()
            },
        )


def _plain(path: Path) -> Any:
    """Return what a policy file says, unchecked."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError:
        raise PolicyError(
            f"there is no policy file {path}, or it is not readable; docs/party.md and "
            "docs/federation.md have one to begin with"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        where = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is no UTF-8"
        raise PolicyError(f"{path} is no TOML file: {where}") from None


class _Reader:
    """Reads a policy, and says where something is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, message: str) -> NoReturn:
        raise PolicyError(f"{self.path}: {message}")

    def table(
        self, plain: Any, where: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return a table of the file with exactly the keys that it may have."""
        if not isinstance(plain, dict):
            self.fail(f"{where or 'the file'} must be a table")
        of = f" in [{where}]" if where else ""
        known = (*needed, *optional)
        for key in plain:
            if key not in known:
                close = get_close_matches(key, known, 1)
                hint = f"; did you mean {close[0]!r}?" if close else f": {', '.join(known)}"
                self.fail(f"the key {quoted(key)}{of} is not known{hint}")
        for key in needed:
            if key not in plain:
                self.fail(f"the key {key!r}{of} is missing")
        return plain

    def text(self, value: Any, key: str) -> str:
        if not isinstance(value, str) or not value.strip():
            self.fail(f"{key} must be text, and not empty")
        return value

    def name(self, value: Any, key: str) -> str:
        text = self.text(value, key)
        try:
            return check_name(text, key)
        except PolicyError as error:
            self.fail(str(error))

    def file(self, value: Any, key: str) -> Path:
        return self.path.parent / Path(self.text(value, key)).expanduser()

    def number(self, value: Any, key: str, most: float = math.inf) -> Any:
        right = isinstance(value, int | float) and not isinstance(value, bool)
        if not right or not 0 < value < math.inf or value > most:
            self.fail(f"{key} must be a number above 0")
        return value

    def whole(self, value: Any, key: str) -> int:
        if type(value) is not int or value < 1:
            self.fail(f"{key} must be a whole number from 1 on")
        return value

    def fingerprint(self, value: Any, key: str) -> str:
        try:
            return read_fingerprint(value)
        except PrivetError as error:
            self.fail(f"{key}: {error}")

    def fingerprints(self, plain: Any, where: str, own: str) -> dict[str, str]:
        """Return others' fingerprints, by name; nobody lists itself, or one key twice."""
        if not isinstance(plain, dict):
            self.fail(f"{where} must have a fingerprint for every other party's name")
        if own in plain:
            self.fail(f"{where} has {own} itself: list the others")
        return {
            self.text(name, where): self.fingerprint(value, f"{where}.{name}")
            for name, value in plain.items()
        }

    def address(self, value: Any, key: str, other: str = "") -> str:
        text = self.text(value, key)
        host, colon, port = text.rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
            self.fail(f"{key} must be host:port, such as 'study.example.org:443'{other}")
        return text

    def policy(self, plain: Any) -> Policy:
        needed = ("name", "coordinator", "data", "schema", "ledger", "state", "tls")
        found = self.table(plain, "", needed, ("limits", "studies"))
        studies = found.get("studies", {})
        if not isinstance(studies, dict):
            self.fail("studies must be tables: [studies.NAME]")
        return Policy(
            path=self.path,
            name=self.name(found["name"], "name"),
            coordinator=NVFLARE
            if found["coordinator"] == NVFLARE
            else self.address(found["coordinator"], "coordinator", f", or {NVFLARE!r}"),
            data=self.file(found["data"], "data"),
            schema=self.file(found["schema"], "schema"),
            ledger=self.file(found["ledger"], "ledger"),
            state=self.file(found["state"], "state"),
            tls=self.tls(found["tls"]),
            limits=self.limits(found.get("limits", {})),
            studies={
                self.name(name, "a study's name"): self.study(name, each, found["name"])
                for name, each in studies.items()
            },
        )

    def tls(self, plain: Any) -> TlsFiles:
        needed = ("key", "certificate", "coordinator", "fingerprint")
        found = self.table(plain, "tls", needed, ("proxy",))
        return TlsFiles(
            key=self.file(found["key"], "tls.key"),
            certificate=self.file(found["certificate"], "tls.certificate"),
            coordinator=self.file(found["coordinator"], "tls.coordinator"),
            fingerprint=self.fingerprint(found["fingerprint"], "tls.fingerprint"),
            proxy=self.text(found["proxy"], "tls.proxy") if "proxy" in found else None,
        )

    def limits(self, plain: Any) -> Limits:
        names = tuple(each.name for each in fields(Limits))
        found = self.table(plain, "limits", (), names)
        read = {
            name: self.number(value, "limits.seconds", 86_400)
            if name == "seconds"
            else self.whole(value, f"limits.{name}")
            for name, value in found.items()
        }
        return Limits(**read)

    def study(self, name: str, plain: Any, party: str) -> StudyPolicy:
        where = f"studies.{name}"
        needed = ("epsilon", "until", "approve")
        found = self.table(plain, where, needed, ("questions", "trusted", "peers", "dealer"))
        if found["approve"] not in ("ask", "policy"):
            self.fail(f"{where}.approve must be 'ask' (a person approves) or 'policy'")
        until = found["until"]
        if isinstance(until, datetime) or not isinstance(until, date):
            self.fail(f"{where}.until must be a day, such as 2027-01-31, without quotes")
        questions = found.get("questions", sorted(CHARGED))
        if not isinstance(questions, list) or not all(
            isinstance(each, str) and each in CHARGED for each in questions
        ):
            self.fail(f"{where}.questions must be a list of: {', '.join(sorted(CHARGED))}")
        peers = self.fingerprints(found.get("peers", {}), f"{where}.peers", party)
        dealer = self.fingerprints(found.get("dealer", {}), f"{where}.dealer", party)
        if len(dealer) > 1:
            self.fail(f"{where}.dealer has one name, and its fingerprint")
        if set(dealer.values()) & set(peers.values()) or set(dealer) & set(peers):
            self.fail(f"{where}.dealer is one of the parties, and no party can deal")
        return StudyPolicy(
            name,
            self.number(found["epsilon"], f"{where}.epsilon"),
            datetime.combine(until, time.max, UTC),
            frozenset(questions),
            self.whole(found["trusted"], f"{where}.trusted") if "trusted" in found else None,
            peers,
            found["approve"],
            dealer,
        )
