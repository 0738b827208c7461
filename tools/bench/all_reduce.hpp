// What both all-reduce benchmarks share: sizes, buffers, how often to repeat.
#pragma once
#include <parallel/communicator/communicator.hpp>
#include <parallel/device/host_memory.hpp>

#include "measure.hpp"

namespace bench {

using namespace parallel;
using namespace parallel::internals;

inline constexpr std::int64_t sizes[] = {64 << 10, 1 << 20, 16 << 20, 256 << 20};

inline std::string size_text(std::int64_t bytes) {
  return bytes < (1 << 20) ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes >> 20) + " MiB";
}
/// So often that a run takes some milliseconds.
inline int repeats(std::int64_t bytes) { return bytes >= (16 << 20) ? 1 : static_cast<int>((16 << 20) / bytes); }

/// One message as the executor gives it: from one buffer into another.
struct Arrays {
  HostMemory in, out;
  explicit Arrays(std::int64_t bytes) : in(bytes), out(bytes) {
    for (std::int64_t i = 0; i < bytes / 4; ++i) reinterpret_cast<float*>(in.data())[i] = static_cast<float>(i % 7);
  }
  Exchange message(std::int64_t bytes) const {
    Exchange e;
    e.in = in.data();
    e.out = out.data();
    e.count = bytes / 4;
    return e;
  }
};

/// What a step does with a message: it computes the terms, and goes on with the sums. So terms lie in this core's
/// cache, where they fit, and the sums are fetched into it.
template <class F>
void in_use(const Arrays& buffers, std::int64_t bytes, F exchange) {
  auto* const in = reinterpret_cast<float*>(buffers.in.data());
  const auto* const out = reinterpret_cast<const float*>(buffers.out.data());
  for (std::int64_t i = 0; i < bytes / 4; ++i) in[i] = 8 - in[i];
  exchange();
  float sum[16]{};
  for (std::int64_t i = 0; i + 16 <= bytes / 4; i += 16)
    for (int k = 0; k < 16; ++k) sum[k] += out[i + k];
  for (const float& part : sum) asm volatile("" : : "m"(part));  // it is used
}

/// Called by all ranks: the time of `times` calls between two barriers, per call.
template <Communicator World, class F>
double together(World& world, int times, F f) {
  world.barrier();
  return seconds([&] {
           for (int i = 0; i < times; ++i) f();
           world.barrier();
         }) /
         times;
}

}  // namespace bench
