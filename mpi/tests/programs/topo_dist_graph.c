/* Ranks: 3 4. Topologies in which each rank knows its own neighbours. */
#include "check.h"

static void program(void) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size, kind, in, out, weighted;
    int from[4], to[4], from_weights[4], to_weights[4], weights[2] = {rank, 10 * rank};
    int ring[2] = {next, before}, degree = 2, edges[1] = {0};
    MPI_Comm graph, copy;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, weights, 1, &next, weights + 1,
                                   MPI_INFO_NULL, 0, &graph);
    MPI_Topo_test(graph, &kind);
    say("graph %d\n", kind == MPI_DIST_GRAPH);
    MPI_Comm_dup(graph, &copy);
    MPI_Comm_free(&graph);
    MPI_Dist_graph_neighbors_count(copy, &in, &out, &weighted);
    say("%d in, %d out, weighted %d\n", in, out, weighted);
    MPI_Dist_graph_neighbors(copy, in, from, from_weights, out, to, to_weights);
    say("from %d (%d), to %d (%d)\n", from[0], from_weights[0], to[0], to_weights[0]);
    MPI_Comm_free(&copy);
    // Each rank brings its edges to both sides.
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, ring, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                          &graph);
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
    say("%d in, %d out, weighted %d\n", in, out, weighted);
    MPI_Dist_graph_neighbors(graph, in, from, MPI_UNWEIGHTED, out, to, MPI_UNWEIGHTED);
    say("sum in %d, sum out %d\n", from[0] + from[1], to[0] + to[1]);
    MPI_Comm_free(&graph);
    // The first rank brings a star with itself in the middle.
    degree = rank == 0 ? size - 1 : 0;
    for (int i = 1; i < size; i++) {
        to[i - 1] = i;
        to_weights[i - 1] = 5 * i;
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0, edges, &degree, to, to_weights, MPI_INFO_NULL, 0,
                          &graph);
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
    say("%d in, %d out, weighted %d\n", in, out, weighted);
    if (rank > 0) {
        MPI_Dist_graph_neighbors(graph, in, from, from_weights, out, to, to_weights);
        say("from %d (%d)\n", from[0], from_weights[0]);
    }
    MPI_Comm_free(&graph);
}
