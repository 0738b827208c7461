// What every communicator must compute: each collective against its definition, for the tests of all backends.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <parallel/communicator/communicator.hpp>

namespace cases {

using namespace parallel;
using namespace parallel::internals;

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Values whose sums depend on the order of the terms, i32 that overflow, and a NaN now and then.
template <class T>
T term(int rank, std::int64_t i, bool with_nan = false) {
  std::uint64_t h = (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u +
                    static_cast<std::uint64_t>(i) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 29)) * 0x94d049bb133111ebu;
  h ^= h >> 32;
  if constexpr (Half<T>) {
    return T(term<float>(rank, i, with_nan));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (with_nan && h % 11 == 0) return std::numeric_limits<T>::quiet_NaN();
    // Sign and fraction as they come, the exponent one of 24: from bits, as large messages ask for hundreds of millions
    // of terms.
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr int fraction = std::numeric_limits<T>::digits - 1, bias = std::numeric_limits<T>::max_exponent - 1;
    const auto exponent = static_cast<Bits>(bias - 12 + static_cast<int>(h >> 53) % 24);
    const auto sign_and_fraction = static_cast<Bits>(h) & ~(static_cast<Bits>(2 * bias + 1) << fraction);
    return std::bit_cast<T>(sign_and_fraction | exponent << fraction);
  } else {
    return static_cast<T>(h);
  }
}

template <class T>
T combined(T a, T b, bool maximum) {
  if (maximum) {
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    return a < b ? b : a;
  }
  if constexpr (std::is_same_v<T, int>)
    return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
  else
    return static_cast<T>(a + b);
}

/// The terms of all ranks in rank order, one after the other; of halves in float, rounded once.
template <class T>
T reduced(int ranks, std::int64_t i, bool maximum) {
  using Wide = std::conditional_t<Half<T>, float, T>;
  const auto wide = [&](int r) { return static_cast<Wide>(term<T>(r, i, maximum)); };
  Wide result = wide(0);
  for (int r = 1; r < ranks; ++r) result = combined(result, wide(r), maximum);
  return static_cast<T>(result);
}

/// Element i of what a rank gives, and of what it must get.
template <class T>
T given(const Exchange& e, int rank, std::int64_t i) {
  return term<T>(rank, i, e.maximum);
}
template <class T>
T expected(const Exchange& e, int rank, int ranks, std::int64_t i) {
  const std::int64_t block = e.kind == Collective::all_to_all ? e.count / ranks / ranks : e.count / ranks;
  switch (e.kind) {
    case Collective::all_reduce:
    case Collective::reduce: return reduced<T>(ranks, i, e.maximum);
    case Collective::reduce_scatter: return reduced<T>(ranks, rank * block + i, e.maximum);
    case Collective::scatter: return given<T>(e, e.root, rank * block + i);
    case Collective::gather:
    case Collective::all_gather: return given<T>(e, static_cast<int>(i / block), i % block);
    case Collective::rotate: return given<T>(e, (rank + ranks - 1) % ranks, i);
    case Collective::all_to_all: return given<T>(e, static_cast<int>(i / block), rank * block + i % block);
    default: return given<T>(e, e.root, i);
  }
}

/// Whether sums are taken in rank order, and a maximum is NaN where a term is (law 2); a backend that keeps it not is
/// held to the bounds of rounding, and to the maximum of the numbers.
inline thread_local bool rank_order = true;

/// Whether it is a sum of the terms in some order, or their maximum but for NaN.
template <class T>
bool any_order(T got, int ranks, std::int64_t i, bool maximum) {
  if constexpr (Half<T>) {
    float most = static_cast<float>(term<T>(0, i, maximum)), sum = 0, sizes = 0;
    for (int r = 0; r < ranks; ++r) {
      const auto t = static_cast<float>(term<T>(r, i, maximum));
      most = std::fmax(most, t);
      sum += t;
      sizes += std::abs(t);
    }
    if (maximum) return static_cast<float>(got) == most || (std::isnan(static_cast<float>(got)) && std::isnan(most));
    const float last_bit = std::is_same_v<T, bfloat16> ? 0x1p-7F : 0x1p-10F;
    return std::abs(static_cast<float>(got) - sum) <= 2 * static_cast<float>(ranks) * last_bit * sizes;
  } else if constexpr (std::is_floating_point_v<T>) {
    T most = term<T>(0, i, maximum), sum = 0, sizes = 0;
    for (int r = 0; r < ranks; ++r) {
      const T t = term<T>(r, i, maximum);
      most = std::fmax(most, t);
      sum += t;
      sizes += std::abs(t);
    }
    if (maximum) return std::memcmp(&got, &most, sizeof(T)) == 0 || (std::isnan(got) && std::isnan(most));
    return std::abs(got - sum) <= 2 * static_cast<T>(ranks) * std::numeric_limits<T>::epsilon() * sizes;
  } else {
    return got == reduced<T>(ranks, i, maximum);
  }
}

