"""Roster files: all or nothing, twice the same, and wrong ones name line and field."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from access.models import AuditEntry, RosterVersion
from catalog import endpoint_keys, prices
from catalog.load import load_models
from catalog.models import Endpoint, Model, Price
from panels import roster_shape, roster_text, rosterfile
from panels.models import Collection, Member
from panels.roster_text import RosterError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "roster.yaml"
CANARY = "sk-canary-0123456789"

FILE = """\
endpoints:
  - name: local
    kind: openai
    base_url: http://127.0.0.1:9000/v1
    key_env: BENCHWARMERS_KEY_LOCAL
    limits: {requests: {minute: 30, day: 1000, month: 20000}, tokens: {minute: 60000, day: 1000000}, parallel: 4}
    quirks: {token_param: max_completion_tokens, system_role: system, stream_options: true}
models:
  - alias: fast
    endpoint: local
    served_name: fake/fast
    limits: {}
    facts: {context_window: 131072, output_limit: 8192, tools: true, vision: false, structured_output: true, reasoning: false,
            input_usd_per_mtok: "0.5", output_usd_per_mtok: "1.5", cache_read_usd_per_mtok: "0.05", cache_write_usd_per_mtok: "0.625"}
    quirks: {}
    ad_hoc: false
  - {alias: slow, endpoint: local, served_name: fake/slow}
collections:
  - name: core
    description: adversarial review
    shape: review
    members: [fast, slow, fast]
    picking: fixed
    explorers: 1
    mergers: [fast]
    timeout_s: 300
    first_token_timeout_s: 60
    idle_timeout_s: 120
    quorum: null
    grace_s: 20
    wait_max_s: 30
    failover_on_refusal: false
    shadow_share: 0
    keep_text: null
    merge_prompt: null
