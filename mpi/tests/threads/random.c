/* A random program of two ranks with many threads each: random SEED MESSAGES THREADS.
 *
 * The seed makes one list of steps, the same at both ranks. A step is a message from one thread
 * to another one, or a collective of the two threads with one number. Each thread takes its own
 * steps in the order of the list, so the list is a sequential program with the same results:
 * what each receive must bring is known, and no choice of blocking calls can lock up, since all
 * threads of the first step that has not ended have come to it.
 *
 * A message to any receive (ANY) goes on the communicator of the receiving thread, with the
 * number of the step as its tag. Its sender never waits, since the receive may get another one
 * of these messages first; the receiver counts each of them once. */
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 256, MESSAGES_MAX = 1 << 20, LENGTH_MAX = 200000, BUFFERED_MAX = 512 };
enum send { SEND, ISEND, SSEND, ISSEND, BSEND, IBSEND, RSEND, IRSEND, PERSISTENT, SEND_KINDS };
enum receive { RECV, IRECV, ITEST, PROBE, IPROBE, MPROBE, IMPROBE, RECV_INIT, RECEIVE_KINDS };
enum collective { BARRIER, ALLREDUCE, BCAST, IALLREDUCE, COLLECTIVE_KINDS };

struct step {
    uint8_t is_collective, is_any, is_later, from_rank, to_rank, send, receive;
    uint16_t from, to;
    int length;
};

static struct step *steps;
static int rank, threads, count;
static uint64_t seed;
/* For each thread: a communicator for its collectives, and one for messages to any receive. */
static MPI_Comm own[THREADS_MAX], any[THREADS_MAX];

