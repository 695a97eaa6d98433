/* Ranks: 3 5. A graph in which each process knows the next and the first. */
#include "check.h"

static void program(void) {
    MPI_Comm graph;
    int index[5], edges[10], nodes, count, kind, all_index[5], all_edges[10], near[4];
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + 1) % size;
        edges[2 * i + 1] = 0;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph);
    MPI_Topo_test(graph, &kind);
    MPI_Graphdims_get(graph, &nodes, &count);
    say("graph %d, nodes %d, edges %d\n", kind == MPI_GRAPH, nodes, count);
    MPI_Graph_get(graph, size, 2 * size, all_index, all_edges);
    ints("index", all_index, size);
    ints("edges", all_edges, 2 * size);
    for (int i = 0; i < size; i++) {
        MPI_Graph_neighbors_count(graph, i, &count);
        MPI_Graph_neighbors(graph, i, count, near);
        ints("near", near, count);
    }
    MPI_Comm_free(&graph);
    edges[2] = 0;
    MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &graph);
    say("null %d\n", graph == MPI_COMM_NULL);
    if (graph != MPI_COMM_NULL) MPI_Comm_free(&graph);
}
