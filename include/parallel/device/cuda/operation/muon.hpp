// Muon beside its products: momentum, norms, and what goes element by element.
#pragma once
#include <parallel/device/cuda/operation/adafactor.hpp>

namespace parallel::internals::cuda {

// Operands and positions stand at the operations (operation/optimizing.hpp).

/// Of 4 bytes, reads 8 an element and writes 4.
template <class S, class G>
struct MuonMomentum {
  S* momentum;
  const G* gradient;
  const double *factor, *kept, *commit;
  PARALLEL_DEVICE void operator()(Index i) const {
    if (skipped(commit)) return;
    using W = Wide<S>;
    const W old = widen(momentum[i]), g = static_cast<W>(*factor) * static_cast<W>(widen(gradient[i]));
    momentum[i] = narrow<S>(old + static_cast<W>(1 - *kept) * (g - old));
  }
};
template <class S>
void muon_momentum(const Call& call) {
  with_half<S>(call.operands[1], [&]<class G>(G) {
    launch_each(gpu(call).stream(), call.results[0].elements(),
                MuonMomentum<S, G>{call.results[0].as<S>(), call.operands[1].as<const G>(),
                                   call.operands[2].as<const double>(), scalars_of(call) + call.ints[0], call.commit});
  });
}
template <class T, class S>
struct MuonDirection {
  T* to;
  const T* gradient;
  const S* momentum;
  const double *factor, *ahead;
  PARALLEL_DEVICE void operator()(Index i) const {
    using W = Wide<T>;
    const W g = static_cast<W>(*factor) * widen(gradient[i]);
    to[i] = narrow<T>(g + static_cast<W>(*ahead) * (static_cast<W>(widen(momentum[i])) - g));
  }
};
template <class T>
void muon_direction(const Call& call) {
  with_half<T>(call.operands[1], [&]<class S>(S) {
    launch_each(
        gpu(call).stream(), call.results[0].elements(),
        MuonDirection<T, S>{call.results[0].as<T>(), call.operands[0].as<const T>(), call.operands[1].as<const S>(),
                            call.operands[2].as<const double>(), scalars_of(call) + call.ints[0]});
  });
}
/// Each matrix over its norm.
template <class T>
struct OverNorm {
  T* x;
  const double *squares, *commit;
  double least;
  Divisor matrix;
  PARALLEL_DEVICE void operator()(Index i) const {
    if (skipped(commit)) return;
    const double norm = std::sqrt(squares[matrix.quotient(i)]);
    x[i] = narrow<T>(widen(x[i]) * static_cast<Wide<T>>(1 / (norm > least ? norm : least)));
  }
};
template <class T>
void normalized(const Call& call) {
  const View& x = call.results[0];
  launch_each(gpu(call).stream(), x.elements(),
              OverNorm<T>{x.as<T>(), call.operands[1].as<const double>(), call.commit, call.reals[0],
                          Divisor(x.extent(1, x.rank))});
}
template <class T>
struct WeightedSum {
  T* x;
  const T* y;
  const double* commit;
  double first, second;
  PARALLEL_DEVICE void operator()(Index i) const {
    if (!skipped(commit))
      x[i] = narrow<T>(static_cast<Wide<T>>(first) * widen(x[i]) + static_cast<Wide<T>>(second) * widen(y[i]));
  }
};
template <class T>
void weighted_sum(const Call& call) {
  launch_each(gpu(call).stream(), call.results[0].elements(),
              WeightedSum<T>{call.results[0].as<T>(), call.operands[1].as<const T>(), call.commit, call.reals[0],
                             call.reals[1]});
}
template <class T>
struct MuonStep {
  T* parameter;
  const T* orthogonal;
  const double *rate, *decay, *commit;
  double scale;
  bool decays;
  PARALLEL_DEVICE void operator()(Index i) const {
    if (skipped(commit)) return;
    const auto kept = static_cast<Wide<T>>(decays ? 1 - *rate * *decay : 1), step = static_cast<Wide<T>>(*rate * scale);
    parameter[i] = narrow<T>(kept * widen(parameter[i]) - step * widen(orthogonal[i]));
  }
};
template <class T>
void muon(const Call& call) {
  const double* const scalars = scalars_of(call);
  launch_each(gpu(call).stream(), call.results[0].elements(),
              MuonStep<T>{call.results[0].as<T>(), call.operands[1].as<const T>(), scalars + call.ints[0],
                          scalars + call.ints[1], call.commit, call.reals[0], call.ints[2] != 0});
}

}  // namespace parallel::internals::cuda
