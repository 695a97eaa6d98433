// Groups of ranks and their collectives.
#ifndef TSUMUGI_GROUP_HPP
#define TSUMUGI_GROUP_HPP

#include <tsumugi/job.hpp>
#include <tsumugi/request.hpp>

#include <functional>

namespace tsumugi {

// The operations of the library; those on bits are for integers.
enum class combine : std::uint32_t {
    sum = TSUMUGI_SUM,
    prod = TSUMUGI_PROD,
    min = TSUMUGI_MIN,
    max = TSUMUGI_MAX,
    bit_and = TSUMUGI_AND,
    bit_or = TSUMUGI_OR,
    bit_xor = TSUMUGI_XOR
};

// How values of T are combined: by an operation of the library, or by a function of the
// program, which is associative. An exception that leaves the function ends the process.
template <class T> class reduction {
    static_assert(detail::is_plain<T>, "collectives move bytes");

public:
    reduction(combine what) : what_(what)
    {
        static_assert(std::is_arithmetic_v<T>, "other types have operations of the program");
    }
    // `commutes`: values may be combined in any order. An empty function is an error.
    explicit reduction(std::function<T(const T &lower, const T &higher)> function,
                       bool commutes = false)
        : function_(std::move(function)), commutes_(commutes)
    {
        if (!function_) throw error(TSUMUGI_ERROR_NULL, "function is empty");
    }

private:
    friend class group;
    struct tsumugi_reduction raw() const noexcept
    {
        struct tsumugi_reduction by = {};
        by.size = sizeof by;
        if (function_) {
            by.function = run;
            by.context = const_cast<void *>(static_cast<const void *>(&function_));
            by.element_bytes = sizeof(T);
            by.flags = commutes_ ? TSUMUGI_COMMUTES : 0;
        } else {
            by.what = static_cast<std::uint32_t>(what_);
            by.element = element();
        }
        return by;
    }
    static void run(void *context, const void *left, const void *right, void *into,
                    std::size_t count) noexcept
    {
        auto &function = *static_cast<const std::function<T(const T &, const T &)> *>(context);
        auto *lower = static_cast<const T *>(left), *higher = static_cast<const T *>(right);
        for (std::size_t n = 0; n < count; n++)
            static_cast<T *>(into)[n] = function(lower[n], higher[n]);
    }
    static constexpr std::uint32_t element() noexcept
    {
        if constexpr (std::is_floating_point_v<T>)
            return sizeof(T) == 8 ? TSUMUGI_F64 : TSUMUGI_F32;
        else if constexpr (sizeof(T) == 8)
            return std::is_signed_v<T> ? TSUMUGI_I64 : TSUMUGI_U64;
        else if constexpr (sizeof(T) == 4)
            return std::is_signed_v<T> ? TSUMUGI_I32 : TSUMUGI_U32;
        else if constexpr (sizeof(T) == 2)
            return std::is_signed_v<T> ? TSUMUGI_I16 : TSUMUGI_U16;
        else
            return std::is_signed_v<T> ? TSUMUGI_I8 : TSUMUGI_U8;
    }
    static_assert(!std::is_floating_point_v<T> || sizeof(T) <= 8, "there is no such float");

    std::function<T(const T &, const T &)> function_;
    combine what_ = combine::sum;
    bool commutes_ = true;
};

// Some ranks of a job, in an order. All members call the same collectives in the same
// order. A collective with a `begun` is begun there and goes on; without, it blocks.
class group {
public:
    // All ranks.
    explicit group(const job &of)
    {
        struct tsumugi_group *made = nullptr;
        check(tsumugi_group_world(of.get(), &made));
        group_.reset(made);
    }

