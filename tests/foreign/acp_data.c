/* ACP's data library: remote memory, and the six containers. */
#include "acp_check.h"

enum { STEPS = 40 };

/* A buffer of this rank, from which the library reads. */
static acp_ga_t bytes_ga;
static unsigned char *bytes;

static acp_element_t element(const void *from, size_t size)
{
    memcpy(bytes, from, size);
    return (acp_element_t){ bytes_ga, size };
}

static acp_element_t number(uint64_t value) { return element(&value, sizeof value); }

/* The word at an address of any rank. */
static uint64_t at(acp_ga_t ga)
{
    uint64_t value = 0;
    CHECK(ga != ACP_GA_NULL);
    acp_complete(acp_copy(bytes_ga + 512, ga, 8, ACP_HANDLE_NULL));
    memcpy(&value, bytes + 512, 8);
    return value;
}

static unsigned char byte_at(acp_ga_t ga)
{
    CHECK(ga != ACP_GA_NULL);
    acp_complete(acp_copy(bytes_ga + 512, ga, 1, ACP_HANDLE_NULL));
    return bytes[512];
}

static void memory_comes_and_goes(void)
{
    int rank = acp_rank(), procs = acp_procs(), next = (rank + 1) % procs;
    acp_ga_t blocks[100];
    for (int n = 0; n < 100; n++) {
        blocks[n] = acp_malloc((size_t)n * 40, next);
        CHECK(blocks[n] != ACP_GA_NULL && acp_query_rank(blocks[n]) == next);
    }
    for (int n = 0; n < 100; n++) acp_free(blocks[n]);
    acp_free(ACP_GA_NULL);
    CHECK(acp_malloc((size_t)1 << 40, next) == ACP_GA_NULL);
    CHECK(acp_malloc(8, procs) == ACP_GA_NULL);
    acp_sync();
}

static void vectors(void)
{
    int rank = acp_rank(), procs = acp_procs();
    uint64_t all[64];
    acp_vector_t one = acp_create_vector(0, (rank + 1) % procs), two = acp_create_vector(16, rank);
    CHECK(one.ga != ACP_GA_NULL && two.ga != ACP_GA_NULL);
    CHECK(acp_empty_vector(one) == 1 && acp_size_vector(two) == 16);
    acp_reserve_vector(one, 100);
    CHECK(acp_capacity_vector(one) >= 100 && acp_size_vector(one) == 0);
    for (uint64_t n = 0; n < 10; n++) acp_push_back_vector(one, number(n).ga, 8);
    CHECK(acp_size_vector(one) == 80 && at(acp_at_vector(one, 24)) == 3);
    CHECK(acp_at_vector(one, 80) == ACP_GA_NULL && acp_at_vector(one, -1) == ACP_GA_NULL);
    acp_vector_it_t it = acp_advance_vector_it(acp_begin_vector(one), 8);
    it = acp_erase_vector(it, 8);
    CHECK(at(acp_dereference_vector_it(it)) == 2 && acp_size_vector(one) == 72);
    it = acp_insert_vector(it, number(77).ga, 8);
    CHECK(at(acp_dereference_vector_it(it)) == 77 && at(acp_at_vector(one, 16)) == 2);
    it = acp_erase_range_vector(it, acp_advance_vector_it(it, 16));
    CHECK(at(acp_dereference_vector_it(it)) == 3);
    CHECK(acp_distance_vector_it(acp_begin_vector(one), acp_end_vector(one)) == 64);
    acp_assign_vector(two, one);
    CHECK(acp_size_vector(two) == 64 && at(acp_at_vector(two, 56)) == 9);
    acp_assign_range_vector(two, acp_begin_vector(one), acp_advance_vector_it(acp_begin_vector(one), 16));
    CHECK(acp_size_vector(two) == 16 && at(acp_at_vector(two, 8)) == 3);
    acp_insert_range_vector(acp_begin_vector(two), acp_begin_vector(one), acp_end_vector(one));
    CHECK(acp_size_vector(two) == 80 && at(acp_at_vector(two, 72)) == 3);
    acp_swap_vector(one, two);
    CHECK(acp_size_vector(one) == 80 && acp_size_vector(two) == 64);
    acp_pop_back_vector(one, 8);
    CHECK(acp_size(vector, one) == 72);
    acp_clear_vector(one);
    CHECK(acp_empty(vector, one) == 1);
    acp_destroy_vector(one);
    acp_destroy_vector(two);
    /* All ranks push into a vector that rank 0 has created. */
    acp_vector_t shared = { ACP_GA_NULL };
    if (rank == 0) shared = acp_create_vector(0, procs - 1);
    tell(shared.ga, all, 1);
    shared.ga = all[0];
    for (uint64_t n = 0; n < STEPS; n++) {
        acp_push_back_vector(shared, number((uint64_t)rank << 32 | n).ga, 8);
    }
    acp_sync();
    CHECK(acp_size_vector(shared) == 8u * STEPS * (size_t)procs);
    uint64_t seen[64] = { 0 };
    for (int n = 0; n < STEPS * procs; n++) {
        uint64_t value = at(acp_at_vector(shared, 8 * n));
        CHECK((value & 0xffffffff) == seen[value >> 32]++);
    }
    acp_sync();
    if (rank == 0) acp_destroy_vector(shared);
    acp_sync();
}

