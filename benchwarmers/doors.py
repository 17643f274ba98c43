"""The listening socket, held by the supervisor: a web server that dies and comes back refuses nobody meanwhile."""

from __future__ import annotations

import errno
import socket

from benchwarmers.refusals import Refusal

BACKLOG = 4096


def open_door(host: str, port: int) -> socket.socket:
    """Binds without listening yet; port 0 takes a free one. Errors: Refusal, naming the setting."""
    bare = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (socket.gaierror, UnicodeError, OverflowError) as error:
        raise Refusal(f"The address {bare} is unknown ({error}). Set BENCH_HOST to an address of this machine.") from None
    door = socket.socket(family, kind, protocol)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and bare == "::":
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # both families, as most people expect of it
        door.bind(address)
    except OSError as error:
        door.close()
        if error.errno == errno.EADDRINUSE:
            raise Refusal(f"Port {port} on {bare} is taken by another program. Set BENCH_PORT, or end that program.") from None
        if error.errno == errno.EACCES:
            raise Refusal(f"Port {port} needs rights this user does not have. Set BENCH_PORT to 1024 or higher.") from None
        raise Refusal(f"Cannot listen on {bare} port {port}: {error.strerror}. Set BENCH_HOST and BENCH_PORT.") from None
    return door


def local_address(door: socket.socket) -> tuple[str, int]:
    """How programs on this machine reach the door: an address that stands for all becomes the loopback one."""
    host, port = door.getsockname()[:2]
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port  # noqa: S104


def url_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def knock(host: str, port: int) -> socket.socket:
    """Asks `/livez`; the socket becomes readable once a worker answers. Errors: OSError."""
    caller = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    caller.settimeout(2)
    try:
        caller.connect((host, port))
    except OSError:
        caller.close()
        raise
    caller.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return caller