template <class T>
bool same_bits(const T& a, const T& b) {
  if constexpr (Half<T>)
    if (std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b))) return true;
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) && std::isnan(b)) return true;
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// One exchange with buffers of its own: made, started, waited for and judged by the test.
template <class T>
class Case {
 public:
  Case(Collective kind, std::int64_t count, DType dtype, bool maximum, int root, bool in_place, int rank, int ranks,
       std::int64_t skew = 0)
      : rank_(rank), ranks_(ranks), skew_(skew) {
    exchange = {kind, nullptr, nullptr, count, dtype, maximum, root, "a case"};
    const std::int64_t in = elements_in(exchange, rank, ranks), out = elements_out(exchange, rank, ranks);
    in_.resize(index(in));
    out_.resize(index(out + 2 * guard + skew), canary());
    for (std::int64_t i = 0; i < in; ++i) in_[index(i)] = given<T>(exchange, rank, i);
    if (in_place && out > 0) std::copy(in_.begin(), in_.end(), result());
    exchange.in = in_place && out > 0 ? result() : in_.data();
    exchange.out = result();
  }

  /// What is wrong; empty if nothing.
  std::string wrong() const {
    const std::int64_t out = elements_out(exchange, rank_, ranks_), total = static_cast<std::int64_t>(out_.size());
    for (std::int64_t i = 0; i < total; ++i) {
      const std::int64_t at = i - guard - skew_;
      const T want = at >= 0 && at < out ? expected<T>(exchange, rank_, ranks_, at) : canary();
      const std::int64_t first = exchange.kind == Collective::reduce_scatter ? rank_ * out : 0;
      if (!rank_order && reduces(exchange.kind) && at >= 0 && at < out &&
          any_order(out_[index(i)], ranks_, first + at, exchange.maximum))
        continue;
      if (!same_bits(out_[index(i)], want)) return what() + ": element " + std::to_string(at) + " of the result";
    }
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(in_.size()); ++i)
      if (!same_bits(in_[index(i)], given<T>(exchange, rank_, i)))
        return what() + ": element " + std::to_string(i) + " of the input was changed";
    return "";
  }
  std::string what() const {
    return text(exchange) + (exchange.in == exchange.out ? ", in place" : "") + ", rank " + std::to_string(rank_) +
           " of " + std::to_string(ranks_);
  }

  Exchange exchange;

 private:
  static constexpr std::int64_t guard = 16;
  static T canary() { return static_cast<T>(77); }
  T* result() { return out_.data() + guard + skew_; }

  int rank_, ranks_;
  std::int64_t skew_;
  std::vector<T> in_, out_;
};

inline constexpr Collective kinds[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                       Collective::all_to_all, Collective::rotate,         Collective::broadcast,
                                       Collective::reduce,     Collective::gather,         Collective::scatter};

/// Every collective of an element type for many counts, roots, in place or not. Returns what was wrong first.
template <class T, class C>
std::string every_collective(C& c, DType dtype) {
  const int n = c.size();
  std::string wrong;
  for (const Collective kind : kinds) {
    const bool may_be_in_place =
        kind == Collective::all_reduce || kind == Collective::broadcast || kind == Collective::reduce;
    const bool blocks = !may_be_in_place;
    const bool rooted = kind == Collective::broadcast || kind == Collective::reduce || kind == Collective::gather ||
                        kind == Collective::scatter;
    for (std::int64_t count :
         {0, 1, n, n * n, 7 * n, 7 * n * n, 7 * n + 1, 129, 1000 * n, 100 * n * n, 1000 * n + 13}) {
      if (blocks && count % (kind == Collective::all_to_all ? n * n : n) != 0) continue;
      for (const bool maximum : {false, true}) {
        if (maximum && !reduces(kind)) continue;
        for (const bool in_place : {false, true}) {
          if (in_place && blocks) continue;
          for (int root = 0; root < (rooted ? n : 1); ++root) {
            Case<T> one(kind, count, dtype, maximum, root, in_place, c.rank(), n, count % 3);
            exchange(c, one.exchange);
            if (wrong.empty()) wrong = one.wrong();
          }
        }
      }
    }
  }
  return wrong;
}

/// All element types.
template <class C>
std::string every_collective(C& c) {
  for (const std::string& wrong : {every_collective<float>(c, DType::f32), every_collective<double>(c, DType::f64),
                                   every_collective<int>(c, DType::i32), every_collective<bfloat16>(c, DType::bf16),
                                   every_collective<float16>(c, DType::f16)})
    if (!wrong.empty()) return wrong;
  return "";
}

