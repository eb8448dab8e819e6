"""What pycubexr reads in a profile for the Cube tools.

Usage: cubex.py PROFILE; prints JSON: metrics with their parents and sums, in the file's own unit; the same sums
by thread, and by call path (functions joined by " > ") if they are not 0; processes and hosts."""

import json
import sys

from pycubexr import CubexParser


def main(path):
    with CubexParser(path) as cube:
        names = {}

        def name(node, above):
            names[node.id] = above + [node.region.name]
            for child in node.get_children():
                name(child, names[node.id])

        name(cube.get_root_cnodes()[0], [])
        metrics = {}

        def metric(one, parent):
            values = cube.get_metric_values(one)
            rows = {node.id: values.cnode_values(node) for node in cube.all_cnodes()}
            threads = [sum(row[at].item() for row in rows.values()) for at in range(values.num_locations())]
            paths = {}
            for node, row in rows.items():
                if row.any():
                    text = " > ".join(names[node])
                    paths[text] = paths.get(text, 0) + row.sum().item()
            metrics[one.name] = {
                "parent": parent,
                "unit": one.units,
                "sum": sum(threads),
                "threads": threads,
                "paths": paths,
            }
            for child in one.childs:
                metric(child, one.name)

        for one in cube.get_metrics():
            metric(one, None)
        machine = cube._anchor_result.system_tree_nodes[0]
        hosts = {
            host.name: [int(process.rank) for process in host.all_location_groups()]
            for host in machine._system_tree_node_children
        }
        json.dump({"metrics": metrics, "hosts": hosts, "attributes": cube._anchor_result.attrs}, sys.stdout)


main(sys.argv[1])
