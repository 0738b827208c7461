// The optimizer phase: what decides about updates, and updates in place, each in one pass over memory.
#pragma once
#include <cmath>
#include <parallel/device/cuda/reduce.hpp>

namespace parallel::cuda {

/// (sum of squares, scalars): the norm, the factor min(1, clip_norm / norm) and whether the norm is a finite number.
struct Clip {
  static constexpr int threads = 32;
  const double *squares, *limit;
  double *norm, *factor, *finite;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    block.each(1, [&](Index) {
      const double n = std::sqrt(*squares), share = *limit / (n + 1e-6);
      *norm = n;
      *factor = *limit > 0 && share < 1 ? share : 1;
      *finite = n - n == 0 ? 1 : 0;
    });
  }
};
/// ints: position of clip_norm.
inline void clip(const Call& call) {
  launch(gpu(call).stream(), 1,
         Clip{call.operands[0].as<const double>(), call.operands[1].as<const double>() + call.ints[0], call.results[0].as<double>(), call.results[1].as<double>(),
              call.results[2].as<double>()});
}

/// Updates a parameter and its state in place, n elements at a time. A rule prepares its coefficients once for each block, so there are only as many
/// blocks as a GPU runs at once.
template <int n, class T, class Rule>
struct Update {
  static constexpr int threads = 256;
  Rule rule;
  T* values[Rule::values];  ///< the parameter, then its state
  const T* gradient;
  const double* commit;
  Index packs, blocks;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    if (skipped(commit)) return;
    auto& coefficients = *block.template shared<typename Rule::Coefficients>();
    rule.prepare(block, coefficients);
    block.sync();
    const typename Rule::Coefficients c = coefficients;
    block.each(threads, [&](Index thread) {
      for (Index p = block.index * threads + thread; p < packs; p += blocks * threads) {
        Pack<T, n> all[Rule::values];
        for (int k = 0; k < Rule::values; ++k) all[k] = reinterpret_cast<const Pack<T, n>*>(values[k])[p];
        const Pack<T, n> g = reinterpret_cast<const Pack<T, n>*>(gradient)[p];
        for (int i = 0; i < n; ++i) {
          Wide<T> own[Rule::values];
          for (int k = 0; k < Rule::values; ++k) own[k] = widen(all[k].of[i]);
          Rule::update(c, own, widen(g.of[i]));
          for (int k = 0; k < Rule::values; ++k) all[k].of[i] = narrow<T>(own[k]);
        }
        for (int k = 0; k < Rule::values; ++k) reinterpret_cast<Pack<T, n>*>(values[k])[p] = all[k];
      }
    });
  }
};
template <class T, class Rule>
void update(const Call& call, const Rule& rule) {
  constexpr int n = pack_elements<T>;
  const Index elements = call.results[0].elements();
  const T* gradient = static_cast<const T*>(call.operands[Rule::values].data);
  bool packed = elements % n == 0 && lies_at(gradient, 16);
  for (int k = 0; k < Rule::values; ++k) packed = packed && lies_at(call.results[k].data, 16);
  const auto run = [&](auto body, int in_pack) {
    body.rule = rule, body.gradient = gradient, body.commit = call.commit, body.packs = elements / in_pack;
    for (int k = 0; k < Rule::values; ++k) body.values[k] = static_cast<T*>(call.results[k].data);
    body.blocks = std::min(enough_blocks, blocks_of(body.packs, body.threads));
    launch(gpu(call).stream(), body.blocks, body, sizeof(typename Rule::Coefficients));
  };
  packed ? run(Update<n, T, Rule>{}, n) : run(Update<1, T, Rule>{}, 1);
}

/// Stochastic gradient descent: of 4 bytes, reads 12 an element and writes 8.
template <class W>
struct Sgd {
  static constexpr int values = 2;
  struct Coefficients {
    W rate, momentum, decay, factor;
  };
  const double *factor, *rate, *momentum, *decay;
  bool decays;

  template <class Block>
  PARALLEL_DEVICE void prepare(Block& block, Coefficients& c) const {
    block.each(1, [&](Index) { c = {static_cast<W>(*rate), static_cast<W>(*momentum), static_cast<W>(decays ? *decay : 0), static_cast<W>(*factor)}; });
  }
  PARALLEL_DEVICE static void update(const Coefficients& c, W (&own)[values], W gradient) {
    W &p = own[0], &velocity = own[1];
    velocity = c.momentum * velocity + (c.factor * gradient + c.decay * p);
    p -= c.rate * velocity;
  }
};
/// (parameter, momentum, gradient, factor, scalars); ints: positions of learning_rate, momentum, weight_decay, then whether it decays.
template <class T>
void sgd(const Call& call) {
  const double* const scalars = call.operands[4].as<const double>();
  update<T>(call, Sgd<Wide<T>>{call.operands[3].as<const double>(), scalars + call.ints[0], scalars + call.ints[1], scalars + call.ints[2], call.ints[3] != 0});
}

/// AdamW: of 4 bytes, reads 16 an element and writes 12.
template <class W>
struct AdamW {
  static constexpr int values = 3;
  struct Coefficients {
    double size, correction;  ///< of the mean and of the root of the variance, which begin at zero
    W kept, epsilon, b1, b2, rest1, rest2, factor;
  };
  const double *factor, *scalars;
  int position[6];  ///< of learning_rate, beta1, beta2, epsilon, weight_decay and step
  bool decays;

  template <class Block>
  PARALLEL_DEVICE void prepare(Block& block, Coefficients& c) const {
    const double rate = scalar(0), beta1 = scalar(1), beta2 = scalar(2);
    block.each(3, [&](Index i) {
      if (i == 2) {
        c.kept = static_cast<W>(decays ? 1 - rate * scalar(4) : 1), c.epsilon = static_cast<W>(scalar(3)), c.factor = static_cast<W>(*factor);
        c.b1 = static_cast<W>(beta1), c.b2 = static_cast<W>(beta2), c.rest1 = static_cast<W>(1 - beta1), c.rest2 = static_cast<W>(1 - beta2);
      } else {  // both powers at once: they take the longest
        const double rest = 1 - std::pow(i == 0 ? beta1 : beta2, scalar(5));
        (i == 0 ? c.size : c.correction) = i == 0 ? rate / rest : 1 / std::sqrt(rest);
      }
    });
  }
  PARALLEL_DEVICE static void update(const Coefficients& c, W (&own)[values], W gradient) {
    W &p = own[0], &mean = own[1], &variance = own[2];
    const W g = c.factor * gradient;
    mean = c.b1 * mean + c.rest1 * g;
    variance = c.b2 * variance + c.rest2 * (g * g);
    p = c.kept * p - static_cast<W>(c.size) * mean / (std::sqrt(variance) * static_cast<W>(c.correction) + c.epsilon);
  }

 private:
  PARALLEL_DEVICE double scalar(int i) const { return scalars[position[i]]; }
};
/// (parameter, mean, variance, gradient, factor, scalars); ints: the positions, then whether it decays.
template <class T>
void adamw(const Call& call) {
  AdamW<Wide<T>> rule{call.operands[4].as<const double>(), call.operands[5].as<const double>(), {}, call.ints[6] != 0};
  for (int i = 0; i < 6; ++i) rule.position[i] = static_cast<int>(call.ints[i]);
  update<T>(call, rule);
}

}  // namespace parallel::cuda
