"""What may be called what."""

from __future__ import annotations

import pytest

from catalog import names
from catalog.shape import ShapeError

GOOD = [
    "a",
    "fast",
    "meta-llama/Llama-3.3-70B:free",
    "two words",
    "модель",
    "模型",
    "モデル@家",
    "نموذج",
    "می\u200cخواهم",
    "👩\u200d🔬",
    "a" * 200,
    "..",
    "bench",
    "1e5",
    "naïve",
]
BAD = {
    "": "must not be empty",
    " fast": "begin or end with a space",
    "fast ": "begin or end with a space",
    "fa\nst": "U+000A",
    "fa\tst": "U+0009",
    "fa\x00st": "U+0000",
    "fa\x7fst": "U+007F",
    "fa\u202est": "U+202E",
    "fa\u00a0st": "U+00A0",
    "fa\ud800st": "U+D800",
    "\u200dfast": "U+200D",
    "fast\u200c": "U+200C",
    "a" * 201: "at most 200",
}


@pytest.mark.parametrize("name", GOOD)
def test_names_of_any_script_are_taken(name: str) -> None:
    assert names.check_name(name) == names.check_alias(name) == names.check_served_name(name) == name
    assert "/" in name or names.check_collection_name(name) == name


@pytest.mark.parametrize(("name", "why"), BAD.items())
def test_names_that_cannot_be_printed_are_refused_and_say_where(name: str, why: str) -> None:
    with pytest.raises(ShapeError, match=why.replace("+", r"\+")) as caught:
        names.check_name(name, "alias")
    assert caught.value.field == "alias"


@pytest.mark.parametrize("name", [None, 5, True, ["a"], {"a": 1}, 1.5])
def test_names_are_text(name: object) -> None:
    with pytest.raises(ShapeError, match="must be text"):
        names.check_name(name)


@pytest.mark.parametrize("alias", ["bench/core", "BENCH/core", "Bench/x"])
def test_aliases_do_not_look_like_collections(alias: str) -> None:
    with pytest.raises(ShapeError, match="must not begin with bench/"):
        names.check_alias(alias)


@pytest.mark.parametrize("name", ["a/b", "core:merged", "core:route", "Core:MERGED", "/"])
def test_collections_do_not_look_like_modes_or_paths(name: str) -> None:
    with pytest.raises(ShapeError):
        names.check_collection_name(name)


@pytest.mark.parametrize("name", ["core:mergedx", "merged", "a:b", "core:merged2"])
def test_collections_may_hold_colons(name: str) -> None:
    assert names.check_collection_name(name) == name


@pytest.mark.parametrize(("mine", "other"), [("Fast", "fast"), ("ÄRGER", "ärger"), ("straße", "STRASSE"), ("É", "e\u0301"), ("same", "same")])
def test_names_are_unique_ignoring_case_in_any_script(mine: str, other: str) -> None:
    with pytest.raises(ShapeError, match="is taken"):
        names.check_unique(mine, ["quite another", other], "alias")


@pytest.mark.parametrize("name", ["", "BENCHWARMERS_KEY_GROQ", "BENCHWARMERS_KEY_A_1"])
def test_key_variables_are_taken(name: str) -> None:
    assert names.check_key_env(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "BENCHWARMERS_SECRET_KEYS",
        "BENCHWARMERS_KEY_",
        "BENCHWARMERS_KEY",
        "benchwarmers_key_a",
        "BENCHWARMERS_KEY_a",
        "BENCHWARMERS_KEY_A B",
        " BENCHWARMERS_KEY_A",
        5,
    ],
)
def test_no_other_variable_can_be_read_through_an_endpoint(name: object) -> None:
    with pytest.raises(ShapeError):
        names.check_key_env(name)
