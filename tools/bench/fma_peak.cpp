// What one core, and all cores at once, reach in multiply-adds of floats; what one and several threads move in a += b.
//
//   fma_peak
#include "limits.hpp"

int main() {
  std::vector<double> one, each;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  for (int round = 0; round < 5; ++round) {
    one.push_back(bench::fma_peak());
    std::vector<double> peaks(static_cast<std::size_t>(cores));
    bench::on_threads(cores, [&](int t) { peaks[static_cast<std::size_t>(t)] = bench::fma_peak(); });
    double sum = 0;
    for (const double peak : peaks) sum += peak;
    each.push_back(sum / cores);
  }
  bench::row("fma_peak", "one core, vectors of " + std::to_string(bench::lanes) + " floats", bench::spread(one),
             "GFLOP/s");
  bench::row("fma_peak", "each of " + std::to_string(cores) + " cores at once", bench::spread(each), "GFLOP/s");
  for (int threads = 1; threads <= cores; threads *= 2)
    bench::row("fma_peak", "a += b in memory, " + std::to_string(threads) + " threads",
               bench::memory_bandwidth(threads), "GB/s read and written");
}
