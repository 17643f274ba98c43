"""Hubs: what each tells beyond the plain list, how it is recognised with a few questions, and that a shut richer door loses nothing."""

from __future__ import annotations

from typing import Any

import pytest

from catalog import endpoint_keys, hubs, served
from catalog.models import Endpoint
from tests.catalog.pages import Pages

pytestmark = pytest.mark.django_db


def plain(*names: str, **more: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 1, "owned_by": "somebody", **more} for name in names]}


def at(pages: Pages, path: str = "/v1", kind: str = "openai") -> Endpoint:
    row, _ = Endpoint.objects.get_or_create(name="hub", defaults={"kind": kind, "base_url": pages.url + path})
    return row


def asked(pages: Pages) -> list[str]:
    return [path for path, _ in pages.asked]


def facts(found: served.Found) -> dict[str, dict[str, Any]]:
    return {one.served_name: dict(one.facts) for one in found.models}


LM_STUDIO = {
    "models": [
        {
            "type": "llm",
            "key": "acme/big",
            "display_name": "Big",
            "max_context_length": 131072,
            "loaded_instances": [{"id": "acme/big:2", "config": {"context_length": 8192}}],
            "capabilities": {"vision": False, "trained_for_tool_use": True, "reasoning": {"allowed_options": ["on"]}},
        },
        {"type": "embedding", "key": "acme/vectors", "max_context_length": 2048, "loaded_instances": []},
    ]
}


def test_lm_studio_tells_the_loaded_window_and_which_models_only_embed(pages: Pages) -> None:
    pages.put("/v1/models", plain("acme/big", "acme/big:2", "acme/vectors"))
    pages.put("/api/v1/models", LM_STUDIO)
    found = served.ask(at(pages))
    big = {"context_window": 8192, "vision": False, "tools": True, "reasoning": True}
    assert facts(found) == {"acme/big": big, "acme/big:2": big, "acme/vectors": {"context_window": 2048}}
    assert (found.hub, [one.chat for one in found.models]) == ("lm_studio", [True, True, False])


