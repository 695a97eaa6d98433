/* Ranks: 1 3. A session knows sets of processes, and makes communicators of groups. */
#include "check.h"

static int handled;

static void handle(MPI_Session *session, int *code, ...) {
    (void)session;
    handled = *code;
}

static void program(void) {
    MPI_Session session;
    MPI_Errhandler handler;
    MPI_Group group, part;
    MPI_Info info;
    MPI_Comm comm;
    char text[MPI_MAX_INFO_VAL + 1], room[2048], *back;
    int length = sizeof text, flag, place, count, sum = 0, bytes, first = 0;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_get_pset_info(session, "mpi://WORLD", &info);
    MPI_Info_get_string(info, "mpi_size", &length, text, &flag);
    say("world has %s\n", text);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Group_size(group, &count);
    say("self has %d\n", count);
    MPI_Group_free(&group);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "a string", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Comm_rank(comm, &place);
    MPI_Comm_size(comm, &count);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    say("rank %d of %d, sum %d\n", place, count, sum);
    MPI_Comm_free(&comm);
    if (rank == 0) {
        MPI_Group_incl(group, 1, &first, &part);
        MPI_Comm_create_from_group(part, "another", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
        MPI_Comm_size(comm, &count);
        say("alone %d\n", count);
        MPI_Comm_free(&comm);
        MPI_Group_free(&part);
    }
    MPI_Group_free(&group);
    say("no set %d\n", MPI_Group_from_session_pset(session, "mpi://NOBODY", &group) != MPI_SUCCESS);
    MPI_Session_attach_buffer(session, room, sizeof room);
    MPI_Session_flush_buffer(session);
    MPI_Session_detach_buffer(session, &back, &bytes);
    say("mine %d, %d bytes\n", back == room, bytes);
    MPI_Session_create_errhandler(handle, &handler);
    MPI_Session_set_errhandler(session, handler);
    MPI_Session_call_errhandler(session, MPI_ERR_BUFFER);
    say("handled %s\n", class_of(handled));
    MPI_Errhandler_free(&handler);
    MPI_Session_get_info(session, &info);
    MPI_Info_free(&info);
    MPI_Session_finalize(&session);
    say("null %d\n", session == MPI_SESSION_NULL);
}
