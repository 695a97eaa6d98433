/* Ranks: 2. The class of the error for each wrong argument of a group. */
#include "check.h"

static void program(void) {
    MPI_Group world, made;
    int far[1] = {2}, range[1][3] = {{0, 1, 0}}, out_of_range[1][3] = {{0, 4, 1}}, value;
    errors_return();
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    result("far", MPI_Group_incl(world, 1, far, &made));
    result("far", MPI_Group_excl(world, 1, far, &made));
    result("stride", MPI_Group_range_incl(world, 1, range, &made));
    say("range: refused %d\n", MPI_Group_range_incl(world, 1, out_of_range, &made) != MPI_SUCCESS);
    result("null", MPI_Group_size(MPI_GROUP_NULL, &value));
    result("translate", MPI_Group_translate_ranks(world, 1, far, world, &value));
    MPI_Group_free(&world);
    result("free null", MPI_Group_free(&world));
}
