/* A program whose malloc allocates from its rank's heap: LD_PRELOAD of
 * include/acp_malloc.c, --acp-malloc-hook-large 1. Other ranks can access its blocks
 * without a registration. Small and huge blocks come from the system. */
#include "acp.h"
#include "acp_check.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 4096, ROUNDS = 20000 };

static int rank, procs;
static acp_ga_t base_ga;
static char *base;

/* Whether a block lies in the heap from which acp_malloc allocates. */
static int is_hooked(void *at)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)base + (1 << 20);
    return offset < (64u << 20);
}

static void *churn(void *seed)
{
    uint64_t draw = (uintptr_t)seed;
    char *blocks[8] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        draw = draw * 6364136223846793005u + 1;
        int at = draw >> 61;
        size_t size = 128 + (draw >> 33) % 8192;
        if (blocks[at] && blocks[at][100] != (char)at)
            return "a block has changed";
        if (round % 3 == 0) {
            free(blocks[at]);
            blocks[at] = malloc(size);
        } else {
            blocks[at] = realloc(blocks[at], size);
        }
        memset(blocks[at], at, size);
    }
    for (int at = 0; at < 8; at++)
        free(blocks[at]);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    rank = acp_rank();
    procs = acp_procs();
    base_ga = acp_malloc(64, rank);
    base = acp_query_address(base_ga);
    CHECK(base);

    char *small = malloc(100), *huge = malloc(1 << 20);
    CHECK(!is_hooked(small) && !is_hooked(huge));
    char *zero = calloc(LARGE, 1);
    CHECK(is_hooked(zero) && (uintptr_t)zero % 16 == 0);
    for (int at = 0; at < LARGE; at++)
        CHECK(zero[at] == 0);

    /* Each rank writes into the next rank's block, at its place. */
    uint64_t *block = malloc(LARGE);
    /* The compiler assumes that only this function accesses the block, so it is read
     * through a volatile pointer. */
    volatile uint64_t *word = block;
    memset(block, 0, LARGE);
    CHECK(is_hooked(block));
    acp_ga_t *starter = acp_query_address(acp_query_starter_ga(rank));
    starter[0] = base_ga + ((char *)block - base);
    starter[1] = 1000 + rank;
    acp_sync();
    int next = (rank + 1) % procs;
    acp_ga_t there = acp_query_starter_ga(rank) + 16;
    acp_complete(acp_copy(there, acp_query_starter_ga(next), 8, ACP_HANDLE_NULL));
    acp_complete(acp_copy(starter[2], acp_query_starter_ga(rank) + 8, 8, ACP_HANDLE_NULL));
    acp_sync();
    CHECK(*word == 1000u + (rank + procs - 1) % procs);

    /* The block grows within the heap, and then beyond the sizes that the hook serves. */
    block = realloc(block, LARGE * 4);
    CHECK(is_hooked(block) && block[0] == 1000u + (rank + procs - 1) % procs);
    block = realloc(block, 1 << 20);
    CHECK(!is_hooked(block) && block[0] == 1000u + (rank + procs - 1) % procs);

    pthread_t threads[3];
    for (uintptr_t at = 0; at < 3; at++)
        CHECK(pthread_create(&threads[at], NULL, churn, (void *)(at + 1)) == 0);
    for (int at = 0; at < 3; at++) {
        void *said;
        pthread_join(threads[at], &said);
        CHECK(said == NULL);
    }
    free(small);
    free(huge);
    free(block);
    acp_sync();
    CHECK(acp_reset(rank) == 0);
    char *again = malloc(LARGE);
    free(zero);
    memset(again, 1, LARGE);
    CHECK(acp_finalize() == 0);
    /* The heap is gone, so this call does nothing. */
    free(again);
    CHECK((again = malloc(LARGE)) != NULL);
    free(again);
    return 0;
}
