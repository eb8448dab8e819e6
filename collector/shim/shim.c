#include "shim.h"

/* Open MPI's handles are addresses of its data. Looked up at run time, so that this
 * library has no reference to libmpi and can be preloaded into any program. */
#ifdef OMPI_PREDEFINED_GLOBAL
static int missing;
static void *(*symbol)(const char *name);

static void *known(const char *name) {
  void *address = symbol(name);
  if (!address) missing = 1;
  return address;
}

#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) ((type)known(#global))
#else
static int missing;
static void *(*symbol)(const char *name);
#endif

int laggard_fill_constants(struct laggard_constants *c, void *(*find)(const char *name)) {
  symbol = find;
  missing = 0;
  c->comm_null = MPI_COMM_NULL;
  c->comm_world = MPI_COMM_WORLD;
  c->comm_self = MPI_COMM_SELF;
  c->request_null = MPI_REQUEST_NULL;
  c->request_empty = find("ompi_request_empty");
  c->win_null = MPI_WIN_NULL;
  c->file_null = MPI_FILE_NULL;
  c->group_null = MPI_GROUP_NULL;
  c->info_null = MPI_INFO_NULL;
  c->no_op = MPI_NO_OP;
  c->byte = MPI_BYTE;
  c->errors_return = MPI_ERRORS_RETURN;
  c->in_place = MPI_IN_PLACE;
  c->status_ignore = MPI_STATUS_IGNORE;
  c->statuses_ignore = MPI_STATUSES_IGNORE;
  c->message_null = MPI_MESSAGE_NULL;
  c->message_no_proc = MPI_MESSAGE_NO_PROC;
  c->comm_type_shared = MPI_COMM_TYPE_SHARED;
  c->thread_multiple = MPI_THREAD_MULTIPLE;
  c->cart = MPI_CART;
  c->graph = MPI_GRAPH;
  c->dist_graph = MPI_DIST_GRAPH;
  c->err_in_status = MPI_ERR_IN_STATUS;
  c->err_pending = MPI_ERR_PENDING;
  c->err_truncate = MPI_ERR_TRUNCATE;
  c->lock_exclusive = MPI_LOCK_EXCLUSIVE;
  c->lock_shared = MPI_LOCK_SHARED;
  c->mode_no_check = MPI_MODE_NOCHECK;
  c->mode_no_precede = MPI_MODE_NOPRECEDE;
  c->mode_no_put = MPI_MODE_NOPUT;
  c->mode_no_store = MPI_MODE_NOSTORE;
  c->mode_no_succeed = MPI_MODE_NOSUCCEED;
  return !missing;
}

/* The model of thread-local storage that costs one addition, not a call: fine for
 * a library that is loaded at start. */
__thread void *laggard_state __attribute__((tls_model("initial-exec"), visibility("hidden")));

void **laggard_thread(void) { return &laggard_state; }