static void deques(void)
{
    int rank = acp_rank(), procs = acp_procs();
    acp_deque_t one = acp_create_deque(0, (rank + 1) % procs), two = acp_create_deque(3, rank);
    CHECK(one.ga != ACP_GA_NULL && acp_empty_deque(one) == 1 && acp_size_deque(two) == 0);
    CHECK(acp_capacity_deque(two) == 8);
    acp_reserve_deque(one, 16);
    CHECK(acp_capacity_deque(one) >= 16);
    for (int n = 0; n < 5; n++) {
        acp_push_front_deque(one, element("ab", 2).ga, 2);
        acp_push_back_deque(one, element("yz", 2).ga, 2);
    }
    /* ababababab yzyzyzyzyz, which wraps around the end of the deque's memory. */
    CHECK(acp_size_deque(one) == 20 && byte_at(acp_at_deque(one, 9)) == 'b');
    CHECK(byte_at(acp_at_deque(one, 10)) == 'y' && acp_at_deque(one, 20) == ACP_GA_NULL);
    acp_pair_t pieces = acp_dereference_deque_it(acp_begin_deque(one), 20);
    CHECK(pieces.first.size + pieces.second.size == 20 && byte_at(pieces.first.ga) == 'a');
    acp_pop_front_deque(one, 9);
    acp_pop_back_deque(one, 9);
    CHECK(acp_size_deque(one) == 2 && byte_at(acp_at_deque(one, 0)) == 'b');
    acp_deque_it_t it = acp_insert_deque(acp_advance_deque_it(acp_begin_deque(one), 1),
                                         element("123", 3).ga, 3);
    CHECK(it.index == 1 && acp_size_deque(one) == 5 && byte_at(acp_at_deque(one, 4)) == 'y');
    it = acp_erase_deque(it, 1);
    CHECK(byte_at(acp_at_deque(one, 1)) == '2');
    acp_erase_range_deque(it, acp_advance_deque_it(it, 1));
    CHECK(byte_at(acp_at_deque(one, 1)) == '3' && acp_size_deque(one) == 3);
    acp_assign_deque(two, one);
    CHECK(acp_size_deque(two) == 3 && byte_at(acp_at_deque(two, 1)) == '3');
    acp_insert_range_deque(acp_end_deque(two), acp_begin_deque(one), acp_end_deque(one));
    CHECK(acp_size_deque(two) == 6 && byte_at(acp_at_deque(two, 4)) == '3');
    acp_assign_range_deque(one, acp_begin_deque(two), acp_advance_deque_it(acp_begin_deque(two), 4));
    CHECK(acp_distance_deque_it(acp_begin_deque(one), acp_end_deque(one)) == 4);
    acp_swap_deque(one, two);
    CHECK(acp_size_deque(one) == 6 && acp_size_deque(two) == 4);
    acp_clear_deque(one);
    CHECK(acp_empty_deque(one) == 1);
    acp_destroy_deque(one);
    acp_destroy_deque(two);
    acp_sync();
}

