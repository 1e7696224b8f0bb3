"""What a party's side of a stream needs, and what both sides call a schema."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Protocol

from privet.federation.wire import encode
from privet.schema import Schema

#: What stands in the place of an address if a study's messages are carried by jobs of NVFlare.
NVFLARE = "nvflare"


class Answering(Protocol):
    """What a party's side of a stream needs: somebody who answers a study's questions."""

    #: The party's name.
    name: str

    def greet(self, study: str) -> dict[str, Any]:
        """Return what the party says first: plain values.

        ``version``, ``schema`` (its digest), ``name``, and ``last``, the last question's number
        that it knows. Raises a :class:`~privet.errors.PrivetError` if it takes no part.
        """

    def reply(self, study: str, message: bytes) -> bytes:
        """Return a coded Reply to a coded Request (:mod:`privet.federation.wire`).

        Never raises for what a coordinator sends.
        """

    def close(self) -> None:
        """End the books."""


def digest_of(schema: Schema) -> str:
    """Return what two schemas have in common if they say the same, but for the table's name."""
    return hashlib.sha256(encode(replace(schema, table=None).to_dict())).hexdigest()
