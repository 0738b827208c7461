// The optimizer phase: the norm of all gradients, and updates in place, each in one pass over memory.
#pragma once
#include <numeric>

#include <parallel/device/cpu/array.hpp>
#include <parallel/device/cpu/parts.hpp>
#include <parallel/device/cpu/team.hpp>

namespace parallel::internals::cpu {

/// How much the n-th value weighs in an average that keeps `decay` of what was before.
inline double weight_in_average(double decay, double n, bool corrected) {
  if (n <= 1) return 1;
  if (!corrected) return 1 - decay;
  return decay == 1 ? 1 / n : (1 - decay) / (1 - std::pow(decay, n));
}
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
/// The sum of squares of a rank's part, f64: of as many pieces whatever threads share them.
inline void square_sum(const Call& call) {
  constexpr Index pieces = 16;
  const View& x = call.operands[0];
  const Index n = x.elements(), most = (n + pieces * 64 - 1) / (pieces * 64) * 64;
  double sums[pieces]{};
  each_part(team_for_elements(call, n), pieces, 1, [&](Index first, Index last) {
    for (Index p = first; p < last; ++p) {
      const Index begin = std::min(n, p * most), count = std::min(n, begin + most) - begin;
      sums[p] = x.dtype == DType::f64 ? sum_of_squares(x.as<const double>() + begin, count)
                                      : sum_of_squares(x.as<const float>() + begin, count);
    }
  });
  *call.results[0].as<double>() = std::accumulate(sums, sums + pieces, 0.0);
}
/// (x, scalars): x times a number of the run, or divided by it; ints: its position, whether it divides.
template <class T>
void scaled(const Call& call) {
  const T* x = call.operands[0].as<const T>();
  const double number = call.operands[1].as<const double>()[call.ints[0]];
  const auto factor = static_cast<T>(call.ints[1] != 0 ? 1 / number : number);
  fill(call.results[0].as<T>(), call.results[0].elements(), [=](Index i) { return factor * x[i]; });
}
/// (sum of squares, scalars, loss): the norm, the factor min(1, clip_norm / norm) and whether norm and loss are finite
/// numbers; ints: positions of clip_norm and, where it is to be taken out, loss_scale.
inline void clip(const Call& call) {
  const double* scalars = call.operands[1].as<const double>();
  const double limit = scalars[call.ints[0]], scale = call.ints.size() > 1 ? scalars[call.ints[1]] : 1,
               norm = std::sqrt(*call.operands[0].as<const double>()) / scale;
  *call.results[0].as<double>() = norm;
  *call.results[1].as<double>() = (limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0) / scale;
  const View& loss = call.operands[2];
  const double value = loss.dtype == DType::f64    ? *loss.as<const double>()
                       : loss.dtype == DType::bf16 ? static_cast<double>(static_cast<float>(*loss.as<const bfloat16>()))
                       : loss.dtype == DType::f16  ? static_cast<double>(static_cast<float>(*loss.as<const float16>()))
                                                   : static_cast<double>(*loss.as<const float>());
  *call.results[2].as<double>() = std::isfinite(norm) && std::isfinite(value) ? 1.0 : 0.0;
}

// Updates: operands and positions stand at the operations (operation/update.hpp).

template <class T>
[[gnu::flatten]] void sgd(const Call& call) {
  const double* scalars = call.operands[3].as<const double>();
  const T rate = static_cast<T>(scalars[call.ints[0]]),
          decay = static_cast<T>(call.ints[2] != 0 ? scalars[call.ints[1]] : 0),
          factor = static_cast<T>(*call.operands[2].as<const double>());
  by_lanes(
      call.results[0].elements(),
      [=](T* parameter, const T* gradient) {
        const Lanes<T> p = lanes(parameter);
        lanes(parameter) = p - rate * (factor * lanes(gradient) + decay * p);
      },
      call.results[0].as<T>(), call.operands[1].as<const T>());
}

/// `ahead`: Nesterov's.
template <class T, bool ahead>
[[gnu::flatten]] void momentum_step(const Call& call) {
  const double* scalars = call.operands[4].as<const double>();
  const T rate = static_cast<T>(scalars[call.ints[0]]), kept = static_cast<T>(scalars[call.ints[1]]),
          decay = static_cast<T>(call.ints[3] != 0 ? scalars[call.ints[2]] : 0),
          factor = static_cast<T>(*call.operands[3].as<const double>());
  by_lanes(
      call.results[0].elements(),
      [=](T* parameter, T* velocity, const T* gradient) {
        const Lanes<T> p = lanes(parameter), g = factor * lanes(gradient) + decay * p, m = kept * lanes(velocity) + g;
        lanes(velocity) = m;
        if constexpr (ahead)
          lanes(parameter) = p - rate * (g + kept * m);
        else
          lanes(parameter) = p - rate * m;
      },
      call.results[0].as<T>(), call.results[1].as<T>(), call.operands[2].as<const T>());
}
template <class T>
void momentum(const Call& call) {
  momentum_step<T, false>(call);
}
template <class T>
void nesterov(const Call& call) {
  momentum_step<T, true>(call);
}

/// `decoupled`: what decays is the parameter, AdamW's; else its gradient grows, Adam's.
template <class T, bool decoupled>
[[gnu::flatten]] void adam_step(const Call& call) {
  const double* scalars = call.operands[5].as<const double>();
  const auto scalar = [&](int i) { return scalars[call.ints[i]]; };
  const double rate = scalar(0), beta1 = scalar(1), beta2 = scalar(2), decay = call.ints[6] != 0 ? scalar(4) : 0,
               step = scalar(5);
  const T kept = static_cast<T>(1 - rate * decay), added = static_cast<T>(decay), epsilon = static_cast<T>(scalar(3));
  const T b1 = static_cast<T>(beta1), b2 = static_cast<T>(beta2), rest1 = static_cast<T>(1 - beta1),
          rest2 = static_cast<T>(1 - beta2);
  const T size = static_cast<T>(rate / (1 - std::pow(beta1, step))),
          correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)));
  const T factor = static_cast<T>(*call.operands[4].as<const double>());
  by_lanes(
      call.results[0].elements(),
      [=](T* parameter, T* mean, T* variance, const T* gradient) {
        Lanes<T> p = lanes(parameter), g = factor * lanes(gradient);
        if constexpr (decoupled)
          p *= kept;
        else
          g += added * p;
        const Lanes<T> m = b1 * lanes(mean) + rest1 * g, v = b2 * lanes(variance) + rest2 * g.square();
        lanes(mean) = m;
        lanes(variance) = v;
        lanes(parameter) = p - size * m / (v.sqrt() * correction + epsilon);
      },
      call.results[0].as<T>(), call.results[1].as<T>(), call.results[2].as<T>(), call.operands[3].as<const T>());
}
template <class T>
void adam(const Call& call) {
  adam_step<T, false>(call);
}
template <class T>
void adamw(const Call& call) {
  adam_step<T, true>(call);
}