static int by_value(acp_element_t one, acp_element_t other)
{
    uint64_t first = at(one.ga), second = at(other.ga);
    return first < second ? -1 : first > second;
}

/* The numbers of a list, as the digits of one number. */
static uint64_t digits(acp_list_t list)
{
    uint64_t found = 0;
    for (acp_list_it_t it = acp_begin_list(list); it.elem != acp_end_list(list).elem;
         it = acp_increment_list_it(it)) {
        acp_element_t here = acp_dereference_list_it(it);
        CHECK(here.size == 8);
        found = found * 10 + at(here.ga);
    }
    return found;
}

static void lists(void)
{
    int rank = acp_rank(), procs = acp_procs(), next = (rank + 1) % procs;
    uint64_t all[64];
    acp_list_t one = acp_create_list(next), two = acp_create_list(rank);
    CHECK(one.ga != ACP_GA_NULL && acp_empty_list(one) == 1);
    CHECK(acp_begin_list(one).elem == acp_end_list(one).elem);
    for (uint64_t n = 3; n < 6; n++) acp_push_back_list(one, number(n), (int)n % procs);
    for (uint64_t n = 2; n > 0; n--) acp_push_front_list(one, number(n), next);
    CHECK(digits(one) == 12345 && acp_size_list(one) == 5);
    acp_list_it_t it = acp_advance_list_it(acp_begin_list(one), 2);
    CHECK(at(acp_dereference_list_it(it).ga) == 3);
    it = acp_insert_list(it, number(7), rank);
    CHECK(digits(one) == 127345 && acp_query_rank(it.elem) == rank);
    it = acp_erase_list(it);
    CHECK(at(acp_dereference_list_it(it).ga) == 3);
    CHECK(at(acp_dereference_list_it(acp_decrement_list_it(it)).ga) == 2);
    CHECK(acp_distance_list_it(acp_begin_list(one), it) == 2);
    acp_assign_list(two, one);
    CHECK(digits(two) == 12345);
    acp_reverse_list(two);
    CHECK(digits(two) == 54321);
    acp_sort_list(two, by_value);
    CHECK(digits(two) == 12345);
    acp_merge_list(one, two, by_value);
    CHECK(digits(one) == 1122334455 && acp_empty_list(two) == 1);
    acp_unique_list(one);
    CHECK(digits(one) == 12345);
    acp_remove_list(one, number(4));
    CHECK(digits(one) == 1235);
    acp_insert_range_list(acp_end_list(two), acp_begin_list(one), acp_end_list(one));
    CHECK(digits(two) == 1235);
    acp_splice_list(acp_begin_list(one), acp_begin_list(two));
    CHECK(digits(one) == 11235 && digits(two) == 235);
    acp_splice_range_list(acp_begin_list(one), acp_begin_list(two), acp_end_list(two));
    CHECK(digits(one) == 23511235 && acp_size_list(two) == 0);
    acp_erase_range_list(acp_begin_list(one), acp_advance_list_it(acp_begin_list(one), 4));
    CHECK(digits(one) == 1235);
    acp_assign_range_list(two, acp_begin_list(one), acp_advance_list_it(acp_begin_list(one), 2));
    acp_swap_list(one, two);
    CHECK(digits(one) == 12 && digits(two) == 1235);
    acp_pop_front_list(two);
    acp_pop_back_list(two);
    CHECK(digits(two) == 23);
    acp_clear_list(two);
    CHECK(acp_empty_list(two) == 1);
    acp_destroy_list(one);
    acp_destroy_list(two);
    acp_list_t shared = { ACP_GA_NULL };
    if (rank == 0) shared = acp_create_list(procs - 1);
    tell(shared.ga, all, 1);
    shared.ga = all[0];
    for (uint64_t n = 0; n < STEPS; n++) {
        acp_push_back_list(shared, number(n), rank);
        acp_push_front_list(shared, number(n), next);
        if (n % 4 == 0) acp_pop_front_list(shared);
    }
    acp_sync();
    CHECK(acp_size_list(shared) == (size_t)procs * (2 * STEPS - STEPS / 4));
    acp_sync();
    if (rank == 0) acp_destroy_list(shared);
    acp_sync();
}


