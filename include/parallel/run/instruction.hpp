// One event of a plan, with everything that can be known of it before the first step.
#pragma once
#include <utility>
#include <vector>

#include <parallel/communicator/exchange.hpp>
#include <parallel/device/kernel.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

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
/// One event of a plan on one rank. `Group`: what its collectives are started on.
template <class Group>
struct Instruction {
  EventKind kind = EventKind::compute;
  int node = 0;
  std::vector<Call>
      calls{};  // of what is computed one for each node; of an exchange one with what it sends and receives
  std::vector<Launch> launches{};  // of all of them, in order
  struct {
    std::vector<Call> calls{};  // its own and those of the instructions behind it
    FusedKernel kernel{};
  } at_once{};  // where the device computes them so
  std::vector<Following> following{};
  bool updates = false;
  bool on_host = false;   // computed there
  bool crossing = false;  // a wait for what the iteration before started, if it did
  int in_last = -1;       // start: not but in the last iteration of this region
  // the region that is shared out over stages, if the kernel is in one
  int staged = -1;
  int layers = 0, micro_batches = 0;  // loops whose index the kernel is told; 0: none
  int blocks = 1;                     // of layers in one iteration
  Exchange exchange{};
  Group* group = nullptr;  // none: a copy between the rank's memories
  Packing before{}, after{};
  std::vector<Call> pad{}, unpad{};  // one where a flat view is padded before it is packed, or has been
  std::byte *packed = nullptr, *received = nullptr;
  int ahead = -1;                              // start: for the next iteration of this region
  int region = 0;                              // begin
  int jump = -1;                               // begin: its end; wait, and a start ahead in its loop: its start
  std::vector<std::pair<int, int>> initial{};  // begin: carries to fill
};

}  // namespace parallel::internals
