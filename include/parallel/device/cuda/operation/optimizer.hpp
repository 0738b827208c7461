// The optimizer's updates in place, each in one pass over memory, of as many parameters as follow each other in the
// plan.
#pragma once
#include <cmath>

#include <parallel/device/cuda/body/together.hpp>
#include <parallel/device/cuda/operation/reduce.hpp>

namespace parallel::internals::cuda {

/// Updates a parameter and its states, of type S, in place by a gradient of type G. A rule prepares its coefficients
/// once for each block, so there are only as many blocks as a GPU runs at once.
template <class T, class G, class S, class Rule>
struct Update {
  static constexpr int threads = 256, states = Rule::values - 1;
  static constexpr std::size_t shared_bytes = sizeof(typename Rule::Coefficients);
  Rule rule;
  T* parameter;
  S* state[states > 0 ? states : 1];
  const G* gradient;
  const double* commit;
  Index elements, blocks;
  bool packed;  ///< 16 bytes at a time

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    if (skipped(commit)) return;
    auto& coefficients = *block.template shared<typename Rule::Coefficients>();
    rule.prepare(block, coefficients);
    block.sync();
    const typename Rule::Coefficients c = coefficients;
    packed ? all<pack_elements<T>>(block, c) : all<1>(block, c);
  }

 private:
  template <int n, class Block>
  PARALLEL_DEVICE void all(Block& block, const typename Rule::Coefficients& c) const {
    block.each(threads, [&](Index thread) {
      for (Index p = block.index * threads + thread; p < elements / n; p += blocks * threads) {
        Pack<T, n> own_parameter = reinterpret_cast<const Pack<T, n>*>(parameter)[p];
        Pack<S, n> all[states > 0 ? states : 1];
        for (int k = 0; k < states; ++k) all[k] = reinterpret_cast<const Pack<S, n>*>(state[k])[p];
        const Pack<G, n> g = reinterpret_cast<const Pack<G, n>*>(gradient)[p];
        for (int i = 0; i < n; ++i) {
          Wide<T> own[Rule::values];
          own[0] = widen(own_parameter.of[i]);
          for (int k = 0; k < states; ++k) own[k + 1] = widen(all[k].of[i]);
          Rule::update(c, own, widen(g.of[i]));
          own_parameter.of[i] = narrow<T>(own[0]);
          for (int k = 0; k < states; ++k) all[k].of[i] = narrow<S>(own[k + 1]);
        }
        reinterpret_cast<Pack<T, n>*>(parameter)[p] = own_parameter;
        for (int k = 0; k < states; ++k) reinterpret_cast<Pack<S, n>*>(state[k])[p] = all[k];
      }
    });
  }
};
/// `rule_of(call)`: what updates a call's parameter, whose states are of type S, by gradients of type G; of other ones
/// no call is.
template <class T, class G, class S, class F>
void update_by(std::span<const Call> calls, F rule_of) {
  using Rule = decltype(rule_of(calls[0]));
  using Body = Update<T, G, S, Rule>;
  const cudaStream_t stream = gpu(calls[0]).stream();
  Bodies<Body> bodies;
  for (const Call& call : calls) {
    if (call.operands[Rule::values].dtype != dtype_of<G>) continue;
    constexpr int n = pack_elements<T>;
    Body body{rule_of(call), call.results[0].template as<T>(), {}, call.operands[Rule::values].template as<const G>(),
              call.commit,   call.results[0].elements(),       0,  false};
    for (int k = 0; k < Body::states; ++k) body.state[k] = call.results[k + 1].template as<S>();
    body.packed =
        body.elements % n == 0 && lies_at(body.gradient, n * sizeof(G)) && lies_at(body.parameter, 16) &&
        std::all_of(body.state, body.state + Body::states, [](const S* v) { return lies_at(v, n * sizeof(S)); });
    body.blocks = std::min(enough_blocks, blocks_of(body.elements / (body.packed ? n : 1), body.threads));
    bodies.add(stream, body, body.blocks);
  }
  bodies.launch(stream);
}
template <class T, class F>
void update(std::span<const Call> calls, F rule_of) {
  constexpr bool halves = std::is_same_v<T, float>, states = decltype(rule_of(calls[0]))::values > 1;
  const auto by = [&]<class S>(S) {
    update_by<T, T, S>(calls, rule_of);
    if constexpr (halves) {
      update_by<T, bfloat16, S>(calls, rule_of);
      update_by<T, float16, S>(calls, rule_of);
    }
  };
  if constexpr (halves && states)
    if (calls[0].results[1].dtype == DType::bf16) return by(bfloat16{});
  by(T{});
}

// Operands and positions of scalars stand at the operations (operation/update.hpp).

/// Stochastic gradient descent: of 4 bytes, reads 8 an element and writes 4.
template <class W>
struct Sgd {
  static constexpr int values = 1;
  struct Coefficients {
    W rate, decay, factor;
  };
  const double *factor, *rate, *decay;
  bool decays;