/* The sum of the keys of a set, and their number. */
static uint64_t set_sum(acp_set_t set, int is_local, size_t *count)
{
    uint64_t sum = 0;
    acp_set_it_t it = is_local ? acp_begin_local_set(set) : acp_begin_set(set);
    acp_set_it_t end = is_local ? acp_end_local_set(set) : acp_end_set(set);
    for (*count = 0; it.elem != end.elem; it = acp_increment_set_it(it)) {
        acp_element_t key = acp_dereference_set_it(it);
        CHECK(key.size == 8 && (!is_local || acp_query_rank(key.ga) == acp_rank()));
        sum += at(key.ga);
        ++*count;
    }
    return sum;
}

static void sets(void)
{
    int rank = acp_rank(), procs = acp_procs(), ranks[64];
    uint64_t all[64];
    size_t count;
    for (int n = 0; n < procs; n++) ranks[n] = n;
    acp_set_t one = acp_create_set(procs, ranks, 5, rank), two = acp_create_set(1, &rank, 3, rank);
    CHECK(one.ga != ACP_GA_NULL && two.ga != ACP_GA_NULL && one.num_slots == 5);
    CHECK(acp_create_set(0, ranks, 5, rank).ga == ACP_GA_NULL);
    CHECK(acp_empty_set(one) == 1 && acp_begin_set(one).elem == acp_end_set(one).elem);
    CHECK(acp_empty_local_set(one) == 1);
    for (uint64_t n = 1; n <= 20; n++) CHECK(acp_insert_set(one, number(n)) == 1);
    CHECK(acp_insert_set(one, number(20)) == 0);
    CHECK(acp_size_set(one) == 20 && set_sum(one, 0, &count) == 210 && count == 20);
    uint64_t local = set_sum(one, 1, &count);
    CHECK(count == acp_size_local_set(one) && acp_empty_local_set(one) == (count == 0));
    acp_set_it_t it = acp_find_set(one, number(7));
    CHECK(at(acp_dereference_set_it(it).ga) == 7);
    CHECK(acp_find_set(one, number(70)).elem == acp_end_set(one).elem);
    acp_remove_set(one, number(7));
    CHECK(acp_size_set(one) == 19 && acp_find_set(one, number(7)).elem == ACP_GA_NULL);
    acp_insert_set(one, number(7));
    acp_assign_set(two, one);
    CHECK(acp_size_set(two) == 20 && acp_size_local_set(two) == 20);
    acp_insert_set(two, number(100));
    acp_merge_set(one, two);
    CHECK(set_sum(one, 0, &count) == 310 && acp_size_set(two) == 21);
    acp_remove_set(one, number(100));
    acp_clear_set(one);
    acp_move_set(one, two);
    CHECK(acp_empty_set(two) == 1 && set_sum(one, 0, &count) == 310);
    acp_swap_set(one, two);
    CHECK(acp_empty_set(one) == 1 && acp_size_set(two) == 21);
    acp_swap_set(one, two);
    acp_remove_set(one, number(100));
    acp_merge_local_set(two, one);
    CHECK(set_sum(two, 0, &count) == local && count == acp_size_local_set(one));
    acp_assign_local_set(two, one);
    CHECK(set_sum(two, 0, &count) == local);
    acp_clear_set(two);
    acp_move_local_set(two, one);
    CHECK(acp_empty_local_set(one) == 1 && set_sum(two, 0, &count) == local);
    acp_destroy_set(one);
    acp_destroy_set(two);
    acp_sync();
    acp_set_t shared = { 0, (uint64_t)procs, 4 };
    if (rank == 0) shared = acp_create_set(procs, ranks, 4, procs - 1);
    tell(shared.ga, all, 1);
    shared.ga = all[0];
    uint64_t first = 0;
    for (uint64_t n = 0; n < STEPS; n++) first += (uint64_t)acp_insert_set(shared, number(n));
    acp_sync();
    tell(first, all, 1);
    uint64_t firsts = 0;
    for (int n = 0; n < procs; n++) firsts += all[n];
    CHECK(firsts == STEPS && acp_size_set(shared) == STEPS);
    acp_sync();
    if (rank == 0) acp_destroy_set(shared);
    acp_sync();
}

