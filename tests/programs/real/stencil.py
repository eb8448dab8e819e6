"""A one-dimensional heat equation: halos by buffers, the residual by a reduction, the pieces
gathered as pickled objects."""
import sys
from array import array

from mpi4py import MPI

CELLS, STEPS = 64, 60

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
left = rank - 1 if rank > 0 else MPI.PROC_NULL
right = rank + 1 if rank < size - 1 else MPI.PROC_NULL

cells = array("d", [0.0] * (CELLS + 2))
if rank == 0:
    cells[0] = 100.0

for step in range(STEPS):
    from_left, from_right = array("d", [cells[0]]), array("d", [cells[-1]])
    comm.Sendrecv(array("d", [cells[1]]), left, 1, from_right, right, 1)
    request = comm.Irecv(from_left, left, 2)
    comm.Send(array("d", [cells[-2]]), right, 2)
    request.Wait()
    cells[0], cells[-1] = from_left[0], from_right[0]
    new = array("d", cells)
    for i in range(1, CELLS + 1):
        new[i] = 0.25 * cells[i - 1] + 0.5 * cells[i] + 0.25 * cells[i + 1]
    residual = sum(abs(a - b) for a, b in zip(new, cells))
    cells = new
    residual = comm.allreduce(residual)
    if rank == 0 and step % 20 == 0:
        print(f"step {step} residual {residual:.9f}")

parts = comm.gather(list(cells[1:-1]), root=0)
if rank == 0:
    print(f"heat {sum(sum(part) for part in parts):.9f}")
names = comm.bcast(["a", "b"] if rank == 0 else None, root=0)
comm.Barrier()
sys.exit(0 if names == ["a", "b"] else 1)
