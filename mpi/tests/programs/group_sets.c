/* Ranks: 1. Unions, intersections and differences of groups of one rank and of none. */
#include "check.h"

static void program(void) {
    MPI_Group world, result_group;
    int of, answer;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_union(world, MPI_GROUP_EMPTY, &result_group);
    MPI_Group_size(result_group, &of);
    say("union %d\n", of);
    MPI_Group_free(&result_group);
    MPI_Group_intersection(world, MPI_GROUP_EMPTY, &result_group);
    MPI_Group_size(result_group, &of);
    MPI_Group_compare(result_group, MPI_GROUP_EMPTY, &answer);
    say("intersection %d, empty %d\n", of, answer == MPI_IDENT);
    MPI_Group_difference(world, world, &result_group);
    MPI_Group_size(result_group, &of);
    say("difference %d\n", of);
    MPI_Group_rank(MPI_GROUP_EMPTY, &of);
    named("rank", of);
    MPI_Group_free(&world);
    say("null %d\n", world == MPI_GROUP_NULL);
}
