// Recurrent models, their loops written as Scans or step by step: a GRU, a cell that gives something beside its state,
// sequences that are inputs, parameters, or what another scan gave.
#pragma once
#include <parallel/parallel.hpp>

namespace scans {

using namespace parallel;
using namespace parallel::axes;

inline constexpr int batch = 8, features = 3, width = 4;

/// Cho et al. (2014), as PyTorch has it: the reset gate is applied behind the product.
template <class T>
struct Gru {
  Parameter<T, Shape<features, width / tensor>> reset_x{normal(0.5)}, update_x{normal(0.5)}, new_x{normal(0.5)};
  Parameter<T, Shape<width, width / tensor>> reset_h{normal(0.5)}, update_h{normal(0.5)}, new_h{normal(0.5)};
  Parameter<T, Shape<width / tensor>> reset_b{zeros}, update_b{zeros}, new_b{zeros}, inner_b{zeros};
  constexpr auto operator()(Distributed auto h, Distributed auto x) const {
    const auto whole = to<On<tensor, Broadcast>>(h);
    const auto reset = sigmoid(matmul(x, reset_x) + matmul(whole, reset_h) + reset_b);
    const auto update = sigmoid(matmul(x, update_x) + matmul(whole, update_h) + update_b);
    const auto fresh = tanh(matmul(x, new_x) + new_b + reset * (matmul(whole, new_h) + inner_b));
    return fresh + update * (h - fresh);
  }
};

/// Keeps a decaying sum of what it is given, times a gate that is the same in every step, and gives how far it has
/// moved.
template <class T>
struct Decay {
  Parameter<T, Shape<width / tensor>> rate{normal(0.5)};
  constexpr auto operator()(Distributed auto h, Distributed auto x, Distributed auto gate) const {
    const auto next = h * rate + x * gate;
    return std::pair(next, square(next - h));
  }
};

/// The steps of a cell written one behind the other, and what each of them gave put together.
template <int steps, class Cell>
struct Written {
  Cell cell;
  template <int from = 0>
  constexpr auto operator()(Distributed auto h, Distributed auto x, Distributed auto... more) const {
    const auto returned = cell(h, take<0, from>(x), more...);
    if constexpr (Distributed<decltype(returned)>)
      return next<from>(returned, returned, x, more...);
    else
      return next<from>(returned.first, returned.second, x, more...);
  }
  template <int from>
  constexpr auto next(Distributed auto h, Distributed auto given, Distributed auto x, Distributed auto... more) const {
    const auto one = reshape<1, batch, width>(given);
    if constexpr (from + 1 == steps) {
      return Scanned<decltype(h), decltype(one)>{h, one};
    } else {
      const auto rest = operator()<from + 1>(h, x, more...);
      const auto all = concatenate<0>(one, rest.each);
      return Scanned<decltype(rest.last), decltype(all)>{rest.last, all};
    }
  }
};

template <class T>
using Known = Tensor<T, Shape<batch / data, width / tensor>>;

/// One after another these are Layers.
template <class T>
struct Block {
  Parameter<T, Shape<width, 2 * width / tensor>> up{normal(0.5)};
  Parameter<T, Shape<2 * width / tensor, width>> down{normal(0.5)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(tanh(matmul(x, up)), down); }
};

/// A sequence that is an input or comes out of a matrix, one that another scan gave and layers changed, one that is a
/// parameter; the last state is read, and what all steps gave.
template <class T, int steps, template <int, class> class Recurrent, bool from_matrix = true>
struct Model {
  Parameter<T, Shape<features, features>> before{normal(0.5)};
  Recurrent<steps, Gru<T>> gru;
  Layers<3, Block<T>> blocks;
  Recurrent<steps, Decay<T>> decay;
  Parameter<T, Shape<steps, width / tensor>> bias{normal(0.5)};
  constexpr auto operator()(Distributed auto initial, Distributed auto x, Distributed auto y) const {
    const auto h = gru(initial, entering(x));
    const auto through =
        to<Shape<steps, batch / data, width / tensor>>(blocks(to<Shape<steps, batch / data, width>>(h.each)));
    const auto first = decay(h.last, through, initial), second = decay(first.last, bias, first.last);
    return mean(square(second.last - y)) + mean(first.each) + mean(second.each);
  }
  constexpr auto entering(Distributed auto x) const {
    if constexpr (from_matrix)
      return tanh(matmul(x, before));
    else
      return x;
  }
};
template <class T, int steps, class M, class Optimizer = KeepGradients>
using Trained = Training<M, Optimizer, Wanted<T, Shape<batch / data, width / tensor>>,
                         Wanted<T, Shape<steps, batch / data, features>>, Known<T>>;
template <int steps, class Cell>
using Plain = Scan<steps, Cell>;
template <int steps, class Cell>
using Again = Scan<steps, Cell, Recompute<>>;
template <int steps, class Cell>
using InPairs = Scan<steps, Cell, Recompute<2, Repeat::collectives>>;
template <int steps, class Cell>
using OnTheHost = Scan<steps, Cell, KeepOnHost>;

}  // namespace scans
