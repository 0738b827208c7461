// What the machine can do at best: multiply-adds on one core, and memory traffic on several threads. Measured beside
// what is compared with them.
#pragma once
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12 warns of its own avx512fintrin.h
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <barrier>
#include <cstring>
#include <thread>

#include <parallel/device/host_memory.hpp>

#include "measure.hpp"

namespace bench {

using Lanes = Eigen::internal::packet_traits<float>::type;  ///< the widest vector that the flags allow
inline constexpr int lanes = Eigen::internal::packet_traits<float>::size;

/// 12 chains of multiply-adds that do not wait for each other: more than latency times width of any core, and they fit
/// 16 registers.
[[gnu::noinline]] inline float multiply_add(long times) {
  constexpr int chains = 12;
  using namespace Eigen::internal;
  const Lanes factor = pset1<Lanes>(0.999f), term = pset1<Lanes>(0.001f);
  Lanes sums[chains];
  for (int c = 0; c < chains; ++c) sums[c] = pset1<Lanes>(static_cast<float>(c));
  for (long i = 0; i < times; ++i)
    for (int c = 0; c < chains; ++c) sums[c] = pmadd(sums[c], factor, term);
  float sum = 0;
  for (int c = 0; c < chains; ++c) sum += predux(sums[c]);
  return sum;
}
/// GFLOP/s of one core, float: the best of some runs of 2 ms.
inline double fma_peak(int runs = 25) {
  constexpr long constant = 20000;
  volatile long times = constant;  // so that every call is made
  volatile float kept = multiply_add(times);
  double best = 1e9;
  for (int run = 0; run < runs; ++run)
    best = std::min(best, seconds([&] {
                      for (int i = 0; i < 10; ++i) kept = multiply_add(times);
                    }));
  return 10.0 * static_cast<double>(constant) * 12 * lanes * 2 / best / 1e9;
}

/// The peak before and after what is compared with it.
class Peak {
 public:
  Peak() : before_(fma_peak()) {}
  double gflops() {
    if (after_ == 0) after_ = fma_peak();
    return (before_ + after_) / 2;
  }
  double before() const { return before_; }
  double after() const { return after_; }

 private:
  double before_, after_ = 0;
};

/// Runs f(thread) on n threads, all beginning together; the time until all have ended.
template <class F>
double on_threads(int n, F f) {
  std::barrier gate(n + 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t)
    threads.emplace_back([&, t] {
      gate.arrive_and_wait();
      f(t);
      gate.arrive_and_wait();
    });
  gate.arrive_and_wait();
  const double time = seconds([&] { gate.arrive_and_wait(); });
  for (std::thread& thread : threads) thread.join();
  return time;
}

/// a += b over n floats.
[[gnu::noinline]] inline void add_to(float* a, const float* b, std::int64_t n) {
  Eigen::Map<Eigen::ArrayXf>(a, n) += Eigen::Map<const Eigen::ArrayXf>(b, n);
}
/// Copies n bytes, a multiple of 16, past the caches: what is overwritten is not read before.
[[gnu::noinline]] inline void stream_copy(void* to, const void* from, std::int64_t n) {
#ifdef __SSE2__
  for (std::int64_t i = 0; i < n / 16; ++i)
    _mm_stream_si128(static_cast<__m128i*>(to) + i, _mm_load_si128(static_cast<const __m128i*>(from) + i));
  _mm_sfence();
#else
  std::memcpy(to, from, static_cast<std::size_t>(n));
#endif
}
/// GB/s that so many threads read and write in a += b, each on memory of its own, all of it larger than the caches: the
/// best of some runs.
inline double memory_bandwidth(int threads, int runs = 5) {
  constexpr std::int64_t bytes = 64 << 20, n = bytes / 4;
  std::vector<parallel::HostMemory> memory;
  for (int t = 0; t < threads; ++t) memory.emplace_back(2 * bytes);
  double best = 1e9;
  for (int run = 0; run < runs; ++run)
    best = std::min(best, on_threads(threads, [&](int t) {
                      float* a = reinterpret_cast<float*>(memory[static_cast<std::size_t>(t)].data());
                      for (int i = 0; i < 3; ++i) add_to(a, a + n, n);
                    }));
  return 3.0 * 3 * static_cast<double>(bytes) * threads / best / 1e9;
}

}  // namespace bench
