// One collective, or one end of a message, as a communicator is asked for it, and what it remembers of having been
// asked.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include <parallel/algebra/transition.hpp>
#include <parallel/communicator/failure.hpp>
#include <parallel/meta/here.hpp>

namespace parallel::internals {

/// `count` is the elements of the full message, the tensor that the ranks have or get together:
///
///     kind            in                    out                   n = 2: each rank before |-> after
///     all_reduce      count                 count                 [a] [b]      |-> [a+b] [a+b]
///     reduce_scatter  count, n blocks       count / n             [a;c] [b;d]  |-> [a+b] [c+d]
///     all_gather      count / n             count, n blocks       [a] [b]      |-> [a;b] [a;b]
///     all_to_all      count / n, n blocks   count / n, n blocks   [a;b] [c;d]  |-> [a;c] [b;d]
///     rotate          count / n             count / n             [a] [b]      |-> [b] [a], from the rank before,
///                                                                              in a ring
///     broadcast       count at the root     count                 [a] []       |-> [a] [a]
///     reduce          count                 count at the root     [a] [b]      |-> [a+b] []
///     gather          count / n             at the root: count    [a] [b]      |-> [a;b] []
///     scatter         at the root: count    count / n             [a;b] []     |-> [a] [b]
///     send            count                                       [a] []       |-> [a] [a], to rank `peer`,
///     receive                               count                                   where it is received from rank `peer`
///
/// in == out is allowed for all_reduce, broadcast and reduce; otherwise the buffers are disjoint.
struct Exchange {
  Collective kind = Collective::all_reduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
  bool maximum = false;  ///< the maximum of the ranks' terms instead of their sum
  int root = 0;
  const char* label = "";  ///< for sentences; it outlives the exchange
  int peer = -1;           ///< of a send or a receive
  Here from{};             ///< the line on which this was written; of a plan's, that of the user's program
};

/// A started exchange: `wait` takes it once.
struct Ticket {
  std::uint64_t number = 0;
  int channel = -1;         ///< of a send or a receive, which are numbered apart from the group's collectives
  std::uint64_t order = 0;  ///< its number among all exchanges of the rank, in its History; 0: it has none
};

/// Collectives of a group that may be outstanding, and sends to a rank, and receives from it.
inline constexpr int max_outstanding = 512, max_messages = 64;
inline constexpr std::chrono::milliseconds default_deadline{30'000};

/// What a communicator was asked to do.
struct Record {
  Collective kind = Collective::all_reduce;
  std::int64_t bytes = 0;  ///< of the full message
  DType dtype = DType::f32;
  int ranks = 1;  ///< of the group
  bool maximum = false;
  bool operator==(const Record&) const = default;
};
inline Record record_of(const Exchange& e, int ranks) {
  return {e.kind, e.count * bytes_of(e.dtype), e.dtype, ranks, e.maximum};
}

/// Between two ranks of the group, not all.
constexpr bool point_to_point(Collective c) { return c == Collective::send || c == Collective::receive; }
/// A rank's end of its channel to or from a peer.
constexpr int channel_of(const Exchange& e) { return 2 * e.peer + (e.kind == Collective::receive ? 1 : 0); }

/// Elements of a block: what a rank has of the message, and in an all-to-all what it has for one other.
constexpr std::int64_t block_of(const Exchange& e, int ranks) {
  const std::int64_t part = e.count / ranks;
  return e.kind == Collective::all_to_all ? part / ranks : part;
}
/// Elements of a rank's own `in` and `out`; 0 where the buffer is not used.
constexpr std::int64_t elements_in(const Exchange& e, int rank, int ranks) {
  if (e.kind == Collective::all_gather || e.kind == Collective::all_to_all || e.kind == Collective::rotate ||
      e.kind == Collective::gather)
    return e.count / ranks;
  if (e.kind == Collective::receive) return 0;
  return from_root(e.kind) && rank != e.root ? 0 : e.count;
}
constexpr std::int64_t elements_out(const Exchange& e, int rank, int ranks) {
  if (e.kind == Collective::reduce_scatter || e.kind == Collective::all_to_all || e.kind == Collective::rotate ||
      e.kind == Collective::scatter)
    return e.count / ranks;
  if (e.kind == Collective::send) return 0;
  return to_root(e.kind) && rank != e.root ? 0 : e.count;
}

/// What all ranks of a collective must say alike.
struct Common {
  std::int64_t count = 0;
  int root = 0;
  Collective kind = Collective::all_reduce;
  DType dtype = DType::f32;
  bool maximum = false;
  bool operator==(const Common&) const = default;
};
constexpr Common common(const Exchange& e) { return {e.count, e.root, e.kind, e.dtype, e.maximum}; }

/// `all_reduce of 1024 f32 (mlp.up)`
inline std::string text(const Exchange& e) {
  std::string words(name_of(e.kind));
  if (e.maximum) words += " (maximum)";
  words += " of " + std::to_string(e.count) + " " + std::string(name_of(e.dtype));
  if (rooted(e.kind)) words += (from_root(e.kind) ? " from rank " : " to rank ") + std::to_string(e.root);
  if (point_to_point(e.kind))
    words += (e.kind == Collective::send ? " to rank " : " from rank ") + std::to_string(e.peer);
  if (e.label != nullptr && *e.label != '\0') words += " (" + std::string(e.label) + ")";
  return words;
}

/// The same with its line: `all_reduce of 1024 f32 (mlp.up) of mlp.cpp:25`
inline std::string text_with_line(const Exchange& e) {
  const std::string file(e.from.file);
  return text(e) + " of " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(e.from.line);
}

[[noreturn]] inline void refuse(const Exchange& e, const char* why) {
  throw ExchangeRefused("parallel::start: " + text(e) + ": " + why);
}

/// Throws ExchangeRefused where no communicator could carry out the exchange.
inline void check(const Exchange& e, int rank, int ranks) {
  const bool in_blocks = e.kind == Collective::all_gather || e.kind == Collective::all_to_all ||
                         e.kind == Collective::reduce_scatter || e.kind == Collective::rotate ||
                         e.kind == Collective::gather || e.kind == Collective::scatter;
  if (!in_blocks && !rooted(e.kind) && !point_to_point(e.kind) && e.kind != Collective::all_reduce)
    refuse(e,
           "no communicator carries this out; exchange by all_reduce, reduce_scatter, all_gather, all_to_all, rotate, "
           "broadcast, reduce, gather, scatter, send or receive");
  if (point_to_point(e.kind) && (e.peer < 0 || e.peer >= ranks))
    refuse(e, "the peer is no rank of the group; count its ranks from 0");
  if (point_to_point(e.kind) && e.peer == rank)
    refuse(e, "the peer is this rank itself; send to another, and copy what stays");
  if (e.count < 0) refuse(e, "the count is negative; give the elements of the full message");
  const std::int64_t blocks = e.kind == Collective::all_to_all ? std::int64_t{ranks} * ranks : ranks;
  if (in_blocks && e.count % blocks != 0)
    refuse(e, blocks == ranks
                  ? "the ranks of the group do not divide the count; give the elements of the full message"
                  : "the square of the group's ranks does not divide the count; give the elements of the full "
                    "message, of which each rank has a block for each");
  if (rooted(e.kind) && (e.root < 0 || e.root >= ranks))
    refuse(e, "the root is no rank of the group; count its ranks from 0");
  const std::int64_t in = elements_in(e, rank, ranks) * bytes_of(e.dtype),
                     out = elements_out(e, rank, ranks) * bytes_of(e.dtype);
  if ((in > 0 && e.in == nullptr) || (out > 0 && e.out == nullptr)) refuse(e, "a buffer is missing; give in and out");
  if (in == 0 || out == 0) return;
  if (e.in == e.out && !in_blocks) return;
  const auto *from = static_cast<const char*>(e.in), *to = static_cast<const char*>(e.out);
  const std::less<> before;
  if (before(from, to + out) && before(to, from + in))
    refuse(e, "in and out overlap; only all_reduce, broadcast and reduce may be in place");
}

}  // namespace parallel::internals

namespace parallel {
using internals::Exchange;
using internals::Record;
using internals::text;
using internals::Ticket;
}  // namespace parallel
