/* Collectives of groups: all ranks and parts of them, operations of the library and of the
 * program, waited for and begun. */
#include "rank.h"

enum { LEN = 700 };

static struct tsumugi_group *world;

static struct tsumugi_reduction by(uint32_t what, uint32_t element)
{
    return (struct tsumugi_reduction){
        .size = sizeof(struct tsumugi_reduction), .what = what, .element = element,
    };
}

/* Ends the collective that was begun, if it was. */
static void finish(struct tsumugi_request **request)
{
    struct tsumugi_received received = {9, 9, 9};
    if (request == NULL) return;
    OK(tsumugi_request_wait(*request, &received));
    CHECK(received.source == 0 && received.tag == 0 && received.bytes == 0);
}

/* The sum of the numbers below n. */
static uint64_t below(uint64_t n) { return n * (n - 1) / 2; }

static void values_are_combined(struct tsumugi_group *group, struct tsumugi_request **request)
{
    uint64_t me = tsumugi_group_rank(group), members = tsumugi_group_size(group);
    static uint64_t from[LEN * RANKS_MAX], into[LEN * RANKS_MAX];
    struct tsumugi_reduction sum = by(TSUMUGI_SUM, TSUMUGI_U64);
    for (uint64_t n = 0; n < LEN; n++) from[n] = n * 100 + me;
    memset(into, 0xff, sizeof into);
    OK(tsumugi_group_allreduce(group, from, into, LEN, &sum, request));
    finish(request);
    for (uint64_t n = 0; n < LEN; n++) CHECK(into[n] == n * 100 * members + below(members));
    CHECK(into[LEN] == UINT64_MAX);
    uint32_t root = (uint32_t)members - 1;
    memset(into, 0xff, sizeof into);
    OK(tsumugi_group_reduce(group, from, me == root ? into : NULL, LEN, &sum, root, request));
    finish(request);
    for (uint64_t n = 0; me == root && n < LEN; n++) {
        CHECK(into[n] == n * 100 * members + below(members));
    }
    CHECK(into[LEN] == UINT64_MAX);
    /* In place. */
    for (uint64_t n = 0; n < LEN; n++) into[n] = n + me;
    OK(tsumugi_group_reduce(group, NULL, into, LEN, &sum, 0, request));
    finish(request);
    for (uint64_t n = 0; n < LEN; n++) {
        CHECK(into[n] == (me == 0 ? n * members + below(members) : n + me));
    }
    into[0] = me, into[1] = 7;
    OK(tsumugi_group_allreduce(group, NULL, into, 2, &sum, request));
    finish(request);
    CHECK(into[0] == below(members) && into[1] == 7 * members);
    OK(tsumugi_group_scan(group, from, into, LEN, &sum, request));
    finish(request);
    for (uint64_t n = 0; n < LEN; n++) CHECK(into[n] == n * 100 * (me + 1) + below(me + 1));
    into[0] = 12345;
    OK(tsumugi_group_exscan(group, from, into, LEN, &sum, request));
    finish(request);
    CHECK(into[0] == (me == 0 ? 12345 : below(me)));
    if (me > 0) CHECK(into[LEN - 1] == (LEN - 1) * 100 * me + below(me));
    /* A block for each member, of one length and of several. */
    size_t counts[RANKS_MAX], first = 0;
    for (uint64_t n = 0; n < 5 * members; n++) from[n] = n + me;
    OK(tsumugi_group_reduce_scatter(group, from, into, 5, &sum, request));
    finish(request);
    for (uint64_t n = 0; n < 5; n++) CHECK(into[n] == (5 * me + n) * members + below(members));
    for (uint32_t n = 0; n < members; n++) counts[n] = n + 1;
    for (uint32_t n = 0; n < me; n++) first += counts[n];
    for (uint64_t n = 0; n < LEN; n++) from[n] = n + me;
    OK(tsumugi_group_reduce_scatter_v(group, from, into, counts, &sum, request));
    finish(request);
    for (uint64_t n = 0; n <= me; n++) CHECK(into[n] == (first + n) * members + below(members));
}

