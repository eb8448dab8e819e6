# Python calls MPI without an extension module. Rank 1 waits 3 x 60 ms for rank 0.
import ctypes
import os
import sys
import time

# As in common.h.
SCALE = float(os.environ.get("SCHEDULE_SCALE", "1"))

mode = ctypes.RTLD_GLOBAL if sys.argv[1] == "global" else ctypes.RTLD_LOCAL
mpi = ctypes.CDLL("libmpi.so.40", mode=mode)


def handle(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


WORLD, INT, DOUBLE = handle("ompi_mpi_comm_world"), handle("ompi_mpi_int"), handle("ompi_mpi_double")


def receive(value):
    mpi.MPI_Recv(ctypes.byref(value), 1, INT, 0, 0, WORLD, None)  # line 22


def until(moment):
    time.sleep(max(0.0, moment - time.monotonic()))


mpi.MPI_Init(None, None)
rank = ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mine, origin = ctypes.c_double(time.monotonic() + 0.02), ctypes.c_double()
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(origin), 1, DOUBLE, handle("ompi_mpi_op_max"), WORLD)
total = 0
for round in range(3):
    value = ctypes.c_int(round if rank.value == 0 else -1)
    until(origin.value + SCALE * (0.1 * round + (0.06 if rank.value == 0 else 0)))
    if rank.value == 0:
        mpi.MPI_Send(ctypes.byref(value), 1, INT, 1, 0, WORLD)
    else:
        receive(value)
    total += value.value
until(origin.value + SCALE * 0.3)
try:
    mpi.MPI_No_such_function
except AttributeError as error:
    message = str(error)
# One write, so that lines of the ranks do not mix.
sys.stdout.write(f"rank {rank.value} checksum {total}, {message}\n")
mpi.MPI_Finalize()