"""

pytestmark = pytest.mark.django_db


def load(text: str, **more: Any) -> list[rosterfile.Change]:
    return rosterfile.load(text, **more)


def as_json(**sections: Any) -> str:
    return json.dumps(sections, ensure_ascii=False)


def state() -> Any:
    """Everything that a roster file could have changed."""
    tables = (Endpoint, Model, Price, Collection, Member, AuditEntry)
    return [list(table.objects.order_by("pk").values()) for table in tables], RosterVersion.objects.values_list("version", flat=True).first()


def places(name: str, place: str) -> list[str]:
    return list(Member.objects.filter(collection__name=name, place=place).order_by("position").values_list("model__alias", flat=True))


def problems(text: str) -> list[tuple[int, str]]:
    """What is wrong with a file, which then must have changed nothing."""
    before = state()
    with pytest.raises(RosterError) as caught:
        load(text)
    assert state() == before
    return [(problem.line, str(problem)) for problem in caught.value.problems]


# ------------------------------------------------------------------ loading


def test_the_contracts_own_file_is_loaded_whole() -> None:
    changes = load(FILE)
    assert [(change.noun, change.name, change.is_new) for change in changes] == [
        ("endpoint", "local", True),
        ("model", "fast", True),
        ("model", "slow", True),
        ("collection", "core", True),
    ]
    row = Endpoint.objects.get()
    assert (row.name, row.kind, row.base_url, row.key_env) == ("local", "openai", "http://127.0.0.1:9000/v1", "BENCHWARMERS_KEY_LOCAL")
    assert row.limits["tokens"] == {"minute": 60000, "day": 1000000}
    assert row.quirks == {"token_param": "max_completion_tokens", "system_role": "system", "stream_options": True}
    fast = Model.objects.get(alias="fast")
    assert fast.facts == {"context_window": 131072, "output_limit": 8192, "tools": True, "vision": False, "structured_output": True, "reasoning": False}
    assert prices.prices_of(fast)["cache_write_usd_per_mtok"] == "0.625"
    assert places("core", "member") == ["fast", "slow", "fast"]
    assert places("core", "merger") == ["fast"]
    core = Collection.objects.get()
    assert (core.quorum, core.keep_text, core.shadow_share, core.timeout_s, core.merge_prompt) == (None, None, 0, 300, None)


def test_defaults_are_the_contracts() -> None:
    load(
        as_json(
            endpoints=[{"name": "e", "kind": "openai", "base_url": "http://h"}],
            models=[{"alias": "m", "endpoint": "e", "served_name": "s"}],
            collections=[{"name": "c"}],
        )
    )
    row = Collection.objects.get()
    assert (row.shape, row.picking, row.explorers, row.timeout_s, row.first_token_timeout_s, row.idle_timeout_s) == ("review", "fixed", 1, 300, 60, 120)
    assert (row.quorum, row.grace_s, row.wait_max_s, row.failover_on_refusal, row.shadow_share, row.keep_text) == (None, 20, 30, False, 0, None)
    assert (Model.objects.get().ad_hoc, Model.objects.get().facts, Endpoint.objects.get().limits) == (False, {}, {})


def test_loading_twice_changes_nothing() -> None:
    load(FILE)
    before = state()
    assert load(FILE) == []
    assert state() == before


def test_the_example_is_loaded_and_twice_changes_nothing() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert load(text)
    assert load(text) == []
    assert set(load_models()) == {"small", "fast", "slow"}


def test_json_is_read_as_it_is_written_by_any_tool() -> None:
    data = yaml.safe_load(FILE)
    data["models"][0]["alias"] = "schnéll 😀"
    data["collections"][0]["members"] = data["collections"][0]["mergers"] = ["schnéll 😀"]
    data["collections"][0]["description"] = 'a "quoted" \\ backslashed \\ud83d\\ude00 / text\twith a tab'
    for text in (
        json.dumps(data),
        json.dumps(data, ensure_ascii=False),
        json.dumps(data, indent="\t"),
        "\ufeff" + json.dumps(data, indent=1),
        json.dumps(data).replace("/", "\\/"),
    ):
        load(text)
        assert Collection.objects.get().description == data["collections"][0]["description"]
        assert Model.objects.filter(alias="schnéll 😀").exists()
    assert load(json.dumps(data)) == []


def test_a_roster_as_acceptance_tools_make_it_is_loaded() -> None:
    data = {
        "endpoints": [
            {
                "name": "case7-A",
                "kind": "openai",
                "base_url": "http://127.0.0.1:9/",
                "key_env": "BENCHWARMERS_KEY_CASES",
                "limits": {"requests": {"minute": 1}},
                "quirks": {"token_param": "max_completion_tokens"},
            }
        ],
        "models": [
            {
                "alias": "case7-A",
                "endpoint": "case7-A",
                "served_name": "fake/A",
                "facts": {
                    "context_window": 131072,
                    "output_limit": 8192,
                    "tools": True,
                    "vision": True,
                    "input_usd_per_mtok": "3",
                    "cache_read_usd_per_mtok": "0.3",
                },
            }
        ],
        "collections": [
            {
                "name": "case7",
                "description": "acceptance case",
                "shape": "review",
                "explorers": 0,
                "members": ["case7-A"],
                "timeout_s": 3,
                "wait_max_s": 30,
                "failover_on_refusal": False,
                "mergers": ["case7-A"],
            }
        ],
    }
    assert len(load(json.dumps(data, indent=1, ensure_ascii=False))) == 3


def test_what_the_file_does_not_mention_stays_as_it_is() -> None:
    load(FILE)
    load(as_json(endpoints=[{"name": "local", "kind": "openai", "base_url": "http://127.0.0.1:9000/v1"}], collections=[{"name": "core", "explorers": 3}]))
    assert Endpoint.objects.get().limits["parallel"] == 4
    assert Endpoint.objects.get().key_env == "BENCHWARMERS_KEY_LOCAL"
    assert Collection.objects.get().explorers == 3
    assert places("core", "member") == ["fast", "slow", "fast"]
    assert Model.objects.count() == 2


def test_a_null_is_the_default_again() -> None:
    load(FILE)
    load(
        as_json(
            endpoints=[{"name": "local", "kind": "openai", "base_url": "http://127.0.0.1:9000/v1", "limits": None, "key_env": None}],
            collections=[{"name": "core", "members": None, "description": None}],
        )
    )
    assert (Endpoint.objects.get().limits, Endpoint.objects.get().key_env) == ({}, "")
    assert places("core", "member") == []
    assert Collection.objects.get().description == ""


def test_changes_are_told_field_by_field_and_stand_in_the_trail() -> None:
    load(FILE)
    AuditEntry.objects.all().delete()
    text = (
        FILE.replace("parallel: 4", "parallel: 2")
        .replace('input_usd_per_mtok: "0.5"', "input_usd_per_mtok: 0.7")
        .replace("[fast, slow, fast]", "[slow]")
        .replace("tools: true", "tools: null")
    )
    changes = {change.name: change.changes for change in load(text, actor="anna")}
    limits = {"requests": {"minute": 30, "day": 1000, "month": 20000}, "tokens": {"minute": 60000, "day": 1000000}}
    assert changes["local"] == {"limits": [{**limits, "parallel": 4}, {**limits, "parallel": 2}]}
    assert changes["fast"]["input_usd_per_mtok"] == ["0.5", "0.7"]
    assert "tools" not in changes["fast"]["facts"][1]
    assert changes["core"] == {"members": [["fast", "slow", "fast"], ["slow"]]}
    assert [(entry.actor, entry.action, entry.target) for entry in AuditEntry.objects.order_by("id")] == [
        ("anna", "endpoint.change", "local"),
        ("anna", "model.change", "fast"),
        ("anna", "collection.change", "core"),
    ]
    assert Model.objects.get(alias="fast").facts_at is not None


def test_the_rosters_version_moves_with_a_change_and_only_with_one() -> None:
    load(FILE)
    before = RosterVersion.objects.get().version
    load(FILE)
    assert RosterVersion.objects.get().version == before
    load(FILE.replace("parallel: 4", "parallel: 2"))
    assert RosterVersion.objects.get().version > before


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    before = state()
    told = load(FILE, dry_run=True)
    assert state() == before
    assert told == load(FILE)
    before = state()
    changed = FILE.replace("explorers: 1", "explorers: 2")
    told = load(changed, dry_run=True)
    assert state() == before
    assert told == load(changed)


def test_a_model_that_is_moved_forgets_what_the_list_said() -> None:
    load(FILE)
    Model.objects.filter(alias="slow").update(listed_facts={"vision": True})
    slow = Model.objects.get(alias="slow")
    prices.set_prices(slow, {"input_usd_per_mtok": "9"}, prices.today(), "endpoint list")
    load(FILE.replace("served_name: fake/slow", "served_name: fake/other"))
    slow = Model.objects.get(alias="slow")
    assert (slow.listed_facts, slow.listed_at, prices.prices_of(slow, "endpoint list")) == ({}, None, {})


def test_a_retired_model_stays_retired() -> None:
    load(FILE)
    Model.objects.update(status="retired")
    load(FILE)
    load(FILE.replace("output_limit: 8192", "output_limit: 4096"))
    assert set(Model.objects.values_list("status", flat=True)) == {"retired"}


def test_a_file_may_lean_on_what_the_roster_has() -> None:
    load(FILE)
    load(as_json(models=[{"alias": "third", "endpoint": "local", "served_name": "x"}], collections=[{"name": "more", "members": ["third", "slow"]}]))
    assert places("more", "member") == ["third", "slow"]


def test_bare_words_are_read_as_yaml_1_2_reads_them() -> None:
    text = (
        FILE.replace("alias: slow", "alias: yes")
        .replace("[fast, slow, fast]", "[yes]")
        .replace("name: core", "name: 1:30")
        .replace("shape: review", "shape: 0o17")
    )
    load(text)
    assert Model.objects.filter(alias="yes").exists()
    assert (Collection.objects.get().name, Collection.objects.get().shape) == ("1:30", "0o17")


def test_anchors_may_be_used() -> None:
    load(FILE.replace("limits: {}", "limits: &own {parallel: 1}").replace("{alias: slow,", "{limits: *own, alias: slow,"))
    assert [row.limits for row in Model.objects.order_by("alias")] == [{"parallel": 1}] * 2


# ------------------------------------------------------------------ wrong files

WRONG: list[tuple[str, str, int, str]] = [
    # what is replaced, by what, the line that is named, and what is said
    ("    kind: openai\n", "", 2, "endpoint local: kind is missing"),
    ("kind: openai", "kind: telepathy", 3, "endpoint local: kind must be one of"),
    ("kind: openai", "kind: [openai]", 3, "kind must be one of"),
    ("http://127.0.0.1:9000/v1", "127.0.0.1:9000", 4, "base_url must begin with http"),
    ("http://127.0.0.1:9000/v1", "http://user:pass@h/v1", 4, "user name or password"),
    ("http://127.0.0.1:9000/v1", "http://169.254.169.254/v1", 4, "base_url is refused"),
    ("key_env: BENCHWARMERS_KEY_LOCAL", "key_env: PATH", 5, "key_env must name a variable"),
    ("key_env: BENCHWARMERS_KEY_LOCAL", "key: sk-canary-0123456789", 5, "Keys do not belong in a roster file"),
    ("requests: {minute: 30,", "requests: {minutes: 30,", 6, "limits.requests.minutes is not known. Did you mean minute?"),
    ("minute: 30", "minute: 0", 6, "limits.requests.minute must be between"),
    ("minute: 30", "minute: yes", 6, "limits.requests.minute must be a whole number"),
    ("parallel: 4", "parallel: 1.5", 6, "limits.parallel must be a whole number"),
    ("token_param: max_completion_tokens", "token_param: tokens", 7, "quirks.token_param must be one of"),
    ("stream_options: true", "stream_options: maybe", 7, "quirks.stream_options must be true or false"),
    ("alias: fast", "alias: bench/fast", 9, "alias must not begin with bench/"),
    ("alias: fast", "alias: 405", 9, "alias must be text"),
    ("alias: fast", "alias: ''", 9, "alias must not be empty"),
    ("    endpoint: local\n", "", 9, "model fast: endpoint is missing"),
    ("    endpoint: local\n", "    endpoint: locl\n", 10, 'endpoint names "locl", which is neither here nor in the roster. Did you mean local?'),
    ("    served_name: fake/fast\n", "", 9, "model fast: served_name is missing"),
    ("served_name: fake/fast", "servd_name: fake/fast", 11, "servd_name is not known. Did you mean served_name?"),
    ("context_window: 131072", "context_windw: 131072", 13, "facts.context_windw is not known. Did you mean context_window?"),
    ("context_window: 131072", "context_window: big", 13, "facts.context_window must be a whole number"),
    ("tools: true", "tools: 1", 13, "facts.tools must be true or false"),
    ('cache_read_usd_per_mtok: "0.05"', 'cache_read_usd_per_mtok: "5 cents"', 14, "facts.cache_read_usd_per_mtok must be a price"),
    ('output_usd_per_mtok: "1.5"', "output_usd_per_mtok: -1", 14, "facts.output_usd_per_mtok must be a price"),
    ("ad_hoc: false", "ad_hoc: no", 16, "ad_hoc must be true or false"),
    ("{alias: slow,", "{alias: FAST,", 17, "alias is the same as that in line 9, ignoring case"),
    ("name: core", "name: core/x", 19, 'name must not hold "/"'),
    ("name: core", "name: core:route", 19, "name must not end in :route"),
    ("shape: review", "shape: {a: b}", 21, "shape must be text"),
    ("[fast, slow, fast]", "[fast, slwo]", 22, 'members[1] names the model "slwo", which is neither here nor in the roster. Did you mean slow?'),
    ("[fast, slow, fast]", "fast", 22, "members must be a list of aliases"),
    ("[fast, slow, fast]", "\n      - fast\n      - Slow", 24, 'members[1] names the model "Slow"'),
    ("[fast, slow, fast]", "[fast, null]", 22, "members[1] must be text"),
    ("picking: fixed", "picking: random", 23, "picking must be fixed or record"),
    ("explorers: 1", "explorers: -1", 24, "explorers must be between"),
    ("mergers: [fast]", "mergers: [nobody at all]", 25, 'mergers[0] names the model "nobody at all"'),
    ("timeout_s: 300", "timeout_s: 0", 26, "timeout_s must be between"),
    ("timeout_s: 300", "timeout_s: 2m", 26, "timeout_s must be a whole number"),
    ("quorum: null", "quorum: 0", 29, "quorum must be between"),
    ("shadow_share: 0", "shadow_share: 1.5", 33, "shadow_share must be a number from 0 to 1"),
    ("keep_text: null", "keep_text: never", 34, "keep_text must be true or false"),
    ("merge_prompt: null", "merge_prompt: 5", 35, "merge_prompt must be text"),
    ("collections:", "colections:", 18, "colections is not known. Did you mean collections?"),
    ("endpoints:\n", "endpoints: 5\nx:\n", 1, "endpoints must be a list"),
    ("  - {alias: slow, endpoint: local, served_name: fake/slow}\n", "  - slow\n", 17, "models[1]: must be an object with alias"),
    ("    shape: review\n", "    shape: review\n    shape: design\n", 22, '"shape" stands twice'),
    ("    shape: review\n", "    shape: !!python/object:os.system review\n", 21, "is marked as"),
    ("    shape: review\n", "    shape: [review\n", 22, "neither YAML nor JSON"),
    ("    shape: review\n", "\tshape: review\n", 21, "neither YAML nor JSON"),
    ("    shape: review\n", "    shape: *nowhere\n", 21, "neither YAML nor JSON"),
    ("    shape: review\n", "    ? [a, b]\n    : c\n", 21, "is no plain text"),
    ("quorum: null", f"quorum: {'9' * 5000}", 29, "too many digits"),
]


@pytest.mark.parametrize(("old", "new", "line", "said"), WRONG)
def test_a_wrong_file_changes_nothing_and_names_line_and_field(old: str, new: str, line: int, said: str) -> None:
    assert old in FILE
    found = problems(FILE.replace(old, new, 1))
    assert (line, True) in [(at, said in text) for at, text in found], found
    assert all(text.startswith(f"line {at}") for at, text in found if at)
    assert not any(CANARY in text for _, text in found)


def test_json_errors_have_lines_too() -> None:
    data = yaml.safe_load(FILE)
    data["models"][0]["facts"]["context_windw"] = 5
    text = json.dumps(data, indent=1)
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "context_windw" in row)
    assert problems(text) == [(line, f"line {line}, model fast: facts.context_windw is not known. Did you mean context_window?")]
    assert problems('{"models": [],\n "models": []}') == [(2, 'line 2: "models" stands twice in one object.')]
    assert problems('{"models": [,]}')[0][0] == 1


def test_every_fault_is_named_at_once() -> None:
    text = FILE.replace("kind: openai", "kind: x").replace("tools: true", "tools: 1").replace("explorers: 1", "explorers: -1")
    assert [line for line, _ in problems(text)] == [3, 13, 24]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "# nothing\n",
        "5",
        "text",
        "[]",
        "- a",
        "null",
        "\x00",
        "a: b: c",
        "--- \na: 1\n---\nb: 2\n",
        "{",
        "&a [*a]",
        "[" * 3000,
        "x: " + "{a: " * 50,
    ],
)
def test_files_that_are_none_are_refused(text: str) -> None:
    assert problems(text)


def test_a_file_that_grows_by_its_anchors_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "more than" in problems("\n".join(lines))[0][1]


def test_names_that_differ_from_the_rosters_in_case_only_are_refused() -> None:
    load(FILE)
    text = FILE.replace("alias: fast", "alias: Fast").replace("fast, slow, fast", "Fast").replace("mergers: [fast]", "mergers: []")
    assert [said for _, said in problems(text)] == ['line 9, model Fast: alias differs from the existing "fast" in case only. Write it the same way.']


def test_an_error_that_only_the_database_sees_changes_nothing() -> None:
    load(FILE)
    Model.objects.filter(alias="slow").update(quirks={"Bad Flag": 1})
    found = problems(FILE.replace("explorers: 1", "explorers: 2").replace("{alias: slow,", "{ad_hoc: true, alias: slow,"))
    assert found[0][0] == 17
    assert "quirks" in found[0][1]


def test_every_default_of_a_file_is_the_databases_own() -> None:
    for section, row in (("endpoints", Endpoint()), ("models", Model()), ("collections", Collection())):
        for name, field in roster_shape.SECTIONS[section].fields.items():
            if not field.required and name not in ("members", "mergers"):
                assert getattr(row, name) == field.default, name


@given(st.text(max_size=60))
def test_any_text_is_a_roster_or_a_roster_error(text: str) -> None:
    for whole in (text, f"models: [{text}]", '{"models": [{"alias": ' + json.dumps(text) + "}]}"):
        with suppress(RosterError):
            roster_shape.read(roster_text.read(whole))


# ------------------------------------------------------------------ dump


def test_a_dump_loads_as_no_change_and_makes_the_same_roster_elsewhere() -> None:
    load(FILE)
    load(
        as_json(
            models=[{"alias": "yes", "endpoint": "local", "served_name": "1e5"}, {"alias": "0755", "endpoint": "local", "served_name": "~"}],
            collections=[{"name": "null", "members": ["yes", "0755"], "quorum": 1, "keep_text": False, "merge_prompt": "a: b\n- c\n"}],
        )
    )
    for text in (rosterfile.dump_yaml(), rosterfile.dump_json()):
        assert load(text) == []
    dumped = rosterfile.dump()
    text = rosterfile.dump_yaml()
    Collection.objects.all().delete()
    Model.objects.all().delete()
    Endpoint.objects.all().delete()
    assert len(load(text)) == 7
    assert rosterfile.dump() == dumped
    assert rosterfile.dump_yaml() == text


def test_a_dump_leaves_defaults_out_and_holds_prices_with_the_facts() -> None:
    load(FILE)
    found = rosterfile.dump()
    assert found["collections"] == [{"name": "core", "description": "adversarial review", "members": ["fast", "slow", "fast"], "mergers": ["fast"]}]
    assert found["models"][0]["facts"]["input_usd_per_mtok"] == "0.5"
    assert found["models"][1] == {"alias": "slow", "endpoint": "local", "served_name": "fake/slow"}
    assert yaml.safe_load(rosterfile.dump_yaml()) == found


def test_prices_of_thinking_and_long_prompts_are_dumped_and_loaded() -> None:
    tiers = [{"above_tokens": 200000, "input_usd_per_mtok": "2.5"}]
    facts = {"input_usd_per_mtok": "1", "reasoning_usd_per_mtok": "8", "tiers": tiers}
    text = as_json(
        endpoints=[{"name": "e", "kind": "openai", "base_url": "http://h", "provider": "groq"}],
        models=[{"alias": "m", "endpoint": "e", "served_name": "s", "facts": facts}],
    )
    load(text)
    assert load(text) == []
    assert load(rosterfile.dump_yaml()) == []
    held = rosterfile.dump()
    assert held["endpoints"][0]["provider"] == "groq"
    assert held["models"][0]["facts"] == facts
    price = load_models()["m"].prices[0]
    assert (price.reasoning, [tier.input for tier in price.tiers]) == (8, [Decimal("2.5")])


def test_a_dump_holds_no_key_and_says_whose_is_missing() -> None:
    load(FILE)
    endpoint_keys.set_key(Endpoint.objects.get(), CANARY, "anna")
    for text in (rosterfile.dump_yaml(), rosterfile.dump_json()):
        assert CANARY not in text
        assert Endpoint.objects.get().key_sealed not in text
    assert "to be set again elsewhere: local." in rosterfile.dump_yaml()


def test_an_empty_roster_is_dumped_and_loaded() -> None:
    assert load(rosterfile.dump_yaml()) == []
    assert load(rosterfile.dump_json()) == []


# ------------------------------------------------------------------ the command


def command(*args: str) -> str:
    out = io.StringIO()
    call_command("roster", *args, stdout=out)
    return out.getvalue()


def test_the_command_prints_the_differences(tmp_path: Path) -> None:
    file = tmp_path / "roster.yaml"
    file.write_text(FILE, encoding="utf-8")
    said = command("load", str(file), "--dry-run")
    assert "+ model fast" in said
    assert "    context_window" not in said
    assert '    input_usd_per_mtok: "0.5"' in said
    assert "4 added. Nothing was written (--dry-run)." in said
    assert not Model.objects.exists()
    assert "4 added." in command("load", str(file))
    assert command("load", str(file)) == "Nothing to change.\n"
    file.write_text(FILE.replace("explorers: 1", "explorers: 2"), encoding="utf-8")
    assert command("load", str(file)) == "~ collection core\n    explorers: 1 -> 2\n1 changed.\n"


def test_the_command_refuses_a_wrong_file_with_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "roster.yaml"
    file.write_text(FILE.replace("tools: true", "tools: 1"), encoding="utf-8")
    with pytest.raises(CommandError, match=r"Nothing was changed.\n.*roster.yaml: line 13, model fast: facts.tools must be true or false, not 1."):
        command("load", str(file))
    file.write_bytes(b"models:\n  - \xff\n")
    with pytest.raises(CommandError, match="line 2: The file is not UTF-8"):
        command("load", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        command("load", str(tmp_path / "nothing.yaml"))
    with pytest.raises(CommandError, match="cannot be written"):
        command("dump", str(tmp_path / "no folder" / "x.yaml"))


@pytest.mark.parametrize("name", ["roster.yaml", "roster.json"])
def test_the_command_writes_a_file_that_it_loads(tmp_path: Path, name: str) -> None:
    load(FILE)
    file = tmp_path / name
    command("dump", str(file))
    assert file.read_text(encoding="utf-8").startswith("{" if name.endswith("json") else "#")
    assert command("load", str(file)) == "Nothing to change.\n"
    assert "alias: fast" in command("dump", "-")
