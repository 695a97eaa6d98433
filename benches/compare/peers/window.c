// Windows of MPI, as `tsumugi bench lock` uses ours: each line that rank 0
// prints is a row's name, how the window was made, and nanoseconds of one round
// of the slowest rank. Of all ranks at once, and, with two of them, of a lock
// that nobody else wants.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { SAMPLES = 1000, ROUNDS_FIRST = 4, ROUNDS_MAX = 1000, BATCH = 100, ALONE = 200, ROW = 256 };

static int rank, size;
static MPI_Win win;
static const char *made;
static double edges[2][ROW];

static void lock(int kind, int target) {
    MPI_Win_lock(kind, target, 0, win);
    MPI_Win_unlock(target, win);
}

static void lock_all(void) {
    MPI_Win_lock_all(0, win);
    MPI_Win_unlock_all(win);
}

static void exclusive(void) { lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % size); }

static void fetch_and_op(void) {
    int64_t one = 1, old;
    MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
}

// Rows of a window: own first and last, those above and below.
static void put(int to, int from_row, int to_row) {
    if (to >= 0 && to < size)
        MPI_Put(edges[from_row], ROW, MPI_DOUBLE, to, to_row * ROW, ROW, MPI_DOUBLE, win);
}

static void get(int from, int from_row, int to_row) {
    if (from >= 0 && from < size)
        MPI_Get(edges[to_row], ROW, MPI_DOUBLE, from, from_row * ROW, ROW, MPI_DOUBLE, win);
}

static void stencil_fence(void) {
    MPI_Win_fence(0, win);
    put(rank - 1, 0, 3);
    put(rank + 1, 1, 2);
    MPI_Win_fence(0, win);
}

static void stencil_lock_all(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    get(rank - 1, 1, 0);
    get(rank + 1, 0, 1);
    MPI_Win_flush_all(win);
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void together(const char *name, void (*round)(void)) {
    double begin = MPI_Wtime();
    int rounds = ROUNDS_FIRST, goes_on = 1;
    for (int sample = 0; goes_on && sample < SAMPLES; sample++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int i = 0; i < rounds; i++)
            round();
        double own = MPI_Wtime() - start, slowest;
        MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%s %s %.2f\n", name, made, slowest * 1e9 / rounds);
        // Ten milliseconds a sample, a second a row.
        double most = 0.01 * rounds / slowest;
        int told[] = {MPI_Wtime() - begin < 1, most > ROUNDS_MAX ? ROUNDS_MAX : most < 1 ? 1 : most};
        MPI_Bcast(told, 2, MPI_INT, 0, MPI_COMM_WORLD);
        goes_on = told[0];
        rounds = told[1];
    }
}

static void alone(const char *name, int kind) {
    if (rank == 0)
        for (int sample = 0; sample < ALONE; sample++) {
            double start = MPI_Wtime();
            for (int round = 0; round < BATCH; round++)
                lock(kind, 1);
            printf("%s %s %.2f\n", name, made, (MPI_Wtime() - start) * 1e9 / BATCH);
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void all(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    together("lock_all", lock_all);
    together("exclusive", exclusive);
    if (size == 2) {
        alone("shared_uncontended", MPI_LOCK_SHARED);
        alone("exclusive_uncontended", MPI_LOCK_EXCLUSIVE);
    }
    MPI_Win_lock_all(0, win);
    together("fetch_and_op", fetch_and_op);
    together("stencil_lock_all", stencil_lock_all);
    MPI_Win_unlock_all(win);
    together("stencil_fence", stencil_fence);
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static double words[4 * ROW];
    double *base;
    made = "shared";
    MPI_Win_allocate_shared(sizeof words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    together("barrier", barrier);
    all();
    made = "created";
    MPI_Win_create(words, sizeof words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    all();
    MPI_Finalize();
}
