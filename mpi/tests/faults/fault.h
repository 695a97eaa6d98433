/* What the programs of this folder share. A program has functions with one mistake each; its
 * argument names the function. The comment above a function says for how many ranks it is, how
 * the job ends, and lines that the job writes to its standard error; ... stands for any text. */
#ifndef FAULT_H
#define FAULT_H

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank __attribute__((unused));
static int size __attribute__((unused));

struct fault {
    const char *name;
    void (*run)(void);
};

#define FAULT(name) {#name, name}

static inline void run_fault(int argc, char **argv, const struct fault *faults, int count) {
    for (int i = 0; i < count; i++) {
        if (argc > 1 && strcmp(argv[1], faults[i].name) == 0) {
            faults[i].run();
            return;
        }
    }
    fprintf(stderr, "there is no such fault\n");
    exit(3);
}

#define RUN_FAULT(faults) run_fault(argc, argv, faults, (int)(sizeof(faults) / sizeof(*(faults))))

/* The fault happens between the begin and the end of the job. */
#define FAULTS(...)                                                                            \
    int main(int argc, char **argv) {                                                          \
        static const struct fault faults[] = {__VA_ARGS__};                                    \
        MPI_Init(&argc, &argv);                                                                \
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);                                                  \
        MPI_Comm_size(MPI_COMM_WORLD, &size);                                                  \
        RUN_FAULT(faults);                                                                     \
        MPI_Finalize();                                                                        \
        return 0;                                                                              \
    }

#endif
