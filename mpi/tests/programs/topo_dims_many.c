/* Ranks: 1. The dimensions of grids of many sizes. */
#include "check.h"

static void program(void) {
    int numbers[] = {1, 2, 6, 12, 17, 24, 30, 36, 60, 64, 72, 96, 100, 120, 128, 210, 256, 360, 480,
                     512, 720, 768, 840, 960, 1000, 1024, 1260, 1680, 2520, 3600, 4096, 5040};
    for (int i = 0; i < LENGTH(numbers); i++) {
        for (int count = 2; count <= 4; count++) {
            int dims[4] = {0, 0, 0, 0};
            MPI_Dims_create(numbers[i], count, dims);
            say("%d in %d", numbers[i], count);
            ints("", dims, count);
        }
    }
}
