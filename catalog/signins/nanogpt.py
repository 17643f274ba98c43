"""NanoGPT: a short form of PKCE, and a device sign-in for command lines. Neither needs a registration; its keys last.

Source: https://nano-gpt.com/auth.md, https://docs.nano-gpt.com/integrations/cli-login
"""

from __future__ import annotations

from catalog.signins import SLOWER_S, Answer, Denied, Pending, Post, SignInAt, Tokens, plain, refuse, seconds, token_of, with_query

# What its polls say where other servers answer an error.
ENDED = {
    "expired": "The code ended before it was entered.",
    "consumed": "The key was fetched already.",
    "key_revoked": "The key was revoked.",
    "denied": "It was turned down there.",
}


class NanoGPT(SignInAt):
    name = "nanogpt"
    title = "NanoGPT"
    site = "https://nano-gpt.com"
    client = "none"
    base_url = "https://nano-gpt.com/api/v1"
    note = "Gives a key of its own, which lasts until you take it back at nano-gpt.com/api."

    def authorize_url(self, site: str, client_id: str, redirect_uri: str, state: str, challenge: str) -> str:
        return with_query(f"{site}/auth", {"callback_url": redirect_uri, "code_challenge": challenge, "code_challenge_method": "S256", "state": state})

    def exchange(self, site: str, client_id: str, redirect_uri: str, code: str, verifier: str) -> Post:
        return Post(f"{site}/api/v1/auth/keys", json_body={"code": code, "code_verifier": verifier})

    def read_tokens(self, answer: Answer) -> Tokens:
        refuse(answer)
        return Tokens(token_of(answer, "key" if "key" in answer.body else "access_token"), account=plain(answer.body.get("user_id")))

    def device_start(self, site: str, client_id: str) -> Post:
        return Post(f"{site}/api/cli-login/start", json_body={"client_name": "Benchwarmers"})

    def device_poll(self, site: str, client_id: str, device_code: str) -> Post:
        return Post(f"{site}/api/cli-login/poll", json_body={"device_code": device_code})

    def read_poll(self, answer: Answer) -> Tokens:
        said = answer.body.get("status")
        if said in ("authorization_pending", "pending"):
            raise Pending
        if said == "slow_down":
            raise Pending(SLOWER_S, seconds(answer.body.get("interval")))
        if isinstance(said, str) and said in ENDED:
            raise Denied(said, ENDED[said])
        return super().read_poll(answer)


SIGN_IN = NanoGPT()
