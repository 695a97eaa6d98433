/* Functions that the test programs of ACP have in common. */
#ifndef ACP_CHECK_H
#define ACP_CHECK_H

#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__,            \
                    #condition, tsumugi_acp_error());                          \
            fprintf(stderr, "on rank %d\n", acp_rank());                       \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

/* Gathers a word of each rank: each rank puts its own word into its starter memory at
 * index `at`, and then reads the words of all ranks into `all`. */
static inline void tell(uint64_t own, uint64_t *all, int at)
{
    int procs = acp_procs();
    uint64_t *starter = acp_query_address(acp_query_starter_ga(acp_rank()));
    starter[at] = own;
    CHECK(acp_sync() == 0);
    acp_ga_t into = acp_malloc(8, acp_rank());
    for (int rank = 0; rank < procs; rank++) {
        acp_complete(acp_copy(into, acp_query_starter_ga(rank) + 8 * (uint64_t)at, 8,
                              ACP_HANDLE_NULL));
        memcpy(&all[rank], acp_query_address(into), 8);
    }
    acp_free(into);
    CHECK(acp_sync() == 0);
}

#endif
