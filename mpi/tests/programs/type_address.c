/* Ranks: 1. Arithmetic of addresses. */
#include "check.h"

static void program(void) {
    int values[10] = {0};
    MPI_Aint first, last;
    MPI_Get_address(values, &first);
    MPI_Get_address(values + 9, &last);
    say("%ld\n", (long)MPI_Aint_diff(last, first));
    say("%d\n", MPI_Aint_add(first, 36) == last);
    say("%d\n", (void *)first == (void *)values);
}
