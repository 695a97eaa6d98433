/* Blocks of all kinds hold what is written to them, whichever thread makes and frees them, and
 * in a forked child; then two ranks exchange blocks, into receives that are posted. Prints
 * "right". */
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 200, ROUNDS = 50, BYTES = 4000 };

#define NEED(condition)                                                                    \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "heap.c:%d: %s\n", __LINE__, #condition);                      \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                  \
        }                                                                                  \
    } while (0)

static char *before;
static void *made[BLOCKS];

static void *make(unsigned seed, size_t bytes) {
    void *block = NULL;
    switch (seed % 6) {
    case 0: block = malloc(bytes); break;
    case 1: block = calloc(bytes, 1); break;
    case 2: block = realloc(malloc(bytes / 3 + 1), bytes); break;
    case 3: NEED(posix_memalign(&block, 256, bytes) == 0); break;
    case 4: block = aligned_alloc(4096, bytes); break;
    default: block = valloc(bytes); break;
    }
    NEED(block && malloc_usable_size(block) >= bytes);
    NEED((seed % 6 != 3 || (size_t)block % 256 == 0) && (seed % 6 < 4 || (size_t)block % 4096 == 0));
    if (seed % 6 == 1) {
        for (size_t at = 0; at < bytes; at++) {
            NEED(((char *)block)[at] == 0);
        }
    }
    return memset(block, (int)(seed & 0xff), bytes);
}

static size_t length(unsigned seed) { return 1 + (seed * 2654435761u >> 12) % 70000; }

static void *work(void *of) {
    unsigned first = *(unsigned *)of;
    char *blocks[BLOCKS] = {0};
    for (unsigned round = 0; round < 5 * BLOCKS; round++) {
        unsigned at = (round * 7919 + first) % BLOCKS, seed = first + at;
        if (blocks[at]) {
            size_t bytes = length(seed);
            NEED(blocks[at][0] == (char)seed && blocks[at][bytes - 1] == (char)seed);
            free(blocks[at]);
            blocks[at] = NULL;
        } else {
            blocks[at] = make(seed, length(seed));
        }
    }
    for (int at = 0; at < BLOCKS; at++) {
        free(blocks[at]);
        /* Another thread frees these. */
        if (first == 0) {
            made[at] = make((unsigned)at, length((unsigned)at));
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    before = strdup("before MPI_Init");
    char *grown = malloc(10);
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    grown = realloc(grown, 100000);
    memset(grown, 1, 100000);
    free(grown);
    unsigned firsts[] = {0, 1000, 2000};
    pthread_t threads[3];
    for (int at = 0; at < 3; at++) {
        NEED(pthread_create(&threads[at], NULL, work, &firsts[at]) == 0);
    }
    for (int at = 0; at < 3; at++) {
        NEED(pthread_join(threads[at], NULL) == 0);
    }
    for (int at = 0; at < BLOCKS; at++) {
        free(made[at]);
    }
    char *shared = malloc(5000);
    pid_t child = fork();
    if (child == 0) {
        char *own = malloc(5000);
        free(shared);
        shared = realloc(own, 9000);
        _exit(shared != NULL && memset(shared, 3, 9000) ? 0 : 1);
    }
    int status;
    NEED(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    free(shared);

    int peer = (rank + 1) % size, from = (rank + size - 1) % size;
    char *sent = malloc(BYTES), *received = malloc(BYTES);
    int is_there;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Irecv(received, BYTES, MPI_BYTE, from, round, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        /* The rank looks for what its peers have told: also for their receives. */
        MPI_Iprobe(peer, ROUNDS, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        memset(sent, rank + round, BYTES);
        MPI_Send(sent, BYTES, MPI_BYTE, peer, round, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        NEED(received[0] == (char)(from + round) && received[BYTES - 1] == (char)(from + round));
    }
    free(sent);
    MPI_Finalize();
    /* Blocks outlive the job. */
    NEED(received[1] != 0 || ROUNDS < 2);
    free(received);
    NEED(strcmp(before, "before MPI_Init") == 0);
    free(before);
    if (rank == 0) {
        printf("right\n");
    }
    return 0;
}
