"""What an admin may paste or point at by mistake: keys that no header carries, and addresses that are no model API."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import pytest
from django.urls import reverse

from catalog.endpoint_keys import key_of
from catalog.models import Endpoint
from catalog.providers import get
from tests.admin import seed
from tests.catalog.pages import Pages, serving

pytestmark = pytest.mark.django_db

GOOD = ["sk-up-1\n", " sk-up-1 ", "\tsk-up-1\r\n"]
BAD = {"sk-up-1\r\nx-evil: 1": "a line break", "sk-\u200bup-1": "zero-width", "sk-\u00fcp": "not ASCII", "sk-up-1 x": "a space"}
ADD = {"name": "local", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "key_env": ""}
INTERNAL = "<html>token=abc123</html>"


@pytest.fixture
def pages() -> Iterator[Pages]:
    with serving() as found:
        yield found


def rotate(client, row, key):
    return client.post(reverse("admin:catalog_endpoint_rotate", args=[row.pk]), {"key": key})


@pytest.mark.parametrize("raw", GOOD)
def test_a_pasted_key_is_trimmed(operator, raw):
    operator.post(reverse("admin:catalog_endpoint_add"), {**ADD, "key": raw})
    added = Endpoint.objects.get()
    row = seed.endpoint("other", key="sk-before")
    rotate(operator, row, raw)
    row.refresh_from_db()
    for one in (added, row):
        assert get("openai").headers(key_of(one)) == {"Authorization": "Bearer sk-up-1"}


@pytest.mark.parametrize("raw", BAD)
def test_a_key_that_no_header_carries_is_refused_and_not_repeated(operator, raw):
    row = seed.endpoint("other", key="sk-before")
    answers = [operator.post(reverse("admin:catalog_endpoint_add"), {**ADD, "key": raw}), rotate(operator, row, raw)]
    for answer in answers:
        text = unescape(answer.content.decode())
        assert answer.status_code == 200
        assert BAD[raw] in text
        assert "up-1" not in text
        assert "x-evil" not in text
    assert [key_of(one) for one in Endpoint.objects.all()] == ["sk-before"]


def test_the_connection_test_shows_nothing_of_an_internal_page(operator, pages):
    for path in ("/admin/v1/models", "/admin/models", "/admin"):
        pages.put(path, INTERNAL, content_type="text/html")
    row = seed.endpoint("inside", f"{pages.url}/admin")
    tested = operator.post(reverse("admin:catalog_endpoint_changelist"), {"action": "test_selected", "_selected_action": [str(row.pk)]}, follow=True)
    listed = operator.get(reverse("admin:catalog_endpoint_serves", args=[row.pk]))
    assert len(pages.asked) >= 2
    for answer in (tested, listed):
        text = unescape(answer.content.decode())
        assert "not a model API (got text/html, status 200)" in text
        assert "abc123" not in text


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "metadata.google.internal"]
)
def test_a_clouds_metadata_is_no_endpoint_in_any_spelling(operator, host):
    answer = operator.post(reverse("admin:catalog_endpoint_add"), {**ADD, "base_url": f"http://{host}/latest"})
    assert answer.status_code == 200
    assert "is refused" in unescape(answer.content.decode())
    assert not Endpoint.objects.exists()
