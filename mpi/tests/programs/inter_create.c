/* Ranks: 2 3 4. Two groups: who is in them, and messages between them. */
#include "inter.h"

static void program(void) {
    int flag, value = rank, got = -1, names[8], all[8], length;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Group group, world;
    MPI_Status status;
    connect_groups();
    MPI_Comm_test_inter(inter, &flag);
    say("inter %d, rank %d of %d, %d others\n", flag, own_rank, own_size, others);
    MPI_Comm_remote_group(inter, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    fill(names, others, 0);
    MPI_Group_translate_ranks(group, others, names, world, all);
    ints("others", all, others);
    MPI_Group_free(&group);
    MPI_Comm_group(inter, &group);
    fill(names, own_size, 0);
    MPI_Group_translate_ranks(group, own_size, names, world, all);
    ints("own", all, own_size);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Comm_get_name(inter, name, &length);
    say("name %d\n", length);
    if (own_rank < others) {
        MPI_Sendrecv(&value, 1, MPI_INT, own_rank, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                     inter, &status);
        say("got %d\n", got);
        status_of("status", &status, MPI_INT);
    }
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    result("no rank", MPI_Send(&value, 1, MPI_INT, others, 0, inter));
    part_groups();
}
