/* The program's own thread computes while all threads of the runtime sleep. Then it
 * sleeps in a call for ever. */
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
        /* Longer than the launcher waits before it reports a standstill. */
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
