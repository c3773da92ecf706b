"""An address as a broker writes it into the group: Java's ``InetAddress.getHostAddress``."""

from __future__ import annotations

import ipaddress


def java_host(address: str) -> str:
    """IPv6 with all eight groups and no zeros in front, IPv4 as it is, also where it is mapped into IPv6.

    >>> java_host("::1"), java_host("10.0.0.7"), java_host("::ffff:10.0.0.7")
    ('0:0:0:0:0:0:0:1', '10.0.0.7', '10.0.0.7')
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in ip.exploded.split(":"))
