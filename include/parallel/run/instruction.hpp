// One event of a plan, with everything that can be known of it before the first step.
#pragma once
#include <utility>
#include <vector>

#include <parallel/communicator/exchange.hpp>
#include <parallel/device/split.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel {

/// A view whose address follows a loop.
struct Following {
  View* view;
  const Storage* storage;
  std::int64_t chunk = 0;  ///< bytes from one chunk of a stage's layers to the next
};
/// How slices along an inner dimension are brought together: [outer][n][inner] <-> [n][outer][inner].
struct Packing {
  std::int64_t outer = 1, n = 1, inner = 1;
  bool needed() const { return outer > 1 && n > 1; }
};
/// What a fused operation does behind its first part, where the device has no kernel for both.
struct Joined {
  const operation::Fusion* fusion;
  Kernel kernel;
  void* context;  ///< of its call
};
/// One event of a plan on one rank. `Group`: what its collectives are started on.
template <class Group>
struct Instruction {
  EventKind kind = EventKind::compute;
  int node = 0;
  Kernel kernel = nullptr;
  std::vector<Joined> joined{};  // the parts that run behind the kernel
  Call call{};
  // its own and those of the instructions behind it, if they are computed at once
  std::vector<Call> together{};
  std::vector<Following> following{};
  bool updates = false;
  bool crossing = false;  // a wait for what the iteration before started
  // the region that is shared out over stages, if the kernel is in one
  int staged = -1;
  int layers = 0, micro_batches = 0;  // loops whose index the kernel is told; 0: none
  Exchange exchange{};
  Group* group = nullptr;
  Packing before{}, after{};
  std::byte *packed = nullptr, *received = nullptr;
  int loop = 0, count = 1, iteration = 0, region = 0;  // begin and end
  std::size_t jump = 0;                                // begin: its end; end: behind its begin; wait: its start
  std::vector<std::pair<int, int>> initial{};          // begin: carries to fill
  bool in_parts = false;                               // begin and end: of a stage's work on a micro-batch

  void compute() const { compute(call, joined.size()); }

 private:
  void compute(const Call& all, std::size_t parts) const {
    if (parts == 0) return kernel(all);
    SplitCall two = split(*joined[parts - 1].fusion, all);
    two.then.context = joined[parts - 1].context;
    compute(two.first, parts - 1);
    joined[parts - 1].kernel(two.then);
  }
};

}  // namespace parallel
