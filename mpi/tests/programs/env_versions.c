/* Ranks: 1. Versions of the standard, of the ABI and of the library. */
#include "check.h"

static void program(void) {
    int version, subversion, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_version(&version, &subversion);
    say("MPI %d, header %d\n", version, MPI_VERSION);
    MPI_Abi_get_version(&version, &subversion);
    say("ABI %d.%d, header %d.%d\n", version, subversion, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    MPI_Get_library_version(text, &length);
    say("text %d\n", length > 0 && (int)strlen(text) == length);
    MPI_Get_processor_name(text, &length);
    say("name %d\n", length > 0 && (int)strlen(text) == length && length < MPI_MAX_PROCESSOR_NAME);
    say("status %d\n", (int)sizeof(MPI_Status));
}
