/* The program's own thread computes while all threads of the runtime sleep. Then it
 * sleeps in a call for ever. */
#include "check.h"

#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(void)
{
    struct tsumugi_job *job;
    OK(tsumugi_start(&job));
    if (tsumugi_rank(job) == 0) {
        /* Longer than the launcher waits before it reports a standstill. */
        for (double end = now() + 4; now() < end;) {}
        fprintf(stderr, "computed\n");
    }
    OK(tsumugi_barrier(job));
    if (tsumugi_rank(job) == 0) {
        struct tsumugi_comm *comm;
        char byte;
        OK(tsumugi_comm_open(job, &comm));
        OK(tsumugi_recv(comm, 1, 3, &byte, 1, NULL));
    }
    OK(tsumugi_barrier(job));
    return 0;
}