/* 2x2 matrices: their product does not commute. */
struct matrix {
    uint32_t at[2][2];
};

static void multiply(void *context, const void *left, const void *right, void *into, size_t count)
{
    const struct matrix *a = left, *b = right;
    CHECK(*(int *)context == 42);
    for (size_t n = 0; n < count; n++) {
        struct matrix product;
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < 2; j++) {
                product.at[i][j] = a[n].at[i][0] * b[n].at[0][j] + a[n].at[i][1] * b[n].at[1][j];
            }
        }
        ((struct matrix *)into)[n] = product;
    }
}

static struct matrix matrix_of(uint32_t of) { return (struct matrix){{{of + 1, 1}, {2, of}}}; }

static void operations_of_the_program(struct tsumugi_request **request)
{
    int context = 42;
    struct tsumugi_reduction product = {
        .size = sizeof product, .function = multiply, .context = &context,
        .element_bytes = sizeof(struct matrix),
    };
    struct matrix own[3], expected = matrix_of(0), result[3];
    for (int n = 0; n < 3; n++) own[n] = matrix_of(rank);
    for (uint32_t of = 1; of < size; of++) {
        struct matrix next_one = matrix_of(of);
        multiply(&context, &expected, &next_one, &expected, 1);
    }
    OK(tsumugi_group_allreduce(world, own, result, 3, &product, request));
    finish(request);
    for (int n = 0; n < 3; n++) CHECK(memcmp(&result[n], &expected, sizeof expected) == 0);
    OK(tsumugi_group_scan(world, own, result, 3, &product, request));
    finish(request);
    if (rank + 1 == size) CHECK(memcmp(&result[2], &expected, sizeof expected) == 0);
    struct tsumugi_reduction wrong = product;
    wrong.flags = 2;
    REFUSES(TSUMUGI_ERROR_FLAGS, "0x2",
            tsumugi_group_allreduce(world, own, result, 3, &wrong, request));
    wrong.flags = TSUMUGI_COMMUTES, wrong.element_bytes = 0;
    REFUSES(TSUMUGI_ERROR_VALUE, "0 bytes",
            tsumugi_group_allreduce(world, own, result, 3, &wrong, request));
}

#define COMBINES(type, element, what, value, expected)                         \
    do {                                                                       \
        struct tsumugi_reduction of = by(what, element);                       \
        type own = (type)(value), all = 0;                                     \
        OK(tsumugi_group_allreduce(world, &own, &all, 1, &of, NULL));          \
        CHECK(all == (type)(expected));                                        \
    } while (0)

static void each_type_and_operation(void)
{
    COMBINES(int8_t, TSUMUGI_I8, TSUMUGI_MIN, -(int)rank, -(int)size + 1);
    COMBINES(uint8_t, TSUMUGI_U8, TSUMUGI_MAX, rank, size - 1);
    COMBINES(int16_t, TSUMUGI_I16, TSUMUGI_SUM, -(int)rank, -(int)below(size));
    COMBINES(uint16_t, TSUMUGI_U16, TSUMUGI_OR, 1 << rank, (1 << size) - 1);
    COMBINES(int32_t, TSUMUGI_I32, TSUMUGI_AND, ~(1 << rank), ~((1 << size) - 1));
    COMBINES(uint32_t, TSUMUGI_U32, TSUMUGI_XOR, 3 << rank, (1 << size) ^ 1);
    COMBINES(int64_t, TSUMUGI_I64, TSUMUGI_PROD, -2, size % 2 ? -(1ll << size) : 1ll << size);
    COMBINES(uint64_t, TSUMUGI_U64, TSUMUGI_MIN, rank + 5, 5);
    COMBINES(float, TSUMUGI_F32, TSUMUGI_MAX, rank + 0.5f, size - 0.5f);
    COMBINES(double, TSUMUGI_F64, TSUMUGI_SUM, rank + 0.25, below(size) + 0.25 * size);
    uint64_t word;
    int64_t number;
    double real;
    OK(tsumugi_group_reduce_u64(world, TSUMUGI_SUM, rank, &word));
    OK(tsumugi_group_reduce_i64(world, TSUMUGI_MIN, -(int64_t)rank, &number));
    OK(tsumugi_group_reduce_f64(world, TSUMUGI_MAX, rank / 2.0, &real));
    CHECK(word == below(size) && number == 1 - (int64_t)size && real == (size - 1) / 2.0);
    REFUSES(TSUMUGI_ERROR_VALUE, "4", tsumugi_group_reduce_f64(world, TSUMUGI_AND, 1, &real));
    REFUSES(TSUMUGI_ERROR_VALUE, "17", tsumugi_group_reduce_u64(world, 17, 1, &word));
    REFUSES(TSUMUGI_ERROR_NULL, "result", tsumugi_group_reduce_i64(world, 0, 1, NULL));
}

