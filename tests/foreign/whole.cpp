// The C++ header: threads, locks, errors and the memory of all ranks, on two or more
// ranks. Prints "all is well" at rank 0.
#include <tsumugi.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#define REQUIRE(what)                                                       \
    do {                                                                    \
        if (!(what)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            std::abort();                                                   \
        }                                                                   \
    } while (0)

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
    if (job.rank() == 0) std::puts("all is well");
    job.end();
}