template <class T>
[[gnu::flatten]] void lion(const Call& call) {
  const double* scalars = call.operands[4].as<const double>();
  const auto scalar = [&](int i) { return scalars[call.ints[i]]; };
  const double beta1 = scalar(1), beta2 = scalar(2);
  const T rate = static_cast<T>(scalar(0)), kept = static_cast<T>(call.ints[4] != 0 ? 1 - scalar(0) * scalar(3) : 1);
  const T b1 = static_cast<T>(beta1), b2 = static_cast<T>(beta2), rest1 = static_cast<T>(1 - beta1),
          rest2 = static_cast<T>(1 - beta2);
  const T factor = static_cast<T>(*call.operands[3].as<const double>());
  constexpr T huge = std::numeric_limits<T>::max() / 2;
  by_lanes(
      call.results[0].elements(),
      [=](T* parameter, T* mean, const T* gradient) {
        const Lanes<T> g = factor * lanes(gradient), m = lanes(mean);
        const Lanes<T> c = b1 * m + rest1 * g;
        // its sign, by what is vectorised: twice `huge` any number but 0 is 1 at least
        const Lanes<T> sign = (c * huge * huge).max(T{-1}).min(T{1});
        lanes(mean) = b2 * m + rest2 * g;
        lanes(parameter) = kept * lanes(parameter) - rate * sign;
      },
      call.results[0].as<T>(), call.results[1].as<T>(), call.operands[2].as<const T>());
}

template <class T>
[[gnu::flatten]] void average(const Call& call) {
  const double* const scalars = call.operands[2].as<const double>();
  const double decay = scalars[call.ints[0]], n = scalars[call.ints[2]] - scalars[call.ints[1]] + 1;
  const double weight = weight_in_average(decay, n, call.ints[4] != 0);
  const T kept = static_cast<T>(1 - weight), added = static_cast<T>(weight);
  by_lanes(
      call.results[0].elements(),
      [=](T* average, const T* parameter) { lanes(average) = kept * lanes(average) + added * lanes(parameter); },
      call.results[0].as<T>(), call.operands[1].as<const T>());
}

template <class T>
void handed_down(const Call& call) {
  const bool first = call.operands[2].as<const double>()[call.ints[0]] <= 1;
  if (first == (call.ints[2] != 0)) copy(call.results[0], call.operands[1]);
}

}  // namespace parallel::internals::cpu