/* Bytes that tell who has sent them, to whom, and where in the block they are. */
static char mark(uint32_t source, uint32_t to, size_t at)
{
    return (char)(source * 31 + to * 7 + at);
}

static void blocks_move(struct tsumugi_group *group, size_t bytes, struct tsumugi_request **request)
{
    static char from[RANKS_MAX * 5000], into[RANKS_MAX * 5000];
    uint32_t me = tsumugi_group_rank(group), members = tsumugi_group_size(group);
    uint32_t root = members / 2;
    OK(tsumugi_group_barrier(group, request));
    finish(request);
    for (size_t n = 0; n < bytes; n++) from[n] = me == root ? mark(root, 1, n) : 0;
    OK(tsumugi_group_broadcast(group, from, bytes, root, request));
    finish(request);
    for (size_t n = 0; n < bytes; n++) CHECK(from[n] == mark(root, 1, n));
    for (size_t n = 0; n < bytes; n++) from[n] = mark(me, 0, n);
    OK(tsumugi_group_gather(group, from, bytes, me == root ? into : NULL, root, request));
    finish(request);
    for (size_t n = 0; me == root && n < bytes * members; n++) {
        CHECK(into[n] == mark((uint32_t)(n / bytes), 0, n % bytes));
    }
    memset(into, 0, sizeof into);
    OK(tsumugi_group_allgather(group, from, bytes, into, request));
    finish(request);
    for (size_t n = 0; n < bytes * members; n++) {
        CHECK(into[n] == mark((uint32_t)(n / bytes), 0, n % bytes));
    }
    for (size_t n = 0; n < bytes * members; n++) from[n] = mark(me, (uint32_t)(n / bytes), n % bytes);
    OK(tsumugi_group_scatter(group, me == root ? from : NULL, into, bytes, root, request));
    finish(request);
    for (size_t n = 0; n < bytes; n++) CHECK(into[n] == mark(root, me, n));
    OK(tsumugi_group_alltoall(group, from, into, bytes, request));
    finish(request);
    for (size_t n = 0; n < bytes * members; n++) {
        CHECK(into[n] == mark((uint32_t)(n / bytes), me, n % bytes));
    }
}

