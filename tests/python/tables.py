"""What two libraries that are not ours read in tables: rows, of short tables all, and the sum of
every column of integers.

Usage: tables.py DIRECTORY-OF-PARQUET DIRECTORY-OF-ARROW; prints JSON."""

import glob
import json
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq


def facts(table):
    sums = {
        field.name: pc.sum(table[field.name]).as_py() or 0
        for field in table.schema
        if pa.types.is_integer(field.type)
    }
    return {"rows": table.num_rows, "sums": sums}


def plain(table):
    """The table without dictionaries: these may be of other sizes."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table[field.name].cast(pa.string()))
    return table


def by_duckdb(path, columns):
    sums = ", ".join(f'coalesce(sum("{column}"), 0)' for column in columns)
    rows = duckdb.sql(f"SELECT count(*), {sums} FROM '{path}'").fetchall()[0]
    return {"rows": rows[0], "sums": dict(zip(columns, map(int, rows[1:])))}


def main(parquet, arrow):
    tables = {}
    for path in sorted(glob.glob(f"{parquet}/*.parquet")):
        name = os.path.splitext(os.path.basename(path))[0]
        read = pq.read_table(path)
        other = feather.read_table(f"{arrow}/{name}.arrow")
        own = facts(read)
        tables[name] = {
            "pyarrow": own,
            "duckdb": by_duckdb(path, list(own["sums"])),
            "by_call": {
                row["values"]: row["counts"]
                for row in pc.value_counts(plain(read)["call"]).to_pylist()
            } if "call" in read.column_names else {},
            "listed": plain(read).to_pylist() if read.num_rows <= 100 else [],
            "same_in_arrow": plain(read).equals(plain(other)),
            "columns": [[field.name, str(field.type), field.nullable] for field in read.schema],
            "rows_per_group": [
                pq.ParquetFile(path).metadata.row_group(at).num_rows
                for at in range(pq.ParquetFile(path).num_row_groups)
            ],
        }
    json.dump(tables, sys.stdout)


main(*sys.argv[1:])
