// The C++ header, what ranks use together: signals, messages, active messages, locks of all
// ranks, windows, the global heap, arrays; also with wrong values and with objects that were
// moved from. The word on the command line is the way to start.
#include "require.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>

using namespace std::chrono_literals;

static std::uint32_t rank, size, next, before;

struct point {
    double x, y;
    std::uint32_t of;
};

static void memory(const tsumugi::job &job)
{
    auto own = job.expose<std::uint64_t>(8);
    auto all = job.gather(own.at());
    REQUIRE(job.rank_of(all[next]) == next && job.address_of(own.data() + 3) == own.at(3));
    REQUIRE(job.local(own.at(2), 2) == own.data() + 2 && job.advance(own.at(7), -5) == own.at(2));
    REQUIRE(job.rank_of(job.starter<char>(next)) == next);
    REFUSES(TSUMUGI_ERROR_RANGE, "values", job.advance(own.at(), INT64_MAX));
    REFUSES(TSUMUGI_ERROR_LENGTH, "address space", job.expose<point>(SIZE_MAX / 2));
    REFUSES(TSUMUGI_ERROR_RANGE, "8 bytes", job.get(own.at(8)));
    REFUSES(TSUMUGI_ERROR_NOWHERE, "", job.starter<char>(size));

    // Operations that were begun, one after the other.
    auto from = job.expose<std::uint64_t>(2), into = job.expose<std::uint64_t>(2);
    from.data()[0] = 10 + rank, from.data()[1] = 20 + rank;
    auto put = job.begin_put(all[next], from.data(), 2);
    auto add = job.begin_atomic(tsumugi::atomic_op::add, all[next], std::uint64_t{100}, put);
    REQUIRE(add.wait() == 10 + rank);
    job.begin_get(all[next], into.data(), 2, put).wait();
    REQUIRE(into.data()[0] == 110 + rank && into.data()[1] == 20 + rank);
    tsumugi::operation moved(std::move(put));
    moved.wait();
    REQUIRE(moved.has_ended());
    REFUSES(TSUMUGI_ERROR_NULL, "NULL", moved.wait());
    REFUSES(TSUMUGI_ERROR_NULL, "NULL", put.wait());
    job.flush();
    job.barrier();

    // Signals.
    std::uint64_t three[] = {1, 2, 3 + std::uint64_t{rank}};
    job.put_signal(all[next] + 2, three, 3, all[next] + 6, tsumugi::signal_op::add, 1);
    REQUIRE(job.wait_until(own.at(6), tsumugi::until::at_least, 1) == 1);
    REQUIRE(own.data()[4] == 3 + before);
    REQUIRE(!job.wait_until_for(own.at(6), tsumugi::until::equal, 9, 1ms));
    job.barrier();
    REQUIRE(job.signal(all[next] + 6, tsumugi::signal_op::set, 9) == 1);
    REQUIRE(*job.wait_until_for(own.at(6), tsumugi::until::equal, 9, 1h) == 9);
    REFUSES(TSUMUGI_ERROR_UNALIGNED, "",
            job.signal({own.at(0).bits + 1}, tsumugi::signal_op::set, 9));
    job.barrier();
    // A region that was moved from has no address and no memory.
    tsumugi::region<std::uint64_t> elsewhere(std::move(own));
    REQUIRE(!own.at() && own.data() == nullptr && elsewhere.at() == all[rank]);
}

