/* ACP's basic layer: infrastructure, registration, copies and atomics. */
#include "acp_check.h"

static uint64_t data[1000];

/* All ranks can access registered memory of any kind at its place. */
static void memory_is_reached(void)
{
    int rank = acp_rank(), procs = acp_procs(), next = (rank + 1) % procs;
    uint64_t stack[32], all[64];
    /* These two blocks may lie on one page. */
    uint64_t *heap = malloc(sizeof stack), *beside = malloc(sizeof stack);
    uint64_t *large = malloc(3 << 20);
    struct { uint64_t *at; size_t bytes; } kinds[] = {
        { data, sizeof data }, { stack, sizeof stack }, { heap, sizeof stack },
        { beside, sizeof stack }, { large, 3 << 20 },
    };
    for (int kind = 0; kind < 5; kind++) {
        uint64_t *own = kinds[kind].at;
        size_t words = kinds[kind].bytes / 8;
        for (size_t n = 0; n < words; n++) own[n] = n;
        acp_atkey_t key = acp_register_memory(own, kinds[kind].bytes, 0);
        CHECK(key != ACP_ATKEY_NULL);
        for (size_t n = 0; n < words; n++) CHECK(own[n] == n);
        acp_ga_t ga = acp_query_ga(key, own + 1);
        CHECK(ga != ACP_GA_NULL && ga == acp_query_ga(key, own) + 8);
        CHECK(acp_query_address(ga) == own + 1);
        CHECK(acp_query_rank(ga) == rank && acp_query_color(ga) == 0);
        CHECK(acp_query_ga(key, (char *)own + kinds[kind].bytes + 1) == ACP_GA_NULL);
        tell(ga, all, 2);
        CHECK(acp_query_rank(all[next]) == next);
        CHECK(acp_query_address(all[next]) == (next == rank ? own + 1 : NULL));
        /* Each rank writes to the next rank's second word and last word. */
        own[0] = 1000 + (uint64_t)rank;
        acp_copy(all[next], ga - 8, 8, ACP_HANDLE_NULL);
        acp_copy(all[next] + 8 * (words - 2), ga - 8, 8, ACP_HANDLE_NULL);
        acp_complete(ACP_HANDLE_ALL);
        acp_sync();
        uint64_t before = 1000 + (uint64_t)(rank + procs - 1) % (uint64_t)procs;
        CHECK(own[1] == before && own[words - 1] == before);
        own[0] = 7;
        CHECK(own[2] == 2);
        acp_sync();
        CHECK(acp_unregister_memory(key) == 0);
        CHECK(acp_query_rank(ga) == -1 && acp_query_address(ga) == NULL);
        CHECK(acp_unregister_memory(key) == -1);
    }
    /* The same memory can be registered again, under another key. */
    acp_atkey_t key = acp_register_memory(heap, 8, 0);
    CHECK(key != ACP_ATKEY_NULL && acp_unregister_memory(key) == 0);
    free(heap);
    free(beside);
    free(large);
    CHECK(acp_register_memory(NULL, 8, 0) == ACP_ATKEY_NULL);
    CHECK(acp_register_memory(data, 8, 5) == ACP_ATKEY_NULL);
    CHECK(acp_query_ga(ACP_ATKEY_NULL, data) == ACP_GA_NULL);
    CHECK(acp_query_rank(ACP_GA_NULL) == -1 && acp_query_color(ACP_GA_NULL) == -1);
    /* No rank has memory there; for some sizes the last rank is named. */
    CHECK(acp_query_rank(~(acp_ga_t)0) == -1 && acp_query_color(~(acp_ga_t)0) == -1);
    acp_ga_t starter = acp_query_starter_ga(next);
    for (int bit = 0; bit < 64; bit++) {
        int owner = acp_query_rank(starter ^ (acp_ga_t)1 << bit);
        CHECK(owner >= -1 && owner < procs);
    }
    CHECK(acp_query_rank(starter + ((acp_ga_t)1 << 30)) == -1);
    CHECK(acp_query_address(~(acp_ga_t)0) == NULL);
    CHECK(acp_query_address(ACP_GA_NULL) == NULL);
    CHECK(acp_query_starter_ga(-1) == ACP_GA_NULL);
    CHECK(acp_query_starter_ga(procs) == ACP_GA_NULL);
    CHECK(acp_colors() == 1);
}

