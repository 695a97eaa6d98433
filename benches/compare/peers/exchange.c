/* A hydrodynamics code's exchange between the ranks of a cubic grid, as LULESH 2.0 has it, with
 * real memory traffic in between. Each rank has a mesh of SIDE^3 elements; a cycle is
 *
 *   allreduce of one double (the time step)
 *   forces    3 fields of nodes with all 26 neighbours, which add what they get
 *   motion    6 fields of nodes to the neighbours above, which replace what they have
 *   gradient  3 fields of elements with the 6 neighbours beside a face
 *
 * Receives are posted before the computation that the message ends. A field has 8 bytes a
 * node, so a message of a face has 8 * fields * (SIDE + 1)^2 bytes, of an edge
 * 8 * fields * (SIDE + 1), of a corner 8 * fields. As in LULESH, the first cycle has no
 * allreduce, and no cycle goes before those that are timed, only one exchange.
 *
 *   exchange SIDE CYCLES PASSES
 *
 * PASSES is how often the computation of each phase goes over the mesh: with 40 a rank alone is
 * about as fast as LULESH. Rank 0 prints the elements of all ranks per second, and for each phase
 * how many of its messages found their receive posted when their send began, then the messages of
 * a cycle by their lengths. The ranks are on one machine, whose clock says which was first.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NEIGHBOURS = 26, FIELDS = 6, BINS = 8, PHASES = 3 };

static const long bin_ends[BINS] = {256, 1024, 4096, 8192, 16384, 32768, 65536, 1L << 40};
static const char *const phase_names[PHASES] = {"forces", "motion", "gradient"};

/* One of the up to 26 neighbours: where it is, the buffers of its messages, and when each
 * receive was posted and each send begun, by cycle and phase. */
struct neighbour {
    int rank, step[3];
    double *out, *in, *posted, *begun;
    MPI_Request request;
};

