"""Detached signatures of models: by whom a file was released, of which study, with which parties.

A signature is a small JSON file beside the model. What is signed is a *statement*: the SHA-256 of
the model file and of the privacy card in it, the learner, the study, the parties that took part
with the fingerprints of their keys, and when. Whoever has the signer's public key can check that
the file is the one that was released, and which study it came from. A signature says who stands for
a file; that the privacy card is true rests on the study, not on the signature.

Ed25519 (RFC 8032), by the library ``cryptography``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from privet.errors import PrivetError
from privet.federation.mpc import check_cryptography
from privet.model import load
from privet.network.keys import read_fingerprint
from privet.outputs import OutputFile
from privet.visible import quoted

_FORMAT, _VERSION = "privet-signature", 1
#: What stands before a statement when it is signed, so that no other bytes read the same.
_PREFIX = b"privet signature of a model\x00"
#: No signature file is larger, in bytes.
_MOST_BYTES = 2**20
_FIELDS = {"model": str, "card": str, "learner": str, "study": str, "parties": dict, "time": str}


class SignatureError(PrivetError, ValueError):
    """A signature cannot be made or read."""


class BadSignatureError(SignatureError):
    """A signature does not hold for a file."""


def make_signing_key(key: str | Path, public: str | Path) -> str:
    """Make a key that signs models, and the file that others check with; return its fingerprint."""
    check_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for path in map(Path, (key, public)):
        if path.exists():
            raise SignatureError(f"there is {path} already, and keys are not replaced")
    made = Ed25519PrivateKey.generate()
    private = made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    opened = made.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with OutputFile(public, replace=False) as output:
        try:
            handle = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:
            raise SignatureError(
                f"the key cannot be written to {key}: there is one already, or the folder is "
                "missing or not writable; keys are not replaced"
            ) from None
        with os.fdopen(handle, "wb") as file:
            file.write(private)
            file.flush()
            os.fsync(file.fileno())
        output.write(opened.decode("ascii"))
    return _fingerprint(made.public_key())


def sign(
    model: str | Path,
    key: str | Path,
    out: OutputFile,
    *,
    study: str = "",
    parties: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Sign a model file; return the statement.

    Parameters
    ----------
    model : path
        The model file; it must be one.
    key : path
        The signer's private key (:func:`make_signing_key`).
    out : OutputFile
        Where the signature goes.
    study : str, optional
        The study that the model came from.
    parties : mapping of str to str, optional
        Who took part: names, and the fingerprints of their keys.
    """
    private = _private_key(Path(key))
    statement = {
        **_facts_of(Path(model)),
        "study": study,
        "parties": {name: read_fingerprint(each) for name, each in (parties or {}).items()},
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    signature: bytes = private.sign(_PREFIX + _bytes_of(statement))
    signed = {
        "format": _FORMAT,
        "version": _VERSION,
        "statement": statement,
        "signer": _fingerprint(private.public_key()),
        "signature": signature.hex(),
    }
    out.write(json.dumps(signed, indent=2, ensure_ascii=True) + "\n")
    return statement


def verify(model: str | Path, signature: str | Path, public: str | Path) -> dict[str, Any]:
    """Return the statement of a signature, if it holds for a model file.

    Parameters
    ----------
    model, signature : path
    public : path
        The signer's public key, from the signer, not from whoever passes the file on.

    Raises
    ------
    BadSignatureError
        If it is by another key, was changed, or is of another file.
    """
    check_cryptography()
    from cryptography.exceptions import InvalidSignature

    key = _public_key(Path(public))
    signed = _read(Path(signature))
    statement: dict[str, Any] = signed["statement"]
    if signed["signer"] != _fingerprint(key):
        raise BadSignatureError(
            f"the signature {signature} is by another key than {public}: ask the signer for the "
            "right one"
        )
    try:
        key.verify(bytes.fromhex(signed["signature"]), _PREFIX + _bytes_of(statement))
    except InvalidSignature:
        raise BadSignatureError(
            f"the signature {signature} does not hold: it, or what it states, was changed"
        ) from None
    found = _facts_of(Path(model))
    if any(found[name] != statement[name] for name in found):
        raise BadSignatureError(
            f"{model} is not the file that was signed: another model, or changed since"
        )
    return statement


def _facts_of(path: Path) -> dict[str, str]:
    """Return what a model file is, by its bytes and by its card."""
    try:
        data = path.read_bytes()
    except OSError:
        raise SignatureError(f"there is no model file {path}, or it is not readable") from None
    model = load(path)
    card = _bytes_of(model.privacy.to_dict())
    return {
        "model": hashlib.sha256(data).hexdigest(),
        "card": hashlib.sha256(card).hexdigest(),
        "learner": model.learner,
    }


def _bytes_of(plain: Any) -> bytes:
    """Return plain values as bytes, the same for the same values."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _read(path: Path) -> dict[str, Any]:
    """Read a signature file, checking every field."""

    def fail() -> NoReturn:
        raise SignatureError(f"{path} is no signature file of this version of Privet")

    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        found = json.loads(data) if len(data) <= _MOST_BYTES else None
    except OSError:
        raise SignatureError(f"there is no signature {path}, or it is not readable") from None
    except (ValueError, RecursionError):
        found = None
    names = {"format", "version", "statement", "signer", "signature"}
    if not isinstance(found, dict) or set(found) != names:
        fail()
    statement = found["statement"]
    if (found["format"], found["version"]) != (_FORMAT, _VERSION) or not isinstance(
        statement, dict
    ):
        fail()
    if set(statement) != set(_FIELDS) or not all(
        isinstance(statement[name], kind) for name, kind in _FIELDS.items()
    ):
        fail()
    prints = [found["signer"], *statement["parties"].values()]
    if not all(_is_hex(text, 64) for text in prints) or not _is_hex(found["signature"], 128):
        fail()
    return found


def _is_hex(text: Any, digits: int) -> bool:
    return isinstance(text, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", text) is not None


def _private_key(path: Path) -> Any:
    check_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        with path.open("rb") as file:
            rights, pem = os.fstat(file.fileno()).st_mode, file.read()
    except OSError:
        raise SignatureError(f"there is no key {path}, or it is not readable") from None
    if os.name == "posix" and rights & 0o077:
        raise SignatureError(
            f"the key {path} can be read by others: chmod 600, if nobody has read it yet; else "
            "make a new one"
        )
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(f"{path} has no key for signatures: privet sign --make-key makes one")
    return key


def _public_key(path: Path) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError:
        raise SignatureError(f"there is no key {path}, or it is not readable") from None
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(f"{path} has no public key for signatures: ask the signer for it")
    return key


def _fingerprint(key: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def fingerprint_of(public: str | Path) -> str:
    """Return the fingerprint of a public key, which its signer reads out."""
    check_cryptography()
    return _fingerprint(_public_key(Path(public)))


def statement_words(statement: Mapping[str, Any]) -> list[str]:
    """Say what a signature states, a line each."""
    parties = ", ".join(
        f"{quoted(name)} ({each[:16]}…)" for name, each in sorted(statement["parties"].items())
    )
    return [
        f"Model: SHA-256 {statement['model']}, learner {quoted(statement['learner'])}",
        f"Privacy card: SHA-256 {statement['card']}",
        f"Study: {quoted(statement['study']) if statement['study'] else 'not said'}",
        f"Parties: {parties or 'not said'}",
        f"Signed: {quoted(statement['time'])}",
    ]
