/* The layout of containers in memory, which programs that were written for ACP 3 rely
 * on: the words of headers, directories, slots and elements. */
#include "acp_check.h"

/* CRC-64/XZ, bit by bit. */
static uint64_t crc64(const char *bytes, size_t count)
{
    uint64_t crc = ~UINT64_C(0);
    for (size_t n = 0; n < count; n++) {
        crc ^= (unsigned char)bytes[n];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT64_C(0xc96c5795d7870f42) : 0);
    }
    return ~crc;
}

static uint64_t *words_at(acp_ga_t ga)
{
    uint64_t *words = acp_query_address(ga);
    CHECK(words != NULL);
    return words;
}

static void header_of_a_vector(acp_ga_t buffer, int *value)
{
    acp_vector_t vector = acp_create_vector(0, acp_rank());
    uint64_t *header = words_at(vector.ga);
    CHECK(header[0] == ACP_GA_NULL && header[1] == 0 && header[2] == 0);
    for (int n = 1; n <= 7; n++) {
        *value = 100 + n;
        acp_push_back_vector(vector, buffer, sizeof *value);
        size_t size = sizeof *value * (size_t)n;
        CHECK(header[1] == size && header[2] == (size + 7) / 8 * 8);
        for (int at = 0; at < n; at++)
            CHECK(((int *)words_at(header[0]))[at] == 101 + at);
    }
    acp_vector_t other = acp_create_vector(0, acp_rank());
    acp_reserve_vector(other, 12);
    CHECK(words_at(other.ga)[1] == 0 && words_at(other.ga)[2] == 16);
    acp_assign_vector(other, vector);
    CHECK(words_at(other.ga)[1] == 28 && words_at(other.ga)[2] == 32);
    acp_clear_vector(vector);
    CHECK(header[1] == 0 && header[2] == 32);
    acp_destroy_vector(vector);
    acp_destroy_vector(other);
}

static int at_deque(const uint64_t *header, uint64_t at)
{
    return *(int *)words_at(header[0] + (header[1] + at * sizeof(int)) % header[3]);
}

static void header_of_a_deque(acp_ga_t buffer, int *value)
{
    acp_deque_t deque = acp_create_deque(6 * sizeof *value, acp_rank());
    uint64_t *header = words_at(deque.ga);
    CHECK(header[0] != ACP_GA_NULL && header[1] == 0 && header[2] == 0 && header[3] == 24);
    for (*value = 1; *value <= 7; ++*value) acp_push_back_deque(deque, buffer, sizeof *value);
    CHECK(header[1] == 0 && header[2] == 28 && header[3] == 28);
    acp_pop_front_deque(deque, 2 * sizeof *value);
    CHECK(header[1] == 8 && header[2] == 20 && at_deque(header, 0) == 3);
    for (*value = 50; *value <= 52; ++*value) acp_push_front_deque(deque, buffer, sizeof *value);
    /* The deque was full, so it has moved to larger memory, where its bytes are
     * contiguous again. */
    CHECK(header[1] == 0 && header[2] == 32 && header[3] == 32);
    CHECK(at_deque(header, 0) == 52 && at_deque(header, 3) == 3 && at_deque(header, 7) == 7);
    acp_deque_t other = acp_create_deque(0, acp_rank());
    acp_swap_deque(deque, other);
    CHECK(header[0] == ACP_GA_NULL && header[2] == 0 && header[3] == 0);
    CHECK(words_at(other.ga)[2] == 32 && words_at(other.ga)[3] == 32);
    acp_destroy_deque(deque);
    acp_destroy_deque(other);
}

enum { SLOTS = 4, KEYS = 16, VALUE = 15 };

/* Stores the places of all elements of a slot in `found`; returns their number. The
 * first two words of an element are the addresses of the next and of the previous
 * element; that of the last and that of the first are null. */
static int walk(acp_ga_t directory, int rank, int slot, uint64_t *found[KEYS])
{
    uint64_t *list = words_at(words_at(directory)[rank] + (uint64_t)slot * 32 + 8);
    acp_ga_t before = ACP_GA_NULL;
    int count = 0;
    for (acp_ga_t at = list[0]; at != ACP_GA_NULL; at = found[count++][0]) {
        found[count] = words_at(at);
        CHECK(found[count][1] == before);
        before = at;
    }
    CHECK(list[1] == before && list[2] == (uint64_t)count);
    return count;
}

static const char letters[] = "ABCDEFGHIJKLMNOP";

/* Checks a key, which is a prefix of `letters` of `bytes` bytes: it lies in the slot
 * that its checksum says, behind the shorter keys of that slot. */
static void is_in_its_place(const void *key, uint64_t bytes, int slot, uint64_t *longest)
{
    CHECK(bytes > *longest && bytes <= KEYS && memcmp(key, letters, bytes) == 0);
    CHECK((crc64(letters, bytes) >> 16) % SLOTS == (uint64_t)slot);
    *longest = bytes;
}

