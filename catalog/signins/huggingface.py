"""Hugging Face: code with PKCE, and a device sign-in, for an OAuth app of one's own. Its tokens end after hours and are renewed where it gives the means.

Source: https://huggingface.co/docs/hub/oauth
"""

from __future__ import annotations

from catalog.signins import SignInAt


class HuggingFace(SignInAt):
    name = "huggingface"
    title = "Hugging Face"
    site = "https://huggingface.co"
    client = "needed"
    client_page = "https://huggingface.co/settings/applications/new"
    base_url = "https://router.huggingface.co/v1"
    scope = "openid profile inference-api"
    note = "Make a public OAuth app there, with the scope inference-api and the redirect address shown here."


SIGN_IN = HuggingFace()
