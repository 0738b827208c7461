// Muon beside its products: momentum, norms, and what goes element by element.
#pragma once
#include <parallel/device/cpu/array.hpp>

namespace parallel::internals::cpu {

// Operands and positions stand at the operations (operation/optimizing.hpp).

template <class T>
[[gnu::flatten]] void muon_momentum(const Call& call) {
  const T taken = static_cast<T>(1 - call.operands[3].as<const double>()[call.ints[0]]),
          factor = static_cast<T>(*call.operands[2].as<const double>());
  by_lanes(
      call.results[0].elements(),
      [=](T* momentum, const T* gradient) { lanes(momentum) += taken * (factor * lanes(gradient) - lanes(momentum)); },
      call.results[0].as<T>(), call.operands[1].as<const T>());
}
template <class T>
[[gnu::flatten]] void muon_direction(const Call& call) {
  const T ahead = static_cast<T>(call.operands[3].as<const double>()[call.ints[0]]),
          factor = static_cast<T>(*call.operands[2].as<const double>());
  by_lanes(
      call.results[0].elements(),
      [=](T* to, const T* gradient, const T* momentum) {
        const Lanes<T> g = factor * lanes(gradient);
        lanes(to) = g + ahead * (lanes(momentum) - g);
      },
      call.results[0].as<T>(), call.operands[0].as<const T>(), call.operands[1].as<const T>());
}
/// Each matrix over its norm.
template <class T>
void normalized(const Call& call) {
  const View& x = call.results[0];
  const Index matrix = x.extent(1, x.rank);
  for (Index l = 0; l < x.size[0]; ++l)
    multiply_by(x.as<T>() + l * matrix,
                static_cast<T>(1 / std::max(std::sqrt(call.operands[1].as<const double>()[l]), call.reals[0])), matrix);
}
template <class T>
[[gnu::flatten]] void weighted_sum(const Call& call) {
  const T first = static_cast<T>(call.reals[0]), second = static_cast<T>(call.reals[1]);
  by_lanes(
      call.results[0].elements(), [=](T* x, const T* y) { lanes(x) = first * lanes(x) + second * lanes(y); },
      call.results[0].as<T>(), call.operands[1].as<const T>());
}
template <class T>
[[gnu::flatten]] void muon(const Call& call) {
  const double* const scalars = call.operands[2].as<const double>();
  const double rate = scalars[call.ints[0]], decay = call.ints[2] != 0 ? scalars[call.ints[1]] : 0;
  const T kept = static_cast<T>(1 - rate * decay), step = static_cast<T>(rate * call.reals[0]);
  by_lanes(
      call.results[0].elements(),
      [=](T* parameter, const T* orthogonal) { lanes(parameter) = kept * lanes(parameter) - step * lanes(orthogonal); },
      call.results[0].as<T>(), call.operands[1].as<const T>());
}

}  // namespace parallel::internals::cpu
