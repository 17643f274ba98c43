"""What the sign-in paths take and give, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s


class SignInProvider(s.Serializer[Any]):
    name = s.CharField()
    title = s.CharField()
    flows = s.ListField(child=s.CharField(), help_text="code, device or both.")
    client = s.ChoiceField(choices=["none", "optional", "needed"], help_text="Whether an app of your own must be registered there.")
    client_page = s.CharField(help_text="Where to register one.")
    client_id = s.CharField(help_text="The one in the setting signins.<name>_client_id.")
    endpoint = s.CharField(help_text="The endpoint that is made or renewed where none is named.")
    base_url = s.CharField()
    note = s.CharField()
    redirect_uri = s.CharField(help_text="What to register as the app's redirect address.")


class SignInAsked(s.Serializer[Any]):
    provider = s.CharField()
    flow = s.CharField(required=False, help_text="code or device; the provider's first without it.")
    endpoint = s.CharField(required=False, max_length=200, help_text="The provider's name without it. It is made where there is none.")
    client_id = s.CharField(required=False, max_length=300, help_text="The setting's without it.")


class SignIn(s.Serializer[Any]):
    id = s.CharField()
    provider = s.CharField()
    flow = s.CharField(help_text="code or device.")
    endpoint = s.CharField()
    state = s.CharField(help_text="open, done or failed.")
    message = s.CharField(help_text="Why it failed, or what went wrong last.")
    account = s.CharField(help_text="Whose it is, where the provider tells.")
    user_code = s.CharField(help_text="What to type there, while it is open.")
    verification_uri = s.CharField(help_text="Where to type it.")
    verification_uri_complete = s.CharField(help_text="The same with the code typed in.")
    started_by = s.CharField()
    started_at = s.DateTimeField()
    expires_at = s.DateTimeField(allow_null=True, help_text="Open: until when it can be finished. Done: when its token ends.")
    next_poll_at = s.DateTimeField(allow_null=True, help_text="When the provider is asked again at the earliest.")
    refreshed_at = s.DateTimeField(allow_null=True)


class SignInStarted(SignIn):
    authorize_url = s.CharField(help_text="The page to open in the admin's browser, shown this once; empty for a device's.")
