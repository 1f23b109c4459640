/* Goal: Forebay talks to other ranks on a program's own thread alone, whatever its I/O threads do,
 * so that a program which asked for MPI_THREAD_SINGLE works. Method: preloaded, stands in front of
 * all calls by which MpiExchange (core/engine/collective) talks, and that by which requests are
 * completed; one by another thread than the first ends the process, with the call's name. The
 * programs that it is loaded into have no threads of their own. With FIRST_THREAD_ONLY_REFUSES=1
 * any such call does, so that it can be seen that they come by here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void require_first_thread(const char* call) {
  const int is_first = gettid() == getpid();
  if (is_first && getenv("FIRST_THREAD_ONLY_REFUSES") == NULL) return;
  fprintf(stderr, "PMPI_%s was called%s\n", call, is_first ? "" : " by an I/O thread");
  _exit(3);
}

#define ON_FIRST_THREAD(name, parameters, arguments)                  \
  __attribute__((visibility("default"))) int PMPI_##name parameters { \
    require_first_thread(#name);                                      \
    int(*real) parameters;                                            \
    *(void**)&real = dlsym(RTLD_NEXT, "PMPI_" #name);                 \
    return real arguments;                                            \
  }

ON_FIRST_THREAD(Barrier, (MPI_Comm c), (c))
ON_FIRST_THREAD(Ibarrier, (MPI_Comm c, MPI_Request* r), (c, r))
ON_FIRST_THREAD(Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
ON_FIRST_THREAD(Allreduce, (const void* s, void* d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
                (s, d, n, t, o, c))
ON_FIRST_THREAD(Iallreduce,
                (const void* s, void* d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c,
                 MPI_Request* r),
                (s, d, n, t, o, c, r))
ON_FIRST_THREAD(Exscan, (const void* s, void* d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
                (s, d, n, t, o, c))
ON_FIRST_THREAD(Iexscan,
                (const void* s, void* d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c,
                 MPI_Request* r),
                (s, d, n, t, o, c, r))
ON_FIRST_THREAD(Allgather,
                (const void* s, int n, MPI_Datatype t, void* d, int m, MPI_Datatype u, MPI_Comm c),
                (s, n, t, d, m, u, c))
ON_FIRST_THREAD(Iallgather,
                (const void* s, int n, MPI_Datatype t, void* d, int m, MPI_Datatype u, MPI_Comm c,
                 MPI_Request* r),
                (s, n, t, d, m, u, c, r))
ON_FIRST_THREAD(Allgatherv,
                (const void* s, int n, MPI_Datatype t, void* d, const int* m, const int* at,
                 MPI_Datatype u, MPI_Comm c),
                (s, n, t, d, m, at, u, c))
ON_FIRST_THREAD(Iallgatherv,
                (const void* s, int n, MPI_Datatype t, void* d, const int* m, const int* at,
                 MPI_Datatype u, MPI_Comm c, MPI_Request* r),
                (s, n, t, d, m, at, u, c, r))
ON_FIRST_THREAD(Issend,
                (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r),
                (b, n, t, to, tag, c, r))
ON_FIRST_THREAD(Irecv,
                (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r),
                (b, n, t, from, tag, c, r))
ON_FIRST_THREAD(Iprobe, (int from, int tag, MPI_Comm c, int* flag, MPI_Status* s),
                (from, tag, c, flag, s))
ON_FIRST_THREAD(Test, (MPI_Request * r, int* flag, MPI_Status* s), (r, flag, s))
ON_FIRST_THREAD(Comm_free, (MPI_Comm * c), (c))
ON_FIRST_THREAD(Grequest_complete, (MPI_Request r), (r))
