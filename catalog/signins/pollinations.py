"""Pollinations: code with PKCE, and a device sign-in. Its keys end after a week, and nothing renews them.

Source: https://github.com/pollinations/pollinations/blob/main/BRING_YOUR_OWN_POLLEN.md
"""

from __future__ import annotations

from catalog.signins import Post, SignInAt, filled


class Pollinations(SignInAt):
    name = "pollinations"
    title = "Pollinations"
    site = "https://enter.pollinations.ai"
    client = "optional"
    client_page = "https://enter.pollinations.ai/keys"
    base_url = "https://gen.pollinations.ai/v1"
    scope = "profile usage"
    authorize_path = "/authorize"
    token_path = "/api/oauth/token"  # noqa: S105
    note = "Its keys end after seven days and cannot be renewed: sign in again then. With an app key of your own (pk_…) the page there shows your app's name."

    def device_start(self, site: str, client_id: str) -> Post:
        return Post(f"{site}/api/device/code", json_body=filled({"client_id": client_id, "scope": self.scope}))

    def device_poll(self, site: str, client_id: str, device_code: str) -> Post:
        return Post(f"{site}/api/device/token", json_body={"device_code": device_code})


SIGN_IN = Pollinations()
