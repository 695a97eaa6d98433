/* Ranks: 4 5. Copies and parts of an intercommunicator. */
#include "inter.h"

static void tell(const char *what, MPI_Comm comm) {
    int place, count, remote, sum = 0, value = rank;
    if (comm == MPI_COMM_NULL) {
        say("%s: null\n", what);
        return;
    }
    MPI_Comm_rank(comm, &place);
    MPI_Comm_size(comm, &count);
    MPI_Comm_remote_size(comm, &remote);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    say("%s: rank %d of %d, %d others, sum %d\n", what, place, count, remote, sum);
    MPI_Comm_free(&comm);
}

static void program(void) {
    int compared, first = 0;
    MPI_Comm comm;
    MPI_Group group, part;
    MPI_Request request;
    connect_groups();
    MPI_Comm_dup(inter, &comm);
    MPI_Comm_compare(inter, comm, &compared);
    say("congruent %d\n", compared == MPI_CONGRUENT);
    MPI_Comm_compare(inter, own, &compared);
    say("unequal %d\n", compared == MPI_UNEQUAL);
    tell("copy", comm);
    MPI_Comm_idup(inter, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    tell("begun copy", comm);
    MPI_Comm_split(inter, own_rank % 2, -own_rank, &comm);
    tell("split", comm);
    MPI_Comm_split(inter, own_rank == 0 ? MPI_UNDEFINED : 1, 0, &comm);
    tell("without the first", comm);
    MPI_Comm_split(inter, is_odd, 0, &comm);
    tell("nobody there", comm);
    MPI_Comm_group(inter, &group);
    MPI_Group_incl(group, 1, &first, &part);
    MPI_Comm_create(inter, part, &comm);
    tell("the first ones", comm);
    MPI_Group_free(&part);
    MPI_Group_free(&group);
    part_groups();
}