static void blocks_of_different_lengths(struct tsumugi_request **request)
{
    char from[RANKS_MAX * 40], into[RANKS_MAX * 40];
    size_t lens[RANKS_MAX], places[RANKS_MAX], out[RANKS_MAX], all = 0;
    uint32_t root = size - 1;
    for (uint32_t n = 0; n < size; n++) {
        lens[n] = 3 * n, all += lens[n];
        places[n] = (size - 1 - n) * 40;
        out[n] = rank + n;
    }
    for (size_t n = 0; n < lens[rank]; n++) from[n] = mark(rank, 0, n);
    OK(tsumugi_group_gather_v(world, from, lens[rank], into, lens, places, root, request));
    finish(request);
    for (uint32_t of = 0; rank == root && of < size; of++) {
        for (size_t n = 0; n < lens[of]; n++) CHECK(into[places[of] + n] == mark(of, 0, n));
    }
    OK(tsumugi_group_allgather_v(world, from, lens[rank], into, lens, request));
    finish(request);
    char *at = into;
    for (uint32_t of = 0; of < size; of++) {
        for (size_t n = 0; n < lens[of]; n++) CHECK(*at++ == mark(of, 0, n));
    }
    /* What came goes back. */
    char back[RANKS_MAX * 40];
    OK(tsumugi_group_scatter_v(world, rank == root ? into : NULL, rank == root ? lens : NULL, NULL,
                               back, lens[rank], root, request));
    finish(request);
    CHECK(memcmp(back, from, lens[rank]) == 0);
    for (uint32_t to = 0; to < size; to++) {
        for (size_t n = 0; n < out[to]; n++) from[places[to] + n] = mark(rank, to, n);
    }
    OK(tsumugi_group_alltoall_v(world, from, out, places, into, out, places, request));
    finish(request);
    for (uint32_t of = 0; of < size; of++) {
        for (size_t n = 0; n < out[of]; n++) CHECK(into[places[of] + n] == mark(of, rank, n));
    }
}

static void groups_are_split(void)
{
    struct tsumugi_group *half, *none, *twin;
    uint32_t of;
    OK(tsumugi_group_split(world, rank % 2, -(int64_t)rank, &half));
    uint32_t members = tsumugi_group_size(half), me = tsumugi_group_rank(half);
    CHECK(members == (size + 1 - rank % 2) / 2);
    /* The keys turn the order round. */
    OK(tsumugi_group_translate(half, me, &of));
    CHECK(of == rank && me == members - 1 - rank / 2);
    REFUSES(TSUMUGI_ERROR_RANK, "member", tsumugi_group_translate(half, members, &of));
    values_are_combined(half, NULL);
    blocks_move(half, 33, NULL);
    OK(tsumugi_group_duplicate(half, &twin));
    CHECK(tsumugi_group_rank(twin) == me && tsumugi_group_size(twin) == members);
    OK(tsumugi_group_close(half));
    OK(tsumugi_group_barrier(twin, NULL));
    OK(tsumugi_group_close(twin));
    none = world;
    OK(tsumugi_group_split(world, rank == 0 ? 0 : TSUMUGI_NO_COLOR, 0, &none));
    CHECK((none == NULL) == (rank != 0));
    if (none != NULL) OK(tsumugi_group_close(none));
    REFUSES(TSUMUGI_ERROR_VALUE, "-5", tsumugi_group_split(world, -5, 0, &none));
    REFUSES(TSUMUGI_ERROR_ENDED, "the group at", tsumugi_group_close(half));
    REFUSES(TSUMUGI_ERROR_ENDED, "the group at", tsumugi_group_barrier(half, NULL));
    CHECK(tsumugi_group_size(half) == 0 && tsumugi_group_rank(half) == UINT32_MAX);
}

