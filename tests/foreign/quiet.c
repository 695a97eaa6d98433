/* The program's own thread computes while all that the runtime has sleeps; then it
 * sleeps in a call, and nothing wakes it. */
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
        /* Longer than the launcher looks. */
        for (double end = now() + 4; now() < end;) {}
        fprintf(stderr, "computed\n");
    }
    OK(tsumugi_barrier(job));
    if (tsumugi_rank(job) == 0)
        for (;;) tsumugi_park();
    OK(tsumugi_barrier(job));
    return 0;
}
