"""Keys and certificates: made where they are used, never sent; known to others by fingerprints.

Every site, and the coordinator, makes a key (ECDSA, P-256) and a certificate that it signs itself.
What others need is the certificate, which is public, and its *fingerprint*, the SHA-256 of the
public key, which they get from the owner by a way of their own: by telephone, on paper. A renewed
certificate of the same key has the same fingerprint.

The same key vouches for the keys of secret sums: a party signs its X25519 key, and the others check
the signature against the fingerprint that they have, not against what the coordinator says.

Made with the library ``cryptography`` (``pip install privet[network]``). P-256, since the library
that gRPC has for TLS does not take Ed25519 certificates.
"""

from __future__ import annotations

import hashlib
import os
import re
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from privet.errors import FederationError
from privet.federation.wire import encode
from privet.outputs import OutputFile

#: How long a certificate is valid.
DAYS = 825
#: How much later than ours another clock may be set when a certificate is new.
_CLOCKS = timedelta(days=1)
#: The name that every certificate has beside its own: who is meant is known by the key alone.
SERVER_NAME = "privet"
#: Bytes of an X25519 key, and of a P-256 key in DER.
_MASK_KEY, _PUBLIC_KEY = 32, 91
#: Bytes of a key with its voucher: at most.
MOST_VOUCHED = _MASK_KEY + _PUBLIC_KEY + 72


def check_network() -> None:
    """Raise if the libraries are missing that go between parties over a network."""
    # What gRPC would write to standard error by itself is said in sentences of ours.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import cryptography
        import grpc  # noqa: F401
    except ImportError:
        raise FederationError(
            "parties over a network need the libraries grpcio and cryptography: "
            "pip install privet[network]"
        ) from None
    del cryptography


def read_fingerprint(text: Any) -> str:
    """Return a fingerprint as it is compared: 64 digits.

    Examples
    --------
    >>> read_fingerprint("SHA256: " + "AB12 " * 16) == "ab12" * 16
    True
    """
    if isinstance(text, str):
        plain = re.sub(r"[\s:.-]", "", text.strip().lower().removeprefix("sha256"))
        if re.fullmatch("[0-9a-f]{64}", plain):
            return plain
    raise FederationError(
        "a fingerprint has 64 hexadecimal digits: take it as its owner reads it out "
        "(privet party keygen and privet coordinator keygen show it)"
    )


def show_fingerprint(fingerprint: str) -> str:
    """Return a fingerprint as people read it out: in groups of four.

    Examples
    --------
    >>> show_fingerprint("ab12" * 16)[:14]
    'ab12 ab12 ab12'
    """
    return " ".join(re.findall("....", fingerprint))


class Certificate:
    """Somebody's certificate, which is public.

    Parameters
    ----------
    pem : bytes
        As it is in the file.
    whose : str
        What to call it in errors.
    """

    def __init__(self, pem: bytes, whose: str) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

        self.pem, self.whose = pem, whose
        try:
            self._read = x509.load_pem_x509_certificate(pem)
            key = self._read.public_key()
            known = isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
        except Exception:
            known = False
        if not known:
            raise FederationError(
                f"the certificate of {whose} cannot be read: it is no PEM file that privet has made"
            )

    @classmethod
    def read(cls, path: Path, whose: str) -> Certificate:
        """Return the certificate in a file."""
        try:
            pem = path.read_bytes()
        except OSError:
            raise FederationError(
                f"the certificate of {whose} cannot be read: there is no file {path}, or it is not "
                "readable; ask its owner for it"
            ) from None
        if b"PRIVATE KEY" in pem:
            raise FederationError(
                f"{path} has a private key in it, which nobody but its owner should have: ask for "
                "the certificate only, and for a new key"
            )
        return cls(pem, whose)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the public key, as 64 digits."""
        return hashlib.sha256(self.public_key).hexdigest()

    @cached_property
    def public_key(self) -> bytes:
        """The public key, in DER."""
        return _public_bytes(self._read.public_key())

    @property
    def until(self) -> datetime:
        """When it ends."""
        return self._read.not_valid_after_utc

    def check_dates(self) -> None:
        """Raise if it is not valid now, by this clock."""
        now = datetime.now(UTC)
        if now > self.until:
            raise FederationError(
                f"the certificate of {self.whose} ended on {self.until:%Y-%m-%d}: its owner renews "
                "it (keygen --renew; the key and its fingerprint stay) and hands it out again"
            )
        if now < self._read.not_valid_before_utc:
            raise FederationError(
                f"the certificate of {self.whose} is not valid yet: a clock is wrong, here or "
                "where it was made"
            )

    def has_signed(self, statement: bytes, signature: Any) -> bool:
        """Tell whether the certificate's key has signed a statement."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.hashes import SHA256

        key: Any = self._read.public_key()
        try:
            key.verify(signature, statement, ECDSA(SHA256()))
        except (InvalidSignature, TypeError, ValueError):
            return False
        return True

    def check_pinned(self, fingerprint: str) -> None:
        """Raise if it is not of the key that was agreed on."""
        if self.fingerprint != fingerprint:
            raise FederationError(
                f"the certificate of {self.whose} is of another key than the fingerprint says: ask "
                "its owner, by another way than the one on which the file came"
            )