  template <class Block>
  PARALLEL_DEVICE void prepare(Block& block, Coefficients& c) const {
    block.each(1, [&](Index) {
      c = {static_cast<W>(*rate), static_cast<W>(decays ? *decay : 0), static_cast<W>(*factor)};
    });
  }
  PARALLEL_DEVICE static void update(const Coefficients& c, W (&own)[values], W gradient) {
    own[0] -= c.rate * (c.factor * gradient + c.decay * own[0]);
  }
};
template <class T>
void sgd(std::span<const Call> calls) {
  update<T>(calls, [](const Call& call) {
    const double* const scalars = call.operands[3].as<const double>();
    return Sgd<Wide<T>>{call.operands[2].as<const double>(), scalars + call.ints[0], scalars + call.ints[1],
                        call.ints[2] != 0};
  });
}
template <class T>
void sgd(const Call& call) {
  sgd<T>(std::span(&call, 1));
}

/// With momentum, `ahead`: Nesterov's. Of 4 bytes, reads 12 an element and writes 8.
template <class W, bool ahead>
struct Momentum {
  static constexpr int values = 2;
  struct Coefficients {
    W rate, kept, decay, factor;
  };
  const double *factor, *rate, *kept, *decay;
  bool decays;

  template <class Block>
  PARALLEL_DEVICE void prepare(Block& block, Coefficients& c) const {
    block.each(1, [&](Index) {
      c = {static_cast<W>(*rate), static_cast<W>(*kept), static_cast<W>(decays ? *decay : 0), static_cast<W>(*factor)};
    });
  }
  PARALLEL_DEVICE static void update(const Coefficients& c, W (&own)[values], W gradient) {
    W &p = own[0], &velocity = own[1];
    const W g = c.factor * gradient + c.decay * p;
    velocity = c.kept * velocity + g;
    p -= c.rate * (ahead ? g + c.kept * velocity : velocity);
  }
};
template <class T, bool ahead>
void momentum_step(std::span<const Call> calls) {
  update<T>(calls, [](const Call& call) {
    const double* const scalars = call.operands[4].as<const double>();
    return Momentum<Wide<T>, ahead>{call.operands[3].as<const double>(), scalars + call.ints[0], scalars + call.ints[1],
                                    scalars + call.ints[2], call.ints[3] != 0};
  });
}
template <class T>
void momentum(std::span<const Call> calls) {
  momentum_step<T, false>(calls);
}
template <class T>
void momentum(const Call& call) {
  momentum<T>(std::span(&call, 1));
}
template <class T>
void nesterov(std::span<const Call> calls) {
  momentum_step<T, true>(calls);
}
template <class T>
void nesterov(const Call& call) {
  nesterov<T>(std::span(&call, 1));
}

/// Adam, and AdamW: `decoupled`, what decays is the parameter. Of 4 bytes, reads 16 an element and writes 12.
template <class W, bool decoupled>
struct Adam {
  static constexpr int values = 3;
  struct Coefficients {
    double size, correction;  ///< of the mean and of the root of the variance, which begin at zero
    W kept, added, epsilon, b1, b2, rest1, rest2, factor;
  };
  const double *factor, *scalars;
  int position[6];  ///< of learning_rate, beta1, beta2, epsilon, weight_decay and step
  bool decays;

  template <class Block>
  PARALLEL_DEVICE void prepare(Block& block, Coefficients& c) const {
    const double rate = scalar(0), beta1 = scalar(1), beta2 = scalar(2), decay = decays ? scalar(4) : 0;
    block.each(3, [&](Index i) {
      if (i == 2) {
        c.kept = static_cast<W>(1 - rate * decay);
        c.added = static_cast<W>(decay);
        c.epsilon = static_cast<W>(scalar(3));
        c.factor = static_cast<W>(*factor);
        c.b1 = static_cast<W>(beta1);
        c.b2 = static_cast<W>(beta2);
        c.rest1 = static_cast<W>(1 - beta1);
        c.rest2 = static_cast<W>(1 - beta2);
      } else {  // both powers at once: they take the longest
        const double rest = 1 - std::pow(i == 0 ? beta1 : beta2, scalar(5));
        (i == 0 ? c.size : c.correction) = i == 0 ? rate / rest : 1 / std::sqrt(rest);
      }
    });
  }
  PARALLEL_DEVICE static void update(const Coefficients& c, W (&own)[values], W gradient) {
    W &p = own[0], &mean = own[1], &variance = own[2], g = c.factor * gradient;
    if constexpr (decoupled)
      p *= c.kept;
    else
      g += c.added * p;
    mean = c.b1 * mean + c.rest1 * g;
    variance = c.b2 * variance + c.rest2 * (g * g);
    p -= static_cast<W>(c.size) * mean / (std::sqrt(variance) * static_cast<W>(c.correction) + c.epsilon);
  }

