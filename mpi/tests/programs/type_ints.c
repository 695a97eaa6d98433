/* Ranks: 1. Handles as integers, there and back. */
#include "check.h"

static void program(void) {
    MPI_Datatype type;
    MPI_Type_contiguous(2, MPI_INT, &type);
    say("%d\n", MPI_Type_fromint(MPI_Type_toint(type)) == type);
    say("%d\n", MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)) == MPI_DOUBLE);
    say("%x %x\n", MPI_Type_toint(MPI_INT), MPI_Comm_toint(MPI_COMM_WORLD));
    say("%d\n", MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_SELF)) == MPI_COMM_SELF);
    say("%d\n", MPI_Group_fromint(MPI_Group_toint(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY);
    say("%d\n", MPI_Op_fromint(MPI_Op_toint(MPI_MAXLOC)) == MPI_MAXLOC);
    say("%d\n", MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    say("%d\n", MPI_Info_fromint(MPI_Info_toint(MPI_INFO_ENV)) == MPI_INFO_ENV);
    say("%d\n", MPI_Errhandler_fromint(MPI_Errhandler_toint(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
    say("%d\n", MPI_Message_fromint(MPI_Message_toint(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
    say("%d\n", MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
    say("%d\n", MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
    say("%d\n", MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
    MPI_Type_free(&type);
}
