/* Ranks: 1 2 3. Identical, congruent, similar and unequal communicators. */
#include "check.h"

static const char *name(int answer) {
    return answer == MPI_IDENT ? "identical" : answer == MPI_CONGRUENT ? "congruent" : answer == MPI_SIMILAR ? "similar" : "unequal";
}
static void program(void) {
    MPI_Comm copy, reverse, part;
    int answer;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &part);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &answer);
    say("%s\n", name(answer));
    MPI_Comm_compare(MPI_COMM_WORLD, copy, &answer);
    say("%s\n", name(answer));
    MPI_Comm_compare(MPI_COMM_WORLD, reverse, &answer);
    say("%s\n", name(answer));
    MPI_Comm_compare(MPI_COMM_WORLD, part, &answer);
    say("%s\n", name(answer));
    MPI_Comm_compare(MPI_COMM_SELF, part, &answer);
    say("%s\n", name(answer));
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reverse);
    MPI_Comm_free(&part);
}
