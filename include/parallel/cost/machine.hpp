// A machine as prices see it: rates that its ranks reach, and links between them. A plain value: published, measured,
// or made up.
#pragma once
#include <stdexcept>

#include <parallel/algebra/mesh.hpp>
#include <parallel/meta/name.hpp>

namespace parallel::internals {

/// From a rank to its neighbour in a ring (Hockney's alpha and 1 / beta).
struct Link {
  double latency = 0;    ///< seconds from one rank to the next, however little is sent
  double bandwidth = 0;  ///< bytes/s that a rank sends while it receives as many
  constexpr bool operator==(const Link&) const = default;
};

inline constexpr int dtypes = 4;

/// What each rank reaches while `ranks` ranks of one host are busy: cores share memory and power.
struct Rates {
  int ranks = 1;
  double products[dtypes]{};    ///< FLOP/s of matrix products, by DType; 0: cannot multiply these
  double attention[dtypes]{};   ///< FLOP/s of attention's products, forward and backward; 0: as products
  double scores[dtypes]{};      ///< scores/s of attention, beside their products: exponentials, sums; 0: no time
  double functions[dtypes]{};   ///< elements/s of exp, gelu and their like; 0: as fast as memory
  double memory_bandwidth = 0;  ///< bytes/s that element-wise kernels read and write, of tensors larger than the caches
  /// a kernel that touches no more than this runs at `cache_bandwidth`; 0: nothing is cached between kernels
  double cache_bytes = 0;
  double cache_bandwidth = 0;  ///< bytes/s
  Link link{};                 ///< of every axis that has none of its own
  constexpr bool operator==(const Rates&) const = default;
};

inline constexpr int max_rates = 8;

struct Machine {
  struct AxisLink {
    Text<64> axis{};
    Link link{};
    constexpr bool operator==(const AxisLink&) const = default;
  };
  Text<64> name{};
  List<Rates, max_rates> rates{};    ///< by ascending `ranks`, at least one
  List<AxisLink, max_axes> links{};  ///< of axes that lie on other links, by name
  double launch = 0;                 ///< seconds that every operation takes besides its work
  /// queries that causal attention takes at a time: all see as many keys as the last of them
  int attention_block = 0;
  /// of a GPU, that each compute a tile of a product at a time; 0: products divide as finely as can be
  int processors = 0;
  /// caches read what is about to be overwritten, so that writing costs twice (most CPUs)
  bool write_allocates = false;
  /// bytes/s that the host of a rank reads and writes, which computes what is stored there; 0: it is the device
  double host_bandwidth = 0;
  bool overlaps = false;  ///< collectives run beside computation; else the ranks that wait do their work
  constexpr bool operator==(const Machine&) const = default;

  /// The rates of so many busy ranks: those of the next larger number that is described, or of the largest.
  constexpr const Rates& with(int ranks) const {
    for (const Rates& r : rates)
      if (r.ranks >= ranks) return r;
    if (rates.empty())
      throw std::invalid_argument("parallel: the machine describes no rates; give it one row at least");
    return rates[rates.size() - 1];
  }
  /// The same where so many threads compute a rank's operations together, `Cpu{.threads = 2}`: their arithmetic is
  /// priced at the rates of as many cores as are busy then, what streams from memory at those of one. Throws
  /// std::invalid_argument where the machine describes no such number of busy cores.
  constexpr Machine with_threads(int threads) const {
    Machine all = *this;
    all.rates = {};
    for (Rates r : rates) {
      if (threads < 1 || r.ranks % threads != 0) continue;
      r.ranks /= threads;
      for (double* of : {r.products, r.attention, r.scores, r.functions})
        for (int i = 0; i < dtypes; ++i) of[i] *= threads;
      all.rates.push_back(r);
    }
    if (all.rates.empty())
      throw std::invalid_argument(
          "parallel: the machine describes no rates of a multiple of so many busy cores; measure them, or take fewer "
          "threads");
    return all;
  }
  /// That between a rank and its host, if they are two: the link of the axis `host`.
  constexpr const Link* link_to_host() const {
    for (const AxisLink& l : links)
      if (l.axis.view() == axes::host.text()) return &l.link;
    return nullptr;
  }
  /// The link of a ring over all ranks of some axes: as slow as the slowest.
  constexpr Link link(const AxisList& axes, int ranks) const {
    Link slowest{};
    for (const Axis* axis : axes) {
      Link own = with(ranks).link;
      for (const AxisLink& l : links)
        if (l.axis.view() == axis->text()) own = l.link;
      if (own.latency > slowest.latency) slowest.latency = own.latency;
      if (slowest.bandwidth == 0 || own.bandwidth < slowest.bandwidth) slowest.bandwidth = own.bandwidth;
    }
    return slowest;
  }
};

}  // namespace parallel::internals

namespace parallel {
using internals::Link;
using internals::Machine;
using internals::Rates;
}  // namespace parallel
