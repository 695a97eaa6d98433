// The global heap: memory of any rank, which any rank allocates and frees.
#ifndef TSUMUGI_HEAP_HPP
#define TSUMUGI_HEAP_HPP

#include <tsumugi/job.hpp>

namespace tsumugi {

class heap;

// Values in the memory of a rank, which are freed with this. The heap outlives it.
template <class T> class allocation {
public:
    allocation() noexcept = default;
    allocation(allocation &&other) noexcept { swap(other); }
    allocation &operator=(allocation &&other) noexcept
    {
        allocation ended(std::move(other));
        swap(ended);
        return *this;
    }
    ~allocation()
    {
        if (at_) detail::ignore(detail::sleeping(tsumugi_heap_free, heap_, at_.bits));
    }

    // The address of a value; no address if this owns nothing.
    address<T> at(std::size_t index = 0) const noexcept { return at_ ? at_ + index : at_; }
    std::size_t size() const noexcept { return count_; }
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }
    // The address of values that another rank is to free, by `heap::free`.
    address<T> release() noexcept
    {
        count_ = 0;
        return std::exchange(at_, {});
    }
    void swap(allocation &other) noexcept
    {
        std::swap(heap_, other.heap_);
        std::swap(at_, other.at_);
        std::swap(count_, other.count_);
    }

private:
    friend class heap;
    allocation(const struct tsumugi_heap *of, address<T> at, std::size_t count) noexcept
        : heap_(of), at_(at), count_(count)
    {
    }
    const struct tsumugi_heap *heap_ = nullptr;
    address<T> at_;
    std::size_t count_ = 0;
};

// A heap on every rank. The program of a rank takes no part when another one allocates of
// its memory.
class heap {
public:
    // With `bytes` bytes on every rank. Collective.
    heap(const job &of, std::uint64_t bytes)
    {
        struct tsumugi_heap *made = nullptr;
        check(detail::sleeping(tsumugi_heap_create, of.get(), bytes, &made));
        heap_.reset(made);
    }

    // `count` values of the memory of `rank`, with any values at first.
    template <class T> allocation<T> allocate(std::uint32_t rank, std::size_t count = 1) const
    {
        address<T> at;
        check(detail::sleeping(tsumugi_heap_malloc, get(), rank, detail::bytes_of<T>(count),
                               &at.bits));
        return allocation<T>(get(), at, count);
    }
    // The same, with zeroes.
    template <class T>
    allocation<T> allocate_zeroed(std::uint32_t rank, std::size_t count = 1) const
    {
        address<T> at;
        check(detail::sleeping(tsumugi_heap_calloc, get(), rank, count, sizeof(T), &at.bits));
        return allocation<T>(get(), at, count);
    }
    // Owns values whose address another rank has released.
    template <class T> allocation<T> adopt(address<T> at, std::size_t count = 1) const noexcept
    {
        return allocation<T>(get(), at, count);
    }
    // Frees values that any rank has allocated and released.
    template <class T> void free(address<T> at) const
    {
        check(detail::sleeping(tsumugi_heap_free, get(), at.bits));
    }
    struct tsumugi_heap *get() const noexcept { return heap_.get(); }

private:
    static void end(struct tsumugi_heap *made) noexcept
    {
        detail::ignore(detail::sleeping(tsumugi_heap_destroy, made));
    }
    detail::owned<struct tsumugi_heap, end> heap_;
};

} // namespace tsumugi

#endif
