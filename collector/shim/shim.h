/* What Rust cannot get from mpi.h: constants that are macros around addresses,
 * and a thread-local variable with a model of its own. */
#ifndef LAGGARD_SHIM_H
#define LAGGARD_SHIM_H

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

struct laggard_constants {
  MPI_Comm comm_null, comm_world, comm_self;
  MPI_Request request_null;
  /* The handle that all requests share which were complete when they were posted. */
  const void *request_empty;
  MPI_Win win_null;
  MPI_File file_null;
  MPI_Group group_null;
  MPI_Info info_null;
  MPI_Op no_op;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;
  const void *in_place;
  MPI_Status *status_ignore, *statuses_ignore;
  MPI_Message message_null, message_no_proc;
  int comm_type_shared;
  int thread_multiple;
  int cart, graph, dist_graph;
  int err_in_status, err_pending, err_truncate;
  int lock_exclusive, lock_shared;
  int mode_no_check, mode_no_precede, mode_no_put, mode_no_store, mode_no_succeed;
};

/* Fills `constants`; 0 if the MPI library lacks what this was built for. `find` gives
 * the address of a data symbol of the MPI library. */
int laggard_fill_constants(struct laggard_constants *constants, void *(*find)(const char *name));

/* Where the calling thread keeps its recording state. */
void **laggard_thread(void);

#endif
