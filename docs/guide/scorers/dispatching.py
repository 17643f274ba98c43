"""Scores four kinds of task in one benchmark: each row says its kind, in its input for `solve` and in its expected value for `score`."""

import json
import os
import re
import subprocess
import tempfile

import requests
from bench_task import BenchTask


def chat(messages, **more):
    """Asks the model under test, for every kind the same way."""
    headers = {}
    key = os.environ.get("BW_MODEL_PROXY_KEY")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    answer = requests.post(
        f"{os.environ['BW_MODEL_PROXY_URL']}/v1/chat/completions",
        headers=headers,
        json={"model": os.environ["BW_MODEL_MODEL"], "messages": messages, **more},
        timeout=180,
    )
    answer.raise_for_status()
    return answer.json()["choices"][0]["message"]


def told_apart(calls):
    return {(call["name"], json.dumps(call["args"], sort_keys=True)) for call in calls}


class Task(BenchTask):
    def extract(self, path, index):
        with open(path) as file:
            row = [json.loads(line) for line in file][index]
        return {"task_id": row["task_id"], "input": row["input"], "expected": row["expected"]}

    # ------------------------------------------------------------------ asking, kind by kind

    def solve(self, index, input):
        kind = input["kind"]
        if kind == "multiple_choice":
            return self.solve_choice(input)
        if kind == "function_call":
            return self.solve_calls(input)
        if kind == "math":
            return self.solve_number(input)
        if kind == "code":
            return self.solve_code(input)
        raise ValueError(f"unknown kind: {kind}")

    def solve_choice(self, input):
        prompt = input["question"] + "\n\n"
        for place, choice in enumerate(input["choices"]):
            prompt += f"{chr(65 + place)}. {choice}\n"
        prompt += "\nAnswer with the single letter."
        found = re.search(r"\b([A-E])\b", chat([{"role": "user", "content": prompt}]).get("content", ""))
        return found.group(1) if found else ""

    def solve_calls(self, input):
        message = chat([{"role": "user", "content": input["question"]}], tools=input["functions"], tool_choice="auto")
        calls = message.get("tool_calls", [])
        return json.dumps([{"name": c["function"]["name"], "args": json.loads(c["function"]["arguments"])} for c in calls])

    def solve_number(self, input):
        prompt = input["question"] + "\n\nGive only the final numeric answer."
        text = (chat([{"role": "user", "content": prompt}]).get("content") or "").strip()
        found = re.search(r"-?\d+(?:\.\d+)?", text.replace(",", ""))
        return found.group(0) if found else text

    def solve_code(self, input):
        return chat([{"role": "user", "content": input["prompt"]}]).get("content", "")

    # ------------------------------------------------------------------ scoring, kind by kind

    def score(self, index, output, expected):
        kind = expected["kind"]
        if kind == "multiple_choice":
            return 1.0 if output.strip().upper() == expected["value"].strip().upper() else 0.0
        if kind == "function_call":
            return self.score_calls(output, expected)
        if kind == "math":
            return self.score_number(output, expected)
        if kind == "code":
            return self.score_code(output, expected)
        return 0.0

    def score_calls(self, output, expected):
        try:
            return 1.0 if told_apart(json.loads(output)) == told_apart(expected["value"]) else 0.0
        except Exception:
            return 0.0

    def score_number(self, output, expected):
        try:
            return 1.0 if abs(float(output) - float(expected["value"])) < 1e-6 else 0.0
        except ValueError:
            return 0.0

    def score_code(self, output, expected):
        # A program that ends itself before the tests run passes here. The built-in kind `code` cannot be fooled so; see README.md.
        fenced = re.search(r"```(?:python)?\n(.+?)```", output, re.S)
        program = fenced.group(1) if fenced else output
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
            file.write(program + "\n\n" + expected["test_code"])
        try:
            subprocess.run(["python3", file.name], check=True, timeout=30, capture_output=True)
            return 1.0
        except Exception:
            return 0.0
