"""A real server signs in at providers; what they gave it is then looked for in every answer, page, log, export and file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
import requests

from tests.catalog.signin_server import SignInServer, serving
from tests.crawl import crawl, signed_in
from tests.fake import FakeProvider, reply
from tests.live import Live, eventually
from tests.test_canary import files, holding


@pytest.fixture(scope="module")
def there() -> Iterator[SignInServer]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, there: SignInServer) -> Iterator[Live]:
    live = Live(tmp_path_factory.mktemp("signins"), BENCH_SIGNIN_URLS=",".join(f"{name}={url}" for name, url in there.urls.items()))
    try:
        live.start()
        yield live
    finally:
        wrong = live.stop()
    assert not wrong, "\n\n".join(wrong)


def begun(live: Live, session: requests.Session, **body: str) -> dict[str, str]:
    """Started as a page of the server would, with the session and its CSRF token."""
    answer = session.post(
        urljoin(live.url, "/bench/signins"), json=body, headers={"X-CSRFToken": session.cookies["benchwarmers_csrf"], "Origin": live.url}, timeout=60
    )
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_what_sign_ins_give_turns_up_nowhere_but_in_the_calls(server: Live, there: SignInServer, fake: FakeProvider) -> None:
    session = signed_in(server)
    session.get(urljoin(server.url, "/admin/catalog/signin/start/"), timeout=60)
    said: list[tuple[str, bytes]] = []

    for provider in ("openrouter", "huggingface"):
        started = begun(server, session, provider=provider, **({"client_id": "app-1"} if provider == "huggingface" else {}))
        home = session.get(started["authorize_url"], timeout=60)  # the provider's page agrees and sends the browser back
        assert home.status_code == 200
        assert urlsplit(home.url).path.startswith("/admin/catalog/signin/")
        assert "signed in" in home.text
        said.append(("the page after it", home.content))
    by_code = begun(server, session, provider="nanogpt", flow="device")
    there.approve(by_code["user_code"])
    done = eventually(lambda: (found := server.api("GET", f"signins/{by_code['id']}"))["state"] == "done" and found, "the device's sign-in")
    said.append(("a sign-in", repr(done).encode()))
    lost = begun(server, session, provider="pollinations", client_id="pk_app")
    address = there.agree(lost["authorize_url"])
    there.granted.clear()
    said.append(("a failure", session.get(address, timeout=60).content))
    said.append(("the same again", session.get(address, timeout=60).content))
    waiting = begun(server, session, provider="github", client_id="Iv1.app")
    assert waiting["user_code"]

    # The token is what calls are signed with, in every worker.
    server.api("PATCH", "endpoints/openrouter", {"base_url": fake.url})
    server.roster({"endpoints": [], "models": [{"alias": "signed", "endpoint": "openrouter", "served_name": "fake/signed", "ad_hoc": True}]})
    fake.script("fake/signed", reply("fine"))
    for _ in range(4):
        assert server.ask("signed").status == 200
    tokens = {fake_call.headers["authorization"] for fake_call in fake.calls if fake_call.model == "fake/signed"}
    assert tokens <= {f"Bearer {secret}" for secret in there.secrets}
    assert len(tokens) == 1

    for path in ("signins", "signins/providers", "endpoints", "status", "settings", "schema"):
        said.append((path, server.send("GET", f"/bench/{path}", key=server.operator_key).body))
    said += [(page.url, page.content) for page in crawl(server, session)]
    exports = server.folder / "exports"
    exports.mkdir()
    server.manage("roster", "dump", str(exports / "roster.yaml"))
    server.manage("backup", str(exports / "backup"))
    said.append(("the log", server.log.read_bytes()))
    said.append(("the command line", Path(server.folder / "commands.log").read_bytes()))
    kept = [*files(server.home), *files(exports)]
    assert len(there.secrets) >= 8
    for secret in there.secrets:
        assert not holding(secret, [*said, *kept]), secret[:10]


def test_a_strangers_way_back_is_shut_on_the_real_server_too(server: Live, there: SignInServer) -> None:
    session = signed_in(server)
    session.get(urljoin(server.url, "/admin/catalog/signin/start/"), timeout=60)
    address = there.agree(begun(server, session, provider="huggingface", client_id="app-1", endpoint="hf2")["authorize_url"])
    for other in (requests.Session(), signed_in(server)):
        other.trust_env = False
        assert other.get(address, timeout=60, allow_redirects=False).status_code in (400, 403)
    assert session.get(address, timeout=60, allow_redirects=False).status_code == 302
