// Memory with a global address: the address, the region it lies in, operations on it that
// go on by themselves.
#ifndef TSUMUGI_ADDRESS_HPP
#define TSUMUGI_ADDRESS_HPP

#include <tsumugi/error.hpp>

namespace tsumugi {

class job;

// The address of a T in the memory of any rank; a plain value, which may be sent.
template <class T> struct address {
    static_assert(detail::is_plain<T>, "remote memory holds bytes");
    tsumugi_addr bits = TSUMUGI_ADDR_NULL;

    explicit operator bool() const noexcept { return bits != TSUMUGI_ADDR_NULL; }
    // The address `count` values further; the access checks that it is in the region.
    address operator+(std::ptrdiff_t count) const noexcept
    {
        return {bits + static_cast<tsumugi_addr>(count) * sizeof(T)};
    }
    friend bool operator==(address a, address b) noexcept { return a.bits == b.bits; }
    friend bool operator!=(address a, address b) noexcept { return a.bits != b.bits; }
    friend bool operator<(address a, address b) noexcept { return a.bits < b.bits; }
};

// Memory of this rank with a global address, which ends with this.
template <class T> class region {
public:
    region() noexcept = default;
    region(region &&other) noexcept
        : job_(other.job_), region_(std::exchange(other.region_, nullptr))
    {
    }
    region &operator=(region &&other) noexcept
    {
        region ended(std::move(other));
        std::swap(job_, ended.job_);
        std::swap(region_, ended.region_);
        return *this;
    }
    ~region()
    {
        if (region_ != nullptr)
            detail::must(detail::sleeping(tsumugi_unregister, job_, region_));
    }

    // The address of a value; no address if this owns nothing.
    address<T> at(std::size_t index = 0) const noexcept
    {
        if (region_ == nullptr) return {};
        return {tsumugi_region_addr(region_) + index * sizeof(T)};
    }
    // The memory itself, which other ranks may change at any time.
    T *data() const noexcept { return static_cast<T *>(tsumugi_region_memory(region_)); }
    struct tsumugi_region *get() const noexcept { return region_; }

private:
    friend class job;
    region(const struct tsumugi_job *job, struct tsumugi_region *made) noexcept
        : job_(job), region_(made)
    {
    }
    const struct tsumugi_job *job_ = nullptr;
    struct tsumugi_region *region_ = nullptr;
};

// An operation that was begun. It goes on without its handle if that ends first.
class operation {
public:
    operation() noexcept = default;

    bool has_ended() const noexcept { return tsumugi_operation_test(operation_.get()); }
    // Waits until the operation has ended; the old value of an atomic, else 0. Blocks.
    std::uint64_t wait()
    {
        std::uint64_t old = 0;
        detail::check_access(
            detail::sleeping(tsumugi_operation_wait, operation_.release(), &old));
        return old;
    }
    struct tsumugi_operation *get() const noexcept { return operation_.get(); }

private:
    friend class job;
    static void end(struct tsumugi_operation *made) noexcept { tsumugi_operation_let_go(made); }
    explicit operation(struct tsumugi_operation *made) noexcept : operation_(made) {}
    detail::owned<struct tsumugi_operation, end> operation_;
};

// How a signal changes its word.
enum class signal_op : int { set = TSUMUGI_SIGNAL_SET, add = TSUMUGI_SIGNAL_ADD };

// When a wait for a word ends. `at_least` is for a count that wraps.
enum class until : int {
    equal = TSUMUGI_UNTIL_EQUAL,
    not_equal = TSUMUGI_UNTIL_NOT_EQUAL,
    at_least = TSUMUGI_UNTIL_AT_LEAST,
    any_bit = TSUMUGI_UNTIL_ANY_BIT
};

// Who carries out the atomics of a region.
enum class agent : int { cpu = TSUMUGI_AGENT_CPU, device = TSUMUGI_AGENT_DEVICE };

} // namespace tsumugi

#endif