def test_llama_cpp_tells_the_loaded_window_and_not_the_trained_one(pages: Pages) -> None:
    pages.put("/v1/models", {"data": [{"id": "m.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}]})
    settings = {"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": True, "audio": False}, "chat_template_caps": {"supports_tools": True}}
    pages.put("/props", settings)
    found = served.ask(at(pages))
    assert facts(found) == {"m.gguf": {"context_window": 4096, "vision": True, "audio": False, "tools": True}}
    assert (found.hub, asked(pages)) == ("llama_cpp", ["/v1/models", "/props"])


def test_vllm_needs_no_second_question_and_its_adapters_share_the_window_of_their_model(pages: Pages) -> None:
    base = {"id": "base", "owned_by": "vllm", "parent": None, "max_model_len": 32768}
    pages.put("/v1/models", {"data": [base, {"id": "tuned", "owned_by": "vllm", "parent": "base", "max_model_len": None}]})
    found = served.ask(at(pages))
    assert facts(found) == {"base": {"context_window": 32768}, "tuned": {"context_window": 32768}}
    assert (found.hub, asked(pages)) == ("vllm", ["/v1/models"])


DEPLOYMENTS = {
    "data": [
        {
            "model_name": "smart",
            "litellm_params": {"model": "openai/x"},
            "model_info": {
                "mode": "chat",
                "max_input_tokens": 128000,
                "supports_vision": True,
                "supports_function_calling": True,
                "input_cost_per_token": 2.5e-06,
            },
        },
        {
            "model_name": "smart",
            "litellm_params": {"model": "azure/x"},
            "model_info": {
                "mode": "chat",
                "max_input_tokens": 64000,
                "supports_vision": False,
                "supports_function_calling": True,
                "input_cost_per_token": 3e-06,
            },
        },
        {"model_name": "vectors", "litellm_params": {}, "model_info": {"mode": "embedding", "max_input_tokens": 8191}},
    ]
}
GROUPS = {"data": [{"model_group": "smart", "providers": ["openai"], "mode": "chat", "max_input_tokens": 1000, "supports_reasoning": True}]}


def test_litellm_tells_what_holds_of_every_deployment_behind_a_name(pages: Pages) -> None:
    pages.put("/v1/models", plain("smart", "vectors"))
    pages.put("/health/liveliness", '"I\'m alive!"')
    pages.put("/model/info", DEPLOYMENTS)
    found = served.ask(at(pages))
    assert facts(found)["smart"] == {"context_window": 64000, "vision": False, "tools": True, "input_usd_per_mtok": "3"}
    assert (found.hub, [one.chat for one in found.models]) == ("litellm", [True, False])


def test_litellms_groups_stand_in_where_a_plain_key_is_refused_its_deployments(pages: Pages) -> None:
    pages.put("/v1/models", plain("smart"), x_litellm_version="1.80")
    pages.put("/model/info", {"error": {"message": "not allowed"}}, 403)
    pages.put("/model_group/info", GROUPS)
    found = served.ask(at(pages, "/v1/chat/completions"))
    assert facts(found) == {"smart": {"context_window": 1000, "reasoning": True}}
    assert asked(pages) == ["/v1/models", "/model/info", "/model_group/info"]


def test_open_webui_keeps_what_the_server_behind_it_said(pages: Pages) -> None:
    behind = {
        "data": [
            {"id": "gpt", "owned_by": "openai", "connection_type": "external", "openai": {"id": "gpt", "max_model_len": 9000}, "urlIdx": 0},
            {
                "id": "llama:8b",
                "owned_by": "ollama",
                "connection_type": "local",
                "ollama": {"details": {"context_length": 131072}, "capabilities": ["completion", "tools"]},
                "info": {"params": {"num_ctx": 16384}, "meta": {"capabilities": {"vision": True, "file_upload": True}}},
            },
        ]
    }
    pages.put("/api/v1/models", behind)
    pages.put("/api/models", behind)
    found = served.ask(at(pages, "/api"))
    assert facts(found) == {"gpt": {"context_window": 9000}, "llama:8b": {"context_window": 16384, "tools": True}}
    assert (found.hub, asked(pages)) == ("open_webui", ["/api/v1/models", "/api/models"])


TAGS = {
    "models": [
        {"name": "new:8b", "model": "new:8b", "digest": "x", "details": {"context_length": 40960}, "capabilities": ["completion", "tools"]},
        {"name": "old:latest", "model": "old:latest", "digest": "y", "details": {"family": "llama"}},
        {"name": "vectors:latest", "model": "vectors:latest", "digest": "z", "details": {}, "capabilities": ["embedding"]},
    ]
}
SHOWN = {"model_info": {"general.architecture": "llama", "llama.context_length": 8192}, "capabilities": ["completion", "vision"], "parameters": "stop x"}


@pytest.mark.parametrize(("path", "kind"), [("", "ollama"), ("/v1", "openai")])
def test_ollama_is_asked_after_models_that_say_no_window(pages: Pages, path: str, kind: str) -> None:
    pages.put("/v1/models", plain("new:8b", "old:latest", "vectors:latest", owned_by="library"))
    pages.put("/api/tags", TAGS)
    pages.put("/api/ps", {"models": [{"name": "new:8b", "model": "new:8b", "context_length": 4096}]})
    pages.put('POST /api/show {"model":"old:latest"}', SHOWN)
    found = served.ask(at(pages, path, kind))
    assert facts(found) == {
        "new:8b": {"context_window": 4096, "tools": True},
        "old:latest": {"context_window": 8192, "vision": True},
        "vectors:latest": {},
    }
    assert (found.hub, [one.chat for one in found.models]) == ("ollama", [True, True, False])
    assert sum(path.startswith("POST") for path in asked(pages)) == 1


def test_a_window_that_a_models_own_parameters_set_holds_at_ollama(pages: Pages) -> None:
    pages.put("/api/tags", {"models": [{"name": "m", "digest": "x", "details": {}}]})
    pages.put("POST /api/show", {**SHOWN, "parameters": 'num_ctx                        2048\nstop "x"'})
    assert facts(served.ask(at(pages, "", "ollama")))["m"]["context_window"] == 2048


def test_ollama_is_asked_after_forty_models_at_most(pages: Pages) -> None:
    pages.put("/api/tags", {"models": [{"name": f"m{n}", "digest": "x", "details": {}} for n in range(60)]})
    pages.put("POST /api/show", SHOWN)
    found = served.ask(at(pages, "", "ollama"))
    assert len(found.models) == 60
    assert sum("context_window" in one.facts for one in found.models) == 40


def test_cli_proxy_api_tells_windows_in_geminis_shape(pages: Pages) -> None:
    pages.put("/v1/models", plain("claude-x", "gemini-x"))
    pages.put("/", {"message": "CLI Proxy API Server", "endpoints": ["GET /v1/models"]})
    methods = ["generateContent"]
    pages.put(
        "/v1beta/models?pageSize=1000",
        {
            "models": [
                {
                    "name": "models/claude-x",
                    "inputTokenLimit": 200000,
                    "outputTokenLimit": 64000,
                    "supportedGenerationMethods": methods,
                    "supportedInputModalities": ["TEXT", "IMAGE"],
                },
                {"name": "gemini-x", "inputTokenLimit": 1048576, "supportedGenerationMethods": ["predict"]},
            ]
        },
    )
    found = served.ask(at(pages))
    assert facts(found) == {"claude-x": {"context_window": 200000, "output_limit": 64000, "vision": True}, "gemini-x": {"context_window": 1048576}}
    assert (found.hub, [one.chat for one in found.models]) == ("cli_proxy", [True, False])


def test_only_live_providers_count_at_hugging_face(pages: Pages) -> None:
    providers = [
        {"provider": "a", "status": "live", "context_length": 8192, "supports_tools": True, "first_token_latency_ms": 5},
        {"provider": "b", "status": "error", "context_length": 1024, "supports_tools": False},
    ]
    pages.put("/v1/models", {"data": [{"id": "m", "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]}, "providers": providers}]})
    found = served.ask(at(pages))
    assert {"context_window": 8192, "tools": True}.items() <= facts(found)["m"].items()
    assert found.hub == "huggingface"


# ------------------------------------------------------------------ recognising


def test_a_bare_list_costs_a_few_questions_and_a_telling_one_none(pages: Pages) -> None:
    pages.put("/v1/models", plain("m"))
    assert served.ask(at(pages)).hub == ""
    assert asked(pages) == ["/v1/models", "/api/config", "/api/v1/models", "/health/liveliness", "/api/version", "/props", "/"]
    pages.asked.clear()
    pages.put("/v1/models", plain("m", context_length=1000))
    assert served.ask(at(pages)).hub == ""
    assert asked(pages) == ["/v1/models"]


def test_what_a_hub_was_found_to_be_is_asked_first_the_next_time(pages: Pages) -> None:
    pages.put("/v1/models", plain("smart"))
    pages.put("/model/info", DEPLOYMENTS)
    found = served.ask(at(pages), hub="litellm")
    assert (found.hub, asked(pages)) == ("litellm", ["/v1/models", "/model/info"])


def test_a_hub_that_became_another_server_is_recognised_again(pages: Pages) -> None:
    pages.put("/v1/models", plain("acme/big"))
    pages.put("/api/v1/models", LM_STUDIO)
    assert served.ask(at(pages), hub="litellm").hub == "lm_studio"
    assert served.ask(at(pages), hub="no such hub").hub == "lm_studio"


def test_open_webui_is_not_taken_for_the_ollama_whose_question_it_answers_too(pages: Pages) -> None:
    pages.put("/api/v1/models", plain("m"))
    pages.put("/api/config", {"status": True, "name": "Team chat", "version": "0.6", "features": {"auth": True}})
    pages.put("/api/version", {"version": "0.6"})
    pages.put("/api/models", plain("m", openai={"context_length": 777}))
    found = served.ask(at(pages, "/api"))
    assert (found.hub, facts(found)) == ("open_webui", {"m": {"context_window": 777}})


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("http://h:4000", "http://h:4000"),
        ("http://h:4000/v1/", "http://h:4000"),
        ("http://h:3000/api", "http://h:3000"),
        ("http://h:3000/openai/v1/chat/completions", "http://h:3000"),
        ("http://h:3000/ollama/api/chat", "http://h:3000"),
        ("https://h/behind/a/prefix/v1?tenant=x", "https://h/behind/a/prefix"),
    ],
)
def test_a_hubs_own_doors_are_looked_for_where_the_server_begins(base_url: str, root: str) -> None:
    assert hubs.root(base_url) == root


# ------------------------------------------------------------------ nothing is lost


@pytest.mark.parametrize("hub", [hub.name for hub in hubs.every()])
@pytest.mark.parametrize(
    ("body", "status"), [("<html>", 200), ({"error": "no"}, 403), ({}, 200), ({"data": "x"}, 200), ([1, 2], 200), ("[" * 5000, 200), (None, 200), ("x", 500)]
)
def test_garbage_behind_the_richer_door_never_loses_the_plain_list(pages: Pages, hub: str, body: Any, status: int) -> None:
    names = {"data": [{"id": "m", "parent": 5, "providers": "x", "meta": [], "urlIdx": None}]}
    pages.put("/v1/models", names)
    for path in ("/api/models", "/api/v1/models", "/model/info", "/model_group/info", "/api/tags", "/api/ps", "/props", "/v1beta/models?pageSize=1000", "/"):
        pages.put(path, body, status)
    pages.put("POST /api/show", body, status)
    assert [one.served_name for one in served.ask(at(pages), hub=hub).models] == ["m"]


def test_names_of_the_richer_list_alone_are_not_this_keys(pages: Pages) -> None:
    pages.put("/v1/models", plain("smart"))
    pages.put("/model/info", DEPLOYMENTS)
    assert list(facts(served.ask(at(pages), hub="litellm"))) == ["smart"]


def test_the_key_goes_to_the_endpoints_own_server_alone(pages: Pages) -> None:
    row = at(pages)
    endpoint_keys.set_key(row, "sk-canary-123456", "admin")
    pages.put("/v1/models", {**plain("a"), "links": {"next": "https://elsewhere.example.org/v1/models"}})
    assert [one.served_name for one in served.ask(row).models] == ["a"]
    assert {headers["authorization"] for _, headers in pages.asked} == {"Bearer sk-canary-123456"}


# ------------------------------------------------------------------ pages of a list


def test_a_list_in_pages_is_read_to_its_end(pages: Pages) -> None:
    pages.put("/v1/models?limit=1000", {"data": [{"id": "a"}], "has_more": True, "last_id": "a/1"})
    pages.put("/v1/models?limit=1000&after_id=a%2F1", {"data": [{"id": "b"}], "has_more": False, "last_id": "b"})
    found = served.ask(at(pages, "", "anthropic"))
    assert ([one.served_name for one in found.models], found.is_whole) == (["a", "b"], True)


def test_geminis_pages_are_read_too(pages: Pages) -> None:
    pages.put("/v1beta/models?pageSize=1000", {"models": [{"name": "models/a"}], "nextPageToken": "t=1"})
    pages.put("/v1beta/models?pageSize=1000&pageToken=t%3D1", {"models": [{"name": "models/b"}]})
    assert [one.served_name for one in served.ask(at(pages, "", "gemini")).models] == ["a", "b"]


def test_openrouters_pages_are_read_too(pages: Pages) -> None:
    pages.put("/api/v1/models", {"data": [{"id": "a", "context_length": 5}], "links": {"next": "/api/v1/models?offset=1"}})
    pages.put("/api/v1/models?offset=1", {"data": [{"id": "b"}], "links": {"next": None}})
    assert [one.served_name for one in served.ask(at(pages, "/api/v1")).models] == ["a", "b"]


def test_pages_without_end_are_cut_and_the_list_called_so(pages: Pages) -> None:
    pages.put("/v1/models?limit=1000", {"data": [{"id": "a"}], "has_more": True, "last_id": "a"})
    pages.put("/v1/models?limit=1000&after_id=a", {"data": [{"id": "b"}], "has_more": True, "last_id": "a"})
    found = served.ask(at(pages, "", "anthropic"))
    assert ([one.served_name for one in found.models], found.is_whole) == (["a", "b"], False)


def test_a_later_page_that_fails_leaves_what_came_before(pages: Pages) -> None:
    pages.put("/v1/models?limit=1000", {"data": [{"id": "a"}], "has_more": True, "last_id": "a"})
    found = served.ask(at(pages, "", "anthropic"))
    assert ([one.served_name for one in found.models], found.is_whole) == (["a"], False)
