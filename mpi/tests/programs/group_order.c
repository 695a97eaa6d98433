/* Ranks: 5. The order of ranks in groups that are made of others. */
#include "check.h"

static void show(const char *what, MPI_Group group, MPI_Group world) {
    int of, at, own[5] = {0, 1, 2, 3, 4}, other[5];
    MPI_Group_size(group, &of);
    MPI_Group_rank(group, &at);
    MPI_Group_translate_ranks(group, of, own, world, other);
    ints(what, other, of);
    named("own", at);
    MPI_Group_free(&group);
}
static void program(void) {
    MPI_Group world, a, b, made;
    int of_a[3] = {4, 0, 2}, of_b[4] = {1, 2, 3, 4}, all[5] = {0, 1, 2, 3, 4}, other[5];
    int ranges[2][3] = {{4, 2, -2}, {1, 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 3, of_a, &a);
    MPI_Group_incl(world, 4, of_b, &b);
    MPI_Group_union(a, b, &made);
    show("union", made, world);
    MPI_Group_union(b, a, &made);
    show("union", made, world);
    MPI_Group_intersection(a, b, &made);
    show("intersection", made, world);
    MPI_Group_intersection(b, a, &made);
    show("intersection", made, world);
    MPI_Group_difference(a, b, &made);
    show("difference", made, world);
    MPI_Group_difference(b, a, &made);
    show("difference", made, world);
    MPI_Group_excl(world, 3, of_a, &made);
    show("excl", made, world);
    MPI_Group_range_incl(world, 2, ranges, &made);
    show("range_incl", made, world);
    MPI_Group_range_excl(world, 2, ranges, &made);
    show("range_excl", made, world);
    MPI_Group_translate_ranks(world, 5, all, a, other);
    for (int i = 0; i < 5; i++) named("in a", other[i]);
    all[0] = MPI_PROC_NULL;
    MPI_Group_translate_ranks(world, 1, all, a, other);
    named("no process", other[0]);
    MPI_Group_free(&a);
    MPI_Group_free(&b);
    MPI_Group_free(&world);
}
