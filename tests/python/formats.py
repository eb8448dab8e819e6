"""What parsers that are not ours read in laggard's output for scripts.

Usage: formats.py markdown|openmetrics|junit FILE; prints JSON."""

import json
import sys

from junitparser import Error, Failure, JUnitXml
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families


def seen(token):
    """What a reader sees of an inline token."""
    parts = (part.content for part in token.children or [] if part.type != "html_inline")
    return "".join(parts)


def markdown(path):
    """Tables with their cells, and all that is more than text. As on GitHub: elements of HTML are
    passed on, and addresses become links."""
    with open(path, encoding="utf-8") as file:
        tokens = MarkdownIt("gfm-like").parse(file.read())
    tables, headings, items, paragraphs = [], [], [], []
    links, html, other = [], [], set()
    around = []
    for token in tokens:
        if token.nesting == 1:
            around.append(token.type)
        elif token.nesting == -1:
            around.pop()
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type == "html_block":
            html.append(token.content)
        elif token.type == "inline":
            where = around[-1]
            if where in ("th_open", "td_open"):
                tables[-1][-1].append(seen(token))
            elif where == "heading_open":
                headings.append(seen(token))
            else:
                (items if "list_item_open" in around else paragraphs).append(seen(token))
            for part in token.children or []:
                if part.type == "link_open":
                    links.append(part.attrs["href"])
                elif part.type == "html_inline":
                    html.append(part.content)
                elif part.type not in ("text", "link_close"):
                    other.add(part.type)
        elif token.type in ("fence", "code_block", "hr"):
            other.add(token.type)
    return {
        "tables": tables,
        "headings": headings,
        "items": items,
        "paragraphs": paragraphs,
        "links": links,
        "html": html,
        "other": sorted(other),
    }


def openmetrics(path):
    """All samples, by family; the parser refuses what is not as the standard says."""
    with open(path, encoding="utf-8", newline="") as file:
        families = list(text_string_to_metric_families(file.read()))
    return {
        family.name: {
            "type": family.type,
            "unit": family.unit,
            "help": family.documentation,
            "samples": [[sample.labels, sample.value] for sample in family.samples],
        }
        for family in families
    }


def junit(path):
    """The cases of all suites."""
    kinds = {Failure: "failure", Error: "error"}
    suites = []
    for suite in JUnitXml.fromfile(path):
        cases = [
            {
                "name": case.name,
                "class": case.classname,
                "results": [[kinds[type(one)], one.message] for one in case.result],
                "output": case.system_out,
            }
            for case in suite
        ]
        counts = {"tests": suite.tests, "failures": suite.failures, "errors": suite.errors}
        suites.append({"name": suite.name, "cases": cases} | counts)
    return suites


def main(kind, path):
    parsers = {"markdown": markdown, "openmetrics": openmetrics, "junit": junit}
    json.dump(parsers[kind](path), sys.stdout)


main(*sys.argv[1:])