/* A handle of another kind is refused by name. */
static void handles_are_told_apart(void)
{
    struct tsumugi_comm *comm, *closed;
    struct tsumugi_window *window;
    struct tsumugi_region *region;
    uint64_t word = 7;
    OK(tsumugi_comm_open(job, &comm));
    OK(tsumugi_comm_duplicate(comm, &closed));
    OK(tsumugi_comm_close(closed));
    OK(tsumugi_window_create(job, 64, TSUMUGI_WINDOW_DEFAULT, &window));
    OK(tsumugi_expose(job, 64, TSUMUGI_AGENT_CPU, &region));
    void *wrong[] = {comm, closed, window, region};
    for (int n = 0; n < 4; n++) {
        struct tsumugi_group *group = wrong[n];
        REFUSES(TSUMUGI_ERROR_VALUE, "is of no group", tsumugi_group_barrier(group, NULL));
        REFUSES(TSUMUGI_ERROR_VALUE, "is of no group", tsumugi_group_duplicate(group, &group));
        REFUSES(TSUMUGI_ERROR_VALUE, "is of no group", tsumugi_group_close(group));
        CHECK(tsumugi_group_size(group) == 0);
    }
    void *a_group = world;
    REFUSES(TSUMUGI_ERROR_VALUE, "is of no comm", tsumugi_send(a_group, 0, 1, &word, 8));
    REFUSES(TSUMUGI_ERROR_VALUE, "is of no comm", tsumugi_comm_close(a_group));
    REFUSES(TSUMUGI_ERROR_VALUE, "is of no window", tsumugi_window_put(a_group, 0, 0, &word, 8));
    REFUSES(TSUMUGI_ERROR_VALUE, "is of no array", tsumugi_array_destroy(a_group));
    REFUSES(TSUMUGI_ERROR_VALUE, "is of no request", tsumugi_request_wait(a_group, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "is of no region", tsumugi_unregister(job, a_group));
    REFUSES(TSUMUGI_ERROR_VALUE, "is of no mutex", tsumugi_mutex_lock(a_group));
    REFUSES(TSUMUGI_ERROR_VALUE, "is of no latch", tsumugi_latch_wait(a_group));
    CHECK(tsumugi_region_addr(a_group) == TSUMUGI_ADDR_NULL);
    OK(tsumugi_unregister(job, region));
    REFUSES(TSUMUGI_ERROR_ENDED, "the region at", tsumugi_unregister(job, region));
    OK(tsumugi_window_destroy(window));
    OK(tsumugi_comm_close(comm));
    OK(tsumugi_group_barrier(world, NULL));
}

/* Several collectives of a group, and messages, are under way at once. */
static void requests_end_in_any_order(void)
{
    struct tsumugi_request *requests[4];
    struct tsumugi_received received[4];
    struct tsumugi_comm *comm;
    struct tsumugi_reduction sum = by(TSUMUGI_SUM, TSUMUGI_U64);
    uint64_t first = rank, second = 2 * rank, got = 99, sent = rank;
    int codes[4];
    size_t at, ended = 0;
    OK(tsumugi_comm_open(job, &comm));
    for (int round = 0; round < 2; round++) {
        first = rank, second = 2 * rank;
        OK(tsumugi_group_allreduce(world, NULL, &first, 1, &sum, &requests[0]));
        OK(tsumugi_group_allreduce(world, NULL, &second, 1, &sum, &requests[1]));
        OK(tsumugi_irecv(comm, before, 5, &got, sizeof got, &requests[2]));
        OK(tsumugi_isend(comm, next, 5, &sent, sizeof sent, &requests[3]));
        REFUSES(TSUMUGI_ERROR_VALUE, "a collective", tsumugi_request_cancel(requests[0]));
        if (round == 0) {
            OK(tsumugi_request_wait_all(requests, 4, received, codes));
            CHECK(codes[0] == 0 && codes[3] == 0 && requests[1] == NULL);
            CHECK(received[1].bytes == 0 && received[2].bytes == 8 && received[2].source == before);
        } else {
            for (int n = 0; n < 4; n++) {
                OK(tsumugi_request_wait_any(requests, 4, &at, NULL));
                ended |= (size_t)1 << at;
            }
            CHECK(ended == 15);
            REFUSES(TSUMUGI_ERROR_NULL, "all 4", tsumugi_request_wait_any(requests, 4, &at, NULL));
        }
        CHECK(first == below(size) && second == 2 * below(size) && got == before);
    }
    bool is_done = false;
    OK(tsumugi_group_barrier(world, &requests[0]));
    while (!is_done) OK(tsumugi_request_test(requests[0], &is_done, NULL));
    /* Collectives alone. */
    OK(tsumugi_group_barrier(world, &requests[0]));
    OK(tsumugi_group_barrier(world, &requests[1]));
    OK(tsumugi_request_wait_any(requests, 2, &at, NULL));
    OK(tsumugi_request_wait_any(requests, 2, &at, NULL));
    CHECK(requests[0] == NULL && requests[1] == NULL);
    OK(tsumugi_comm_close(comm));
}

static void wrong_values_are_refused(void)
{
    uint64_t word = 0, all[RANKS_MAX];
    size_t lens[RANKS_MAX];
    char none_such[32];
    struct tsumugi_group *none;
    struct tsumugi_reduction sum = by(TSUMUGI_SUM, TSUMUGI_U64), wrong = by(0, 77);
    snprintf(none_such, sizeof none_such, "%u", size);
    for (uint32_t n = 0; n < size; n++) lens[n] = SIZE_MAX / 2;
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_group_world(NULL, &none));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_group_world(job, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "group", tsumugi_group_barrier(NULL, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "group", tsumugi_group_close(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_group_split(world, 0, 0, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_group_duplicate(world, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "by", tsumugi_group_allreduce(world, NULL, &word, 1, NULL, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "into", tsumugi_group_allreduce(world, &word, NULL, 1, &sum, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "from", tsumugi_group_allgather(world, NULL, 8, all, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "counts",
            tsumugi_group_reduce_scatter_v(world, all, all, NULL, &sum, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "lengths",
            tsumugi_group_alltoall_v(world, all, NULL, NULL, all, NULL, NULL, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "77", tsumugi_group_scan(world, NULL, &word, 1, &wrong, NULL));
    wrong.size = 3;
    REFUSES(TSUMUGI_ERROR_SIZE, "is 3,", tsumugi_group_scan(world, NULL, &word, 1, &wrong, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_group_broadcast(world, &word, 8, size, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such,
            tsumugi_group_reduce(world, &word, &word, 1, &sum, size, NULL));
    REFUSES(TSUMUGI_ERROR_LENGTH, "address space",
            tsumugi_group_exscan(world, NULL, &word, SIZE_MAX / 4, &sum, NULL));
    REFUSES(TSUMUGI_ERROR_LENGTH, "address space",
            tsumugi_group_reduce(world, &word, &word, SIZE_MAX / 4, &sum, 0, NULL));
    REFUSES(TSUMUGI_ERROR_LENGTH, "address space",
            tsumugi_group_reduce_scatter(world, &word, &word, SIZE_MAX / 4, &sum, NULL));
    if (size > 1) {
        REFUSES(TSUMUGI_ERROR_LENGTH, "address space",
                tsumugi_group_allgather_v(world, &word, 8, all, lens, NULL));
        REFUSES(TSUMUGI_ERROR_LENGTH, "address space",
                tsumugi_group_alltoall(world, &word, all, SIZE_MAX / 2, NULL));
    }
    for (uint32_t n = 0; n < size; n++) lens[n] = 8;
    REFUSES(TSUMUGI_ERROR_LENGTH, "7", tsumugi_group_allgather_v(world, &word, 7, all, lens, NULL));
    OK(tsumugi_barrier(job));
}

static void play(void)
{
    struct tsumugi_request *request;
    OK(tsumugi_group_world(job, &world));
    CHECK(tsumugi_group_rank(world) == rank && tsumugi_group_size(world) == size);
    for (struct tsumugi_request **how = NULL;; how = &request) {
        values_are_combined(world, how);
        operations_of_the_program(how);
        blocks_move(world, 1, how);
        blocks_move(world, 5000, how);
        blocks_of_different_lengths(how);
        if (how != NULL) break;
    }
    each_type_and_operation();
    groups_are_split();
    handles_are_told_apart();
    requests_end_in_any_order();
    wrong_values_are_refused();
    OK(tsumugi_group_close(world));
}