static void elements_of_tables(acp_ga_t buffer, char *bytes)
{
    int own = acp_rank();
    acp_map_t map = acp_create_map(1, &own, SLOTS, own);
    acp_set_t set = acp_create_set(1, &own, SLOTS, own);
    acp_multiset_t many = acp_create_multiset(1, &own, SLOTS, own);
    memcpy(bytes, letters, KEYS);
    memset(bytes + 256, 'v', VALUE);
    for (size_t n = 1; n <= KEYS; n++) {
        acp_pair_t pair = { { buffer, n }, { buffer + 256, VALUE } };
        acp_insert_map(map, pair);
        acp_insert_set(set, pair.first);
        for (size_t times = 0; times < n; times++) acp_insert_multiset(many, pair.first);
    }
    uint64_t *found[KEYS];
    int all[3] = { 0 };
    for (int slot = 0; slot < SLOTS; slot++) {
        uint64_t longest[3] = { 0 };
        int count = walk(map.ga, 0, slot, found);
        for (int n = 0; n < count; n++) {
            uint64_t *element = found[n], size = element[2], key = element[3];
            CHECK(size == 8 + key + VALUE);
            CHECK(memcmp((char *)(element + 4) + key, bytes + 256, VALUE) == 0);
            is_in_its_place(element + 4, key, slot, &longest[0]);
        }
        all[0] += count;
        count = walk(set.ga, 0, slot, found);
        for (int n = 0; n < count; n++)
            is_in_its_place(found[n] + 3, found[n][2], slot, &longest[1]);
        all[1] += count;
        count = walk(many.ga, 0, slot, found);
        for (int n = 0; n < count; n++) {
            CHECK(found[n][2] == found[n][3]);
            is_in_its_place(found[n] + 4, found[n][3], slot, &longest[2]);
        }
        all[2] += count;
    }
    CHECK(all[0] == KEYS && all[1] == KEYS && all[2] == KEYS);
    acp_set_t other = acp_create_set(1, &own, SLOTS, own);
    acp_assign_set(other, set);
    for (int slot = 0; slot < SLOTS; slot++) {
        uint64_t longest = 0;
        int count = walk(other.ga, 0, slot, found);
        for (int n = 0; n < count; n++)
            is_in_its_place(found[n] + 3, found[n][2], slot, &longest);
    }
    acp_clear_set(other);
    CHECK(walk(other.ga, 0, 0, found) == 0);
    acp_destroy_set(other);
    acp_destroy_multiset(many);
    acp_destroy_set(set);
    acp_destroy_map(map);
}

/* A directory has a word for each rank: the address of the rank's slots. Slots and
 * elements of other ranks are read by copies. */
static void directory_of_all_ranks(acp_ga_t buffer, char *bytes)
{
    int procs = acp_procs(), ranks[64];
    for (int rank = 0; rank < procs; rank++) ranks[rank] = rank;
    acp_set_t set = acp_create_set(procs, ranks, SLOTS, acp_rank());
    memcpy(bytes, letters, KEYS);
    for (size_t n = 1; n <= KEYS; n++) acp_insert_set(set, (acp_element_t){ buffer, n });
    uint64_t *list = (uint64_t *)(bytes + 256);
    int all = 0;
    for (int rank = 0; rank < procs; rank++) {
        acp_ga_t slots = words_at(set.ga)[rank];
        CHECK(acp_query_rank(slots) == rank);
        for (int slot = 0; slot < SLOTS; slot++) {
            acp_complete(acp_copy(buffer + 256, slots + (uint64_t)slot * 32 + 8, 24,
                                  ACP_HANDLE_NULL));
            uint64_t left = list[2];
            for (acp_ga_t at = list[0]; left > 0; at = list[0], left--) {
                CHECK(acp_query_rank(at) == rank);
                acp_complete(acp_copy(buffer + 256, at, 24, ACP_HANDLE_NULL));
                uint64_t hash = crc64(letters, list[2]) >> 16;
                CHECK((int)(hash % SLOTS) == slot && (int)(hash / SLOTS % (uint64_t)procs) == rank);
                all++;
            }
        }
    }
    CHECK(all == KEYS);
    acp_destroy_set(set);
}

int main(int argc, char **argv)
{
    alarm(120);
    CHECK(acp_init(&argc, &argv) == 0);
    acp_ga_t buffer = acp_malloc(512, acp_rank());
    void *bytes = words_at(buffer);
    CHECK(crc64("123456789", 9) == UINT64_C(0x995dc9bbdf1939fa));
    header_of_a_vector(buffer, bytes);
    header_of_a_deque(buffer, bytes);
    elements_of_tables(buffer, bytes);
    directory_of_all_ranks(buffer, bytes);
    acp_free(buffer);
    CHECK(acp_finalize() == 0);
    return 0;
}
