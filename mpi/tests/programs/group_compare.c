/* Ranks: 3. Groups with the same ranks in the same and in another order. */
#include "check.h"

static void program(void) {
    MPI_Group world, same, reverse, part;
    int straight[3] = {0, 1, 2}, back[3] = {2, 1, 0}, answer;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 3, straight, &same);
    MPI_Group_incl(world, 3, back, &reverse);
    MPI_Group_incl(world, 2, straight, &part);
    MPI_Group_compare(world, same, &answer);
    say("same %d\n", answer == MPI_IDENT);
    MPI_Group_compare(world, reverse, &answer);
    say("reverse %d\n", answer == MPI_SIMILAR);
    MPI_Group_compare(world, part, &answer);
    say("part %d\n", answer == MPI_UNEQUAL);
    MPI_Group_incl(world, 0, straight, &world);
    say("empty %d\n", world == MPI_GROUP_EMPTY);
    MPI_Group_free(&same);
    MPI_Group_free(&reverse);
    MPI_Group_free(&part);
}
