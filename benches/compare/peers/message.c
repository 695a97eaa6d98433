/* The workloads of `tsumugi bench message` on MPI, line for line those of
 * cli/src/bench/message/work.rs.
 *
 *   mpiexec -n N message FOLDER
 *
 * Every rank reads its commands from the pipe FOLDER/RANK, where it sleeps in
 * the kernel between them; rank 0 answers on FOLDER/answer:
 *
 *   command   WORKLOAD name=value ...
 *   answer    ns NUMBER          one for each repetition
 *             end
 *
 * Where ours puts and gets, this sends and receives.
 *
 * Payload is touched on both sides: the sender dirties every line before each
 * message, and the receiver reads every line after it.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, WINDOW = 64, NEIGHBOURS = 26, BYTES_MAX = 256 << 20 };
enum { WARM_MAX = 4 << 20, TAG = 1, TAG_READY = 2 };

static int rank, size;
static FILE *answers;
static char *sent, *received;
static volatile uint64_t seen;

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void answer(double ns)
{
    if (rank == 0)
        fprintf(answers, "ns %.3f\n", ns);
}

/* The value of a word of the command. */
static long value(const char *command, const char *name, long absent)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, " %s=", name);
    const char *at = strstr(command, wanted);
    return at ? strtol(at + strlen(wanted), NULL, 10) : absent;
}

static void pin(const char *command)
{
    long cpu = value(command, rank == 0 ? "cpu0" : "cpu1", -1);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= 0) {
        CPU_SET(cpu, &set);
    } else {
        for (int each = 0; each < CPU_SETSIZE; each++)
            CPU_SET(each, &set);
    }
    sched_setaffinity(0, sizeof set, &set);
}

static void dirty(char *from, size_t bytes, uint64_t value)
{
    size_t at = 0;
    /* One store a line: what is measured is to be the message. */
    for (; at + 8 <= bytes; at += LINE)
        memcpy(from + at, &value, 8);
    if (at < bytes)
        memcpy(from + at, &value, bytes - at);
}

static void look(const char *at, size_t bytes)
{
    uint64_t sum = 0;
    for (size_t line = 0; line < bytes; line += LINE)
        sum += (unsigned char)at[line];
    seen += sum;
}

/* Half of a round trip. With pre, the next receive is always posted before
 * the other side can send. */