/// So many messages of each kind on a group of its own, together of at least eight pieces that are tried both ways; and
/// of kinds with a root, which are written as was settled before.
template <class C>
std::string both_ways(C& c, int times) {
  std::string wrong;
  const int n = c.size();
  for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                Collective::all_to_all, Collective::rotate}) {
    C group = c.split(0, c.rank());
    for (const Collective rooted :
         {Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter}) {
      Case<float> one(rooted, (std::int64_t{80} << 10) * n, DType::f32, false, n - 1, false, c.rank(), n);
      exchange(group, one.exchange);
      if (wrong.empty()) wrong = one.wrong();
    }
    for (int i = 0; i < times; ++i) {
      const std::int64_t count = ((std::int64_t{265} << 10) / n / n + i) * n * n;
      Case<float> one(kind, count, DType::f32, false, 0, false, c.rank(), n);
      exchange(group, one.exchange);
      if (wrong.empty()) wrong = one.wrong();
    }
  }
  return wrong;
}

/// As many exchanges at a time as there are places, waited for in an order that is the same on every rank and not that of the starts.
template <class C>
std::string overlapping(C& c, int rounds) {
  const int n = c.size();
  std::string wrong;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Case<float>> all;
    for (int i = 0; i < max_outstanding; ++i)
      all.emplace_back(kinds[index((i + round) % static_cast<int>(std::size(kinds)))], n * n * (i % 8 * 19 + 1),
                       DType::f32, false, i % n, false, c.rank(), n);
    std::vector<Ticket> tickets;
    for (const auto& one : all) tickets.push_back(c.start(one.exchange));
    for (int i = 0; i < max_outstanding; ++i) {
      const std::size_t k = index((i * 5 + round) % max_outstanding);
      c.wait(tickets[k]);
      if (wrong.empty()) wrong = all[k].wrong();
    }
  }
  return wrong;
}

/// Ranks that agree on the order of starts and on that of waits, but not on how these alternate.
template <class C>
std::string alternating(C& c) {
  std::string wrong;
  for (int round = 0; round < 20; ++round) {
    Case<float> a(Collective::all_reduce, 101, DType::f32, false, 0, false, c.rank(), c.size());
    Case<float> b(Collective::all_reduce, 77, DType::f32, false, 0, true, c.rank(), c.size());
    if (c.rank() % 2 == 0) {
      const Ticket first = c.start(a.exchange), second = c.start(b.exchange);
      c.wait(first);
      c.wait(second);
    } else {
      c.wait(c.start(a.exchange));
      c.wait(c.start(b.exchange));
    }
    for (const auto& one : {a.wrong(), b.wrong()})
      if (wrong.empty()) wrong = one;
  }
  return wrong;
}

/// The groups of every set of axes of a mesh: their ranks, their order, and that they do not disturb each other.
template <class C>
std::string groups_of(C& world, const Mesh& mesh) {
  for (int set = 0; set < (1 << mesh.count); ++set) {
    AxisList axes;
    for (int i = 0; i < mesh.count; ++i)
      if ((set >> i & 1) != 0) axes.push_back(mesh.axes[i].axis);
    std::vector<int> members;  // those that differ from this rank on these axes only, in the order of the mesh
    for (int r = 0; r < mesh.ranks(); ++r) {
      bool member = true;
      for (int i = 0; i < mesh.count; ++i)
        member = member && ((set >> i & 1) != 0 ||
                            mesh.coordinate(r, mesh.axes[i].axis) == mesh.coordinate(world.rank(), mesh.axes[i].axis));
      if (member) members.push_back(r);
    }
    C mine = group(world, mesh, axes);
    const std::string name = "group " + std::to_string(set) + ": ";
    if (mine.size() != static_cast<int>(members.size())) return name + "its size";
    if (mine.rank() != mesh.coordinate(world.rank(), axes)) return name + "the rank";
    if (members[index(mine.rank())] != world.rank()) return name + "the order";
    const int here = world.rank();
    std::vector<int> got(members.size());
    exchange(mine, {Collective::all_gather, &here, got.data(), mine.size(), DType::i32});
    if (got != members) return name + "its members";
    if (const auto wrong = overlapping(mine, 2); !wrong.empty()) return name + wrong;
  }
  return "";
}

