/* The program's own thread computes while all that the runtime has sleeps; then it
 * sleeps in a call, and nothing wakes it. */
#include "acp_check.h"

#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    if (acp_rank() == 0) {
        /* Longer than the launcher looks. */
        for (double end = now() + 4; now() < end;) {}
        fprintf(stderr, "computed\n");
    }
    CHECK(acp_sync() == 0);
    acp_ch_t channel = acp_create_ch(1, 0);
    if (acp_rank() == 0) {
        char byte;
        acp_wait_ch(acp_nbrecv_ch(channel, &byte, 1));
    }
    CHECK(acp_sync() == 0);
    return 0;
}
