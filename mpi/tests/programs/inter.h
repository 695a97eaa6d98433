/* What the programs of intercommunicators share: the even ranks and the odd ones. */
#ifndef INTER_H
#define INTER_H

#include "check.h"

static MPI_Comm own, inter;
static int is_odd, own_rank, own_size, others;

static inline void connect_groups(void) {
    is_odd = rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, is_odd, rank, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - is_odd, 12, &inter);
    MPI_Comm_rank(inter, &own_rank);
    MPI_Comm_size(inter, &own_size);
    MPI_Comm_remote_size(inter, &others);
}

static inline void part_groups(void) {
    MPI_Comm_free(&inter);
    MPI_Comm_free(&own);
}

#endif
