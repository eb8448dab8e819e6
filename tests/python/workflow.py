"""The commands of the examples in a page about continuous integration.

Usage: workflow.py PAGE; prints JSON: for each example its steps, each a script."""

import json
import re
import sys

import yaml


def steps(example):
    """The scripts of a workflow of GitHub's, or of a job of GitLab's."""
    if "jobs" in example:
        jobs = example["jobs"].values()
        return [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    return [line for job in example.values() for line in job["script"]]


def main(page):
    with open(page, encoding="utf-8") as file:
        found = re.findall(r"```yaml\n(.*?)```", file.read(), flags=re.S)
    json.dump([steps(yaml.safe_load(text)) for text in found], sys.stdout)


main(*sys.argv[1:])
