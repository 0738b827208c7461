// The oracle of the executor, by the name by which tests know it, and how far its arrays are from others.
#pragma once
#include <algorithm>
#include <cmath>

#include <parallel/run/lockstep.hpp>

namespace parallel::internals::lockstep {

/// The largest difference of two elements; what is no finite number differs from all.
inline double absolute_difference(const Array& a, const Array& b) {
  if (a.size != b.size) return 1e300;
  double most = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i)
    most = std::max(most, std::isfinite(a.data[i]) ? std::abs(a.data[i] - b.data[i]) : 1e300);
  return most;
}
/// The same as a part of the largest element (or of 1e-12, where all are smaller than that).
inline double difference(const Array& a, const Array& b) {
  double largest = 1e-12;
  for (const double x : b.data) largest = std::max(largest, std::abs(x));
  return absolute_difference(a, b) / largest;
}

}  // namespace parallel::internals::lockstep

namespace lockstep = parallel::internals::lockstep;