/// Exchanges that no communicator carries out, each with the words that say why.
template <class C>
std::string refusals(C& c) {
  float a[max_outstanding]{}, b[max_outstanding]{};
  const int n = c.size();
  struct Refused {
    Exchange exchange;
    const char* words;
  };
  std::vector<Refused> all = {
      {{Collective::drop, a, b, 4}, "no communicator carries this out"},
      {{Collective::slice, a, b, 4}, "no communicator carries this out"},
      {{Collective::all_reduce, a, b, -1}, "negative"},
      {{Collective::broadcast, a, b, 4, DType::f32, false, n}, "the root is no rank"},
      {{Collective::reduce, a, b, 4, DType::f32, false, -1}, "the root is no rank"},
      {{Collective::gather, a, b, 4 * n, DType::f32, false, n}, "the root is no rank"},
      {{Collective::scatter, a, b, 4 * n, DType::f32, false, -1}, "the root is no rank"},
      {{Collective::all_reduce, nullptr, b, 4}, "a buffer is missing"},
      {{Collective::all_gather, a, nullptr, 4 * n}, "a buffer is missing"},
      {{Collective::all_reduce, a, a + 1, 4}, "overlap"},
      {{Collective::all_to_all, a, a, n * n}, "overlap"},
      {{Collective::all_gather, a, a, n}, "overlap"},
      {{Collective::rotate, a, a, n}, "overlap"},
      {{Collective::gather, a, a, n, DType::f32, false, c.rank()}, "overlap"},
      {{Collective::scatter, a, a, n, DType::f32, false, c.rank()}, "overlap"},
  };
  if (n > 1) {
    for (const Collective kind : {Collective::all_gather, Collective::reduce_scatter, Collective::rotate,
                                  Collective::gather, Collective::scatter})
      all.push_back({{kind, a, b, n + 1, DType::f32}, "do not divide the count"});
    all.push_back(
        {{Collective::all_to_all, a, b, n, DType::f32}, "the square of the group's ranks does not divide the count"});
  }
  for (const Refused& one : all) {
    try {
      c.start(one.exchange);
      return text(one.exchange) + " was accepted";
    } catch (const ExchangeRefused& error) {
      if (std::string(error.what()).find(one.words) == std::string::npos) return error.what();
    }
  }
  const Exchange fine{Collective::all_reduce, a, b, 1};
  std::vector<Ticket> tickets;
  for (int i = 0; i < max_outstanding; ++i) tickets.push_back(c.start({Collective::all_reduce, a + i, b + i, 1}));
  try {
    c.start(fine);
    return "one exchange too many was accepted";
  } catch (const ExchangeRefused&) {
  }
  for (const Ticket t : tickets) c.wait(t);
  for (const Ticket t : {tickets[3], Ticket{tickets[15].number + 1}}) {
    try {
      c.wait(t);
      return "a ticket was taken twice";
    } catch (const Failure&) {
    }
  }
  return "";
}

/// What `record` must have noted of a list of exchanges; both lists are written by hand.
template <class C>
std::string records(C& c) {
  const int n = c.size();
  std::vector<double> a(index(32 * n)), b(index(32 * n));
  std::vector<Record> noted;
  noted.reserve(16);
  exchange(c, {Collective::all_reduce, a.data(), b.data(), 3});
  c.record(&noted);
  exchange(c, {Collective::all_reduce, a.data(), b.data(), 5});
  exchange(c, {Collective::all_reduce, a.data(), b.data(), 7, DType::f64, true});
  exchange(c, {Collective::reduce_scatter, a.data(), b.data(), 2 * n, DType::i32});
  exchange(c, {Collective::all_gather, a.data(), b.data(), 3 * n, DType::bf16});
  exchange(c, {Collective::all_to_all, a.data(), b.data(), 4 * n * n, DType::f32});
  exchange(c, {Collective::broadcast, a.data(), b.data(), 9, DType::f64});
  exchange(c, {Collective::reduce, a.data(), b.data(), 11, DType::f32});
  exchange(c, {Collective::gather, a.data(), b.data(), 3 * n, DType::f16});
  exchange(c, {Collective::scatter, a.data(), b.data(), 2 * n, DType::f64});
  exchange(c, {Collective::rotate, a.data(), b.data(), 5 * n, DType::f32});
  c.record(nullptr);
  exchange(c, {Collective::all_reduce, a.data(), b.data(), 3});
  const std::vector<Record> wanted = {
      {Collective::all_reduce, 20, DType::f32, n, false},
      {Collective::all_reduce, 56, DType::f64, n, true},
      {Collective::reduce_scatter, 8 * n, DType::i32, n, false},
      {Collective::all_gather, 6 * n, DType::bf16, n, false},
      {Collective::all_to_all, 16 * n * n, DType::f32, n, false},
      {Collective::broadcast, 72, DType::f64, n, false},
      {Collective::reduce, 44, DType::f32, n, false},
      {Collective::gather, 6 * n, DType::f16, n, false},
      {Collective::scatter, 16 * n, DType::f64, n, false},
      {Collective::rotate, 20 * n, DType::f32, n, false},
  };
  if (noted.size() != wanted.size()) return std::to_string(noted.size()) + " records";
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!(noted[i] == wanted[i])) return "record " + std::to_string(i);
  return "";
}

}  // namespace cases