static int side, nodes, grid, place[3], count_of, cycle_number;
static struct neighbour neighbour[NEIGHBOURS];
static double *node[2 * FIELDS], *element[FIELDS];
static long bins[PHASES][BINS];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double *array(long count, double first) {
    double *values = malloc((size_t)count * sizeof *values);
    if (!values) {
        fprintf(stderr, "exchange: no memory for %ld doubles\n", count);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (long at = 0; at < count; at++) {
        values[at] = first + 1e-3 * (double)(at % 97);
    }
    return values;
}

/* The first and the last index in one dimension of what borders on a neighbour. */
static void border(int step, int length, int *from, int *to) {
    *from = step > 0 ? length - 1 : 0;
    *to = step < 0 ? 0 : length - 1;
}

/* Copies the border on a neighbour between fields and a message; MODE is 'p' to pack, 'a' to
 * add, 'r' to replace. Returns the number of doubles. */
static long move(const int *step, int length, double **fields, int count, double *message, char mode) {
    int from[3], to[3];
    long at = 0;
    for (int axis = 0; axis < 3; axis++) {
        border(step[axis], length, &from[axis], &to[axis]);
    }
    for (int field = 0; field < count; field++) {
        double *values = fields[field];
        for (int z = from[2]; z <= to[2]; z++) {
            for (int y = from[1]; y <= to[1]; y++) {
                double *row = values + ((long)z * length + y) * length;
                for (int x = from[0]; x <= to[0]; x++, at++) {
                    if (mode == 'p') {
                        message[at] = row[x];
                    } else if (mode == 'a') {
                        row[x] += message[at];
                    } else {
                        row[x] = message[at];
                    }
                }
            }
        }
    }
    return at;
}

static long length_of(const int *step, int length, int count) {
    long doubles = count;
    for (int axis = 0; axis < 3; axis++) {
        doubles *= step[axis] ? 1 : length;
    }
    return doubles;
}

/* Whether a neighbour takes part: all, those beside a face, or those in one direction. */
static int is_face(const int *step) {
    return abs(step[0]) + abs(step[1]) + abs(step[2]) == 1;
}
static int is_above(const int *step) {
    return step[2] > 0 || (step[2] == 0 && (step[1] > 0 || (step[1] == 0 && step[0] > 0)));
}

enum phase { FORCES, MOTION, GRADIENT };

static int sends(enum phase phase, const int *step) {
    return phase == FORCES || (phase == MOTION ? is_above(step) : is_face(step));
}
static int receives(enum phase phase, const int *step) {
    const int back[3] = {-step[0], -step[1], -step[2]};
    return sends(phase, back);
}

static void post(enum phase phase, int length, int count) {
    for (int at = 0; at < count_of; at++) {
        struct neighbour *from = &neighbour[at];
        from->request = MPI_REQUEST_NULL;
        if (receives(phase, from->step)) {
            MPI_Irecv(from->in, (int)length_of(from->step, length, count), MPI_DOUBLE, from->rank, phase,
                      MPI_COMM_WORLD, &from->request);
            from->posted[cycle_number * PHASES + phase] = now();
        }
    }
}

static void exchange(enum phase phase, int length, double **fields, int count, char mode) {
    MPI_Request sent[NEIGHBOURS];
    int begun = 0;
    for (int at = 0; at < count_of; at++) {
        struct neighbour *to = &neighbour[at];
        if (sends(phase, to->step)) {
            long doubles = move(to->step, length, fields, count, to->out, 'p');
            to->begun[cycle_number * PHASES + phase] = now();
            MPI_Isend(to->out, (int)doubles, MPI_DOUBLE, to->rank, phase, MPI_COMM_WORLD, &sent[begun++]);
            int bin = 0;
            while (8 * doubles > bin_ends[bin]) {
                bin++;
            }
            bins[phase][bin]++;
        }
    }
    MPI_Waitall(begun, sent, MPI_STATUSES_IGNORE);
    for (int at = 0; at < count_of; at++) {
        struct neighbour *from = &neighbour[at];
        if (receives(phase, from->step)) {
            MPI_Wait(&from->request, MPI_STATUS_IGNORE);
            move(from->step, length, fields, count, from->in, mode);
        }
    }
}

/* Forces: each element reads its 8 nodes, and adds to them. */
static void compute_forces(void) {
    for (int z = 0; z < side; z++) {
        for (int y = 0; y < side; y++) {
            for (int x = 0; x < side; x++) {
                long first = ((long)z * nodes + y) * nodes + x, own = ((long)z * side + y) * side + x;
                double sum[3] = {0, 0, 0};
                for (int corner = 0; corner < 8; corner++) {
                    long at = first + (corner & 1) + (corner >> 1 & 1) * nodes + (long)(corner >> 2) * nodes * nodes;
                    for (int axis = 0; axis < 3; axis++) {
                        sum[axis] += node[axis][at] * element[axis][own];
                    }
                }
                for (int corner = 0; corner < 8; corner++) {
                    long at = first + (corner & 1) + (corner >> 1 & 1) * nodes + (long)(corner >> 2) * nodes * nodes;
                    for (int axis = 0; axis < 3; axis++) {
                        node[6 + axis][at] = 0.5 * node[6 + axis][at] + 1e-9 * sum[axis];
                    }
                }
            }
        }
    }
}

/* Motion: streams over the nodes. */
static void compute_motion(void) {
    long all = (long)nodes * nodes * nodes;
    for (int axis = 0; axis < 3; axis++) {
        double *at = node[axis], *speed = node[3 + axis], *force = node[6 + axis];
        for (long index = 0; index < all; index++) {
            speed[index] = 0.999 * speed[index] + 1e-6 * force[index];
            at[index] += 1e-6 * speed[index];
        }
    }
}

/* Gradient: each element reads its neighbours along each axis. */
static void compute_gradient(void) {
    const long step[3] = {1, side, (long)side * side};
    for (int axis = 0; axis < 3; axis++) {
        const double *from = element[axis];
        double *into = element[3 + axis];
        long all = (long)side * side * side;
        for (long index = step[axis]; index < all - step[axis]; index++) {
            into[index] = 0.25 * (from[index - step[axis]] + 2 * from[index] + from[index + step[axis]]);
        }
    }
}

static double cycle(int passes) {
    double step = 1e-3, least = 0;
    if (cycle_number > 0) {
        MPI_Allreduce(&step, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    }
    post(FORCES, nodes, 3);
    for (int pass = 0; pass < passes; pass++) {
        compute_forces();
    }
    exchange(FORCES, nodes, node + 6, 3, 'a');
    post(MOTION, nodes, 6);
    for (int pass = 0; pass < passes; pass++) {
        compute_motion();
    }
    exchange(MOTION, nodes, node, 6, 'r');
    post(GRADIENT, side, 3);
    for (int pass = 0; pass < passes; pass++) {
        compute_gradient();
    }
    exchange(GRADIENT, side, element + 3, 3, 'r');
    return least;
}

/* After one exchange of ones, a node has as many as there are ranks that have it. */
static int is_right(void) {
    long all = (long)nodes * nodes * nodes;
    for (int field = 6; field < 9; field++) {
        for (long at = 0; at < all; at++) {
            node[field][at] = 1;
        }
    }
    post(FORCES, nodes, 3);
    exchange(FORCES, nodes, node + 6, 3, 'a');
    for (int z = 0; z < nodes; z++) {
        for (int y = 0; y < nodes; y++) {
            for (int x = 0; x < nodes; x++) {
                int index[3] = {x, y, z};
                double owners = 1;
                for (int axis = 0; axis < 3; axis++) {
                    int low = index[axis] == 0 && place[axis] > 0;
                    int high = index[axis] == side && place[axis] < grid - 1;
                    owners *= low || high ? 2 : 1;
                }
                for (int field = 6; field < 9; field++) {
                    if (node[field][((long)z * nodes + y) * nodes + x] != owners) {
                        return 0;
                    }
                }
            }
        }
    }
    return 1;
}

/* How many messages of each phase found their receive posted. */
static void count_posted(int cycles, long *early) {
    double theirs[cycles * PHASES];
    for (int at = 0; at < count_of; at++) {
        struct neighbour *with = &neighbour[at];
        MPI_Sendrecv(with->posted, cycles * PHASES, MPI_DOUBLE, with->rank, PHASES, theirs, cycles * PHASES, MPI_DOUBLE,
                     with->rank, PHASES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int number = 0; number < cycles * PHASES; number++) {
            early[number % PHASES] += sends(number % PHASES, with->step) && theirs[number] < with->begun[number];
        }
    }
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    side = argc > 1 ? atoi(argv[1]) : 0;
    int cycles = argc > 2 ? atoi(argv[2]) : 0, passes = argc > 3 ? atoi(argv[3]) : 0;
    while (grid * grid * grid < size) {
        grid++;
    }
    if (side < 2 || cycles < 1 || passes < 0 || grid * grid * grid != size) {
        if (rank == 0) {
            fprintf(stderr, "exchange SIDE CYCLES PASSES: SIDE from 2, CYCLES from 1; the ranks are a cube, not %d\n", size);
        }
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    nodes = side + 1;
    for (int axis = 0, left = rank; axis < 3; axis++, left /= grid) {
        place[axis] = left % grid;
    }
    for (int field = 0; field < 2 * FIELDS; field++) {
        node[field] = array((long)nodes * nodes * nodes, 1);
    }
    for (int field = 0; field < FIELDS; field++) {
        element[field] = array((long)side * side * side, 1);
    }
    for (int at = 0; at < 27; at++) {
        int step[3] = {at % 3 - 1, at / 3 % 3 - 1, at / 9 - 1}, is_there = at != 13, other = 0;
        for (int axis = 2; axis >= 0; axis--) {
            int there = place[axis] + step[axis];
            is_there = is_there && there >= 0 && there < grid;
            other = other * grid + there;
        }
        if (is_there) {
            struct neighbour *next = &neighbour[count_of++];
            long doubles = length_of(step, nodes, FIELDS);
            *next = (struct neighbour){other, {step[0], step[1], step[2]}, array(doubles, 0), array(doubles, 0),
                                       array((long)cycles * PHASES, 0), array((long)cycles * PHASES, 0), MPI_REQUEST_NULL};
        }
    }
    int right = is_right(), all_right = 0;
    MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all_right) {
        fprintf(stderr, "exchange: rank %d has wrong sums\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(bins, 0, sizeof bins);
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (cycle_number = 0; cycle_number < cycles; cycle_number++) {
        cycle(passes);
    }
    double took = now() - begun, longest;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    long early[PHASES] = {0}, all_early[PHASES], sums[PHASES][BINS];
    count_posted(cycles, early);
    MPI_Reduce(early, all_early, PHASES, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(bins, sums, PHASES * BINS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("elements per second: %.0f\n", (double)size * side * side * side * cycles / longest);
        for (int phase = 0; phase < PHASES; phase++) {
            printf("%s: %ld posted;", phase_names[phase], all_early[phase]);
            for (int bin = 0; bin < BINS; bin++) {
                printf(" %ld", sums[phase][bin] / cycles);
            }
            printf("\n");
        }
    }
    MPI_Finalize();
    return 0;
}
