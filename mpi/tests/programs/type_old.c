/* Ranks: 2. Functions that MPI 3.0 has removed; headers of the standard ABI lack them. */
#include "check.h"

int MPI_Address(void *location, MPI_Aint *address);
int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent);
int MPI_Type_hindexed(int count, int lengths[], MPI_Aint places[], MPI_Datatype of,
    MPI_Datatype *type);
int MPI_Type_hvector(int count, int length, MPI_Aint stride, MPI_Datatype of, MPI_Datatype *type);
int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *place);
int MPI_Type_struct(int count, int lengths[], MPI_Aint places[], MPI_Datatype of[],
    MPI_Datatype *type);
int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *place);

static int seen;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    MPI_Error_class(*code, &seen);
}

static void bounds(const char *what, MPI_Datatype type) {
    MPI_Aint lb, ub, extent;
    MPI_Type_lb(type, &lb);
    MPI_Type_ub(type, &ub);
    MPI_Type_extent(type, &extent);
    say("%s: %ld %ld %ld\n", what, (long)lb, (long)ub, (long)extent);
}

/* From rank 0 to rank 1: eight ints, of which the type takes some. */
static void moved(MPI_Datatype type) {
    int values[8] = {0};
    if (rank == 0) fill(values, 8, 1);
    MPI_Type_commit(&type);
    if (rank == 0) MPI_Send(values, 1, type, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(values, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ints("values", values, 8);
    MPI_Type_free(&type);
}

static void program(void) {
    int lengths[] = {1, 2}, values[4];
    MPI_Aint places[] = {4, 20}, first, last;
    MPI_Datatype type, of[] = {MPI_INT, MPI_FLOAT};
    MPI_Errhandler own, got;

    MPI_Type_hvector(2, 1, 12, MPI_INT, &type);
    bounds("hvector", type);
    moved(type);
    MPI_Type_hindexed(2, lengths, places, MPI_INT, &type);
    bounds("hindexed", type);
    moved(type);
    MPI_Type_struct(2, lengths, places, of, &type);
    bounds("struct", type);
    moved(type);

    MPI_Address(values, &first);
    MPI_Address(values + 3, &last);
    say("%ld\n", (long)(last - first));

    MPI_Errhandler_create(handler, &own);
    MPI_Errhandler_set(MPI_COMM_WORLD, own);
    MPI_Errhandler_get(MPI_COMM_WORLD, &got);
    say("%d\n", got == own);
    MPI_Send(values, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    say("%d\n", seen == MPI_ERR_RANK);
    MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&own);
}