    // The group of the members with the same color, in the order of their keys; none for a
    // member without a color. Collective.
    std::optional<group> split(std::optional<std::uint32_t> color, std::int64_t key = 0) const
    {
        struct tsumugi_group *made = nullptr;
        check(detail::sleeping(tsumugi_group_split, get(),
                               color ? std::int64_t{*color} : TSUMUGI_NO_COLOR, key, &made));
        if (made == nullptr) return std::nullopt;
        return group(made);
    }
    // A group of the same members. Collective.
    group duplicate() const
    {
        struct tsumugi_group *made = nullptr;
        check(detail::sleeping(tsumugi_group_duplicate, get(), &made));
        return group(made);
    }
    std::uint32_t rank() const noexcept { return tsumugi_group_rank(get()); }
    std::uint32_t size() const noexcept { return tsumugi_group_size(get()); }
    // The rank of a member in the job.
    std::uint32_t translate(std::uint32_t member) const
    {
        std::uint32_t rank;
        check(tsumugi_group_translate(get(), member, &rank));
        return rank;
    }

    void barrier(request *begun = nullptr) const
    {
        collect(tsumugi_group_barrier, begun);
    }
    template <class T>
    void broadcast(T *data, std::size_t count, std::uint32_t root, request *begun = nullptr) const
    {
        plain<T>();
        collect(tsumugi_group_broadcast, begun, data, count * sizeof(T), root);
    }
    // The value of the member `root`.
    template <class T> T broadcast(T value, std::uint32_t root) const
    {
        broadcast(&value, 1, root);
        return value;
    }

    // Combinations, value by value; `from` may be `into`.
    template <class T>
    void reduce(const T *from, T *into, std::size_t count, const reduction<T> &by,
                std::uint32_t root, request *begun = nullptr) const
    {
        auto raw = by.raw();
        collect(tsumugi_group_reduce, begun, from, into, count, &raw, root);
    }
    template <class T>
    void allreduce(const T *from, T *into, std::size_t count, const reduction<T> &by,
                   request *begun = nullptr) const
    {
        auto raw = by.raw();
        collect(tsumugi_group_allreduce, begun, from, into, count, &raw);
    }
    template <class T> T allreduce(T value, const reduction<T> &by) const
    {
        allreduce(&value, &value, 1, by);
        return value;
    }
    template <class T> T allreduce(T value, combine what) const
    {
        return allreduce(value, reduction<T>(what));
    }
    template <class T> T sum(T value) const { return allreduce(value, combine::sum); }
    template <class T> T min(T value) const { return allreduce(value, combine::min); }
    template <class T> T max(T value) const { return allreduce(value, combine::max); }
    // Of the lower members and this one.
    template <class T>
    void scan(const T *from, T *into, std::size_t count, const reduction<T> &by,
              request *begun = nullptr) const
    {
        auto raw = by.raw();
        collect(tsumugi_group_scan, begun, from, into, count, &raw);
    }
    // Of the lower members; the first one's `into` stays as it is.
    template <class T>
    void exscan(const T *from, T *into, std::size_t count, const reduction<T> &by,
                request *begun = nullptr) const
    {
        auto raw = by.raw();
        collect(tsumugi_group_exscan, begun, from, into, count, &raw);
    }
    // A block of `count` values of the combination for each member.
    template <class T>
    void reduce_scatter(const T *from, T *into, std::size_t count, const reduction<T> &by,
                        request *begun = nullptr) const
    {
        auto raw = by.raw();
        collect(tsumugi_group_reduce_scatter, begun, from, into, count, &raw);
    }
    template <class T>
    void reduce_scatter(const T *from, T *into, const std::vector<std::size_t> &counts,
                        const reduction<T> &by, request *begun = nullptr) const
    {
        auto raw = by.raw();
        collect(tsumugi_group_reduce_scatter_v, begun, from, into, counts_of(counts), &raw);
    }

