"""A ChatGPT plan: the device sign-in of the Codex CLI, with that program's public client id. Off until an admin switches it on.

The CLI's way by the browser comes back to http://localhost:1455/auth/callback and nowhere else; this server is not there, so it is not offered.
Finishing takes one request more than elsewhere: what a poll brings is a code with its verifier, which is then exchanged.
"""

from __future__ import annotations

from catalog.signins import Answer, Denied, Device, Pending, Post, SignInAt, Tokens, plain, read_tokens, refuse, seconds
from catalog.token_claims import claim

CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"
VALID_S = 900.0
PROFILE, AUTH = "https://api.openai.com/profile", "https://api.openai.com/auth"


class ChatGPT(SignInAt):
    name = "chatgpt"
    title = "ChatGPT plan"
    site = "https://auth.openai.com"
    flows = ("device",)
    client = "none"
    needs_consent = True
    note = (
        "This is a private backend, reached with the Codex CLI's public client id. It is not a documented sign-in for other programs: it may stop working, "
        "and may end with the account. Device sign-ins must be allowed in the account's security settings."
    )
    kind = "chatgpt"
    base_url = "https://chatgpt.com/backend-api/codex"
    scope = "openid profile email"

    def device_start(self, site: str, client_id: str) -> Post:
        return Post(f"{site}/api/accounts/deviceauth/usercode", json_body={"client_id": CLIENT_ID})

    def read_device(self, site: str, answer: Answer) -> Device:
        if answer.status == 404:
            raise Denied("not_allowed", "It offers no device sign-in to this program now.")
        refuse(answer)
        device, code = answer.body.get("device_auth_id"), plain(answer.body.get("user_code") or answer.body.get("usercode"), 60)
        # Both are sent with each poll; neither may hold what keeps them apart.
        if not isinstance(device, str) or not device or not code or " " in device + code:
            raise Denied("no_code", "It answered without a code to type.")
        return Device(f"{device} {code}", code, f"{site}/codex/device", "", VALID_S, min(seconds(answer.body.get("interval")) or 5.0, 300.0))

    def device_poll(self, site: str, client_id: str, device_code: str) -> Post:
        device, _, code = device_code.partition(" ")
        return Post(f"{site}/api/accounts/deviceauth/token", json_body={"device_auth_id": device, "user_code": code})

    def device_exchange(self, site: str, client_id: str, answer: Answer) -> Post | None:
        if answer.status in (403, 404):
            raise Pending
        refuse(answer)
        code, verifier = answer.body.get("authorization_code"), answer.body.get("code_verifier")
        if not (isinstance(code, str) and code and isinstance(verifier, str) and verifier):
            raise Denied("no_code", "It answered without a code to exchange.")
        return self.exchange(site, CLIENT_ID, f"{site}/deviceauth/callback", code, verifier)

    def read_tokens(self, answer: Answer) -> Tokens:
        tokens = read_tokens(answer)
        account = claim(tokens.access, PROFILE, "email") or claim(tokens.access, AUTH, "chatgpt_account_id")
        return Tokens(tokens.access, tokens.refresh, tokens.expires_in_s, plain(account))

    def refresh(self, site: str, client_id: str, refresh_token: str) -> Post:
        asked = super().refresh(site, CLIENT_ID, refresh_token)
        return Post(asked.url, {**(asked.form or {}), "scope": self.scope})


SIGN_IN = ChatGPT()
