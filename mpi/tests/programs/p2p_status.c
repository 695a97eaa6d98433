/* Ranks: 1. A status has the fields that the program sets. */
#include "check.h"

static void program(void) {
    MPI_Status status;
    int value, flag;
    MPI_Count many;
    memset(&status, 0, sizeof status);
    MPI_Status_set_source(&status, 3);
    MPI_Status_set_tag(&status, 4);
    MPI_Status_set_error(&status, MPI_ERR_OTHER);
    MPI_Status_set_elements(&status, MPI_INT, 7);
    MPI_Status_set_cancelled(&status, 1);
    MPI_Status_get_source(&status, &value);
    say("source %d %d\n", value, status.MPI_SOURCE);
    MPI_Status_get_tag(&status, &value);
    say("tag %d %d\n", value, status.MPI_TAG);
    MPI_Status_get_error(&status, &value);
    say("error %d %d\n", value == MPI_ERR_OTHER, status.MPI_ERROR == MPI_ERR_OTHER);
    MPI_Get_elements(&status, MPI_INT, &value);
    say("elements %d\n", value);
    MPI_Test_cancelled(&status, &flag);
    say("cancelled %d\n", flag);
    MPI_Status_set_elements_x(&status, MPI_BYTE, (MPI_Count)5 << 32);
    MPI_Get_elements_x(&status, MPI_BYTE, &many);
    say("many %lld\n", (long long)many);
    MPI_Get_count(&status, MPI_BYTE, &value);
    named("count", value);
    MPI_Status_set_elements_c(&status, MPI_INT, 11);
    MPI_Get_count_c(&status, MPI_INT, &many);
    say("count %lld\n", (long long)many);
    MPI_Status_set_cancelled(&status, 0);
    MPI_Test_cancelled(&status, &flag);
    say("cancelled %d\n", flag);
    MPI_Test_cancelled(&status, &flag);
}
