/* Ranks: 2 3. Reductions of vectors by an operation of the program, and broadcasts of structs. */
#include "check.h"

struct point { double place[2]; char name[5]; };
static void program(void) {
    struct point points[3];
    int lengths[2] = {2, 5};
    MPI_Aint places[2] = {0, 16};
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_CHAR}, inner, type;
    memset(points, 0, sizeof points);
    MPI_Type_create_struct(2, lengths, places, types, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(struct point), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&inner);
    struct point own = {{rank, rank / 4.0}, "p0"};
    own.name[1] += rank;
    MPI_Gather(&own, 1, type, points, 1, type, 1, MPI_COMM_WORLD);
    MPI_Bcast(points, size, type, 1, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) say("%s %g %g\n", points[i].name, points[i].place[0], points[i].place[1]);
    MPI_Type_free(&type);
}
