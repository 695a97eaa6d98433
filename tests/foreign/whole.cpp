// The C++ header: threads, locks, errors, the memory of all ranks, groups and deques. Prints
// "all is well" at rank 0.
#include "require.hpp"

#include <stdexcept>

static void threads(const tsumugi::job &job)
{
    tsumugi::mutex mutex;
    tsumugi::condvar condvar;
    int count = 0;
    {
        std::vector<tsumugi::ult> all;
        for (int i = 0; i < 100; i++)
            all.push_back(job.spawn([&] {
                std::lock_guard<tsumugi::mutex> lock(mutex);
                count++;
                condvar.notify_all();
            }));
        std::unique_lock<tsumugi::mutex> lock(mutex);
        condvar.wait(lock, [&] { return count == 100; });
        REQUIRE(!mutex.try_lock());
    }
    // What a ULT throws comes out of the join.
    tsumugi::ult failing = job.spawn([] { throw std::runtime_error("as it should"); });
    try {
        failing.join();
        REQUIRE(!"the join returns");
    } catch (const std::runtime_error &thrown) {
        REQUIRE(std::string(thrown.what()) == "as it should");
    }
    REQUIRE(!failing.joinable());
}

static void memory(const tsumugi::job &job)
{
    auto own = job.expose<std::uint64_t>(8);
    auto all = job.gather(own.at());
    std::uint32_t next = (job.rank() + 1) % job.size();
    job.put(all[next], std::uint64_t{job.rank()});
    job.barrier();
    REQUIRE(job.get(own.at()) == (job.rank() + job.size() - 1) % job.size());
    REQUIRE(job.fetch_add(all[0] + 1, std::uint64_t{1}) < job.size());
    job.barrier();
    REQUIRE(job.get(all[0] + 1) == job.size());
    job.copy(own.at(2), all[0] + 1);
    REQUIRE(own.data()[2] == job.size());
    auto copy = job.begin_copy(own.at(4), own.at(2), 1);
    job.begin_copy(own.at(5), own.at(4), 1, copy).wait();
    copy.wait();
    REQUIRE(job.get(own.at(5)) == job.size());
    REQUIRE(job.compare_exchange(own.at(5), std::uint64_t{job.size()}, std::uint64_t{3}) ==
            job.size());
    job.barrier();
    // An error has the code of the call, and a text.
    try {
        job.get(own.at(8));
        REQUIRE(!"an access beyond the region succeeds");
    } catch (const tsumugi::error &error) {
        REQUIRE(error.code().value() == TSUMUGI_ERROR_RANGE);
        REQUIRE(error.code().category() == tsumugi::category());
        REQUIRE(std::string(error.what()).size() > 10);
    }
}