/* The sum of the keys of a multiset, and their number. */
static uint64_t multiset_sum(acp_multiset_t set, int is_local, size_t *count)
{
    uint64_t sum = 0;
    acp_multiset_it_t it = is_local ? acp_begin_local_multiset(set) : acp_begin_multiset(set);
    acp_multiset_it_t end = is_local ? acp_end_local_multiset(set) : acp_end_multiset(set);
    for (*count = 0; it.elem != end.elem; it = acp_increment_multiset_it(it)) {
        acp_element_t key = acp_dereference_multiset_it(it);
        CHECK(key.size == 8 && (!is_local || acp_query_rank(key.ga) == acp_rank()));
        sum += at(key.ga);
        ++*count;
    }
    return sum;
}

static void multisets(void)
{
    int rank = acp_rank(), procs = acp_procs(), ranks[64];
    uint64_t all[64];
    size_t count;
    for (int n = 0; n < procs; n++) ranks[n] = n;
    acp_multiset_t one = acp_create_multiset(procs, ranks, 5, rank), two = acp_create_multiset(1, &rank, 3, rank);
    CHECK(one.ga != ACP_GA_NULL && two.ga != ACP_GA_NULL && one.num_slots == 5);
    CHECK(acp_create_multiset(0, ranks, 5, rank).ga == ACP_GA_NULL);
    CHECK(acp_empty_multiset(one) == 1 && acp_begin_multiset(one).elem == acp_end_multiset(one).elem);
    CHECK(acp_empty_local_multiset(one) == 1);
    for (uint64_t n = 1; n <= 20; n++) CHECK(acp_insert_multiset(one, number(n)) == 1);
    CHECK(acp_insert_multiset(one, number(20)) == 1);
    CHECK(acp_size_multiset(one) == 20 && multiset_sum(one, 0, &count) == 210 && count == 20);
    uint64_t local = multiset_sum(one, 1, &count);
    CHECK(count == acp_size_local_multiset(one) && acp_empty_local_multiset(one) == (count == 0));
    acp_multiset_it_t it = acp_find_multiset(one, number(7));
    CHECK(at(acp_dereference_multiset_it(it).ga) == 7);
    CHECK(acp_find_multiset(one, number(70)).elem == acp_end_multiset(one).elem);
    acp_remove_multiset(one, number(7));
    CHECK(acp_size_multiset(one) == 19 && acp_find_multiset(one, number(7)).elem == ACP_GA_NULL);
    acp_insert_multiset(one, number(7));
    acp_assign_multiset(two, one);
    CHECK(acp_size_multiset(two) == 20 && acp_size_local_multiset(two) == 20);
    acp_insert_multiset(two, number(100));
    acp_merge_multiset(one, two);
    CHECK(multiset_sum(one, 0, &count) == 310 && acp_size_multiset(two) == 21);
    acp_remove_multiset(one, number(100));
    acp_clear_multiset(one);
    acp_move_multiset(one, two);
    CHECK(acp_empty_multiset(two) == 1 && multiset_sum(one, 0, &count) == 310);
    acp_swap_multiset(one, two);
    CHECK(acp_empty_multiset(one) == 1 && acp_size_multiset(two) == 21);
    acp_swap_multiset(one, two);
    acp_remove_multiset(one, number(100));
    acp_merge_local_multiset(two, one);
    CHECK(multiset_sum(two, 0, &count) == local && count == acp_size_local_multiset(one));
    acp_assign_local_multiset(two, one);
    CHECK(multiset_sum(two, 0, &count) == local);
    acp_clear_multiset(two);
    acp_move_local_multiset(two, one);
    CHECK(acp_empty_local_multiset(one) == 1 && multiset_sum(two, 0, &count) == local);
    acp_clear_multiset(one);
    for (int n = 0; n < 3; n++) acp_insert_multiset(one, number(5));
    CHECK(acp_retrieve_multiset(one, number(5)) == 3 && acp_retrieve_multiset(one, number(6)) == 0);
    acp_remove_multiset(one, number(5));
    CHECK(acp_retrieve_multiset(one, number(5)) == 2 && acp_size_multiset(one) == 1);
    acp_remove_all_multiset(one, number(5));
    CHECK(acp_retrieve_multiset(one, number(5)) == 0 && acp_empty_multiset(one) == 1);
    acp_destroy_multiset(one);
    acp_destroy_multiset(two);
    acp_sync();
    acp_multiset_t shared = { 0, (uint64_t)procs, 4 };
    if (rank == 0) shared = acp_create_multiset(procs, ranks, 4, procs - 1);
    tell(shared.ga, all, 1);
    shared.ga = all[0];
    uint64_t first = 0;
    for (uint64_t n = 0; n < STEPS; n++) first += (uint64_t)acp_insert_multiset(shared, number(n));
    acp_sync();
    tell(first, all, 1);
    uint64_t firsts = 0;
    for (int n = 0; n < procs; n++) firsts += all[n];
    CHECK(firsts == STEPS * (uint64_t)procs && acp_size_multiset(shared) == STEPS);
    for (uint64_t n = 0; n < STEPS; n++) CHECK(acp_retrieve_multiset(shared, number(n)) == (uint64_t)procs);
    acp_sync();
    if (rank == 0) acp_destroy_multiset(shared);
    acp_sync();
}

