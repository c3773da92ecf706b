"""The demo's processes see no variable of kagent's: one that is set for a cluster of the person's own would win over the demo's file."""

from __future__ import annotations

from collections.abc import MutableMapping

from kagent.settings.given_settings import PREFIX

PLACES = ("KAGENT_CACHE", "KAGENT_MAVEN")
"""Where the Java archives are, on this machine and elsewhere, which has nothing to do with a cluster."""


def without_settings(environment: MutableMapping[str, str]) -> None:
    """Take kagent's variables out of the environment.

    With ``KAGENT_BOOTSTRAP`` the demo would create its topics, and run its consumers, on that cluster.
    """
    for name in [name for name in environment if name.upper().startswith(PREFIX) and name not in PLACES]:
        del environment[name]
