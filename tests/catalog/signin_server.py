"""The sign-in side of every provider on a real socket, each below a path of its own. It checks what it is sent as the real ones do, and keeps it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

Body = dict[str, Any]
PROVIDERS = ("openrouter", "nanogpt", "pollinations", "huggingface", "github")
SWITCHED = ("chatgpt",)  # off until an admin switches them on
PENDING = {"error": "authorization_pending"}


class Asked:
    """One post that came. Shape: `path` without the provider's part."""

    def __init__(self, provider: str, path: str, media_type: str, body: Body) -> None:
        self.provider, self.path, self.media_type, self.body = provider, path, media_type, body


class SignInServer:
    """Shape: `answers` holds, by provider and path, what the next posts get instead of the usual; `secrets` all that must turn up nowhere."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.asked: list[Asked] = []
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.granted: dict[str, Body] = {}  # code → what its page was asked with
        self.approved: set[str] = set()
        self.refreshes: set[str] = set()
        self.rotates = True
        self.expires_in: int | None = 28_800
        self.numbers = itertools.count(1)
        self.secrets: list[str] = []
        self.lock = threading.Lock()
        self.meanwhile: Callable[[], None] | None = None  # done while a post waits for its answer

    @property
    def urls(self) -> dict[str, str]:
        """What BENCH_SIGNIN_URLS comes to."""
        return {name: f"{self.url}/{name}" for name in (*PROVIDERS, *SWITCHED)}

    def secret(self, what: str) -> str:
        made = f"zq{what}{next(self.numbers):03d}vx8Kq2Lw7Tn4Rb"
        self.secrets.append(made)
        return made

    def answer(self, provider: str, path: str, *answers: tuple[int, Any]) -> None:
        self.answers.setdefault(provider + path, []).extend(answers)

    def posts(self, path: str = "") -> list[Asked]:
        return [one for one in self.asked if one.path == path or not path]

    def token_of(self, provider: str) -> str:
        """An access token. ChatGPT's says whose it is."""
        if provider not in SWITCHED:
            return self.secret("token")
        said = {"https://api.openai.com/auth": {"chatgpt_account_id": "acct-42"}, "https://api.openai.com/profile": {"email": "anna@example.org"}}
        head, payload = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "RS256"}, said))
        self.secrets.append(f"{head}.{payload}.{self.secret('signature')}")
        return self.secrets[-1]

    # ---- what a person does there

    def agree(self, authorize_url: str, **more: str) -> str:
        """Agrees on the page, and gives the address that the browser is sent back to."""
        parts = urlsplit(authorize_url)
        said = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert said["code_challenge_method"] == "S256"
        assert len(said["code_challenge"]) == 43
        code = self.secret("code")
        self.granted[code] = {**said, "provider": parts.path.split("/")[1]}
        return self.back(said, {"code": code, **more})

    def turn_down(self, authorize_url: str) -> str:
        said = {name: values[0] for name, values in parse_qs(urlsplit(authorize_url).query).items()}
        return self.back(said, {"error": "access_denied", "error_description": "<b>no</b>"})

    def back(self, said: Body, more: Body) -> str:
        if "state" in said:
            more = {**more, "state": said["state"]}
        return f"{said.get('redirect_uri') or said['callback_url']}?{urlencode(more)}"

    def approve(self, user_code: str) -> None:
        """Types the code in."""
        self.approved.add(user_code)

    # ---- what it answers

    def reply(self, asked: Asked) -> tuple[int, Any]:
        waiting = self.answers.get(asked.provider + asked.path)
        if waiting:
            return waiting.pop(0)
        body = asked.body
        match asked.path:
            case "/api/v1/auth/keys":
                assert asked.media_type == "application/json"
                if not self.redeem(asked.provider, body.get("code", ""), body.get("code_verifier", "")):
                    return 403, {"error": {"code": 403, "message": f"Invalid code {body.get('code')}"}}
                key = self.secret("key")
                return 200, {"key": key, "user_id": "user_42"}
            case "/api/cli-login/start" | "/api/device/code" | "/oauth/device" | "/login/device/code":
                assert asked.provider == "nanogpt" or body.get("client_id") or asked.provider == "pollinations"
                number = next(self.numbers)
                page = "/device" if asked.provider == "pollinations" else f"{self.url}/{asked.provider}/device"
                more = {} if asked.provider == "pollinations" else {"expires_in": 600, "interval": 2}
                self.secrets.append(f"zqdevice{number:03d}vx8Kq2Lw7Tn4Rb")
                return 200, {"device_code": self.secrets[-1], "user_code": f"AB-{number:03d}", "verification_uri": page, **more}
            case "/api/cli-login/poll":
                if not self.is_approved(body["device_code"]):
                    return 200, {"status": "authorization_pending"}
                return 200, {"status": "approved", "key": self.secret("key")}
            case "/api/device/token" | "/oauth/token" | "/api/oauth/token" | "/login/oauth/access_token":
                return self.token(asked)
            case "/api/accounts/deviceauth/usercode":
                number = next(self.numbers)
                self.secrets.append(f"zqdevice{number:03d}vx8Kq2Lw7Tn4Rb")
                return 200, {"device_auth_id": self.secrets[-1], "user_code": f"AB-{number:03d}", "interval": "5"}
            case "/api/accounts/deviceauth/token":
                return self.device_code(body)
        return 404, {"error": "not_found"}

    def is_approved(self, device_code: str) -> bool:
        return f"AB-{device_code.removeprefix('zqdevice')[:3]}" in self.approved

    def device_code(self, body: Body) -> tuple[int, Any]:
        """What a poll brings at ChatGPT: a code with its verifier, good for one exchange."""
        if not self.is_approved(body["device_auth_id"]) or body["user_code"] not in self.approved:
            return 403, {"error": {"message": "Device authorization is unknown."}}
        code, verifier = self.secret("code"), self.secret("verifier")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        home = f"{self.urls['chatgpt']}/deviceauth/callback"
        client_id = next(one for one in self.asked if one.path.endswith("usercode")).body["client_id"]
        self.granted[code] = {"provider": "chatgpt", "code_challenge": challenge, "redirect_uri": home, "client_id": client_id}
        return 200, {"authorization_code": code, "code_verifier": verifier, "code_challenge": challenge}

    def redeem(self, provider: str, code: str, verifier: str) -> Body | None:
        """A code is good once, where it was asked for, for who holds the verifier."""
        said = self.granted.get(code)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if said is None or said["provider"] != provider or said["code_challenge"] != challenge:
            return None
        self.secrets.append(verifier)
        return self.granted.pop(code)

    def token(self, asked: Asked) -> tuple[int, Any]:
        body, error = asked.body, 200 if asked.provider == "github" else 400
        if body.get("grant_type") == "authorization_code":
            said = self.redeem(asked.provider, body.get("code", ""), body.get("code_verifier", ""))
            if said is None or said["redirect_uri"] != body.get("redirect_uri") or said.get("client_id") != body.get("client_id"):
                return error, {"error": "invalid_grant", "error_description": f"bad code {body.get('code')}"}
        elif body.get("grant_type") == "refresh_token":
            with self.lock:
                if body["refresh_token"] not in self.refreshes:
                    return error, {"error": "invalid_grant", "error_description": f"unknown token {body['refresh_token']}"}
                if self.rotates:
                    self.refreshes.remove(body["refresh_token"])
        elif not self.is_approved(body["device_code"]):
            return error, PENDING
        refreshed: Body = {}
        if asked.provider in ("huggingface", "github", *SWITCHED) and (self.rotates or body.get("grant_type") != "refresh_token"):
            refreshed = {"refresh_token": self.secret("refresh")}
            self.refreshes.add(refreshed["refresh_token"])
        ends = {} if self.expires_in is None else {"expires_in": self.expires_in}
        return 200, {"access_token": self.token_of(asked.provider), "token_type": "bearer", **refreshed, **ends}


@contextmanager
def serving() -> Iterator[SignInServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            media_type = self.headers.get("Content-Type", "")
            provider, _, path = self.path.lstrip("/").partition("/")
            asked = Asked(provider, f"/{path}", media_type, json.loads(raw) if media_type == "application/json" else dict(parse_qsl(raw)))
            fake.asked.append(asked)
            if fake.meanwhile is not None:
                fake.meanwhile()
            status, body = fake.reply(asked)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.give(status, data, "text/html" if isinstance(body, bytes) else "application/json")

        def do_GET(self) -> None:
            """The page: whoever opens it agrees."""
            self.give(302, b"", "text/html", location=fake.agree(self.path))

        def give(self, status: int, data: bytes, media_type: str, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"content-type": media_type, "content-length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake = SignInServer(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
