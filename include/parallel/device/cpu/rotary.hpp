// Rotary position embedding.
#pragma once
#include <cmath>

#include <parallel/device/cpu/array.hpp>
#include <parallel/device/cpu/scratch.hpp>

namespace parallel::internals::cpu {

/// (x, position): at a position elements i and i + size/2 turn by the angle of the pair.
template <class T>
void rotary(const Call& call) {
  const View& x = call.operands[0];
  const Index batch = x.size[0], rows = x.size[1], heads = x.size[2], half = x.size[3] / 2;
  const Index first = call.operands.size() > 1 ? *call.operands[1].as<const int>() : 0;
  T* const cosine = scratch<Purpose::angles, T>(static_cast<std::size_t>(2 * half));
  T* const sine = cosine + half;
  for (Index row = 0; row < rows; ++row) {
    for (Index i = 0; i < half; ++i) {
      const double angle = static_cast<double>(first + x.at(1, row)) *
                           std::pow(call.reals[0], -static_cast<double>(i) / static_cast<double>(half));
      cosine[i] = static_cast<T>(std::cos(angle));
      sine[i] = static_cast<T>(call.reals[1] * std::sin(angle));
    }
    for (Index b = 0; b < batch; ++b)
      for (Index h = 0; h < heads; ++h) {
        const Index at = ((b * rows + row) * heads + h) * 2 * half;
        const T *low = x.as<const T>() + at, *high = low + half;
        T *to = call.results[0].as<T>() + at, *to_high = to + half;
        for (Index i = 0; i < half; ++i) {
          to[i] = low[i] * cosine[i] - high[i] * sine[i];
          to_high[i] = high[i] * cosine[i] + low[i] * sine[i];
        }
      }
  }
}

}  // namespace parallel::internals::cpu