class Identity:
    """A key, and its certificate: who somebody is to the others.

    Parameters
    ----------
    key, certificate : path
        Their files. The key's must be readable by its owner alone.
    whose : str, default="this site"
        What to call it in errors.
    """

    def __init__(self, key: str | Path, certificate: str | Path, whose: str = "this site") -> None:
        check_network()
        self.certificate = Certificate.read(Path(certificate), whose)
        self.key_pem = _read_key(Path(key))
        self._key = _load_key(self.key_pem, Path(key))
        if _public_bytes(self._key.public_key()) != self.certificate.public_key:
            raise FederationError(f"{key} and {certificate} do not belong together")

    @classmethod
    def make(cls, key: str | Path, certificate: str | Path, name: str) -> Identity:
        """Make a new key and its certificate; files that are there are not replaced."""
        check_network()
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

        made = generate_private_key(SECP256R1())
        pem = made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        with OutputFile(certificate, replace=False) as output:
            try:
                opened = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except OSError as error:
                raise FederationError(
                    f"the key cannot be written to {key}: {_reason(error)}"
                ) from None
            with os.fdopen(opened, "wb") as file:
                file.write(pem)
                file.flush()
                os.fsync(file.fileno())
            output.write(_self_signed(made, name).decode("ascii"))
        return cls(key, certificate)

    @classmethod
    def renew(cls, key: str | Path, certificate: str | Path, name: str) -> Identity:
        """Make a new certificate for a key that is there. Its fingerprint stays the same."""
        check_network()
        found = _load_key(_read_key(Path(key)), Path(key))
        with OutputFile(certificate, {"the key": Path(key)}) as output:
            output.write(_self_signed(found, name).decode("ascii"))
        return cls(key, certificate)

    @property
    def fingerprint(self) -> str:
        """By which others know the key."""
        return self.certificate.fingerprint

    def vouch(self, study: str, name: str, public_key: bytes) -> bytes:
        """Return an X25519 key with a signature: of this party, for this study.

        Parameters
        ----------
        study, name : str
            The study, and the party's name in it.
        public_key : bytes
            The party's key for secret sums.
        """
        signature = self.sign(_statement(study, name, public_key))
        return public_key + self.certificate.public_key + signature

    def sign(self, statement: bytes) -> bytes:
        """Return a signature; what is signed begins with what it is for."""
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.hashes import SHA256

        return bytes(self._key.sign(statement, ECDSA(SHA256())))


def check_vouched(study: str, name: str, vouched: bytes, fingerprint: str) -> bytes:
    """Return the X25519 key that a party has signed, or raise.

    Parameters
    ----------
    study, name : str
        The study, and the name of the party whose key it should be.
    vouched : bytes
        What :meth:`Identity.vouch` returned there.
    fingerprint : str
        That of the party's certificate, as its owner has told it.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    found = False
    if isinstance(vouched, bytes) and _MASK_KEY + _PUBLIC_KEY < len(vouched) <= MOST_VOUCHED:
        mask_key = vouched[:_MASK_KEY]
        public = vouched[_MASK_KEY : _MASK_KEY + _PUBLIC_KEY]
        signature = vouched[_MASK_KEY + _PUBLIC_KEY :]
        if hashlib.sha256(public).hexdigest() == fingerprint:
            try:
                key: Any = load_der_public_key(public)
                key.verify(signature, _statement(study, name, mask_key), ECDSA(SHA256()))
                found = True
            except (InvalidSignature, ValueError, TypeError, AttributeError):
                found = False
    if not found:
        raise FederationError(
            f"the key for secret sums that came as that of {name!r} is not signed by the key with "
            "its fingerprint: the coordinator passed on another one, or its owner has a new key"
        )
    return mask_key


def _statement(study: str, name: str, public_key: bytes) -> bytes:
    """Return what is signed: one value, one byte string, so that nothing else reads the same."""
    return encode(("privet: my key for secret sums", study, name, public_key))


def _public_bytes(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    found: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found


def _read_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                raise FederationError(
                    f"the key {path} can be read by others: chmod 600, if nobody has read it yet; "
                    "else make a new one"
                )
            return file.read()
    except OSError as error:
        raise FederationError(f"the key {path} cannot be read: {_reason(error)}") from None


def _load_key(pem: bytes, path: Path) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, None)
    except Exception:
        key = None
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise FederationError(f"{path} has no key that privet has made")
    return key


def _self_signed(key: Any, name: str) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    try:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    except (TypeError, ValueError):
        raise FederationError(
            "the name of a certificate is text of up to 64 characters, and not empty"
        ) from None
    now = datetime.now(UTC)
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS)
        .not_valid_after(now + timedelta(days=DAYS))
        # It vouches for itself only: its owner cannot make certificates of others.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM)


def _reason(error: OSError) -> str:
    return {
        FileExistsError: "there is one already, and keys are not replaced",
        FileNotFoundError: "there is no such file or folder",
        PermissionError: "that is not allowed",
    }.get(type(error), error.strerror or "the system says no")