static void groups(const tsumugi::job &job)
{
    tsumugi::group world(job);
    std::uint32_t me = world.rank(), size = world.size();
    REQUIRE(me == job.rank() && size == job.size());
    world.barrier();
    REQUIRE(world.sum(me + 1.5) == size * (size - 1) / 2 + 1.5 * size);
    REQUIRE(world.min(-static_cast<int>(me)) == 1 - static_cast<int>(size));
    REQUIRE(world.max(static_cast<unsigned char>(me)) == size - 1);
    REQUIRE(world.broadcast(me * 10, size - 1) == (size - 1) * 10);
    REQUIRE(world.allgather(me * 2)[size - 1] == (size - 1) * 2);
    // A function of the program that does not commute: the value of the last member.
    tsumugi::reduction<long> last([](long, long higher) { return higher; });
    REQUIRE(world.allreduce(static_cast<long>(me), last) == size - 1);
    try {
        tsumugi::reduction<long> none(std::function<long(const long &, const long &)>{});
        REQUIRE(!"an empty function combines");
    } catch (const tsumugi::error &error) {
        REQUIRE(error.code().value() == TSUMUGI_ERROR_NULL);
    }
    // Begun, with other things in between.
    std::vector<std::uint64_t> own(3000, me), all(3000), lower(3000, 77);
    tsumugi::request first, second;
    world.allreduce(own.data(), all.data(), own.size(), {tsumugi::combine::sum}, &first);
    world.exscan(own.data(), lower.data(), own.size(), {tsumugi::combine::max}, &second);
    second.wait();
    while (!first.test()) tsumugi::yield();
    REQUIRE(all[2999] == size * (size - 1) / 2 && lower[2999] == (me == 0 ? 77 : me - 1));
    // Blocks.
    std::vector<std::size_t> counts;
    for (std::uint32_t of = 0; of < size; of++) counts.push_back(of + 1);
    std::vector<std::uint16_t> mine(me + 1, static_cast<std::uint16_t>(me)), got(200), back(me + 1);
    world.allgather(mine.data(), me + 1, got.data(), counts);
    REQUIRE(got[0] == 0 && (size == 1 || got[1] == 1));
    REQUIRE(got[size * (size + 1) / 2 - 1] == size - 1);
    world.gather(mine.data(), me + 1, got.data(), counts, 0);
    world.scatter(got.data(), counts, back.data(), me + 1, 0);
    REQUIRE(back == mine);
    std::vector<std::uint32_t> to(2 * size, me), from(2 * size);
    world.alltoall(to.data(), from.data(), 2);
    REQUIRE(from[0] == 0 && from[2 * size - 1] == size - 1);
    std::vector<std::size_t> two(size, 2);
    world.alltoall(to.data(), two, from.data(), two);
    REQUIRE(from[2 * size - 1] == size - 1);
    world.gather(&me, 1, from.data(), size - 1);
    world.scatter(from.data(), to.data(), 1, size - 1);
    REQUIRE(to[0] == me);
    world.reduce(&me, to.data(), 1, {tsumugi::combine::sum}, 0);
    REQUIRE(me != 0 || to[0] == size * (size - 1) / 2);
    world.scan(&me, to.data(), 1, {tsumugi::combine::sum});
    REQUIRE(to[0] == me * (me + 1) / 2);
    for (std::uint32_t of = 0; of < size; of++) from[of] = me + of;
    world.reduce_scatter(from.data(), to.data(), 1, {tsumugi::combine::max});
    REQUIRE(to[0] == size - 1 + me);
    world.reduce_scatter(own.data(), all.data(), counts, {tsumugi::combine::sum});
    REQUIRE(all[me] == size * (size - 1) / 2);
    auto half = world.split(me % 2);
    REQUIRE(half && half->size() == (size + 1 - me % 2) / 2 && half->translate(0) == me % 2);
    half->duplicate().barrier();
    REQUIRE(!world.split(std::nullopt));
    try {
        world.broadcast(me, size);
        REQUIRE(!"a member that does not exist has a value");
    } catch (const tsumugi::error &error) {
        REQUIRE(error.code().value() == TSUMUGI_ERROR_RANK);
    }
    world.barrier();
}

static void deques(const tsumugi::job &job)
{
    struct item {
        std::uint32_t rank;
        char name[3];
    };
    tsumugi::deque<item> deque(job, 4);
    for (char n = 0; n < 4; n++) REQUIRE(deque.push({job.rank(), {n, n, n}}));
    REQUIRE(!deque.push({job.rank(), {9, 9, 9}}) && deque.size() == 4);
    job.barrier();
    std::uint32_t next = (job.rank() + 1) % job.size();
    auto stolen = deque.steal(next);
    REQUIRE(stolen && stolen->rank == next && stolen->name[2] == 0);
    job.barrier();
    auto newest = deque.pop();
    REQUIRE(newest && newest->rank == job.rank() && newest->name[0] == 3);
    while (deque.pop()) {
    }
    job.barrier();
    REQUIRE(!deque.steal(next));
    job.barrier();
}

int main()
{
    REQUIRE(tsumugi_version() == TSUMUGI_VERSION);
    {
        tsumugi::scheduler scheduler;
        int done = 0;
        scheduler.run([&] { tsumugi::ult([&] { done = 1; }).join(); });
        REQUIRE(done == 1);
    }
    tsumugi::job job;
    threads(job);
    memory(job);
    groups(job);
    deques(job);
    if (job.rank() == 0) std::puts("all is well");
    job.end();
}
