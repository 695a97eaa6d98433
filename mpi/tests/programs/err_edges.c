/* Ranks: 1. Small errors that programs meet. */
#include "check.h"

static void program(void) {
    MPI_Datatype type;
    MPI_Aint lb, extent;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    int flag;
    errors_return();
    result("waitall", MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE));
    result("testall", MPI_Testall(-1, &request, &flag, MPI_STATUSES_IGNORE));
    result("no handler", MPI_Errhandler_free(&handler));
    MPI_Type_create_hvector(0, 3, 40, MPI_INT, &type);
    MPI_Type_get_extent(type, &lb, &extent);
    say("no blocks: %d %d\n", (int)lb, (int)extent);
    MPI_Type_free(&type);
    MPI_Type_create_hvector(3, 0, 40, MPI_INT, &type);
    MPI_Type_get_extent(type, &lb, &extent);
    say("empty blocks: %d %d\n", (int)lb, (int)extent);
    MPI_Type_free(&type);
    MPI_Type_vector(3, 0, 5, MPI_DOUBLE, &type);
    MPI_Type_get_extent(type, &lb, &extent);
    say("empty vector: %d %d\n", (int)lb, (int)extent);
    MPI_Type_free(&type);
}
