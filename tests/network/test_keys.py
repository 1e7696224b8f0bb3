"""Keys are made where they are used; others know them by fingerprints."""

import stat

import pytest

from privet.errors import FederationError, OutputError
from privet.network import Certificate, Identity, keys
from privet.network.keys import check_vouched, read_fingerprint, show_fingerprint

MASK_KEY = bytes(range(32))


@pytest.fixture
def north(tmp_path):
    return Identity.make(tmp_path / "n.key", tmp_path / "n.pem", "north")


def test_a_key_is_for_its_owner_alone_and_is_never_replaced(tmp_path, north):
    key = tmp_path / "n.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert b"PRIVATE" not in (tmp_path / "n.pem").read_bytes()
    for files in (("n.key", "n.pem"), ("m.key", "n.pem"), ("n.key", "m.pem")):
        with pytest.raises((FederationError, OutputError), match="already"):
            Identity.make(*(tmp_path / each for each in files), "north")
    assert Identity(key, tmp_path / "n.pem").fingerprint == north.fingerprint
    assert not (tmp_path / "m.key").exists()
    assert not (tmp_path / "m.pem").exists()
    key.chmod(0o640)
    with pytest.raises(FederationError, match="can be read by others"):
        Identity(key, tmp_path / "n.pem")


def test_a_renewed_certificate_has_the_same_fingerprint(tmp_path, north):
    before = (tmp_path / "n.pem").read_bytes()
    again = Identity.renew(tmp_path / "n.key", tmp_path / "n.pem", "north")
    assert again.certificate.pem != before
    assert again.fingerprint == north.fingerprint


def test_clocks_may_differ_by_minutes(north):
    """A new certificate is valid at once, also where it is still yesterday evening."""
    north.certificate.check_dates()
    begin = north.certificate._read.not_valid_before_utc
    assert (north.certificate.until - begin).days > keys.DAYS


def test_dates_are_checked_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "DAYS", -0.5)
    old = Identity.make(tmp_path / "o.key", tmp_path / "o.pem", "old")
    with pytest.raises(FederationError, match=r"this site ended on .* renews it"):
        old.certificate.check_dates()


def test_files_that_are_none(tmp_path, north):
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(FederationError, match="'x' cannot be read: it is no PEM file"):
        Certificate.read(tmp_path / "bad.pem", "'x'")
    with pytest.raises(FederationError, match="there is no file"):
        Certificate.read(tmp_path / "none.pem", "'x'")
    with pytest.raises(FederationError, match="has a private key in it"):
        Certificate.read(tmp_path / "n.key", "'x'")
    with pytest.raises(FederationError, match="no such file"):
        Identity(tmp_path / "none.key", tmp_path / "n.pem")
    (tmp_path / "bad.key").write_text("nothing")
    (tmp_path / "bad.key").chmod(0o600)
    with pytest.raises(FederationError, match="no key that privet has made"):
        Identity(tmp_path / "bad.key", tmp_path / "n.pem")
    Identity.make(tmp_path / "s.key", tmp_path / "s.pem", "south")
    with pytest.raises(FederationError, match="do not belong together"):
        Identity(tmp_path / "s.key", tmp_path / "n.pem")
    with pytest.raises(FederationError, match="up to 64 characters"):
        Identity.make(tmp_path / "e.key", tmp_path / "e.pem", "x" * 65)


def test_fingerprints_are_read_as_people_write_them(north):
    shown = show_fingerprint(north.fingerprint)
    for text in (shown, shown.upper(), f"SHA256:{north.fingerprint}", shown.replace(" ", ":")):
        assert read_fingerprint(text) == north.fingerprint
    for text in (shown[:-1], f"{shown}0", "", 7, None, shown.replace(shown[0], "g")):
        with pytest.raises(FederationError, match="64 hexadecimal digits"):
            read_fingerprint(text)
    with pytest.raises(FederationError, match="another key than the fingerprint says"):
        north.certificate.check_pinned("00" * 32)


def test_a_signed_key_is_taken_only_from_who_is_pinned(tmp_path, north):
    vouched = north.vouch("study", "north", MASK_KEY)
    assert check_vouched("study", "north", vouched, north.fingerprint) == MASK_KEY
    other = Identity.make(tmp_path / "c.key", tmp_path / "c.pem", "coordinator")
    forged = [
        # another key, another study, another name, another signer, another's key with this print
        ("study", "north", bytes(32) + vouched[32:], north),
        ("other", "north", vouched, north),
        ("study", "south", vouched, north),
        ("study", "north", other.vouch("study", "north", MASK_KEY), north),
        ("study", "north", vouched, other),
        ("study", "north", vouched[:-1], north),
        ("study", "north", vouched + b"0", north),
        ("study", "north", MASK_KEY, north),
        ("study", "north", b"", north),
        ("study", "north", None, north),
    ]
    for study, name, given, signer in forged:
        with pytest.raises(FederationError, match="is not signed by the key"):
            check_vouched(study, name, given, signer.fingerprint)
    for place in range(len(vouched)):  # no bit may be another
        wrong = bytearray(vouched)
        wrong[place] ^= 1
        with pytest.raises(FederationError, match="is not signed"):
            check_vouched("study", "north", bytes(wrong), north.fingerprint)
