"""What Google's protobuf reads in a pprof profile, by the numbers of pprof's profile.proto.

Usage: pprof_profile.py PROFILE; prints JSON: the sum of each kind of value, and by function
around the innermost one."""

import collections
import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELDS = {
    "ValueType": [("type", 1, "int64"), ("unit", 2, "int64")],
    "Line": [("function_id", 1, "uint64"), ("line", 2, "int64")],
    "Location": [("id", 1, "uint64"), ("line", 4, "Line*")],
    "Function": [("id", 1, "uint64"), ("name", 2, "int64"), ("filename", 4, "int64")],
    "Sample": [("location_id", 1, "uint64*"), ("value", 2, "int64*")],
    "Profile": [
        ("sample_type", 1, "ValueType*"),
        ("sample", 2, "Sample*"),
        ("location", 4, "Location*"),
        ("function", 5, "Function*"),
        ("string_table", 6, "string*"),
        ("duration_nanos", 10, "int64"),
    ],
}


def profile_class():
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            one = message.field.add(name=field, number=number)
            one.label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            if kind in FIELDS:
                one.type, one.type_name = kinds.TYPE_MESSAGE, f".p.{kind}"
            else:
                one.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


def main(path):
    profile = profile_class()()
    profile.ParseFromString(gzip.open(path).read())
    text = profile.string_table
    functions = {f.id: text[f.name] for f in profile.function}
    locations = {at.id: [functions[line.function_id] for line in at.line] for at in profile.location}
    kinds = [text[kind.type] for kind in profile.sample_type]
    sums = dict.fromkeys(kinds, 0)
    leaves = collections.Counter()
    for sample in profile.sample:
        for kind, value in zip(kinds, sample.value):
            sums[kind] += value
        if sample.location_id:
            leaves[locations[sample.location_id[0]][0]] += sample.value[kinds.index("waiting")]
    units = [text[kind.unit] for kind in profile.sample_type]
    json.dump({"sums": sums, "units": units, "waiting": leaves, "empty_first": text[0] == ""}, sys.stdout)


main(sys.argv[1])