static void messages(const tsumugi::job &job)
{
    tsumugi::comm comm(job), part = comm.duplicate();
    comm.send(next, 7, point{1, 2, rank});
    tsumugi::received what;
    auto got = comm.recv<point>(before, 7, &what);
    REQUIRE(got.of == before && what.source == before && what.tag == 7);
    REQUIRE(what.count<point>() == 1);

    // Any length, from memory that is copied once.
    std::vector<int, tsumugi::allocator<int>> values(5000 + rank);
    std::iota(values.begin(), values.end(), 0);
    auto sent = comm.isend(next, 8, values.data(), values.size());
    auto found = comm.probe(tsumugi::any_source, 8);
    REQUIRE(found.count<int>() == 5000 + before && comm.try_probe(before, 8));
    REQUIRE(!comm.try_probe(before, 9) && !part.try_probe());
    job.barrier();
    auto whole = comm.recv_whole<int>(before);
    REQUIRE(whole.size() == 5000 + before && whole.source() == before && whole.tag() == 8);
    int expected = 0;
    for (int value : whole) REQUIRE(value == expected++);
    REQUIRE(sent.wait().bytes == values.size() * sizeof(int) && !sent);
    auto taken = std::move(whole);
    REQUIRE(whole.size() == 0 && whole.begin() == whole.end() && taken[9] == 9);

    // Errors: too long, no whole value, another length, no such rank; the message is gone.
    std::uint32_t words[3] = {rank, 1, 2}, room[3];
    for (int n = 0; n < 3; n++) part.send(next, 1, words, 3);
    REFUSES(TSUMUGI_ERROR_TRUNCATED, "12", part.recv(room, 2, before, 1));
    REQUIRE(room[0] == before);
    REFUSES(TSUMUGI_ERROR_LENGTH, "12 bytes", part.recv_whole<std::uint64_t>(before, 1));
    REFUSES(TSUMUGI_ERROR_LENGTH, "no value of 24 bytes", part.recv<point>(before, 1));
    REFUSES(TSUMUGI_ERROR_RANK, std::to_string(size), part.send(size, 1, rank));
    REQUIRE(part.send_recv(next, 2, words, 3, before, 2, room, 3).count<std::uint32_t>() == 3);

    // Requests: all, any, one; destroyed before the message has come; cancelled.
    std::vector<tsumugi::request> requests(4);
    std::vector<std::uint32_t> into(4);
    for (std::uint32_t n = 0; n < 4; n++) requests[n] = part.irecv(&into[n], 1, before, 10 + n);
    for (std::uint32_t n = 4; n-- > 0;) part.send(next, 10 + n, n * 100 + rank);
    auto index = tsumugi::wait_any(requests, &what);
    REQUIRE(!requests[index] && what.tag == 10 + index);
    auto all = tsumugi::wait_all(requests);
    for (std::uint32_t n = 0; n < 4; n++) {
        REQUIRE(into[n] == n * 100 + before && !requests[n]);
        REQUIRE(n == index || (all[n].tag == 10 + n && all[n].bytes == 4));
    }
    REFUSES(TSUMUGI_ERROR_NULL, "", tsumugi::wait_any(requests));
    REQUIRE(tsumugi::wait_all(requests).size() == 4);
    {
        std::uint32_t never;
        auto unmatched = part.irecv(&never, 1, before, 99);
        auto elsewhere = std::move(unmatched);
        REFUSES(TSUMUGI_ERROR_NULL, "request", unmatched.wait());
        elsewhere = part.irecv(&never, 1, before, 98);
        elsewhere.cancel();
        REFUSES(TSUMUGI_ERROR_CANCELLED, "cancelled", elsewhere.wait());
        elsewhere = part.irecv(&never, 1, before, 97);
    }
    job.barrier();
    tsumugi::comm moved(std::move(part));
    REFUSES(TSUMUGI_ERROR_NULL, "comm", part.send(next, 1, rank));
    REQUIRE(!moved.try_probe());
}

