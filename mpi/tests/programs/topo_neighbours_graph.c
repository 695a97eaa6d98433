/* Ranks: 3 4. Collectives of neighbours in graphs, begun and persistent. */
#include "check.h"

static void program(void) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int ends[4], edges[8], sent[4], got[8], both[2] = {before, next}, counts[2] = {1, 2};
    int places[2] = {0, 1};
    MPI_Aint bytes[2] = {0, 4};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Comm ring, graph;
    MPI_Request request;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    fill(sent, 4, 10 * rank);
    fill(got, 8, -100);
    MPI_Neighbor_alltoall(sent, 2, MPI_INT, got, 2, MPI_INT, ring);
    ints("ring", got, 3);
    fill(got, 8, -100);
    MPI_Ineighbor_allgather(sent, 2, MPI_INT, got, 2, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("begun", got, 3);
    MPI_Comm_free(&ring);
    for (int i = 0; i < size; i++) {
        ends[i] = 2 * (i + 1);
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, ends, edges, 0, &graph);
    fill(got, 8, -100);
    MPI_Neighbor_allgather(sent, 2, MPI_INT, got, 2, MPI_INT, graph);
    ints("graph", got, 4);
    MPI_Comm_free(&graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, both, MPI_UNWEIGHTED, 2, both, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    fill(got, 8, -100);
    MPI_Neighbor_alltoall_init(sent, 2, MPI_INT, got, 2, MPI_INT, graph, MPI_INFO_NULL, &request);
    for (int round = 0; round < 3; round++) {
        sent[0] = round;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        ints("persistent", got, 4);
    }
    MPI_Request_free(&request);
    counts[0] = 2;
    places[1] = 2;
    MPI_Neighbor_allgatherv_init(sent, 2, MPI_INT, got, counts, places, MPI_INT, graph, MPI_INFO_NULL,
                                 &request);
    // The lists are the program's again.
    counts[0] = counts[1] = places[1] = 1000;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("allgatherv", got, 4);
    MPI_Request_free(&request);
    counts[0] = counts[1] = 1;
    places[1] = 1;
    MPI_Ineighbor_alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, graph,
                            &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("alltoallv", got, 2);
    MPI_Ineighbor_alltoallw(sent, counts, bytes, types, got, counts, bytes, types, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("alltoallw", got, 2);
    MPI_Ineighbor_allgatherv(sent, 1, MPI_INT, got, counts, places, MPI_INT, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("allgatherv", got, 2);
    MPI_Comm_free(&graph);
}