static acp_pair_t pair(uint64_t key, uint64_t value)
{
    memcpy(bytes, &key, 8);
    memcpy(bytes + 8, &value, 8);
    return (acp_pair_t){ { bytes_ga, 8 }, { bytes_ga + 8, 8 } };
}

/* The value of a key; 0 if the map does not have the key. */
static uint64_t value_of(acp_map_t map, uint64_t key)
{
    acp_pair_t asked = { number(key), { bytes_ga + 256, 100 } };
    size_t got = acp_retrieve_map(map, asked);
    uint64_t value = 0;
    if (got == 0) return 0;
    CHECK(got == 8);
    memcpy(&value, bytes + 256, 8);
    return value;
}

static uint64_t map_sum(acp_map_t map, int is_local, size_t *count)
{
    uint64_t sum = 0;
    acp_map_it_t it = is_local ? acp_begin_local_map(map) : acp_begin_map(map);
    acp_map_it_t end = is_local ? acp_end_local_map(map) : acp_end_map(map);
    for (*count = 0; it.elem != end.elem; it = acp_increment_map_it(it)) {
        acp_pair_t found = acp_dereference_map_it(it);
        CHECK(found.first.size == 8 && found.second.size == 8);
        CHECK(!is_local || acp_query_rank(found.second.ga) == acp_rank());
        CHECK(at(found.second.ga) == 1000 + at(found.first.ga));
        sum += at(found.first.ga);
        ++*count;
    }
    return sum;
}