static void functions(const tsumugi::job &job)
{
    auto alive = std::make_shared<int>(0);
    std::atomic<std::uint32_t> counted{0};
    tsumugi::remote<double(point)> length(job, 1, [alive](const point &at) {
        if (at.x < 0) throw std::domain_error("no length");
        return at.x * at.x + at.y * at.y + at.of;
    });
    tsumugi::remote<void(std::uint32_t)> count(
        job, 2, [&counted](std::uint32_t from, std::uint32_t by) { counted += by + from * 0; });
    tsumugi::remote<point()> where(
        job, 3,
        [](std::uint32_t from) {
            tsumugi::sleep_for(1ms);
            return point{0.5, 1.5, from};
        },
        tsumugi::runs::on_ult);
    job.barrier();
    REQUIRE(length(next, {3, 4, rank}) == 25 + rank);
    REQUIRE(where(next).of == rank);
    count(next, 5);
    for (int n = 0; n < 10; n++) count.cast(next, 1);
    while (counted != 15) tsumugi::yield();
    REQUIRE(alive.use_count() == 2);
    // What the function throws is a failure of the call; other types are, too.
    REFUSES(TSUMUGI_ERROR_FAILED, "", length(next, {-1, 0, 0}));
    REFUSES(TSUMUGI_ERROR_FAILED, "", tsumugi::remote<double(char)>(job, 1)(next, 'a'));
    REFUSES(TSUMUGI_ERROR_TRUNCATED, "24 bytes", tsumugi::remote<double()>(job, 3)(next));
    REFUSES(TSUMUGI_ERROR_LENGTH, "8 bytes, not 24",
            tsumugi::remote<point(point)>(job, 1)(next, point{3, 4, rank}));
    REFUSES(TSUMUGI_ERROR_HANDLER, "44", tsumugi::remote<void()>(job, 44)(next));
    // Bytes of any length.
    job.handle(
        5,
        [](std::uint32_t, const void *bytes, std::size_t length, void *answer) {
            auto last = std::min<std::size_t>(length, TSUMUGI_ANSWER_BYTES_MAX);
            std::memcpy(answer, static_cast<const char *>(bytes) + length - last, last);
            return last;
        },
        tsumugi::runs::at_once);
    job.barrier();
    std::string text(1000, 'a'), answer(TSUMUGI_ANSWER_BYTES_MAX, ' ');
    text += "end";
    REQUIRE(job.call(next, 5, text.data(), text.size(), &answer[0], answer.size()) == 224);
    REQUIRE(answer.substr(221) == "end");
    REQUIRE(*job.call_for(1h, next, 5, "abc", 3, &answer[0], answer.size()) == 3);
    job.cast(next, 5, "abc", 3);
    job.barrier();
}

static void locks(const tsumugi::job &job)
{
    tsumugi::rank_lock lock(job, size - 1), alone(job, 0, tsumugi::preference::mutex);
    auto own = job.expose<std::uint64_t>(1);
    auto count = job.gather(own.at())[0];
    for (int n = 0; n < 20; n++) {
        std::lock_guard<tsumugi::rank_lock> held(lock);
        job.put(count, job.get(count) + 1);
    }
    job.barrier();
    {
        std::shared_lock<tsumugi::rank_lock> reads(lock);
        REQUIRE(job.get(count) == 20 * size);
        REQUIRE(!lock.try_lock());
        std::shared_lock<tsumugi::rank_lock> too(lock, 1h);
        REQUIRE(too.owns_lock());
        job.barrier();
        REQUIRE(!lock.try_lock_for(1ms));
    }
    job.barrier();
    if (rank == 0) {
        std::unique_lock<tsumugi::rank_lock> held(alone, 1h);
        REQUIRE(held && !alone.try_lock_shared() && !alone.try_lock_shared_for(1ms));
        try {
            std::lock_guard<tsumugi::rank_lock> other(lock);
            throw std::runtime_error("with two locks");
        } catch (const std::runtime_error &) {
        }
        REQUIRE(lock.try_lock());
        lock.unlock();
    }
    REFUSES(TSUMUGI_ERROR_RANK, std::to_string(size), tsumugi::rank_lock(job, size));
    job.barrier();
    tsumugi::rank_lock moved(std::move(lock));
    REFUSES(TSUMUGI_ERROR_NULL, "lock", lock.lock());
    job.barrier();
}

