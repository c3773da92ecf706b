"""Other words of the field for names and values of the settings: those of Kafka's clients, of alerting, and of kagent's own tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kagent.contract.recommendation import Verdict
from kagent.contract.words import VERDICTS

EVERYTHING = ("*", "+", "all", "any", "both", "everything", "everywhere")
"""Words for all there is."""
OTHER_WORDS: Mapping[str, Collection[str]] = {
    "0_0_0_0": EVERYTHING,
    "alert": ("notification", "notifications"),
    "auto": ("on", "true", "yes"),
    "bootstrap": (
        "address",
        "addresses",
        "broker_list",
        "brokers",
        "host",
        "hosts",
        "metadata_broker_list",
        "port",
        "servers",
        "url",
    ),
    "ca_file": ("ca", "ca_cert", "cacert", "ssl_ca_location", "ssl_cafile"),
    "cert_file": ("certificate", "ssl_certfile", "ssl_certificate_location"),
    "classic": ("franz_go", "go", "kafkajs", "sarama"),
    "consumer": ("kip848", "kip_848"),
    "data": ("dir", "directory", "folder"),
    "destinations": (
        "contact_points",
        "notifier",
        "notifiers",
        "receiver",
        "receivers",
        "route",
        "routes",
        "routing",
    ),
    "earliest": ("beginning", "oldest", "smallest"),
    "groups": ("overrides", "patterns", "rules"),
    "host": ("address", "ip"),
    "ignore": ("blacklist", "denylist", "exclude", "skip"),
    "info": ("low", "minor", "none", "notice", "off", "p4", "p5"),
    "key_file": ("private_key", "ssl_key_location", "ssl_keyfile"),
    "latest": ("end", "largest", "newest"),
    "match": ("glob", "group", "name", "pattern", "regex"),
    "min_behind": ("lag", "lag_seconds", "lag_threshold", "max_lag", "max_lag_seconds", "min_lag"),
    "none": ("anonymous", "disabled", "false", "no", "off", "open"),
    "off": ("disabled", "false", "manual", "never", "no"),
    "owner": ("contact", "responsible", "team"),
    "page": ("critical", "error", "high", "p0", "p1", "sev1", "urgent"),
    "page_behind": ("page_after", "page_delay"),
    "password": ("api_secret", "passphrase", "sasl_password"),
    "proxy": ("ldap", "oauth2", "oidc", "saml", "sso"),
    "reset_policy": ("auto_offset_reset", "offset_reset"),
    "routing_key": ("api_key", "integration_key", "service_key"),
    "security": ("auth", "authentication", "ssl", "tls"),
    "ssl": ("tls",),
    "ticket": ("major", "medium", "p2", "p3", "sev2", "warn", "warning"),
    "token": ("basic", "bearer"),
    "username": ("api_key", "sasl_username"),
    "web_port": ("http_port", "listen_port", "port"),
    **{str(verdict): (words.short.replace(" ", "_"),) for verdict, words in VERDICTS.items()},
    "rebalance": (VERDICTS[Verdict.REBALANCE].short.replace(" ", "_"), "imbalance", "skew", "skewed"),
}
"""Name or value, in lower case with underscores → words that others have for it, in lower case with underscores."""


NO_SETTING: Mapping[str, str] = {
    **dict.fromkeys(
        ("check_hostname", "insecure_skip_verify", "ssl_endpoint_identification_algorithm", "verify", "verify_ssl"),
        "certificates and host names are always checked, and ca_file names the authority",
    ),
    **dict.fromkeys(
        ("debug", "log_level", "logging", "loglevel", "verbose"),
        "`--verbose` behind a command prints more, and `kagent worker --loglevel DEBUG`",
    ),
    **dict.fromkeys(("active", "enable", "enabled"), "what stands in the file is in effect; `ignore: true` leaves groups out"),
    "api_version": "this is a manifest of Kubernetes, and kagent reads what its data holds",
    "version": "the file has no version",
    **dict.fromkeys(("extends", "import", "include", "includes"), "a settings file includes no other"),
    **dict.fromkeys(("headers", "method"), "a webhook is a POST without headers of your own: `secret` signs it"),
    **dict.fromkeys(("maintenance", "mute", "muted", "mutes", "quiet_hours", "schedule"), "`kagent mute` silences a group for a while"),
}  # fmt: skip
"""What people look for in the settings and there is no setting or value for, in lower case with underscores → what there is in its
place."""
NO_SETTING_WITH: Mapping[str, str] = {
    **dict.fromkeys(
        ("callback", "gssapi", "iam", "kerberos", "oauth", "oauthbearer"), "kagent does not log in by that"
    ),
    **dict.fromkeys(
        ("cipher", "ciphers", "engine", "protocols", "provider"), "TLS negotiates that by itself"
    ),
    **dict.fromkeys(
        ("executor", "executors", "shuffle"),
        "Spark's own settings stand in pipeline.options by their whole names, such as spark.executor.memory",
    ),
    "env": "a variable has the name of the setting, such as KAGENT_CLUSTERS__MAIN__SECURITY__PASSWORD",
    "jaas": "the login stands in username and password",
    "keystore": "a Java keystore is not read: make PEM files of it, for cert_file and key_file",
    "pem": "a PEM stands in a file: ca_file, cert_file, key_file",
    "verification": "certificates and host names are always checked, and ca_file names the authority",
    "truststore": "a Java keystore is not read: make a PEM file of it, for ca_file",
}
"""As NO_SETTING, by a word that is in the name: `ssl.keystore.location` and `keystore_password` are of one kind."""
NO_SETTING_BESIDE: Mapping[str, Mapping[str, str]] = {
    "proxy_header": dict.fromkeys(
        ("basic_auth", "htpasswd", "password", "password_file", "user", "username", "users"),
        "kagent's page has no users: write login: token with token, or login: proxy where a proxy logs them in",
    )
}
"""A setting that one section has → what people look for beside it in vain and other sections have, as in NO_SETTING."""


def meant_by(word: str, known: Collection[str]) -> list[str]:
    """The one of ``known`` that this is another word for; else none."""
    found = [name for name in known if word in OTHER_WORDS.get(name, ())]
    return found if len(found) == 1 else []


def meant_by_part(word: str, known: Collection[str]) -> list[str]:
    """The one of ``known`` for which another word has all parts of this: `uneven` is some of `uneven_work`; else none."""
    parts = set(word.split("_"))
    found = [
        name for name in known if any(parts <= set(other.split("_")) for other in OTHER_WORDS.get(name, ()))
    ]
    return found if len(found) == 1 else []