/* A colour has room for 255 registrations, and for one more when one has ended. */
static void a_colour_has_255_names(void)
{
    int rank = acp_rank(), procs = acp_procs();
    static char bytes[256][2];
    acp_atkey_t keys[256];
    uint64_t all[64];
    for (int n = 0; n < 255; n++) {
        bytes[n][0] = (char)rank;
        bytes[n][1] = 'x';
        keys[n] = acp_register_memory(bytes[n], 2, 0);
        CHECK(keys[n] != ACP_ATKEY_NULL);
    }
    CHECK(acp_register_memory(bytes[255], 2, 0) == ACP_ATKEY_NULL);
    for (int n = 0; n < 255; n += 254) {
        acp_ga_t own = acp_query_ga(keys[n], bytes[n]);
        tell(own, all, 2);
        acp_complete(acp_copy(all[(rank + 1) % procs] + 1, own, 1, ACP_HANDLE_NULL));
        acp_sync();
        CHECK(bytes[n][1] == (rank + procs - 1) % procs);
    }
    /* Other ranks have used this registration. Its key is free when the call that
     * unregisters it returns. */
    for (int again = 0; again < 3; again++) {
        CHECK(acp_unregister_memory(keys[0]) == 0);
        keys[0] = acp_register_memory(bytes[255], 2, 0);
        CHECK(keys[0] != ACP_ATKEY_NULL);
        tell(acp_query_ga(keys[0], bytes[255]), all, 2);
        bytes[255][0] = (char)(rank + again);
        acp_sync();
        acp_complete(acp_copy(acp_query_starter_ga(rank), all[(rank + 1) % procs], 1,
                              ACP_HANDLE_NULL));
        CHECK(*(char *)acp_query_address(acp_query_starter_ga(rank)) == (rank + 1) % procs + again);
        acp_sync();
    }
    for (int n = 0; n < 255; n++) CHECK(acp_unregister_memory(keys[n]) == 0);
    acp_sync();
}

/* A copy between two ranks that a third rank requests. */
static void others_memory_is_copied(void)
{
    int rank = acp_rank(), procs = acp_procs();
    uint64_t *starter = acp_query_address(acp_query_starter_ga(rank));
    for (int n = 0; n < 100; n++) starter[100 + n] = (uint64_t)rank << 32 | (uint64_t)n;
    acp_sync();
    if (rank == 0) {
        acp_ga_t from = acp_query_starter_ga(procs - 1) + 800;
        acp_ga_t to = acp_query_starter_ga(procs > 2 ? 1 : 0) + 2400;
        acp_handle_t first = acp_copy(to, from, 800, ACP_HANDLE_NULL);
        acp_handle_t second = acp_copy(to + 800, to, 800, first);
        CHECK(first != ACP_HANDLE_NULL && second != ACP_HANDLE_NULL && first != second);
        acp_handle_t third = acp_copy(to + 1600, to + 800, 800, ACP_HANDLE_CONT);
        CHECK(acp_copy(to, from, 0, ACP_HANDLE_ALL) != ACP_HANDLE_NULL);
        acp_complete(third);
        CHECK(acp_inquire(first) == 0 && acp_inquire(second) == 0 && acp_inquire(third) == 0);
        acp_complete(ACP_HANDLE_ALL);
        CHECK(acp_inquire(ACP_HANDLE_ALL) == 0 && acp_inquire(ACP_HANDLE_NULL) == 0);
    }
    acp_sync();
    if (rank == (procs > 2 ? 1 : 0)) {
        for (int n = 0; n < 300; n++) {
            CHECK(starter[300 + n] == ((uint64_t)(procs - 1) << 32 | (uint64_t)(n % 100)));
        }
    }
    acp_sync();
}

