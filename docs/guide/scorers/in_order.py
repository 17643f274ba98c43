"""The scorer that chapter 5 finds fault with: it wants the calls in the order of the answer key, which nobody asked the model for."""

import json
import os

import requests
from bench_task import BenchTask


class Task(BenchTask):
    def extract(self, path, index):
        with open(path) as file:
            row = [json.loads(line) for line in file][index]
        return {"task_id": row["task_id"], "input": row["input"], "expected": row["expected"]}

    def solve(self, index, input):
        answer = requests.post(
            f"{os.environ['BW_MODEL_PROXY_URL']}/v1/chat/completions",
            headers={"Authorization": f"Bearer {os.environ['BW_MODEL_PROXY_KEY']}"},
            json={
                "model": os.environ["BW_MODEL_MODEL"],
                "messages": [{"role": "user", "content": input["question"]}],
                "tools": input["functions"],
            },
            timeout=120,
        )
        answer.raise_for_status()
        calls = answer.json()["choices"][0]["message"].get("tool_calls") or []
        return json.dumps([{"name": c["function"]["name"], "args": json.loads(c["function"]["arguments"])} for c in calls])

    def score(self, index, output, expected):
        return 1.0 if json.loads(output) == expected else 0.0
