"""Other words of the field for names and values of the settings: those of Kafka's clients, of alerting, and of kagent's own tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kagent.contract.words import VERDICTS

OTHER_WORDS: Mapping[str, Collection[str]] = {
    "0_0_0_0": ("*", "+", "all", "any", "everywhere"),
    "auto": ("on", "true", "yes"),
    "bootstrap": ("addresses", "broker_list", "brokers", "metadata_broker_list", "servers"),
    "ca_file": ("ca", "ca_cert", "cacert", "ssl_ca_location", "ssl_cafile"),
    "cert_file": ("certificate", "ssl_certfile", "ssl_certificate_location"),
    "consumer": ("kip848", "kip_848"),
    "data": ("dir", "directory", "folder"),
    "earliest": ("beginning", "oldest", "smallest"),
    "host": ("address", "ip"),
    "ignore": ("blacklist", "denylist", "exclude", "skip"),
    "info": ("low", "minor", "notice"),
    "key_file": ("private_key", "ssl_key_location", "ssl_keyfile"),
    "latest": ("end", "largest", "newest"),
    "off": ("disabled", "false", "manual", "never", "no"),
    "owner": ("contact", "responsible", "team"),
    "page": ("critical", "error", "high", "urgent"),
    "routing_key": ("integration_key", "service_key"),
    "security": ("auth", "authentication", "ssl", "tls"),
    "ssl": ("tls",),
    "ticket": ("major", "medium", "warn", "warning"),
    **{str(verdict): (words.short.replace(" ", "_"),) for verdict, words in VERDICTS.items()},
}
"""Name or value, in lower case with underscores → words that others have for it, in lower case with underscores."""


def meant_by(word: str, known: Collection[str]) -> list[str]:
    """The one of ``known`` that this is another word for; else none."""
    found = [name for name in known if word in OTHER_WORDS.get(name, ())]
    return found if len(found) == 1 else []