static void latency(const char *command)
{
    int bytes = value(command, "bytes", 8), pre = value(command, "pre", 0);
    int rounds = value(command, "rounds", 64), repeat = value(command, "repeat", 1);
    int other = 1 - rank;
    MPI_Request request;
    if (rank > 1)
        return;
    for (int time = 0; time < repeat; time++) {
        int warm = rounds / 4 + 4, all = rounds + warm;
        double start = 0;
        if (rank == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int round = 0; round < all; round++) {
                if (round == warm)
                    start = now_ns();
                if (pre)
                    MPI_Irecv(received, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &request);
                dirty(sent, bytes, round);
                MPI_Send(sent, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
                if (pre)
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                else
                    MPI_Recv(received, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
                look(received, bytes);
            }
            answer((now_ns() - start) / (2.0 * rounds));
        } else {
            if (pre)
                MPI_Irecv(received, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_READY, MPI_COMM_WORLD);
            for (int round = 0; round < all; round++) {
                if (pre)
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                else
                    MPI_Recv(received, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
                look(received, bytes);
                if (pre && round + 1 < all)
                    MPI_Irecv(received, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &request);
                dirty(sent, bytes, round);
                MPI_Send(sent, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
            }
        }
    }
}

/* Nanoseconds a message, WINDOW of them under way, answered once a window. */
static void rate(const char *command)
{
    int bytes = value(command, "bytes", 8);
    int rounds = value(command, "rounds", 64), repeat = value(command, "repeat", 1);
    MPI_Request requests[WINDOW];
    if (rank > 1)
        return;
    for (int time = 0; time < repeat; time++) {
        int warm = rounds / 4 + 4;
        double start = 0;
        for (int round = 0; round < rounds + warm; round++) {
            if (round == warm)
                start = now_ns();
            for (int one = 0; one < WINDOW; one++) {
                if (rank == 0) {
                    dirty(sent + one * bytes, bytes, round);
                    MPI_Isend(sent + one * bytes, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
                              &requests[one]);
                } else {
                    MPI_Irecv(received + one * bytes, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                              &requests[one]);
                }
            }
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            if (rank == 0) {
                MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                look(received, bytes * WINDOW);
                MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_READY, MPI_COMM_WORLD);
            }
        }
        answer((now_ns() - start) / ((double)rounds * WINDOW));
    }
}

/* As many dependent steps of arithmetic. */
static double compute(long steps)
{
    double x = 1.0 + rank;
    for (long step = 0; step < steps; step++)
        x = x * 0.999999 + 1e-6;
    return x;
}

/* A cycle of eight ranks in a cube that closes on itself: compute, exchange
 * with all 26 neighbours, agree on one number. */
static void halo(const char *command)
{
    int faces = value(command, "faces", 2652), edges = value(command, "edges", 264);
    int corners = value(command, "corners", 24);
    int rounds = value(command, "rounds", 10), repeat = value(command, "repeat", 1);
    long steps = value(command, "steps", 0);
    int neighbour[NEIGHBOURS], bytes[NEIGHBOURS], at[NEIGHBOURS], count = 0, room = 0;
    MPI_Request requests[2 * NEIGHBOURS];
    if (size != 8)
        return;
    for (int x = -1; x <= 1; x++)
        for (int y = -1; y <= 1; y++)
            for (int z = -1; z <= 1; z++) {
                int away = abs(x) + abs(y) + abs(z);
                if (away == 0)
                    continue;
                neighbour[count] = rank ^ (abs(x) | abs(y) << 1 | abs(z) << 2);
                bytes[count] = away == 1 ? faces : away == 2 ? edges : corners;
                at[count] = room;
                room += (bytes[count] + LINE - 1) / LINE * LINE;
                count++;
            }
    for (int time = 0; time < repeat; time++) {
        double start = 0, sum, own;
        for (int round = -1; round < rounds; round++) {
            if (round == 0)
                start = now_ns();
            for (int one = 0; one < NEIGHBOURS; one++)
                MPI_Irecv(received + at[one], bytes[one], MPI_BYTE, neighbour[one],
                          NEIGHBOURS - 1 - one, MPI_COMM_WORLD, &requests[one]);
            own = compute(steps);
            for (int one = 0; one < NEIGHBOURS; one++) {
                dirty(sent + at[one], bytes[one], round);
                MPI_Isend(sent + at[one], bytes[one], MPI_BYTE, neighbour[one], one,
                          MPI_COMM_WORLD, &requests[NEIGHBOURS + one]);
            }
            for (int one = 0; one < NEIGHBOURS; one++) {
                MPI_Wait(&requests[one], MPI_STATUS_IGNORE);
                look(received + at[one], bytes[one]);
            }
            MPI_Waitall(NEIGHBOURS, requests + NEIGHBOURS, MPI_STATUSES_IGNORE);
            MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        }
        answer((now_ns() - start) / rounds);
    }
}

/* Ranks in a ring, many on a core: receive from both sides, compute, send to
 * both, wait for all. */
static void crowd(const char *command)
{
    int bytes = value(command, "bytes", 1024), rounds = value(command, "rounds", 10);
    int repeat = value(command, "repeat", 1);
    long steps = value(command, "steps", 0);
    int sides[2] = {(rank + size - 1) % size, (rank + 1) % size};
    int room = (bytes + LINE - 1) / LINE * LINE;
    MPI_Request requests[4];
    for (int time = 0; time < repeat; time++) {
        double start = 0;
        for (int round = -1; round < rounds; round++) {
            if (round == 0)
                start = now_ns();
            for (int side = 0; side < 2; side++)
                MPI_Irecv(received + side * room, bytes, MPI_BYTE, sides[side], 1 - side,
                          MPI_COMM_WORLD, &requests[side]);
            seen += (uint64_t)compute(steps);
            for (int side = 0; side < 2; side++) {
                dirty(sent + side * room, bytes, round);
                MPI_Isend(sent + side * room, bytes, MPI_BYTE, sides[side], side,
                          MPI_COMM_WORLD, &requests[2 + side]);
            }
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
            look(received, 2 * room);
        }
        answer((now_ns() - start) / rounds);
    }
}

/* A collective of all ranks; a broadcast has another root in each round. */
static void collective(const char *command)
{
    int bytes = value(command, "bytes", 8), rounds = value(command, "rounds", 40);
    int repeat = value(command, "repeat", 1), warm = rounds / 4 + 4;
    for (int time = 0; time < repeat; time++) {
        double start = 0;
        for (int round = 0; round < rounds + warm; round++) {
            int root = round % size;
            if (round == warm)
                start = now_ns();
            if (!strncmp(command, "barrier ", 8)) {
                MPI_Barrier(MPI_COMM_WORLD);
            } else if (!strncmp(command, "broadcast ", 10)) {
                if (root == rank)
                    dirty(sent, bytes, round);
                MPI_Bcast(sent, bytes / 8, MPI_UINT64_T, root, MPI_COMM_WORLD);
                look(sent, bytes);
            } else if (!strncmp(command, "allreduce ", 10)) {
                dirty(sent, bytes, round);
                MPI_Allreduce(MPI_IN_PLACE, sent, bytes / 8, MPI_UINT64_T, MPI_MIN,
                              MPI_COMM_WORLD);
                look(sent, bytes);
            } else if (!strncmp(command, "allgather ", 10)) {
                dirty(sent, bytes, round);
                MPI_Allgather(sent, bytes / 8, MPI_UINT64_T, received, bytes / 8, MPI_UINT64_T,
                              MPI_COMM_WORLD);
                look(received, (size_t)bytes * size);
            } else {
                dirty(sent, (size_t)bytes * size, round);
                MPI_Alltoall(sent, bytes / 8, MPI_UINT64_T, received, bytes / 8, MPI_UINT64_T,
                             MPI_COMM_WORLD);
                look(received, (size_t)bytes * size);
            }
        }
        answer((now_ns() - start) / rounds);
    }
}

static int is_collective(const char *command)
{
    return !strncmp(command, "barrier ", 8) || !strncmp(command, "broadcast ", 10) ||
           !strncmp(command, "allreduce ", 10) || !strncmp(command, "allgather ", 10) ||
           !strncmp(command, "alltoall ", 9);
}

int main(int argc, char **argv)
{
    char path[4096], command[512];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2 || posix_memalign((void **)&sent, 4096, BYTES_MAX) ||
        posix_memalign((void **)&received, 4096, BYTES_MAX))
        MPI_Abort(MPI_COMM_WORLD, 2);
    /* What is longer is touched by those that are to warm up. */
    memset(sent, 1, WARM_MAX);
    memset(received, 0, WARM_MAX);
    snprintf(path, sizeof path, "%s/%d", argv[1], rank);
    FILE *commands = fopen(path, "r");
    if (rank == 0) {
        snprintf(path, sizeof path, "%s/answer", argv[1]);
        answers = fopen(path, "w");
    }
    if (!commands || (rank == 0 && !answers))
        MPI_Abort(MPI_COMM_WORLD, 2);
    while (fgets(command, sizeof command, commands)) {
        command[strcspn(command, "\n")] = 0;
        pin(command);
        if (!strncmp(command, "latency ", 8) || !strncmp(command, "put ", 4) ||
            !strncmp(command, "get ", 4))
            latency(command);
        else if (!strncmp(command, "rate ", 5))
            rate(command);
        else if (!strncmp(command, "halo ", 5))
            halo(command);
        else if (!strncmp(command, "crowd ", 6))
            crowd(command);
        else if (is_collective(command))
            collective(command);
        if (rank == 0) {
            fprintf(answers, "end\n");
            fflush(answers);
        }
    }
    MPI_Finalize();
    return 0;
}
