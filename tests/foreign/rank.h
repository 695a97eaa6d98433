/* The main function of the test programs that are ranks of a job: each defines `play`.
 * tests/ranks.rs here compiles and runs them, as several ranks. */
#ifndef RANK_H
#define RANK_H

#include "check.h"

enum { RANKS_MAX = 16 };

static struct tsumugi_job *job;
static uint32_t rank, size, next, before;

static void play(void);

/* Checks that the call returns this code, and that the reason has these words. */
#define REFUSES(code, words, call)                                             \
    do {                                                                       \
        ANSWERS(code, call);                                                   \
        if (strstr(tsumugi_reason(), words) == NULL) {                         \
            fprintf(stderr, "%s:%d: %s: the reason is \"%s\"\n", __FILE__,     \
                    __LINE__, #call, tsumugi_reason());                        \
            abort();                                                           \
        }                                                                      \
    } while (0)

static inline void *play_as(struct tsumugi_job *of, void *value)
{
    job = of;
    rank = tsumugi_rank(job);
    size = tsumugi_size(job);
    CHECK(rank < size && size <= RANKS_MAX);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    play();
    return value;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "run") == 0) {
        OK(tsumugi_run(play_as, NULL, NULL));
    } else {
        struct tsumugi_job *own;
        OK(tsumugi_start(&own));
        play_as(own, NULL);
        OK(tsumugi_end(own));
    }
    if (rank == 0) puts("all is well");
    return 0;
}

#endif
