/* Ranks: 1 2 3. Each pair of ranks has a datatype of its own. */
#include "check.h"

static void program(void) {
    int out[30], in[30], counts[3], out_places[3], in_places[3];
    MPI_Datatype vector, out_types[3], in_types[3];
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    fill(out, 30, 100 * rank);
    for (int i = 0; i < 30; i++) in[i] = -1;
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        out_places[i] = 16 * i;
        in_places[i] = 20 * (size - 1 - i);
        out_types[i] = vector;
        in_types[i] = vector;
    }
    MPI_Alltoallw(out, counts, out_places, out_types, in, counts, in_places, in_types, MPI_COMM_WORLD);
    ints("in", in, 5 * size);
    int twos[3] = {2, 2, 2};
    for (int i = 0; i < size; i++) in_types[i] = MPI_INT;
    MPI_Alltoallw(out, counts, out_places, out_types, in, twos, in_places, in_types, MPI_COMM_WORLD);
    ints("packed", in, 5 * size);
    MPI_Type_free(&vector);
}