static void maps(void)
{
    int rank = acp_rank(), procs = acp_procs(), ranks[64];
    uint64_t all[64];
    size_t count;
    for (int n = 0; n < procs; n++) ranks[n] = n;
    acp_map_t one = acp_create_map(procs, ranks, 5, rank), two = acp_create_map(1, &rank, 3, rank);
    CHECK(one.ga != ACP_GA_NULL && acp_empty_map(one) == 1 && acp_empty_local_map(one) == 1);
    for (uint64_t n = 1; n <= 20; n++) CHECK(acp_insert_map(one, pair(n, 1000 + n)) == 1);
    CHECK(acp_insert_map(one, pair(20, 5)) == 0 && value_of(one, 20) == 1020);
    CHECK(value_of(one, 21) == 0 && acp_size_map(one) == 20);
    CHECK(map_sum(one, 0, &count) == 210 && count == 20);
    uint64_t local = map_sum(one, 1, &count);
    CHECK(count == acp_size_local_map(one));
    acp_map_it_t it = acp_find_map(one, number(7));
    CHECK(at(acp_dereference_map_it(it).second.ga) == 1007);
    CHECK(acp_find_map(one, number(70)).elem == acp_end_map(one).elem);
    acp_remove_map(one, number(7));
    CHECK(acp_size_map(one) == 19 && value_of(one, 7) == 0);
    CHECK(acp_insert_map(one, pair(7, 1007)) == 1);
    acp_assign_map(two, one);
    CHECK(acp_size_map(two) == 20 && acp_size_local_map(two) == 20);
    acp_insert_map(two, pair(100, 1100));
    acp_merge_map(one, two);
    CHECK(map_sum(one, 0, &count) == 310 && acp_size_map(two) == 21);
    acp_clear_map(one);
    acp_move_map(one, two);
    CHECK(acp_empty_map(two) == 1 && map_sum(one, 0, &count) == 310);
    acp_swap_map(one, two);
    CHECK(acp_empty_map(one) == 1 && map_sum(two, 0, &count) == 310);
    acp_swap_map(one, two);
    acp_remove_map(one, number(100));
    acp_merge_local_map(two, one);
    CHECK(map_sum(two, 0, &count) == local);
    acp_assign_local_map(two, one);
    CHECK(map_sum(two, 0, &count) == local);
    acp_clear_local_map(two);
    CHECK(acp_empty_map(two) == 1);
    acp_move_local_map(two, one);
    CHECK(acp_empty_local_map(one) == 1 && map_sum(two, 0, &count) == local);
    acp_destroy_map(one);
    acp_destroy_map(two);
    acp_sync();
    acp_map_t shared = { 0, (uint64_t)procs, 4 };
    if (rank == 0) shared = acp_create_map(procs, ranks, 4, procs - 1);
    tell(shared.ga, all, 1);
    shared.ga = all[0];
    for (uint64_t n = 1; n <= STEPS; n++) acp_insert_map(shared, pair(n, 1000 + n));
    acp_sync();
    CHECK(acp_size_map(shared) == STEPS && map_sum(shared, 0, &count) == STEPS * (STEPS + 1) / 2);
    acp_sync();
    if (rank == 0) acp_destroy_map(shared);
    acp_sync();
}

int main(int argc, char **argv)
{
    alarm(120);
    CHECK(acp_init(&argc, &argv) == 0);
    bytes_ga = acp_malloc(1024, acp_rank());
    bytes = acp_query_address(bytes_ga);
    CHECK(bytes != NULL);
    memory_comes_and_goes();
    vectors();
    deques();
    lists();
    sets();
    multisets();
    maps();
    CHECK(acp_finalize() == 0);
    return 0;
}
