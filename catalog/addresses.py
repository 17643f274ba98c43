"""Where calls may go: an endpoint's host, which an admin named, may be private; all else is public only; a cloud's metadata is never called.

Checked when a connection is made, on the address that is then connected to, since a name may resolve differently each time it is asked.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from unicodedata import normalize
from urllib.parse import urlsplit

IP = ipaddress.IPv4Address | ipaddress.IPv6Address

# Credentials of the machine lie behind these, for whoever asks from it. Link-local as a whole, since clouds keep adding to it.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html and the like of each cloud.
METADATA = tuple(
    ipaddress.ip_network(net)
    for net in (
        "169.254.0.0/16",  # AWS, Azure, Google, DigitalOcean, Oracle; AWS's task credentials
        "fe80::/10",
        "fd00:ec2::/32",  # AWS
        "fd20:ce::/32",  # Google
        "fd00:42::42/128",  # Scaleway
        "100.100.100.200/32",  # Alibaba
        "192.0.0.192/32",  # Oracle, classic
        "168.63.129.16/32",  # Azure's host agent
    )
)
METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"})

# Networks of an own house: an endpoint that an admin named may be there. 0.0.0.0 is what servers print of themselves, and means loopback.
OWN_NETWORKS = tuple(
    ipaddress.ip_network(net)
    for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "100.64.0.0/10", "0.0.0.0/32", "::1/128", "::/128", "fc00::/7")
)
# What Python's table calls global though no public server is there.
NOT_PUBLIC = tuple(ipaddress.ip_network(net) for net in ("192.88.99.0/24", "2001::/23", "5f00::/16", "fec0::/10"))
# IPv6 addresses that carry an IPv4 one, and where in their 128 bits it stands.
CARRIERS = (
    (ipaddress.ip_network("::ffff:0:0/96"), 0),
    (ipaddress.ip_network("::/96"), 0),
    (ipaddress.ip_network("64:ff9b::/96"), 0),
    (ipaddress.ip_network("64:ff9b:1::/48"), 0),
    (ipaddress.ip_network("2002::/16"), 80),
)
LOCAL_SUFFIXES = (
    "localhost",
    "local",
    "internal",
    "localdomain",
    "lan",
    "home",
    "home.arpa",
    "corp",
    "intranet",
    "private",
    "onion",
)  # fmt: skip
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NUMERIC_PART = re.compile(r"0x[0-9a-f]*|[0-9]+")
LONGEST_URL = 8192


class AddressRefused(Exception):
    """An address that this server does not connect to, or does not pass on."""

    code = "address_refused"


def carried(ip: IP) -> IP:
    """Gives the IPv4 address inside an IPv6 one, else the address itself."""
    if isinstance(ip, ipaddress.IPv6Address) and int(ip) > 1:
        for network, shift in CARRIERS:
            if ip in network:
                return ipaddress.IPv4Address((int(ip) >> shift) & 0xFFFFFFFF)
    return ip


def plain_ip(ip: str | IP) -> IP:
    """Errors: ValueError where it is no IP address."""
    return carried(ipaddress.ip_address(ip.partition("%")[0].strip("[]")) if isinstance(ip, str) else ip)


def is_metadata(ip: str | IP) -> bool:
    address = plain_ip(ip)
    return any(address in network for network in METADATA)


def is_public(ip: str | IP) -> bool:
    """Tells whether an address belongs to the public internet."""
    address = plain_ip(ip)
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in (*METADATA, *OWN_NETWORKS, *NOT_PUBLIC))
    )


def check_ip(ip: str | IP, named: bool) -> None:
    """Checks one address before it is connected to. `named`: an admin named the host as an endpoint's.

    Errors: AddressRefused.
    """
    try:
        address = plain_ip(ip)
    except ValueError:
        raise AddressRefused("The host did not resolve to an IP address.") from None
    if is_metadata(address):
        raise AddressRefused("It is a link-local or cloud metadata address, which is never called.")
    if is_public(address) or (named and any(address in network for network in OWN_NETWORKS)):
        return
    if named:
        raise AddressRefused("It is a special-purpose address, where no server can be.")
    raise AddressRefused("It is a private or special address; only endpoints that an admin named may have one.")


def literal(host: str) -> IP | None:
    """Reads a host as an IP address in any spelling that resolvers take (2130706433, 0x7f.1, 0177.0.0.1), None where it is a name."""
    # What connects may read wide digits and other full stops as plain ones.
    bare = normalize("NFKC", host).replace("\u3002", ".").strip("[]").rstrip(".").lower()
    try:
        return plain_ip(bare)
    except ValueError:
        pass
    if not all(NUMERIC_PART.fullmatch(part) for part in bare.split(".")):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(bare))
    except (OSError, ValueError):
        return None


def check_host(host: str, named: bool) -> None:
    """Checks what can be told of a host without asking a resolver. Errors: AddressRefused."""
    name = normalize("NFKC", host).replace("\u3002", ".").rstrip(".").lower()
    if name in METADATA_NAMES:
        raise AddressRefused("It is a cloud metadata name, which is never called.")
    if (address := literal(host)) is not None:
        check_ip(address, named)
    elif not named and is_local_name(name):
        raise AddressRefused("It is a local name; only endpoints that an admin named may have one.")


def is_local_name(host: str) -> bool:
    """Tells whether a name, from its spelling alone, is one of an own network."""
    name = host.rstrip(".").lower()
    return "." not in name or any(name == suffix or name.endswith("." + suffix) for suffix in LOCAL_SUFFIXES)


def resolve(host: str, port: int, named: bool) -> list[str]:
    """Asks the resolver, and gives the addresses that may be connected to.

    Errors: AddressRefused where any of them may not (one good answer among bad ones is how rebinding begins); OSError where there are none.
    """
    check_host(host, named)
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        check_ip(address, named)
    return addresses


def check_image_url(url: str) -> None:
    """Checks an image's address that is passed on to a provider as it is: public http or https, by name.

    Errors: AddressRefused; its text holds nothing of the address.
    """
    if len(url) > LONGEST_URL:
        raise AddressRefused(f"An image address must have at most {LONGEST_URL:,} characters.")
    if any(char.isspace() or not char.isprintable() for char in url) or "\\" in url:
        raise AddressRefused("An image address must not hold spaces, line breaks or backslashes.")
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise AddressRefused("The image address cannot be read.") from None
    if parts.scheme not in ("http", "https"):
        raise AddressRefused("An image address must begin with http:// or https://, or be a data: URL.")
    if "@" in parts.netloc:
        raise AddressRefused("An image address must not hold a user name or password.")
    try:
        ascii_host = host.encode("idna").decode("ascii").lower() if not host.isascii() else host.lower()
    except UnicodeError:
        raise AddressRefused("The image address's host cannot be read.") from None
    if literal(ascii_host) is not None or ":" in ascii_host or NUMERIC_PART.fullmatch(ascii_host.rsplit(".", 1)[-1]):
        raise AddressRefused("An image address must name its host; IP addresses in any spelling are refused.")
    labels = ascii_host.split(".")
    if len(ascii_host) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise AddressRefused("The image address's host cannot be read.")
    if is_local_name(ascii_host):
        raise AddressRefused("The image address is a local one. Send the image as a data: URL.")