static void windows(const tsumugi::job &job)
{
    tsumugi::window<std::uint64_t> window(job, 16);
    REQUIRE(window.size() == 16 && window.data()[15] == 0);
    std::uint64_t pair[] = {rank, rank + 1};
    window.put(next, 2, pair, 2);
    window.fence();
    REQUIRE(window.data()[2] == before && window.get(rank, 3) == before + 1);
    REQUIRE(window.fetch_add(next, 4, 5) == 0 && window.exchange(next, 4, 7) == 5);
    REQUIRE(window.atomic(tsumugi::atomic_op::bit_or, next, 4, 8) == 7);
    REQUIRE(window.compare_exchange(next, 4, 15, 1) == 15);
    window.put(next, 5, 55);
    window.flush(next);
    window.flush();
    job.barrier();
    REQUIRE(window.data()[5] == 55);

    // Locks.
    for (int n = 0; n < 10; n++) {
        auto hold = window.lock(0);
        window.put(0, 6, window.get(0, 6) + 1);
        if (n % 2 == 0) hold.release();
    }
    job.barrier();
    {
        auto all = window.lock_all();
        REQUIRE(window.get(0, 6) == 10 * size);
        REFUSES(TSUMUGI_ERROR_HELD, "", all.lock(0));
        auto moved = std::move(all);
        REQUIRE(!all && moved);
        REFUSES(TSUMUGI_ERROR_NULL, "hold", all.release());
    }
    job.barrier();
    {
        auto first = window.lock(0, tsumugi::sharing::shared);
        if (size > 1) first.lock(1, tsumugi::sharing::shared).release();
        auto second = window.unchecked();
        try {
            auto third = window.lock(size - 1, tsumugi::sharing::shared);
            throw std::runtime_error("with a hold");
        } catch (const std::runtime_error &) {
        }
    }
    job.barrier();

    // Epochs: this rank's memory is open to the one before.
    {
        auto exposure = window.post({before});
        {
            auto epoch = window.start({next});
            window.put(next, 8, 80 + rank);
        }
        exposure.wait();
        REQUIRE(window.data()[8] == 80 + before);
        exposure = window.post({before});
        auto epoch = window.start({next});
        window.put(next, 9, 90 + rank);
        epoch.complete();
        REQUIRE(!epoch);
        while (!exposure.test()) tsumugi::yield();
        REQUIRE(window.data()[9] == 90 + before);
    }
    REFUSES(TSUMUGI_ERROR_RANGE, "", window.put(next, 16, 1));
    REFUSES(TSUMUGI_ERROR_LENGTH, "address space", window.put(next, SIZE_MAX / 4, 1));
    REFUSES(TSUMUGI_ERROR_RANK, std::to_string(size), window.get(size, 0));
    REFUSES(TSUMUGI_ERROR_RANK, std::to_string(size), window.lock(size));
    job.barrier();
    tsumugi::window<std::uint64_t> moved(std::move(window));
    REQUIRE(window.size() == 0 && moved.size() == 16);
    REFUSES(TSUMUGI_ERROR_NULL, "window", window.fence());
    job.barrier();
}

static void heaps(const tsumugi::job &job)
{
    tsumugi::heap heap(job, 1 << 20);
    auto block = heap.allocate_zeroed<std::uint64_t>(next, 100);
    REQUIRE(block.size() == 100 && job.rank_of(block.at(99)) == next);
    REQUIRE(job.fetch_add(block.at(99), std::uint64_t{rank}) == 0);
    // One rank allocates, another one frees.
    auto released = block.release();
    REQUIRE(!block && !block.at() && block.size() == 0);
    auto all = job.gather(released);
    auto adopted = heap.adopt(all[before], 100);
    REQUIRE(job.get(adopted.at(99)) == before);
    auto other = heap.allocate<point>(next);
    auto moved = std::move(other);
    REQUIRE(!other && moved);
    moved = heap.allocate<point>(next);
    auto kept = moved.release();
    heap.free(kept);
    REFUSES(TSUMUGI_ERROR_VALUE, "", heap.free(kept));
    REFUSES(TSUMUGI_ERROR_LENGTH, "", heap.allocate<char>(0, 1 << 20));
    REFUSES(TSUMUGI_ERROR_RANK, std::to_string(size), heap.allocate<char>(size));
    job.barrier();
}