static void atomics_take_turns(void)
{
    int rank = acp_rank(), procs = acp_procs();
    acp_ga_t own = acp_query_starter_ga(rank) + 8, word = acp_query_starter_ga(0) + 64;
    uint64_t *wide = acp_query_address(own);
    uint32_t *narrow = (uint32_t *)wide;
    for (int n = 0; n < 1000; n++) {
        acp_add8(own, word, 1, ACP_HANDLE_NULL);
        acp_add4(own, word + 8, 2, ACP_HANDLE_ALL);
        acp_complete(ACP_HANDLE_ALL);
    }
    acp_sync();
    uint64_t *starter = acp_query_address(acp_query_starter_ga(rank));
    if (rank == 0) CHECK(starter[8] == 1000 * (uint64_t)procs && starter[9] == 2000 * (uint64_t)procs);
    acp_sync();
    /* Each rank uses a word of its own in the last rank's memory. */
    acp_ga_t mine = acp_query_starter_ga(procs - 1) + 128 + 8 * (uint64_t)rank;
    acp_complete(acp_swap8(own, mine, 0xff, ACP_HANDLE_NULL));
    CHECK(*wide == 0);
    acp_complete(acp_cas8(own, mine, 1, 2, ACP_HANDLE_NULL));
    CHECK(*wide == 0xff);
    acp_complete(acp_cas8(own, mine, 0xff, 0xf0, ACP_HANDLE_NULL));
    CHECK(*wide == 0xff);
    acp_complete(acp_xor8(own, mine, 0x11, ACP_HANDLE_NULL));
    CHECK(*wide == 0xf0);
    acp_complete(acp_or8(own, mine, 0x0e, ACP_HANDLE_NULL));
    CHECK(*wide == 0xe1);
    acp_complete(acp_and8(own, mine, 0x3c, ACP_HANDLE_NULL));
    CHECK(*wide == 0xef);
    acp_complete(acp_swap4(own, mine, 0xff, ACP_HANDLE_NULL));
    CHECK(*narrow == 0x2c);
    acp_complete(acp_cas4(own, mine, 0xff, 0xf0, ACP_HANDLE_NULL));
    CHECK(*narrow == 0xff);
    acp_complete(acp_xor4(own, mine, 0x11, ACP_HANDLE_NULL));
    CHECK(*narrow == 0xf0);
    acp_complete(acp_or4(own, mine, 0x0e, ACP_HANDLE_NULL));
    CHECK(*narrow == 0xe1);
    acp_complete(acp_and4(own, mine, 0x3c, ACP_HANDLE_NULL));
    CHECK(*narrow == 0xef);
    /* Bad calls: an unaligned word, and a null address. */
    CHECK(acp_add8(own, mine + 4, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    CHECK(acp_copy(own, ACP_GA_NULL, 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
    CHECK(strlen(tsumugi_acp_error()) > 0);
    acp_sync();
}

/* A lock as ACP's programs make one: an atomic, and a copy that begins after it. */
static void a_copy_comes_after_an_atomic(void)
{
    int rank = acp_rank(), procs = acp_procs();
    acp_ga_t own = acp_query_starter_ga(rank) + 16, lock = acp_query_starter_ga(0) + 512;
    uint64_t *words = acp_query_address(own);
    for (int n = 0; n < 50; n++) {
        do {
            acp_cas8(own, lock, 0, 1, ACP_HANDLE_NULL);
            acp_copy(own + 8, lock + 8, 8, ACP_HANDLE_ALL);
            acp_complete(ACP_HANDLE_ALL);
        } while (words[0] != 0);
        words[1]++;
        acp_copy(lock + 8, own + 8, 8, ACP_HANDLE_NULL);
        acp_copy(lock, own, 8, ACP_HANDLE_ALL);
        acp_complete(ACP_HANDLE_ALL);
    }
    acp_sync();
    uint64_t *starter = acp_query_address(acp_query_starter_ga(rank));
    if (rank == 0) CHECK(starter[65] == 50 * (uint64_t)procs);
    acp_sync();
}

static void ranks_get_other_numbers(void)
{
    int rank = acp_rank(), procs = acp_procs();
    uint64_t all[64];
    acp_ga_t block = acp_malloc(64, rank);
    CHECK(block != ACP_GA_NULL);
    CHECK(acp_reset(procs - 1 - rank) == 0);
    CHECK(acp_rank() == procs - 1 - rank && acp_procs() == procs);
    uint64_t *starter = acp_query_address(acp_query_starter_ga(acp_rank()));
    for (int n = 0; n < 1000; n++) CHECK(starter[n] == 0);
    tell((uint64_t)rank, all, 0);
    for (int n = 0; n < procs; n++) CHECK(all[n] == (uint64_t)(procs - 1 - n));
    for (int n = 0; n < procs; n++) {
        CHECK(acp_query_rank(acp_query_starter_ga(n)) == n);
        acp_ga_t there = acp_malloc(8, n);
        CHECK(acp_query_rank(there) == n);
        acp_free(there);
    }
    CHECK(acp_reset(rank) == 0 && acp_rank() == rank);
}

int main(int argc, char **argv)
{
    alarm(120);
    CHECK(acp_rank() == -1 && acp_procs() == -1 && acp_sync() == -1);
    CHECK(acp_query_starter_ga(0) == ACP_GA_NULL && acp_finalize() == -1);
    CHECK(acp_init(&argc, &argv) == 0);
    CHECK(acp_init(&argc, &argv) == -1);
    if (argc == 2 && strcmp(argv[1], "abort") == 0) {
        if (acp_rank() == 1) acp_abort("on purpose");
        return acp_sync() == 0;
    }
    if (argc == 2 && strcmp(argv[1], "give up") == 0) {
        if (acp_rank() == 1) iacp_abort_cl();
        return acp_sync() == 0;
    }
    if (argc == 2 && strcmp(argv[1], "beyond") == 0) {
        /* The last word of the starter memory, and the word behind it. */
        acp_ga_t own = acp_query_starter_ga(acp_rank()), end = own + 10240;
        CHECK(acp_copy(own, end - 8, 8, ACP_HANDLE_NULL) != ACP_HANDLE_NULL);
        for (int n = 0; n < 100; n++) {
            CHECK(acp_copy(own, end, 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
            CHECK(acp_add8(own, end, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL);
        }
        return acp_finalize();
    }
    CHECK(argc == 2 && strcmp(argv[1], "x") == 0 && argv[2] == NULL);
    CHECK(acp_rank() >= 0 && acp_rank() < acp_procs());
    memory_is_reached();
    a_colour_has_255_names();
    others_memory_is_copied();
    atomics_take_turns();
    a_copy_comes_after_an_atomic();
    ranks_get_other_numbers();
    memory_is_reached();
    CHECK(acp_finalize() == 0);
    CHECK(acp_rank() == -1);
    /* After the end of the job, the program still has its memory. */
    for (int n = 3; n < 1000; n++) CHECK(data[n] == (uint64_t)n || n == 999);
    void *heap = malloc(100);
    free(heap);
    return 0;
}
