// Arrays over all ranks, with pages that move to the rank that uses them.
#ifndef TSUMUGI_ARRAY_HPP
#define TSUMUGI_ARRAY_HPP

#include <tsumugi/job.hpp>

#include <algorithm>
#include <vector>

namespace tsumugi {

// Which rank has which page at first, and how ranks find pages.
enum class distribution : std::uint32_t {
    block = TSUMUGI_ARRAY_BLOCK,
    cyclic = TSUMUGI_ARRAY_CYCLIC
};
enum class directory : std::uint32_t {
    atomics = TSUMUGI_ARRAY_ATOMICS,
    device = TSUMUGI_ARRAY_DEVICE,
    messages = TSUMUGI_ARRAY_MESSAGES
};

// The shape of an array; zero in a number is its default.
struct array_options {
    // Elements in a page: as many as fit in 4 KiB.
    std::size_t page_len = 0;
    // Bytes of the copies that a rank keeps for checkouts: 16 MiB.
    std::size_t cached_bytes = 0;
    // Pages of which a rank knows the owners: 1,024.
    std::uint32_t known = 0;
    // Pages that a rank can own at a time: all.
    std::uint32_t room = 0;
    distribution first = distribution::block;
    tsumugi::directory directory = tsumugi::directory::atomics;
};

// `count` elements from `index` on.
struct element_range {
    std::size_t index;
    std::size_t count;
};

// Elements that are lent to this rank until this ends: of a const T to read, else to write.
// It belongs to no thread. The array may end before it.
template <class T> class checkout {
public:
    checkout() noexcept = default;
    checkout(checkout &&other) noexcept { swap(other); }
    checkout &operator=(checkout &&other) noexcept
    {
        checkout ended(std::move(other));
        swap(ended);
        return *this;
    }

    // Gives the elements back, as the destructor does.
    void checkin()
    {
        data_ = nullptr;
        count_ = 0;
        check(detail::sleeping(tsumugi_checkin, lent_.release()));
    }
    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return count_; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + count_; }
    T &operator[](std::size_t index) const noexcept { return data_[index]; }
    explicit operator bool() const noexcept { return lent_ != nullptr; }
    struct tsumugi_checkout *get() const noexcept { return lent_.get(); }
    void swap(checkout &other) noexcept
    {
        std::swap(lent_, other.lent_);
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
    }

private:
    template <class U> friend class array;
    checkout(struct tsumugi_checkout *lent, T *data, std::size_t count) noexcept
        : lent_(lent), data_(data), count_(count)
    {
    }
    static void give_back(struct tsumugi_checkout *lent) noexcept
    {
        detail::ignore(detail::sleeping(tsumugi_checkin, lent));
    }
    detail::owned<struct tsumugi_checkout, give_back> lent_;
    T *data_ = nullptr;
    std::size_t count_ = 0;
};

