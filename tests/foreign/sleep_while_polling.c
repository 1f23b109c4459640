/* Lets the ranks of an MPI sleep while they wait for a message instead of polling without pause:
 * for machines with fewer free cores than ranks. MPICH polls through UCX; Open MPI yields when
 * there is nothing to do (with mpi_yield_when_idle). To be preloaded on both sides of a comparison.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

/* Polls without an event before the first sleep, and the length of one. */
enum { kPollsMax = 30, kSleepNs = 20000 };

static _Thread_local int polls;

static void Idle(void) {
  if (++polls > kPollsMax) {
    const struct timespec pause = {0, kSleepNs};
    nanosleep(&pause, NULL);
  }
}

int sched_yield(void) {
  Idle();
  return 0;
}

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*real)(void*);
  if (real == NULL) {
    /* By the library's name: a program may have loaded MPI where RTLD_NEXT does not look. */
    void* ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    *(void**)&real = dlsym(ucp, "ucp_worker_progress");
  }
  const unsigned events = real(worker);
  if (events != 0) {
    polls = 0;
  } else {
    Idle();
  }
  return events;
}