 private:
  PARALLEL_DEVICE double scalar(int i) const { return scalars[position[i]]; }
};
template <class T, bool decoupled>
void adam_step(std::span<const Call> calls) {
  update<T>(calls, [](const Call& call) {
    Adam<Wide<T>, decoupled> rule{
        call.operands[4].as<const double>(), call.operands[5].as<const double>(), {}, call.ints[6] != 0};
    for (int i = 0; i < 6; ++i) rule.position[i] = static_cast<int>(call.ints[i]);
    return rule;
  });
}
template <class T>
void adam(std::span<const Call> calls) {
  adam_step<T, false>(calls);
}
template <class T>
void adam(const Call& call) {
  adam<T>(std::span(&call, 1));
}
template <class T>
void adamw(std::span<const Call> calls) {
  adam_step<T, true>(calls);
}
template <class T>
void adamw(const Call& call) {
  adamw<T>(std::span(&call, 1));
}

/// Lion: of 4 bytes, reads 12 an element and writes 8.
template <class W>
struct Lion {
  static constexpr int values = 2;
  struct Coefficients {
    W rate, kept, b1, b2, rest1, rest2, factor;
  };
  const double *factor, *scalars;
  int position[4];  ///< of learning_rate, beta1, beta2 and weight_decay
  bool decays;

  template <class Block>
  PARALLEL_DEVICE void prepare(Block& block, Coefficients& c) const {
    block.each(1, [&](Index) {
      const double rate = scalar(0), beta1 = scalar(1), beta2 = scalar(2);
      c = {static_cast<W>(rate),      static_cast<W>(decays ? 1 - rate * scalar(3) : 1),
           static_cast<W>(beta1),     static_cast<W>(beta2),
           static_cast<W>(1 - beta1), static_cast<W>(1 - beta2),
           static_cast<W>(*factor)};
    });
  }
  PARALLEL_DEVICE static void update(const Coefficients& c, W (&own)[values], W gradient) {
    W &p = own[0], &mean = own[1];
    const W g = c.factor * gradient, step = c.b1 * mean + c.rest1 * g;
    const W sign = step > 0 ? W{1} : step < 0 ? W{-1} : W{0};
    mean = c.b2 * mean + c.rest2 * g;
    p = c.kept * p - c.rate * sign;
  }

 private:
  PARALLEL_DEVICE double scalar(int i) const { return scalars[position[i]]; }
};
template <class T>
void lion(std::span<const Call> calls) {
  update<T>(calls, [](const Call& call) {
    Lion<Wide<T>> rule{call.operands[3].as<const double>(), call.operands[4].as<const double>(), {}, call.ints[4] != 0};
    for (int i = 0; i < 4; ++i) rule.position[i] = static_cast<int>(call.ints[i]);
    return rule;
  });
}
template <class T>
void lion(const Call& call) {
  lion<T>(std::span(&call, 1));
}

/// The average of what a parameter was: of 4 bytes, reads 8 an element and writes 4.
template <class W>
struct Average {
  static constexpr int values = 1;
  struct Coefficients {
    W kept, added;
  };
  const double *decay, *from, *step;
  bool corrected;

  template <class Block>
  PARALLEL_DEVICE void prepare(Block& block, Coefficients& c) const {
    block.each(1, [&](Index) {
      const double n = *step - *from + 1;
      const double weight = n <= 1        ? 1
                            : !corrected  ? 1 - *decay
                            : *decay == 1 ? 1 / n
                                          : (1 - *decay) / (1 - std::pow(*decay, n));
      c = {static_cast<W>(1 - weight), static_cast<W>(weight)};
    });
  }
  PARALLEL_DEVICE static void update(const Coefficients& c, W (&own)[values], W parameter) {
    own[0] = c.kept * own[0] + c.added * parameter;
  }
};
template <class T>
void average(std::span<const Call> calls) {
  update<T>(calls, [](const Call& call) {
    const double* const scalars = call.operands[2].as<const double>();
    return Average<Wide<T>>{scalars + call.ints[0], scalars + call.ints[1], scalars + call.ints[2], call.ints[4] != 0};
  });
}
template <class T>
void average(const Call& call) {
  average<T>(std::span(&call, 1));
}

/// Another version in the place of one, in the first step or in all but that: of 4 bytes, reads 8 an element and writes
/// 4.
template <class W>
struct HandedDown {
  static constexpr int values = 1;
  struct Coefficients {
    bool takes;
  };
  const double* step;
  bool in_first;

  template <class Block>
  PARALLEL_DEVICE void prepare(Block& block, Coefficients& c) const {
    block.each(1, [&](Index) { c = {(*step <= 1) == in_first}; });
  }
  PARALLEL_DEVICE static void update(const Coefficients& c, W (&own)[values], W other) {
    if (c.takes) own[0] = other;
  }
};
template <class T>
void handed_down(std::span<const Call> calls) {
  update<T>(calls, [](const Call& call) {
    return HandedDown<Wide<T>>{call.operands[2].as<const double>() + call.ints[0], call.ints[2] != 0};
  });
}
template <class T>
void handed_down(const Call& call) {
  handed_down<T>(std::span(&call, 1));
}

}  // namespace parallel::internals::cuda
