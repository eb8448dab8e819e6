"""Rank 0 is late before barriers, in `relax`, 8 ms of processor time each round; both ranks compute 4 ms in
`assemble`. At the end rank 0 says how long `relax` took, ns."""
import json
import sys
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
ROUNDS = 40


def work(until):
    total = 0
    while time.thread_time() < until:
        for number in range(5000):
            total += number * number
    return total


def relax():
    begin = time.thread_time()
    total = 0
    while time.thread_time() < begin + 0.008:
        for number in range(5000):
            total += number * number
    return time.thread_time() - begin


def assemble():
    work(time.thread_time() + 0.004)


assert sys.argv[1:] == ["late"]
relaxed = 0.0
for _ in range(ROUNDS):
    assemble()
    if rank == 0:
        relaxed += relax()
    comm.Barrier()
if rank == 0:
    print(json.dumps({"relax": 1e9 * relaxed}))