static uint64_t next(uint64_t *state) {
    uint64_t word = *state += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

static void wrong(int step, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "rank %d: seed %#llx, step %d of %d: ", rank, (unsigned long long)seed, step, count);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void make_steps(void) {
    uint64_t state = seed;
    for (int at = 0; at < count; at++) {
        struct step *step = &steps[at];
        uint64_t draw = next(&state), lengths = next(&state);
        step->is_collective = draw % 16 == 0;
        step->from = (draw >> 8) % threads;
        step->to = (draw >> 16) % threads;
        step->from_rank = (draw >> 24) % 2;
        step->to_rank = draw >> 25 & 3 ? !step->from_rank : step->from_rank;
        step->is_any = (draw >> 27) % 4 == 0;
        step->is_later = (draw >> 30) % 2;
        step->send = (draw >> 32) % SEND_KINDS;
        step->receive = (draw >> 40) % RECEIVE_KINDS;
        /* Most are short; each path of messages has some. */
        int bits = lengths % 32 == 0 ? 17 : lengths % 8 == 0 ? 13 : lengths % 4 == 0 ? 8 : 5;
        step->length = (lengths >> 8) % (1 << bits);
        if (step->is_collective) {
            step->to = step->from;
            step->send %= COLLECTIVE_KINDS;
            step->from_rank = 0, step->to_rank = 1;
        } else if (step->from == step->to && step->from_rank == step->to_rank) {
            step->to_rank = !step->from_rank;
        }
        if (step->is_any) {
            static const uint8_t sends[] = {ISEND, ISSEND, BSEND, IBSEND};
            static const uint8_t receives[] = {RECV, IRECV, ITEST, MPROBE, IMPROBE};
            step->send = sends[step->send % 4];
            step->receive = receives[step->receive % 5];
        }
        if ((step->send == BSEND || step->send == IBSEND) && !step->is_collective)
            step->length %= BUFFERED_MAX;
    }
}

static void fill(unsigned char *buffer, int at) {
    uint64_t state = seed ^ (uint64_t)at << 20;
    for (int i = 0; i < steps[at].length; i += 8) {
        uint64_t word = next(&state);
        memcpy(buffer + i, &word, steps[at].length - i < 8 ? steps[at].length - i : 8);
    }
}

/* A message that is waited for at the end of the thread. */
struct later {
    MPI_Request request;
    unsigned char *buffer;
    int step;
    struct later *next;
};

struct thread {
    int number;
    struct later *sends, *receives;
    /* Which messages to any receive of this thread have come. */
    unsigned char *came;
    int messages;
};

static void check(struct thread *thread, int at, unsigned char *buffer, const MPI_Status *status) {
    int length;
    MPI_Get_count(status, MPI_BYTE, &length);
    if (steps[at].is_any) {
        /* Any of these messages; each comes once. */
        int other = status->MPI_TAG;
        if (other < 0 || other >= count || !steps[other].is_any || steps[other].is_collective ||
            steps[other].to != thread->number || steps[other].to_rank != rank)
            wrong(at, "a message with tag %d", other);
        if (thread->came[other]++) wrong(at, "message %d comes twice", other);
        at = other;
    }
    if (status->MPI_SOURCE != steps[at].from_rank || status->MPI_TAG != at)
        wrong(at, "from rank %d with tag %d", status->MPI_SOURCE, status->MPI_TAG);
    if (length != steps[at].length) wrong(at, "%d bytes of %d", length, steps[at].length);
    unsigned char *expected = malloc(length + 8);
    fill(expected, at);
    if (memcmp(expected, buffer, length)) wrong(at, "other bytes, kind %d", steps[at].receive);
    free(expected);
    thread->messages++;
}

static void until(MPI_Request *request, MPI_Status *status) {
    int flag = 0;
    while (!flag) MPI_Test(request, &flag, status);
}

static void keep(struct later **list, MPI_Request request, unsigned char *buffer, int at) {
    struct later *later = malloc(sizeof *later);
    *later = (struct later){request, buffer, at, *list};
    *list = later;
}

static void send_step(struct thread *thread, int at) {
    const struct step *step = &steps[at];
    MPI_Comm comm = step->is_any ? any[step->to] : MPI_COMM_WORLD;
    unsigned char *buffer = malloc(step->length + 8);
    MPI_Request request = MPI_REQUEST_NULL;
    int to = step->to_rank;
    fill(buffer, at);
    switch (step->send) {
    case SEND: MPI_Send(buffer, step->length, MPI_BYTE, to, at, comm); break;
    case SSEND: MPI_Ssend(buffer, step->length, MPI_BYTE, to, at, comm); break;
    case BSEND: MPI_Bsend(buffer, step->length, MPI_BYTE, to, at, comm); break;
    case RSEND:
    case IRSEND:
        /* The receiver says that its receive is there. */
        MPI_Recv(NULL, 0, MPI_BYTE, to, count + at, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (step->send == RSEND) MPI_Rsend(buffer, step->length, MPI_BYTE, to, at, comm);
        else MPI_Irsend(buffer, step->length, MPI_BYTE, to, at, comm, &request);
        break;
    case ISEND: MPI_Isend(buffer, step->length, MPI_BYTE, to, at, comm, &request); break;
    case ISSEND: MPI_Issend(buffer, step->length, MPI_BYTE, to, at, comm, &request); break;
    case IBSEND: MPI_Ibsend(buffer, step->length, MPI_BYTE, to, at, comm, &request); break;
    default:
        MPI_Send_init(buffer, step->length, MPI_BYTE, to, at, comm, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    if (request == MPI_REQUEST_NULL) {
        free(buffer);
    } else if (step->is_later || step->is_any) {
        keep(&thread->sends, request, buffer, at);
    } else {
        until(&request, MPI_STATUS_IGNORE);
        free(buffer);
    }
}

static void receive_step(struct thread *thread, int at) {
    const struct step *step = &steps[at];
    int from = step->is_any ? MPI_ANY_SOURCE : step->from_rank;
    int tag = step->is_any ? MPI_ANY_TAG : at, flag = 0;
    MPI_Comm comm = step->is_any ? any[thread->number] : MPI_COMM_WORLD;
    int room = step->is_any ? LENGTH_MAX : step->length;
    unsigned char *buffer = malloc(room + 8);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    MPI_Status status;
    if (!step->is_any && (step->send == RSEND || step->send == IRSEND)) {
        MPI_Irecv(buffer, room, MPI_BYTE, from, tag, comm, &request);
        MPI_Send(NULL, 0, MPI_BYTE, step->from_rank, count + at, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        check(thread, at, buffer, &status);
        free(buffer);
        return;
    }
    switch (step->receive) {
    case RECV: MPI_Recv(buffer, room, MPI_BYTE, from, tag, comm, &status); break;
    case PROBE:
    case IPROBE:
        if (step->receive == PROBE) MPI_Probe(from, tag, comm, &status);
        else while (!flag) MPI_Iprobe(from, tag, comm, &flag, &status);
        MPI_Recv(buffer, room, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
        break;
    case MPROBE:
    case IMPROBE:
        if (step->receive == MPROBE) MPI_Mprobe(from, tag, comm, &message, &status);
        else while (!flag) MPI_Improbe(from, tag, comm, &flag, &message, &status);
        MPI_Mrecv(buffer, room, MPI_BYTE, &message, &status);
        break;
    case RECV_INIT:
        MPI_Recv_init(buffer, room, MPI_BYTE, from, tag, comm, &request);
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        MPI_Request_free(&request);
        break;
    default:
        MPI_Irecv(buffer, room, MPI_BYTE, from, tag, comm, &request);
        if (step->is_later) {
            keep(&thread->receives, request, buffer, at);
            return;
        }
        if (step->receive == ITEST) until(&request, &status);
        else MPI_Wait(&request, &status);
    }
    check(thread, at, buffer, &status);
    free(buffer);
}

static void collective_step(struct thread *thread, int at) {
    const struct step *step = &steps[at];
    MPI_Comm comm = own[thread->number];
    MPI_Request request;
    int value = at + rank, sum = 0;
    switch (step->send) {
    case BARRIER: MPI_Barrier(comm); return;
    case BCAST:
        MPI_Bcast(&value, 1, MPI_INT, 1, comm);
        if (value != at + 1) wrong(at, "%d comes by MPI_Bcast", value);
        return;
    case ALLREDUCE: MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm); break;
    default:
        MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        until(&request, MPI_STATUS_IGNORE);
    }
    if (sum != 2 * at + 1) wrong(at, "the sum is %d", sum);
}

static void *run(void *argument) {
    struct thread *thread = argument;
    thread->came = calloc(count, 1);
    for (int at = 0; at < count; at++) {
        const struct step *step = &steps[at];
        if (step->is_collective) {
            if (step->from == thread->number) collective_step(thread, at);
            continue;
        }
        if (step->from_rank == rank && step->from == thread->number) send_step(thread, at);
        if (step->to_rank == rank && step->to == thread->number) receive_step(thread, at);
    }
    for (struct later *later = thread->receives; later; later = later->next) {
        MPI_Status status;
        if (later->step % 2) until(&later->request, &status);
        else MPI_Wait(&later->request, &status);
        check(thread, later->step, later->buffer, &status);
        free(later->buffer);
    }
    int left = 0;
    for (struct later *later = thread->sends; later; later = later->next) left++;
    MPI_Request *requests = malloc((left + 1) * sizeof *requests);
    left = 0;
    for (struct later *later = thread->sends; later; later = later->next) requests[left++] = later->request;
    MPI_Waitall(left, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return NULL;
}

int main(int argc, char **argv) {
    int level;
    static struct thread all[THREADS_MAX];
    pthread_t handles[THREADS_MAX];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4 || level != MPI_THREAD_MULTIPLE) return 2;
    seed = strtoull(argv[1], NULL, 0);
    count = atoi(argv[2]);
    threads = atoi(argv[3]);
    if (count < 1 || count > MESSAGES_MAX || threads < 1 || threads > THREADS_MAX) return 2;
    steps = calloc(count, sizeof *steps);
    make_steps();
    for (int at = 0; at < threads; at++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &own[at]);
        MPI_Comm_dup(MPI_COMM_WORLD, &any[at]);
    }
    size_t room = (size_t)count * (BUFFERED_MAX + MPI_BSEND_OVERHEAD);
    void *buffer = malloc(room);
    int size = room < 1 << 30 ? (int)room : 1 << 30;
    MPI_Buffer_attach(buffer, size);
    for (int at = 0; at < threads; at++) {
        all[at].number = at;
        pthread_create(&handles[at], NULL, run, &all[at]);
    }
    int messages = 0;
    for (int at = 0; at < threads; at++) {
        pthread_join(handles[at], NULL);
        messages += all[at].messages;
    }
    MPI_Buffer_detach(&buffer, &size);
    int expected = 0;
    for (int at = 0; at < count; at++) expected += !steps[at].is_collective && steps[at].to_rank == rank;
    if (messages != expected) wrong(count, "%d messages of %d have come", messages, expected);
    for (int at = 0; at < threads; at++) {
        MPI_Comm_free(&own[at]);
        MPI_Comm_free(&any[at]);
    }
    MPI_Finalize();
    printf("rank %d: %d messages\n", rank, messages);
    return 0;
}