static void arrays(const tsumugi::job &job)
{
    constexpr std::size_t len = 3000;
    tsumugi::array_options options;
    options.page_len = 64;
    tsumugi::array<std::uint64_t> array(job, len, options);
    REQUIRE(array.size() == len);
    array.put(rank * 1000, 5 + std::uint64_t{rank});
    std::uint64_t some[3] = {1, 2, 3}, got[3];
    array.put(rank * 1000 + 1, some, 3);
    job.barrier();
    array.get(next * 1000, got, 3);
    REQUIRE(got[0] == 5 + next && got[2] == 2 && array.get(next * 1000 + 3) == 3);
    std::vector<std::size_t> indices = {next * std::size_t{1000} + 3, next * std::size_t{1000}};
    REQUIRE((array.gather(indices) == std::vector<std::uint64_t>{3, 5 + std::uint64_t{next}}));
    job.barrier();
    array.scatter(indices.data(), 2, some);
    job.barrier();
    REQUIRE(array.get(rank * 1000 + 3) == 1 && array.get(rank * 1000) == 2);
    array.fetch_add(2999, rank + 1);
    REQUIRE(array.exchange(rank, 1) <= 2 && array.compare_exchange(rank, 1, 0) == 1);
    REQUIRE(array.atomic(tsumugi::atomic_op::bit_or, rank, 6) == 0);
    job.barrier();
    REQUIRE(array.get(2999) == size * (size + 1) / 2);
    job.barrier();

    // Each element belongs to one rank; each rank fills its own.
    std::size_t count = 0;
    for (auto part : array.owned()) {
        REQUIRE(array.owner(part.index) == rank);
        count += part.count;
    }
    for (auto part : array.owned(100)) REQUIRE(part.count <= 100);
    REQUIRE(tsumugi::group(job).sum(count) == len);
    array.for_each_owned([](std::size_t index, std::uint64_t &value) { value = index * 2; });
    array.fence();
    std::uint64_t sum = 0;
    array.for_each_owned([&](std::size_t, const std::uint64_t &value) { sum += value; });
    REQUIRE(tsumugi::group(job).sum(sum) == len * (len - 1));
    REQUIRE(tsumugi::group(job).sum(array.own(rank * 1000, 1000 / size)) < 50);
    REQUIRE(array.owner(rank * 1000) == rank || size > 1);
    array.return_home();

    // Loans.
    std::size_t begin = len / size * rank;
    {
        auto lent = array.overwrite({begin, 100});
        std::fill(lent.begin(), lent.end(), rank);
        REFUSES(TSUMUGI_ERROR_HELD, "checked out", array.read({begin, 1}));
        auto moved = std::move(lent);
        REQUIRE(!lent && lent.size() == 0 && lent.begin() == lent.end() && moved[99] == rank);
        REFUSES(TSUMUGI_ERROR_NULL, "checkout", lent.checkin());
    }
    try {
        auto lent = array.update({begin, 1});
        lent[0] += 1000;
        throw std::runtime_error("with a loan");
    } catch (const std::runtime_error &) {
    }
    array.fence();
    auto lent = array.read({len / size * next, 100});
    static_assert(std::is_same_v<decltype(lent[0]), const std::uint64_t &>, "to read");
    REQUIRE(lent[0] == 1000 + next && lent[99] == next && lent.size() == 100);
    lent.checkin();
    array.release();
    array.acquire();
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", array.get(len));
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", array.read({len, 1}));
    REFUSES(TSUMUGI_ERROR_VALUE, "", tsumugi::array<char>(job, 0));
    job.barrier();
    tsumugi::array<std::uint64_t> moved(std::move(array));
    REQUIRE(array.size() == 0 && array.owned().empty() && moved.get(begin) == 1000 + rank);
    REFUSES(TSUMUGI_ERROR_NULL, "array", array.get(0));
    job.barrier();
}

static void play(const tsumugi::job &job)
{
    rank = job.rank(), size = job.size();
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    memory(job);
    messages(job);
    functions(job);
    locks(job);
    windows(job);
    heaps(job);
    arrays(job);
    // A ULT that sleeps for other ranks in a `catch` block.
    job.spawn([&] {
        try {
            throw rank;
        } catch (std::uint32_t thrown) {
            job.barrier();
            REQUIRE(thrown == rank);
        }
    }).join();
    if (rank == 0) std::puts("all is well");
}

int main(int count, char **words)
{
    std::string way = count > 1 ? words[1] : "start";
    if (way == "start") {
        tsumugi::job job;
        tsumugi::job moved(std::move(job));
        REQUIRE(job.size() == 0);
        REFUSES(TSUMUGI_ERROR_NULL, "NULL", job.barrier());
        REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi::comm{job});
        play(moved);
        moved.end();
        return 0;
    }
    // What main throws comes out of `run` when the ranks have ended.
    try {
        std::uint32_t of = tsumugi::run([&](const tsumugi::job &job) {
            play(job);
            if (way == "throw") throw std::runtime_error("rank " + std::to_string(rank));
            return job.size();
        });
        REQUIRE(way == "run" && of == size);
    } catch (const std::runtime_error &thrown) {
        REQUIRE(way == "throw" && thrown.what() == "rank " + std::to_string(rank));
    }
}
