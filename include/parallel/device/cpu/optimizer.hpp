// The optimizer phase: the norm of all gradients, and updates in place, each in one pass over memory.
#pragma once
#include <parallel/device/cpu/array.hpp>

namespace parallel::cpu {

template <class T>
double sum_of_squares(const T* x, Index n) {
  constexpr int lanes = 16;  // the sum of each: doubles, so that neither length nor size of the numbers loses anything
  double sums[lanes]{};
  Index i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int j = 0; j < lanes; ++j) sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
  for (; i < n; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double s : sums) sum += s;
  return sum;
}
/// The sum of squares of a rank's part, f64.
inline void square_sum(const Call& call) {
  const View& x = call.operands[0];
  *call.results[0].as<double>() = x.dtype == DType::f64 ? sum_of_squares(x.as<const double>(), x.elements()) : sum_of_squares(x.as<const float>(), x.elements());
}
/// (sum of squares, scalars): the norm, the factor min(1, clip_norm / norm) and whether the norm is a finite number; ints: position of clip_norm.
inline void clip(const Call& call) {
  const double norm = std::sqrt(*call.operands[0].as<const double>()), limit = call.operands[1].as<const double>()[call.ints[0]];
  *call.results[0].as<double>() = norm;
  *call.results[1].as<double>() = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
  *call.results[2].as<double>() = std::isfinite(norm) ? 1.0 : 0.0;
}

/// (parameter, momentum, gradient, factor, scalars); ints: positions of learning_rate, momentum, weight_decay, then whether it decays.
template <class T>
[[gnu::flatten]] void sgd(const Call& call) {
  const double* scalars = call.operands[4].as<const double>();
  const T rate = static_cast<T>(scalars[call.ints[0]]), momentum = static_cast<T>(scalars[call.ints[1]]);
  const T decay = static_cast<T>(call.ints[3] != 0 ? scalars[call.ints[2]] : 0), factor = static_cast<T>(*call.operands[3].as<const double>());
  T *parameter = call.results[0].as<T>(), *velocity = call.results[1].as<T>();
  const T* gradient = call.operands[2].as<const T>();
  in_registers(call.results[0].elements(), [=](Index i, auto n) {
    const Lanes<T, n> p = array(parameter + i, n), m = momentum * array(velocity + i, n) + (factor * array(gradient + i, n) + decay * p);
    array(velocity + i, n) = m;
    array(parameter + i, n) = p - rate * m;
  });
}

/// (parameter, mean, variance, gradient, factor, scalars); ints: positions of learning_rate, beta1, beta2, epsilon, weight_decay and step (counted
/// from 1), then whether it decays.
template <class T>
[[gnu::flatten]] void adamw(const Call& call) {
  const double* scalars = call.operands[5].as<const double>();
  const auto scalar = [&](int i) { return scalars[call.ints[i]]; };
  const double rate = scalar(0), beta1 = scalar(1), beta2 = scalar(2), step = scalar(5);
  const T kept = static_cast<T>(call.ints[6] != 0 ? 1 - rate * scalar(4) : 1), epsilon = static_cast<T>(scalar(3));
  const T b1 = static_cast<T>(beta1), b2 = static_cast<T>(beta2), rest1 = static_cast<T>(1 - beta1), rest2 = static_cast<T>(1 - beta2);
  const T size = static_cast<T>(rate / (1 - std::pow(beta1, step))), correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)));
  const T factor = static_cast<T>(*call.operands[4].as<const double>());
  T *parameter = call.results[0].as<T>(), *mean = call.results[1].as<T>(), *variance = call.results[2].as<T>();
  const T* gradient = call.operands[3].as<const T>();
  in_registers(call.results[0].elements(), [=](Index i, auto n) {
    const Lanes<T, n> g = factor * array(gradient + i, n);
    const Lanes<T, n> m = b1 * array(mean + i, n) + rest1 * g, v = b2 * array(variance + i, n) + rest2 * g.square();
    array(mean + i, n) = m;
    array(variance + i, n) = v;
    array(parameter + i, n) = kept * array(parameter + i, n) - size * m / (v.sqrt() * correction + epsilon);
  });
}

}  // namespace parallel::cpu
