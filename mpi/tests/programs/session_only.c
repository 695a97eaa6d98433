/* Ranks: 1 2. Sessions one after another, without MPI_Init. */
#define OWN_MAIN
#include "check.h"

int main(void) {
    MPI_Session session, second;
    MPI_Group group;
    MPI_Comm comm;
    int flag, sum = 0, one = 1;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second);
    MPI_Initialized(&flag);
    say("initialized %d\n", flag);
    MPI_Session_finalize(&second);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "world", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    say("ranks %d\n", sum);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    MPI_Finalized(&flag);
    say("finalized %d\n", flag);
    if (rank == 0) printf("%s", said);
    return 0;
}
