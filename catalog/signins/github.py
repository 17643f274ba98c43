"""GitHub Models: a device sign-in, for a GitHub App or OAuth app of one's own. GitHub answers errors with status 200.

Source: https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

from __future__ import annotations

from catalog.signins import SignInAt


class GitHub(SignInAt):
    name = "github"
    title = "GitHub Models"
    site = "https://github.com"
    flows = ("device",)
    client = "needed"
    client_page = "https://github.com/settings/apps/new"
    base_url = "https://models.github.ai/inference"
    device_path = "/login/device/code"
    token_path = "/login/oauth/access_token"  # noqa: S105
    note = "Make a GitHub App there with the account permission Models (read) and the device flow switched on; its client id begins with Iv."


SIGN_IN = GitHub()
