"""Runs the questions of QUESTIONS.md, as they stand there, on a directory of tables.

Usage: questions.py QUESTIONS.md DIRECTORY; prints JSON: for each question its title, the
columns and the rows of the answer."""

import json
import os
import re
import sys

import duckdb


def main(document, directory):
    text = open(document, encoding="utf-8").read()
    found = re.findall(r"^## (.+?)\n.*?```sql\n(.*?)```", text, flags=re.S | re.M)
    os.chdir(directory)
    answers = []
    for title, question in found:
        answer = duckdb.sql(question)
        rows = [[str(value) for value in row] for row in answer.fetchall()]
        answers.append({"title": title, "columns": answer.columns, "rows": rows})
    json.dump(answers, sys.stdout)


main(*sys.argv[1:])
