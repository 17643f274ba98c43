"""Scores parallel function calls: right when exactly the calls that were wanted were made, in any order."""

import json
import os

import requests
from bench_task import BenchTask


class Task(BenchTask):
    def extract(self, path, index):
        # One row of the file that the run provides.
        with open(path) as file:
            row = [json.loads(line) for line in file][index]
        return {"task_id": row["task_id"], "input": row["input"], "expected": row["expected"]}

    def solve(self, index, input):
        # The proxy reaches the model under test and no other; its key ends with this attempt, and may be unset.
        headers = {}
        key = os.environ.get("BW_MODEL_PROXY_KEY")
        if key:
            headers["Authorization"] = f"Bearer {key}"
        answer = requests.post(
            f"{os.environ['BW_MODEL_PROXY_URL']}/v1/chat/completions",
            headers=headers,
            json={
                "model": os.environ["BW_MODEL_MODEL"],
                "messages": [{"role": "user", "content": input["question"]}],
                "tools": input["functions"],
                "tool_choice": "auto",
            },
            timeout=120,
        )
        answer.raise_for_status()
        calls = answer.json()["choices"][0]["message"].get("tool_calls", [])
        return json.dumps([{"name": c["function"]["name"], "args": json.loads(c["function"]["arguments"])} for c in calls])

    def score(self, index, output, expected):
        def told_apart(calls):
            return {(call["name"], json.dumps(call["args"], sort_keys=True)) for call in calls}

        return 1.0 if told_apart(json.loads(output)) == told_apart(expected) else 0.0