// An array of values of T, zero at first, over all ranks. An access to one element of 1, 2,
// 4 or 8 bytes is linearizable, whichever rank owns its page. Any thread may use it.
template <class T> class array {
public:
    // With `count` elements. Collective, with the same options.
    array(const job &of, std::size_t count, const array_options &options = {})
        : job_(of.get()), count_(count), page_len_(options.page_len)
    {
        detail::bytes_of<T>(count);
        if (page_len_ == 0) page_len_ = std::max<std::size_t>(page_bytes / sizeof(T), 1);
        struct tsumugi_array_options shape = {};
        shape.size = sizeof shape;
        shape.len = count;
        shape.element_bytes = sizeof(T);
        shape.page_len = page_len_;
        shape.cached_bytes = options.cached_bytes;
        shape.known = options.known;
        shape.room = options.room;
        shape.first = static_cast<std::uint32_t>(options.first);
        shape.directory = static_cast<std::uint32_t>(options.directory);
        struct tsumugi_array *made = nullptr;
        check(detail::sleeping(tsumugi_array_create, of.get(), &shape, &made));
        array_.reset(made);
    }

    std::size_t size() const noexcept { return array_ == nullptr ? 0 : count_; }

    T get(std::size_t index) const
    {
        T value;
        get(index, &value, 1);
        return value;
    }
    void get(std::size_t index, T *into, std::size_t count) const
    {
        check(detail::sleeping(tsumugi_array_get, get(), index, into, count));
    }
    void put(std::size_t index, const T &value) const { put(index, &value, 1); }
    void put(std::size_t index, const T *from, std::size_t count) const
    {
        check(detail::sleeping(tsumugi_array_put, get(), index, from, count));
    }
    // The elements of a list of indices, in any order; `into` and `from` have as many.
    void gather(const std::size_t *indices, std::size_t count, T *into) const
    {
        check(detail::sleeping(tsumugi_array_gather, get(), indices, count, into));
    }
    void scatter(const std::size_t *indices, std::size_t count, const T *from) const
    {
        check(detail::sleeping(tsumugi_array_scatter, get(), indices, count, from));
    }
    std::vector<T> gather(const std::vector<std::size_t> &indices) const
    {
        std::vector<T> values(indices.size());
        gather(indices.data(), indices.size(), values.data());
        return values;
    }

    // The atomics return the old value.
    T fetch_add(std::size_t index, T value) const { return atomic(atomic_op::add, index, value); }
    T exchange(std::size_t index, T value) const { return atomic(atomic_op::swap, index, value); }
    T atomic(atomic_op what, std::size_t index, T operand) const
    {
        auto by = [&](auto function) {
            return [this, function, what, index, operand](auto *old) {
                check(detail::sleeping(function, get(), static_cast<int>(what), index,
                                       detail::bits_of(operand), old));
            };
        };
        return detail::atomic<T>(by(tsumugi_array_atomic4), by(tsumugi_array_atomic8));
    }
    T compare_exchange(std::size_t index, T expected, T desired) const
    {
        auto by = [&](auto function) {
            return [this, function, index, expected, desired](auto *old) {
                check(detail::sleeping(function, get(), index, detail::bits_of(expected),
                                       detail::bits_of(desired), old));
            };
        };
        return detail::atomic<T>(by(tsumugi_array_compare_swap4),
                                 by(tsumugi_array_compare_swap8));
    }

    // Brings the pages of elements to this rank; returns how many have moved. Blocks.
    std::size_t own(std::size_t index, std::size_t count) const
    {
        std::size_t moved = 0;
        check(detail::sleeping(tsumugi_array_own, get(), index, count, &moved));
        return moved;
    }
    // The rank that has the page of an element, which may move at any time. Blocks.
    std::uint32_t owner(std::size_t index) const
    {
        std::uint32_t rank;
        check(detail::sleeping(tsumugi_array_owner, get(), index, &rank));
        return rank;
    }
    // The elements on pages of this rank, in order, as the directory says page by page. In a
    // range there are up to `most` elements (at least those of a page). Blocks.
    std::vector<element_range> owned(std::size_t most = SIZE_MAX) const
    {
        std::vector<element_range> all;
        std::uint32_t self = tsumugi_rank(job_);
        for (std::size_t index = 0; index < size(); index += page_len_) {
            if (owner(index) != self) continue;
            std::size_t count = std::min(page_len_, size() - index);
            if (!all.empty() && all.back().index + all.back().count == index &&
                all.back().count + count <= most)
                all.back().count += count;
            else
                all.push_back({index, count});
        }
        return all;
    }
    // Runs `function(index, element)` for all elements on pages of this rank: of a
    // `const T &` it reads them, and with a `T &` it may change them. The pages should not
    // move meanwhile: elements of a page that leaves are still visited. Blocks.
    template <class F> void for_each_owned(F &&function) const
    {
        constexpr bool reads = std::is_invocable_v<F &, std::size_t, const T &>;
        for (element_range part : owned(std::max<std::size_t>(lent_bytes / sizeof(T), 1))) {
            auto lent = [&] {
                if constexpr (reads)
                    return read(part);
                else
                    return update(part);
            }();
            for (std::size_t n = 0; n < lent.size(); n++) function(part.index + n, lent[n]);
            lent.checkin();
        }
    }
    // Brings every page back to the rank that had it at first. Collective.
    void return_home() const { check(detail::sleeping(tsumugi_array_return_home, get())); }

    // Lends elements as plain memory: to read; to write all of them, without their old
    // values; to read and write. At one rank an element is lent to one writer or to any
    // number of readers. What was written is in the array after the next release. Blocks.
    checkout<const T> read(element_range part) const
    {
        return lend<const T>(part, TSUMUGI_CHECKOUT_READ);
    }
    checkout<T> overwrite(element_range part) const
    {
        return lend<T>(part, TSUMUGI_CHECKOUT_WRITE);
    }
    checkout<T> update(element_range part) const
    {
        return lend<T>(part, TSUMUGI_CHECKOUT_READ_WRITE);
    }
    // Writes back what was lent to write and given back. Blocks.
    void release() const { check(detail::sleeping(tsumugi_array_release, get())); }
    // Later loans see what other ranks have released before.
    void acquire() const { check(detail::sleeping(tsumugi_array_acquire, get())); }
    // A release by every rank, and then an acquire by every rank. Collective.
    void fence() const { check(detail::sleeping(tsumugi_array_fence, get())); }
    struct tsumugi_array *get() const noexcept { return array_.get(); }

private:
    // The page of an array by default, and what a loan of `for_each_owned` has at most.
    static constexpr std::size_t page_bytes = 4096, lent_bytes = 65536;

    template <class U> checkout<U> lend(element_range part, int mode) const
    {
        void *elements = nullptr;
        struct tsumugi_checkout *made = nullptr;
        check(detail::sleeping(tsumugi_array_checkout, get(), part.index, part.count, mode,
                               &elements, &made));
        return checkout<U>(made, static_cast<U *>(elements), part.count);
    }
    static void end(struct tsumugi_array *made) noexcept
    {
        detail::ignore(tsumugi_array_destroy(made));
    }
    detail::owned<struct tsumugi_array, end> array_;
    const struct tsumugi_job *job_;
    std::size_t count_, page_len_;
};

} // namespace tsumugi

#endif
