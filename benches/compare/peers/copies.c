/* Copies and additions of 8 bytes by ACP's interface, between two processes of a node, each
 * with its acp_complete: `copies ROW OPERATIONS` prints the nanoseconds of one, of the
 * fastest of many repetitions. The program is built with ACP's library and with this
 * project's. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ACP's header needs the first two of these. */
#include <acp.h>

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

int main(int argc, char **argv)
{
    if (acp_init(&argc, &argv) || argc != 3) return 2;
    int is_copy = strcmp(argv[1], "acp_copy") == 0;
    long count = atol(argv[2]);
    acp_ga_t there = acp_query_starter_ga(acp_procs() - 1);
    acp_ga_t here = acp_query_starter_ga(acp_rank()) + 64;
    acp_sync();
    double best = 1e18;
    for (int repetition = 0; acp_rank() == 0 && repetition < 50; repetition++) {
        double begin = now();
        for (long i = 0; i < count; i++) {
            acp_handle_t handle = is_copy ? acp_copy(there, here, 8, ACP_HANDLE_NULL)
                                          : acp_add8(here, there, 1, ACP_HANDLE_NULL);
            if (handle == ACP_HANDLE_NULL) return 1;
            acp_complete(handle);
        }
        double each = (now() - begin) / count;
        if (each < best) best = each;
    }
    if (acp_rank() == 0) {
        printf("%.2f\n", best);
        fflush(stdout);
    }
    acp_sync();
    acp_finalize();
    return 0;
}
