"""The `bench` command as a wheel, so that any machine which reaches this server can install the client that fits it.

Anybody may have it: it holds no secret, and an installer such as pip sends no key.
"""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework import permissions
from rest_framework.request import Request
from rest_framework.response import Response

from panels import wheel
from panels.api import server_shapes, shapes
from panels.api.view import View, answer
from wire.errors import CallerError


@cache
def offered() -> wheel.Wheel:
    """The wheel of this server's own client, made at the first request."""
    return wheel.build(settings.CLIENT_FOLDER)


def found() -> wheel.Wheel:
    """Errors: CallerError 404 where the server was put up without its client."""
    try:
        return offered()
    except wheel.NoSource as error:
        raise CallerError("not_found", f"This server has no client to offer. {error}", status=404) from None


class Open(View):
    """A path that anybody may read; a key that is sent is checked all the same."""

    permission_classes = [permissions.AllowAny]


class Client(Open):
    @shapes.described(operation_id="get_client", responses=server_shapes.ClientOffered, auth=[{}])
    def get(self, request: Request) -> Response:
        """Tells which client this server offers, where it is, and how it is installed."""
        it = found()
        here: str = settings.PUBLIC_URL or request.build_absolute_uri("/").rstrip("/")
        url = f"{here}/bench/client/{it.file}"
        install = {
            "pipx": f"pipx install {url}",
            "uv": f"uv tool install {url}",
            "pip": f"python3 -m pip install {url}#sha256={it.sha256}",
        }
        return answer(
            {
                "name": it.name,
                "version": it.version,
                "requires_python": it.requires_python,
                "file": it.file,
                "url": url,
                "size": len(it.data),
                "sha256": it.sha256,
                "install": install,
            }
        )


class ClientFile(Open):
    @shapes.described(operation_id="download_client", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY}, auth=[{}])
    def get(self, request: Request, file: str) -> HttpResponse:
        """Gives the wheel. Its file name holds the version, which installers read there."""
        it = found()
        if file != it.file:
            raise CallerError("not_found", f"There is no such file. This server offers {it.file}.", status=404)
        return HttpResponse(it.data, content_type="application/octet-stream", headers={"Content-Disposition": f'attachment; filename="{it.file}"'})
