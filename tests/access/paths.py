"""Paths for these tests: one view a permission, one that fails as it is told, the sign-in link and the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DataError, IntegrityError, OperationalError
from django.http import Http404
from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from access import auth, urls
from access.fields import FieldError
from access.models import User
from access.secrets import clean_key
from wire.errors import CallerError


class Who(APIView):
    """Tells whom the door took the caller for."""

    def get(self, request: Request) -> Response:
        return Response({"kind": request.user.kind, "judge": request.user.judge, "key": request.auth})

    post = get


class Ask(Who):
    permission_classes = (auth.MayAsk,)


class Judge(Who):
    permission_classes = (auth.MayJudge,)


class Read(Who):
    permission_classes = (auth.MayRead,)


class Operate(Who):
    permission_classes = (auth.MayOperate,)


class Admin(Who):
    permission_classes = (auth.MayAdmin,)


class Fields(serializers.Serializer[Any]):
    limit = serializers.IntegerField()


FAULTS: dict[str, Any] = {
    "caller": lambda: CallerError("budget_exceeded", "The budget is spent.", status=402, field="model", retry_after_s=1.2),
    "field": lambda: FieldError("rpm", "must be a whole number."),
    "missing": lambda: Http404("panels.Panel with sk-live-abcdefghijkl"),
    "forbidden": lambda: PermissionDenied("because sk-live-abcdefghijkl"),
    "form": lambda: ValidationError({"alias": ["is taken."]}),
    "plain": lambda: ValidationError("is taken."),
    "deep": lambda: RecursionError("maximum recursion depth exceeded"),
    "null": lambda: DataError("text fields cannot contain NUL (0x00) bytes"),
    "taken": lambda: IntegrityError("duplicate key value sk-live-abcdefghijkl"),
    "away": lambda: OperationalError("connection to 10.0.0.1 failed: password sk-live-abcdefghijkl"),
    "unbuilt": lambda: CallerError("not_implemented", "It is not built yet.", status=501),
    "busy": lambda: CallerError("server_busy", "Send it again.", status=503, retry_after_s=1),
    "bug": lambda: RuntimeError("sk-live-abcdefghijkl at /srv/secret/path.py"),
    "surrogate": lambda: User.objects.filter(username="\ud800").exists(),
    "paste": lambda: clean_key("sk-live-abcdefghijkl\r\nx: 1"),
}


class Fail(APIView):
    permission_classes = (auth.MayAsk,)

    def post(self, request: Request) -> Response:
        if isinstance(request.data, dict) and (fault := request.data.get("fault")):
            made = FAULTS[fault]()
            if isinstance(made, Exception):
                raise made
        Fields(data=request.data).is_valid(raise_exception=True)
        return Response({})


urlpatterns = [
    path("nobody", Who.as_view()),
    path("ask", Ask.as_view()),
    path("judge", Judge.as_view()),
    path("read", Read.as_view()),
    path("operate", Operate.as_view()),
    path("admin-only", Admin.as_view()),
    path("fail", Fail.as_view()),
    path("admin/", admin.site.urls),
    path("", Read.as_view(), name="root"),
    *urls.urlpatterns,
]
