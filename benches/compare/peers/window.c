// Windows of MPI, as `tsumugi bench lock` uses ours: each line that rank 0
// prints is a row's name and the nanoseconds of one lock and unlock. Of all
// ranks at once, and, with two of them, of one that nobody gets in the way of.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { ROUNDS = 50, SAMPLES = 15, BATCH = 100, ALONE = 200 };

static int rank, size;
static MPI_Win win;

static void lock_all(void) {
    MPI_Win_lock_all(0, win);
    MPI_Win_unlock_all(win);
}

static void lock(int kind, int target) {
    MPI_Win_lock(kind, target, 0, win);
    MPI_Win_unlock(target, win);
}

static void together(const char *name, int all) {
    // Whole time slices are no reason to wait for minutes.
    double begin = MPI_Wtime();
    int rounds = 1;
    for (int sample = 0; sample < SAMPLES; sample++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int round = 0; round < rounds; round++)
            if (all)
                lock_all();
            else
                lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % size);
        MPI_Barrier(MPI_COMM_WORLD);
        double now = MPI_Wtime();
        if (rank == 0)
            printf("%s %.1f\n", name, (now - start) * 1e9 / rounds);
        if (sample == 0 && now - start < 1e-3)
            rounds = ROUNDS;
        int told[] = {now - begin > 1, rounds};
        MPI_Bcast(told, 2, MPI_INT, 0, MPI_COMM_WORLD);
        rounds = told[1];
        if (told[0])
            break;
    }
}

static void alone(const char *name, int kind) {
    if (rank == 0)
        for (int sample = 0; sample < ALONE; sample++) {
            double start = MPI_Wtime();
            for (int round = 0; round < BATCH; round++)
                lock(kind, 1);
            printf("%s %.2f\n", name, (MPI_Wtime() - start) * 1e9 / BATCH);
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t *base;
    MPI_Win_allocate_shared(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Barrier(MPI_COMM_WORLD);
    together("lock_all", 1);
    together("exclusive", 0);
    if (size == 2) {
        alone("shared_uncontended", MPI_LOCK_SHARED);
        alone("exclusive_uncontended", MPI_LOCK_EXCLUSIVE);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
}