    // Blocks of `count` values, one of each member, or one for each.
    template <class T>
    void gather(const T *from, std::size_t count, T *into, std::uint32_t root,
                request *begun = nullptr) const
    {
        plain<T>();
        collect(tsumugi_group_gather, begun, from, count * sizeof(T), into, root);
    }
    template <class T>
    void scatter(const T *from, T *into, std::size_t count, std::uint32_t root,
                 request *begun = nullptr) const
    {
        plain<T>();
        collect(tsumugi_group_scatter, begun, from, into, count * sizeof(T), root);
    }
    template <class T>
    void allgather(const T *from, std::size_t count, T *into, request *begun = nullptr) const
    {
        plain<T>();
        collect(tsumugi_group_allgather, begun, from, count * sizeof(T), into);
    }
    template <class T> std::vector<T> allgather(const T &value) const
    {
        std::vector<T> all(size());
        allgather(&value, 1, all.data());
        return all;
    }
    template <class T>
    void alltoall(const T *from, T *into, std::size_t count, request *begun = nullptr) const
    {
        plain<T>();
        collect(tsumugi_group_alltoall, begun, from, into, count * sizeof(T));
    }

    // Blocks of different lengths, which follow each other; `counts` has a number of values
    // for each member. Of a gather and a scatter, the root alone gives `counts`.
    template <class T>
    void gather(const T *from, std::size_t count, T *into, const std::vector<std::size_t> &counts,
                std::uint32_t root, request *begun = nullptr) const
    {
        plain<T>();
        auto lens = lens_of<T>(counts, rank() == root);
        collect(tsumugi_group_gather_v, begun, from, count * sizeof(T), into, lens.data(),
                nullptr, root);
    }
    template <class T>
    void scatter(const T *from, const std::vector<std::size_t> &counts, T *into, std::size_t count,
                 std::uint32_t root, request *begun = nullptr) const
    {
        plain<T>();
        auto lens = lens_of<T>(counts, rank() == root);
        collect(tsumugi_group_scatter_v, begun, from, lens.data(), nullptr, into,
                count * sizeof(T), root);
    }
    template <class T>
    void allgather(const T *from, std::size_t count, T *into,
                   const std::vector<std::size_t> &counts, request *begun = nullptr) const
    {
        plain<T>();
        auto lens = lens_of<T>(counts, true);
        collect(tsumugi_group_allgather_v, begun, from, count * sizeof(T), into, lens.data());
    }
    template <class T>
    void alltoall(const T *from, const std::vector<std::size_t> &from_counts, T *into,
                  const std::vector<std::size_t> &into_counts, request *begun = nullptr) const
    {
        plain<T>();
        auto sent = lens_of<T>(from_counts, true), received = lens_of<T>(into_counts, true);
        collect(tsumugi_group_alltoall_v, begun, from, sent.data(), nullptr, into,
                received.data(), nullptr);
    }
    struct tsumugi_group *get() const noexcept { return group_.get(); }

private:
    explicit group(struct tsumugi_group *made) noexcept : group_(made) {}
    static void end(struct tsumugi_group *made) noexcept
    {
        detail::ignore(tsumugi_group_close(made));
    }
    // Begins a collective, or waits for it.
    template <class Collective, class... A>
    void collect(Collective *function, request *begun, A... arguments) const
    {
        struct tsumugi_request **place = begun == nullptr ? nullptr : begun->place();
        check(detail::sleeping(function, get(), arguments..., place));
    }
    template <class T> static constexpr void plain() noexcept
    {
        static_assert(detail::is_plain<T>, "collectives move bytes");
    }
    const std::size_t *counts_of(const std::vector<std::size_t> &counts) const
    {
        if (counts.size() != size())
            throw error(TSUMUGI_ERROR_LENGTH, std::to_string(counts.size()) + " counts for " +
                                                  std::to_string(size()) + " members");
        return counts.data();
    }
    template <class T>
    std::vector<std::size_t> lens_of(const std::vector<std::size_t> &counts, bool is_used) const
    {
        if (!is_used) return {};
        counts_of(counts);
        std::vector<std::size_t> lens(counts);
        for (std::size_t &len : lens) len *= sizeof(T);
        return lens;
    }
    detail::owned<struct tsumugi_group, end> group_;
};

} // namespace tsumugi

#endif
