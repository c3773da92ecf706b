"""Hosts and client ids as hashes, if the settings have ``redact``: made once, in the roster, so that every output has them.

A name made of client id and host is made of their hashes; an instance id is a name that its owner chose, and stays.
The hash is HMAC-SHA256 under a salt: the same for the same name in every message, metric and process of one kagent.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

from kagent.contract.recommendation import Recommendation

MARK = "sha256:"
NO_SECRET = b"kagent"
"""The salt if none is set. It makes hashes, but a guessed address can be confirmed by hashing it."""


class Named(Protocol):
    """What a name is made of."""

    @property
    def instance_id(self) -> str | None: ...
    @property
    def client_id(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Redaction:
    """``fields``: which of ``host`` and ``client_id`` are hidden."""

    fields: frozenset[str] = frozenset()
    salt: bytes = NO_SECRET

    @classmethod
    def of(cls, fields: Collection[str], salt: str | None = None) -> Redaction:
        """By the settings."""
        return cls(frozenset(fields), salt.encode() if salt else NO_SECRET)

    def __bool__(self) -> bool:
        return bool(self.fields)

    def host(self, host: str) -> str:
        """The host as it may be published."""
        # Brokers write "/10.0.0.1", other sources "10.0.0.1": one host must have one hash.
        return self._hashed(host.removeprefix("/")) if "host" in self.fields else host

    def client_id(self, client_id: str) -> str:
        """The client id as it may be published."""
        return self._hashed(client_id) if "client_id" in self.fields else client_id

    def member_id(self, member_id: str) -> str:
        """The member id as it may be published: the broker builds it from the client id."""
        return self._hashed(member_id) if self.fields else member_id

    def name(self, member: Named) -> str:
        """The member's name as it may be published."""
        if not self.fields or member.instance_id:
            return member.name
        host = self.host(member.host)
        return f"{self.client_id(member.client_id)}{host if host.startswith('/') else f'/{host}'}"

    def checked(self, message: Recommendation) -> Recommendation:
        """The message; without all that names members if it was made before names were hidden."""
        if not any(
            self._clear(m.host, "host") or self._clear(m.client_id, "client_id") for m in message.members
        ):
            return message
        bare: dict[str, Any] = {"members": [], "moves": [], "assignment": None, "actions": [], "evidence": {}}
        reason = f"The {message.verdict.value} incident was opened before names were hidden."
        return message.model_copy(update={**bare, "reason": reason})

    def _clear(self, value: str | None, name: str) -> bool:
        return name in self.fields and value is not None and not value.startswith(MARK)

    def _hashed(self, value: str) -> str:
        # Keyed, not a plain hash: there are few enough addresses to hash all of them. Names are data, so a surrogate is no error.
        digest = hmac.new(self.salt, value.encode(errors="surrogatepass"), hashlib.sha256)
        # 48 bits: short enough for a table, and two of a thousand names meet once in half a billion cases.
        return MARK + digest.hexdigest()[:12]


CLEAR = Redaction()
