"""Asking in a real browser, at a real server with a provider that plays what each test wants: streams, stops, verdicts, names that are veiled, secrets."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests import factories
from tests.browser import CHROMIUM, PHONE, axe
from tests.fake import reply, status
from tests.live import Bench, Live, eventually

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
DONE = "#own-page:not([hidden])"


def panel_of(bench: Bench, *answers: Any, facts: dict[str, Any] | None = None, **collection: Any) -> str:
    """A collection whose members are m0, m1 and so on, each at an endpoint of its own. Gives its name."""
    found = {**factories.PRICES, **(facts or {})}
    members = [bench.model(f"m{n}", answer, endpoint=bench.endpoint(f"at{n}"), facts=dict(found)) for n, answer in enumerate(answers)]
    name = bench.collection(members, **collection).removeprefix("bench/")
    bench.load()
    return name


def seat(page: Any, alias: str) -> Any:
    return page.locator("article.seat", has=page.locator(".seat-model", has_text=re.compile(f"^{alias}$")))


def panel_on_record(page: Any, live: Live) -> dict[str, Any]:
    found: dict[str, Any] = live.api("GET", f"panels/{re.search(r'pan_[0-9A-Z]+', page.url)[0]}")  # type: ignore[index]
    return found


def test_asking_watching_and_judging_by_keys_alone(bench: Bench, live: Live, signed_in: Any) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply(["The loop never ends. ", "The file stays **open**."]).holding(gate, "ends. "), reply("I see no defect."))
    with signed_in(f"/app/ask?collection={core}") as watched:
        page = watched.page
        page.keyboard.type("What is wrong?")  # the prompt has the focus
        page.wait_for_selector("#cost:has-text('at most')")
        assert page.locator("#cost-table tbody tr").count() == 2
        page.keyboard.press("Control+Enter")
        first, second = seat(page, f"{bench.tag}-m0"), seat(page, f"{bench.tag}-m1")
        first.locator("text=The loop never ends.").wait_for()
        second.locator("text=I see no defect.").wait_for()
        assert re.fullmatch(r".*/app/panels/pan_\w+", page.url)
        assert first.locator("[data-state]").inner_text() == "running"
        assert first.locator("form").is_hidden()
        # One answer is judged while the other is still written.
        for key in ("j", "j", "u"):
            page.keyboard.press(key)
        second.locator("text=Kept: useful.").wait_for()
        gate.open()
        page.wait_for_selector(DONE)
        assert first.locator("strong").inner_text() == "open"
        assert "$" in first.locator("[data-cost]").inner_text()
        for key in ("k", ".", ".", "f"):
            page.keyboard.press(key)
        first.locator("text=Kept: 1 false.").wait_for()
        assert first.locator("mark[data-verdict=false]").all_inner_texts() == ["The file stays ", "open", "."]
        for key in (",", "r", "n"):
            page.keyboard.press(key)
        first.locator("text=Kept: not useful, 1 real, 1 false.").wait_for()
        page.keyboard.press("m")
        page.keyboard.type("Checked j by hand")
        page.keyboard.press("Control+Enter")
        eventually(lambda: panel_on_record(page, live)["seats"][0]["verdicts"][0]["note"], "the note is kept")
        assert axe(page) == []
        watched.pictured("ask-judged")
        said = panel_on_record(page, live)["seats"]
        kept = said[0]["verdicts"][0]
        assert (kept["useful"], kept["real"], kept["false"]) == (False, ["The loop never ends."], ["The file stays open."])
        assert said[1]["verdicts"][0]["useful"] is True


def test_single_keys_can_be_switched_off(bench: Bench, live: Live, signed_in: Any) -> None:
    core = panel_of(bench, reply("alpha"))
    with signed_in(f"/app/ask?collection={core}&prompt=Why") as watched:
        page = watched.page
        page.click("#send")
        page.wait_for_selector(DONE)
        page.keyboard.press("?")
        page.wait_for_selector("#shortcuts[open]")
        assert axe(page) == []
        page.uncheck("[data-keys-on]")
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("u")
        page.click("[data-shortcuts]")
        page.check("[data-keys-on]")
        page.click("#shortcuts button")
        assert page.locator(".verdict-said").inner_text() == ""
        page.keyboard.press("j")
        page.keyboard.press("u")
        page.wait_for_selector("text=Kept: useful.")


def test_one_answer_is_stopped_and_the_others_go_on(bench: Bench, live: Live, signed_in: Any) -> None:
    gate, other = bench.fake.gate(), bench.fake.gate()
    core = panel_of(bench, reply(["one ", "two"]).holding(gate, "one "), reply(["three ", "four"]).holding(other, "three "))
    with signed_in(f"/app/ask?collection={core}&prompt=Count") as watched:
        page = watched.page
        page.click("#send")
        first, second = seat(page, f"{bench.tag}-m0"), seat(page, f"{bench.tag}-m1")
        first.locator("[data-answer]", has_text="one").wait_for()
        second.locator("[data-answer]", has_text="three").wait_for()
        first.locator("[data-stop-seat]").click()
        first.locator("[data-state]", has_text="cancelled").wait_for()
        assert second.locator("[data-state]").inner_text() == "running"
        other.open()
        page.wait_for_selector(DONE)
        assert second.locator("[data-answer]").inner_text().strip() == "three four"
        assert [s["status"] for s in panel_on_record(page, live)["seats"]] == ["cancelled", "ok"]


def test_all_is_stopped_at_once_and_asked_again_with_the_same_seats(bench: Bench, live: Live, signed_in: Any) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply(["one ", "two"]).holding(gate, "one "), reply(["three ", "four"]).holding(gate, "three "))
    with signed_in(f"/app/ask?collection={core}&prompt=Count") as watched:
        page = watched.page
        page.click("#options > summary")
        page.locator("#members input").nth(1).uncheck()
        page.click("#send")
        page.locator("[data-answer]", has_text="one").wait_for()
        page.click("#stop-all")
        page.wait_for_selector(DONE)
        before = page.url
        gate.open()
        page.click("#same-again")
        page.wait_for_function("(before) => location.href !== before", arg=before)
        page.wait_for_selector(DONE)
        assert [s["model"] for s in panel_on_record(page, live)["seats"]] == [f"{bench.tag}-m0"]
        assert page.locator("[data-answer]").inner_text().strip() == "one two"
        watched.wrong.clear()  # where every seat was stopped, nothing else may be wrong
        page.click("#anew")
        assert page.locator("#prompt").input_value() == "Count"


def test_blind_hides_who_said_what_until_all_is_judged(bench: Bench, live: Live, signed_in: Any) -> None:
    core = panel_of(bench, reply("alpha"), reply("beta"), status(500, "the engine of m2 burns"))
    with signed_in(f"/app/ask?collection={core}&prompt=Who") as watched:
        page = watched.page
        page.check("#blind")
        page.click("#send")
        page.wait_for_selector(DONE)
        shown = page.inner_text("#asked")
        assert f"{bench.tag}-m" not in shown
        assert "burns" not in shown
        assert "$" not in shown
        assert sorted(page.locator("article.seat h3").all_inner_texts()) == ["Answer A", "Answer B", "Answer C"]
        calls = page.locator("article.seat").evaluate_all("all => all.map(one => one.dataset.call)")
        assert calls == sorted(calls, key=lambda call: call[::-1])
        page.reload()  # it stays blind
        page.wait_for_selector("text=Answer A")
        assert f"{bench.tag}-m" not in page.inner_text("#judging")
        for one in page.locator("form[data-judge]").all():
            one.locator("button[value=true]").first.click()
            one.locator("text=Kept: useful.").wait_for()
        page.wait_for_selector(f"text={bench.tag}-m0")
        assert "Answer A" not in page.inner_text("#judging")


def test_a_file_with_a_secret_warns_and_what_is_sent_is_shown_whole(bench: Bench, live: Live, signed_in: Any) -> None:
    core = panel_of(bench, reply("alpha"), facts={"vision": True})
    secret = b"DEBUG=1\nDB_PASSWORD=correct-horse-42-battery\n"
    with signed_in(f"/app/ask?collection={core}") as watched:
        page = watched.page
        page.fill("#prompt", "Look at these")
        page.set_input_files(
            "#files",
            [
                {"name": "main.py", "mimeType": "text/x-python", "buffer": b"print('hi')\n```\n"},
                {"name": ".env", "mimeType": "", "buffer": secret},
                {"name": "shot.png", "mimeType": "image/png", "buffer": PNG},
                {"name": "tool.bin", "mimeType": "application/octet-stream", "buffer": b"\0\1\2"},
            ],
        )
        page.wait_for_selector("#secrets:visible")
        warned = page.inner_text("#secrets")
        assert ".env: a file that usually holds secrets" in warned
        assert ".env, line 2: value of DB_PASSWORD (corr…)" in warned
        assert "correct-horse" not in warned
        assert "tool.bin is neither text nor an image" in page.inner_text("#left-out")
        shown = page.locator("[data-preview]").inner_text()
        assert shown == f"Look at these\n\nFile main.py:\n````python\nprint('hi')\n```\n````\n\nFile .env:\n```env\n{secret.decode()}```"
        assert page.locator("#preview img").count() == 1
        assert axe(page) == []
        watched.pictured("ask-secret")
        page.click("#send")
        page.wait_for_selector("#refused:visible")
        assert not bench.fake.calls_to(f"{bench.tag}-m0")
        page.check("#sure")
        page.fill("#prompt", "Look at these with a token ghp_0123456789abcdefghijABCDEFGHIJ012345")  # something else: it is asked anew
        page.wait_for_selector("#sure:not(:checked)")
        page.fill("#prompt", "Look at these")
        page.wait_for_function("() => !document.querySelector('#secrets').innerText.includes('GitHub')")
        page.check("#sure")
        page.click("#send")
        page.wait_for_selector(DONE)
        sent = bench.fake.calls_to(f"{bench.tag}-m0")[0].json["messages"][0]["content"]
        assert sent[0] == {"type": "text", "text": shown}
        assert sent[1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_a_secret_is_taken_out_with_its_file(bench: Bench, live: Live, signed_in: Any) -> None:
    core = panel_of(bench, reply("alpha"))
    with signed_in(f"/app/ask?collection={core}") as watched:
        page = watched.page
        page.set_input_files("#files", [{"name": "id_rsa", "mimeType": "", "buffer": b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"}])
        page.wait_for_selector("#secrets:visible")
        page.click("[aria-label='Take id_rsa away']")
        page.wait_for_selector("#secrets", state="hidden")
        assert page.locator("#attached li").count() == 0


def test_claims_are_marked_in_the_answers_and_lead_there(bench: Bench, live: Live, signed_in: Any) -> None:
    quotes = [{"answer": letter, "quote": quote} for letter in "AB" for quote in ("never ends when `limit` is 0", "loop is endless")]
    claims = [
        {"text": "The loop does not end.", "kind": "shared", "seats": quotes},
        {"text": "A file stays open.", "kind": "unique", "seats": [{"answer": letter, "quote": "**file** stays\nopen"} for letter in "AB"]},
    ]
    merger = bench.model("merger", reply(json.dumps({"claims": claims})), facts=dict(factories.PRICES))
    core = panel_of(bench, reply("It never ends when `limit` is 0.\n\n- The **file** stays\nopen."), reply("The loop is endless."), mergers=[merger])
    with signed_in(f"/app/ask?collection={core}&prompt=Compare") as watched:
        page = watched.page
        page.click("#send")
        page.wait_for_selector(DONE)
        page.click("[data-compare]")
        page.click("#comparing .primary")
        page.wait_for_selector("#comparison, #messages .notice")
        assert page.locator("#comparison").count() == 1, page.inner_text("#messages")
        first, second = seat(page, f"{bench.tag}-m0"), seat(page, f"{bench.tag}-m1")
        assert "".join(first.locator("mark[data-kind=shared]").all_inner_texts()) == "never ends when limit is 0"
        assert " ".join("".join(first.locator("mark[data-kind=unique]").all_text_contents()).split()) == "file stays open"
        assert second.locator("mark[data-kind=shared]").inner_text() == "loop is endless"
        assert axe(page) == []
        watched.pictured("ask-compared")
        page.locator("#comparison [data-jump]", has_text=f"{bench.tag}-m1").click()
        assert second.locator("mark[data-lit]").inner_text() == "loop is endless"
        page.reload()
        page.wait_for_selector("mark[data-kind=shared]")
        assert page.locator("#comparison").is_visible()
        assert axe(page) == []


def test_a_panel_under_way_outlives_a_reload_and_its_page_follows_it(bench: Bench, live: Live, signed_in: Any) -> None:
    gate, other = bench.fake.gate(), bench.fake.gate()
    core = panel_of(bench, reply(["one ", "two"]).holding(gate, "one "), reply(["three ", "four"]).holding(other, "three "))
    with signed_in(f"/app/ask?collection={core}&prompt=Count") as watched:
        page = watched.page
        page.click("#send")
        page.locator("[data-answer]", has_text="one").wait_for()
        page.reload()
        page.wait_for_selector("text=Still being answered")
        assert axe(page) == []
        gate.open()
        first = page.locator("article.seat[data-status=ok]")
        first.wait_for()
        assert first.locator("[data-answer]").inner_text().strip() == "one two"
        first.locator("button[value=true]").first.click()
        first.locator("text=Kept: useful.").wait_for()
        other.open()
        page.wait_for_selector("#under-way", state="detached")
        assert [a.strip() for a in page.locator("[data-answer]").all_inner_texts()] == ["one two", "three four"]
        assert first.first.locator("text=Kept: useful.").is_visible()  # what was done meanwhile stays
        assert page.locator("text=Delete the texts").is_visible()


def test_a_panel_under_way_is_stopped_from_its_page(bench: Bench, live: Live, signed_in: Any) -> None:
    gate = bench.fake.gate()
    core = panel_of(bench, reply(["one ", "two"]).holding(gate, "one "))
    with signed_in(f"/app/ask?collection={core}&prompt=Count") as watched:
        page = watched.page
        page.click("#send")
        page.locator("[data-answer]", has_text="one").wait_for()
        page.reload()
        page.click("[data-stop-panel]")
        page.wait_for_selector("article.seat[data-status=cancelled]")


def test_a_merged_answer_stands_above_and_a_failed_seat_says_why(bench: Bench, live: Live, signed_in: Any) -> None:
    merger = bench.model("merger", reply("All in one."), facts=dict(factories.PRICES))
    core = panel_of(bench, reply("alpha"), reply("beta"), status(500, "the engine burns"), mergers=[merger])
    with signed_in(f"/app/ask?collection={core}&mode=merged&prompt=Merge", PHONE, "dark") as watched:
        page = watched.page
        page.click("#send")
        page.wait_for_selector(DONE)
        assert page.locator("article.seat .seat-model").first.inner_text() == merger
        assert "the engine burns" in seat(page, f"{bench.tag}-m2").inner_text()
        assert watched.overflow() <= 0
        assert axe(page) == []


def test_what_is_refused_stands_in_the_form(bench: Bench, live: Live, signed_in: Any) -> None:
    core = panel_of(bench, reply("alpha"))
    with signed_in(f"/app/ask?collection={core}") as watched:
        page = watched.page
        page.click("#send")
        assert "Write a prompt" in page.inner_text("#refused")
        page.fill("#prompt", "Look")
        page.set_input_files("#files", [{"name": "shot.png", "mimeType": "image/png", "buffer": PNG}])
        page.wait_for_selector("text=Nobody can take this.")
        page.click("#send")
        page.wait_for_selector("#refused:has-text('cannot see images')")
        assert page.locator("#composer").is_visible()
        watched.wrong[:] = [w for w in watched.wrong if "status of 400" not in w]


def test_the_browser_remembers_whom_and_how_one_asked(bench: Bench, live: Live, signed_in: Any) -> None:
    core = panel_of(bench, reply("alpha"))
    with signed_in("/app/ask") as watched:
        page = watched.page
        page.select_option("#target", f"c:{core}")
        page.check("input[value=route]")
        page.reload()
        assert page.locator("#target").input_value() == f"c:{core}"
        assert page.locator("input[value=route]").is_checked()
        page.select_option("#target", f"m:{bench.tag}-m0")
        assert page.locator("#modes").is_hidden()
        page.fill("#prompt", "One of you")
        page.click("#send")
        page.wait_for_selector(DONE)
        assert panel_on_record(page, live)["mode"] == "direct"


def test_what_a_model_writes_runs_nothing_and_leads_nowhere_by_itself(bench: Bench, live: Live, signed_in: Any) -> None:
    hostile = (
        "<script>alert(1)</script><img src=https://elsewhere.example/i.png onerror=alert(2)> ![x](https://elsewhere.example/j.png)\n\n"
        "[a](javascript:alert(3)) [b](https://elsewhere.example/) H<sub>2</sub>O "
        "<a href='https://elsewhere.example/' onclick=alert(4)>link</a> <form action=/app/><button>go</button></form>\n\n"
        "<style>body{display:none}</style><iframe src=https://elsewhere.example/></iframe><svg onload=alert(5)>"
    )
    core = panel_of(bench, reply([hostile[i : i + 7] for i in range(0, len(hostile), 7)]))
    with signed_in(f"/app/ask?collection={core}&prompt=Attack") as watched:
        page = watched.page
        page.click("#send")
        page.wait_for_selector(DONE)
        assert page.locator("[data-answer] :is(script, img, form, style, iframe, svg, button)").count() == 0
        assert page.locator("[data-answer] a[href]").get_attribute("rel") == "noopener noreferrer nofollow"
        assert page.locator("[data-answer] sub").inner_text() == "2"
        assert "<script>alert(1)</script>" in page.inner_text("[data-answer]")  # as it was written
        page.reload()
        page.wait_for_selector("[data-answer][data-drawn]")
        assert page.locator("[data-answer] :is(script, img, form, style, iframe, svg, button)").count() == 0


def test_an_answer_is_copied_as_it_was_written(bench: Bench, live: Live, signed_in: Any) -> None:
    core = panel_of(bench, reply("It is **4**."))
    with signed_in(f"/app/ask?collection={core}&prompt=Copy") as watched:
        page = watched.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("#send")
        page.wait_for_selector(DONE)
        page.click("[data-copy-answer]")
        page.wait_for_selector("text=Copied.")
        assert page.evaluate("navigator.clipboard.readText()") == "It is **4**."
