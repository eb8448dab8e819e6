# Python with mpi4py: pickled messages, buffers and a barrier.
#
# The pickled receive takes its message with MPI_Mprobe and MPI_Mrecv.
#
# RUN np=2
# NOT_WITH mpich because="Debian builds mpi4py for Open MPI alone"
# EXPECT late_sender at=@recv operation=MPI_Mprobe function=pickled ranks=1 severity=0.300 instances=5
#   cause_rank=0 cause_line=@send
# EXPECT late_sender at=@Recv operation=MPI_Recv function=buffered ranks=1 severity=0.180 instances=3
#   cause_rank=0 cause_line=@Send
# EXPECT wait_at_barrier at=@barrier ranks=0 severity=0.300 instances=5 operation=MPI_Barrier
#   cause_rank=1 cause_line=@barrier
# METRIC late_sender 0.480
# SILENT late_receiver
import os
import sys
import time
from array import array

from mpi4py import MPI

SCALE = float(os.environ.get("SCHEDULE_SCALE", "1"))
PERIOD, DELAY = 0.100 * SCALE, 0.060 * SCALE
comm = MPI.COMM_WORLD
rank = comm.Get_rank()
origin = comm.allreduce(time.monotonic(), op=MPI.MAX) + 0.02


def at(round, seconds):
    """Sleeps until a time in a round; every rank has the same clock."""
    time.sleep(max(0.0, origin + round * PERIOD + seconds - time.monotonic()))


def pickled(round):
    at(round, DELAY if rank == 0 else 0)
    if rank == 0:
        comm.send({"round": round, "values": [round, 2 * round]}, dest=1, tag=3)  # MARK send
        return 0
    message = comm.recv(source=0, tag=3)  # MARK recv
    assert message["round"] == round
    return sum(message["values"])


def buffered(round):
    data = array("i", [round] * 4)
    at(round, DELAY if rank == 0 else 0)
    if rank == 0:
        comm.Send([data, MPI.INT], dest=1, tag=4)  # MARK Send
        return 0
    data = array("i", [-1] * 4)
    comm.Recv([data, MPI.INT], source=0, tag=4)  # MARK Recv
    assert list(data) == [round] * 4
    return sum(data)


total = 0
for round in range(5):
    total += pickled(round)
for round in range(5, 8):
    total += buffered(round)
for round in range(8, 13):
    at(round, DELAY if rank == 1 else 0)
    comm.Barrier()  # MARK barrier
at(13, 0)
sys.stdout.write(f"rank {rank} checksum {total}\n")
