"""OpenRouter: PKCE without any registration. The key lasts until the person takes it back.

Source: https://openrouter.ai/docs/use-cases/oauth-pkce
"""

from __future__ import annotations

from catalog.signins import Answer, Post, SignInAt, Tokens, plain, refuse, token_of, with_query


class OpenRouter(SignInAt):
    name = "openrouter"
    title = "OpenRouter"
    site = "https://openrouter.ai"
    flows = ("code",)
    client = "none"
    base_url = "https://openrouter.ai/api/v1"
    note = "Gives a key of its own, which lasts until you take it back at openrouter.ai/settings/keys."
    state_in_path = True  # it knows no state

    def authorize_url(self, site: str, client_id: str, redirect_uri: str, state: str, challenge: str) -> str:
        return with_query(f"{site}/auth", {"callback_url": redirect_uri, "code_challenge": challenge, "code_challenge_method": "S256"})

    def exchange(self, site: str, client_id: str, redirect_uri: str, code: str, verifier: str) -> Post:
        return Post(f"{site}/api/v1/auth/keys", json_body={"code": code, "code_verifier": verifier, "code_challenge_method": "S256"})

    def read_tokens(self, answer: Answer) -> Tokens:
        refuse(answer)
        return Tokens(token_of(answer, "key"), account=plain(answer.body.get("user_id")))


SIGN_IN = OpenRouter()
