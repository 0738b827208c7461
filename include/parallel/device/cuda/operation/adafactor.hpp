// What optimizers make of whole matrices and layers: sums of squares, and Adafactor's updates, in sweeps over the
// gradient that write nothing of its size.
#pragma once
#include <parallel/device/cuda/operation/gradient_norm.hpp>
#include <parallel/device/matrices.hpp>

namespace parallel::internals::cuda {

// Operands and positions stand at the operations (operation/optimizing.hpp).

inline bool stacked(const Call& call) { return call.ints[call.ints.size() - 1] != 0; }

/// f(W{}) for what a parameter or its gradient is computed in.
template <class F>
void with_real(const View& x, F f) {
  x.dtype == DType::f64 ? f(double{}) : f(float{});
}
/// f(S{}) for the element type of what stands beside a parameter of T: its own, or, but for double, bf16 or float.
template <class T, class F>
void with_half(const View& x, F f) {
  if constexpr (!std::is_same_v<T, double>)
    if (x.dtype == DType::bf16) return f(bfloat16{});
  f(Wide<T>{});
}

/// The sum of term(layer, i), of i below `elements`, for each layer, in double, however long: parts in the workspace,
/// and then their sums.
template <class Term>
struct LayerSums {
  static constexpr int threads = 256;
  Term term;
  double* sums;  ///< [layer][part]
  Index elements, in_part;
  Divisor parts;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    Index layer = block.index;
    const Index begin = parts.divide(layer) * in_part, end = begin + in_part < elements ? begin + in_part : elements;
    const double sum = block.template sum<double, 4>(end - begin, [&](Index i) { return term(layer, begin + i); });
    block.each(1, [&](Index) { sums[block.index] = sum; });
  }
};
struct SumsOfParts {
  static constexpr int threads = 256;
  const double* sums;
  double* all;
  Index parts;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const double sum = block.template sum<double>(parts, [&](Index i) { return sums[block.index * parts + i]; });
    block.each(1, [&](Index) { all[block.index] = sum; });
  }
};
template <class Term>
void sum_by_layer(const Call& call, const Term& term, Index layers, Index elements) {
  using Body = LayerSums<Term>;
  Gpu& own = gpu(call);
  double* const results = call.results[0].as<double>();
  const Index most =
      std::max<Index>(static_cast<Index>(Gpu::workspace_bytes / sizeof(double)) / std::max<Index>(layers, 1), 1);
  Index parts = std::min(most, parts_of(layers, elements, Body::threads * 4));
  const Index in_part = std::max<Index>(blocks_of(elements, parts), 1);
  parts = std::max<Index>(blocks_of(elements, in_part), 1);
  double* const room = parts == 1 ? results : static_cast<double*>(own.workspace());
  launch(own.stream(), layers * parts, Body{term, room, elements, in_part, Divisor(parts)});
  if (parts > 1) launch(own.stream(), layers, SumsOfParts{room, results, parts});
}

template <class T>
struct SquareOf {
  const T* x;
  Index stride;
  PARALLEL_DEVICE double operator()(Index layer, Index i) const {
    const auto value = static_cast<double>(widen(x[layer * stride + i]));
    return value * value;
  }
};
/// The sum of the squares of each layer, f64.
inline void layer_squares(const Call& call) {
  const View& x = call.operands[0];
  const MatrixPart part(x, stacked(call));
  with_real(x, [&]<class W>(W) {
    with_half<W>(x, [&]<class T>(T) {
      sum_by_layer(call, SquareOf<T>{x.as<const T>(), part.stride}, part.layers, part.stride);
    });
  });
}

/// Where an element of a rank's part stands in its matrix.
struct InMatrix {
  Divisor in_row, in_matrix;
  Index columns, rows, begin, matrices;
  explicit InMatrix(const MatrixPart& part)
      : in_row(std::max<Index>(part.columns, 1)),
        in_matrix(std::max<Index>(part.in_matrix, 1)),
        columns(part.columns),
        rows(part.rows),
        begin(part.begin),
        matrices(part.rows / std::max<Index>(part.in_matrix, 1)) {}
  /// f(row, column, matrix) among all layers', for element i of a layer.
  template <class F>
  PARALLEL_DEVICE auto at(Index layer, Index i, F f) const {
    Index row = begin + i;
    const Index column = in_row.divide(row);
    Index matrix = row;
    static_cast<void>(in_matrix.divide(matrix));
    matrix += layer * matrices;
    return f(layer * rows + row, matrix * columns + column, matrix);
  }
};

/// The sums over each row that a rank has something of: a warp a row.
template <class T>
struct RowSquares {
  static constexpr int threads = 256;
  const T* x;
  Wide<T>* sums;
  const double* factor;
  Index layers, rows, columns, begin, end, stride;

  template <class B>
  PARALLEL_DEVICE void operator()(B& block) const {
    block.each_warp([&](auto warp) {
      if (warp.index >= layers * rows) return;
      const Index layer = warp.index / rows, row = warp.index % rows;
      const Index first = begin - row * columns > 0 ? begin - row * columns : 0,
                  last = end - row * columns < columns ? end - row * columns : columns;
      const T* const from = x + layer * stride + row * columns - begin + first;
      const auto times = static_cast<Wide<T>>(*factor);
      const double sum = warp.template sum<double, 4>(last > first ? last - first : 0, [&](Index i) {
        const Wide<T> value = times * widen(from[i]);
        return static_cast<double>(value * value);
      });
      warp.each(1, [&](Index) { sums[warp.index] = static_cast<Wide<T>>(sum); });
    });
  }
};
/// The sums over each column: a block has 32 columns, and eight rows at a time.
template <class T>
struct ColumnSquares {
  static constexpr int threads = 256, across = 32, down = threads / across;
  static constexpr std::size_t shared_bytes = threads * sizeof(double);
  const T* x;
  Wide<T>* sums;
  const double* factor;
  Index matrices, in_matrix, columns, begin, end, stride, in_row;  // matrices: of a layer; in_row: blocks

  template <class B>
  PARALLEL_DEVICE void operator()(B& block) const {
    const Index matrix = block.index / in_row, first = block.index % in_row * across;
    const Index layer = matrix / matrices, of_layer = matrix % matrices;
    double* const room = block.template shared<double>();
    const auto times = static_cast<Wide<T>>(*factor);
    block.each(threads, [&](Index t) {
      double sum = 0;
      const Index column = first + t % across;
      for (Index r = t / across; r < in_matrix && column < columns; r += down) {
        const Index at = (of_layer * in_matrix + r) * columns + column;
        if (at < begin || at >= end) continue;
        const Wide<T> value = times * widen(x[layer * stride + at - begin]);
        sum += static_cast<double>(value * value);
      }
      room[t] = sum;
    });
    block.sync();
    block.each(across, [&](Index i) {
      if (first + i >= columns) return;
      double sum = 0;
      for (int d = 0; d < down; ++d) sum += room[d * across + i];
      sums[matrix * columns + first + i] = static_cast<Wide<T>>(sum);
    });
  }
};
/// (x, factor): sums of squares by row and by column, of what the rank has. Reads x twice.
template <class Out>
void factored_squares(const Call& call) {
  const View& x = call.operands[0];
  const MatrixPart part(x, call.results[0], call.results[1], stacked(call));
  const double* const factor = call.operands[1].as<const double>();
  const cudaStream_t stream = gpu(call).stream();
  with_element<Out>(x.dtype, [&]<class T>(T) {
    launch(stream, blocks_of(part.layers * part.rows, RowSquares<T>::threads / 32),
           RowSquares<T>{x.as<const T>(), call.results[0].as<Wide<T>>(), factor, part.layers, part.rows, part.columns,
                         part.begin, part.end, part.stride});
    const Index matrices = part.rows / part.in_matrix, in_row = blocks_of(part.columns, ColumnSquares<T>::across);
    launch(stream, part.layers * matrices * in_row,
           ColumnSquares<T>{x.as<const T>(), call.results[1].as<Wide<T>>(), factor, matrices, part.in_matrix,
                            part.columns, part.begin, part.end, part.stride, in_row},
           ColumnSquares<T>::shared_bytes);
  });
}

/// A mean of squares, of which the share t^-beta2_decay is forgotten. `from`: sums, or gradients, which are squared.
template <class S, bool of_gradient>
struct MeanOfSquares {
  S* mean;
  const Wide<S>* from;
  const double *step, *decay, *factor, *commit;
  double share;
  PARALLEL_DEVICE void operator()(Index i) const {
    if (skipped(commit)) return;
    using W = Wide<S>;
    const W weight = static_cast<W>(std::pow(*step, -*decay)), old = widen(mean[i]);
    W next = from[i];
    if constexpr (of_gradient) {
      next *= static_cast<W>(*factor);
      next *= next;
    } else {
      next *= static_cast<W>(share);
    }
    mean[i] = narrow<S>(old + weight * (next - old));
  }
};
template <class S, bool of_gradient>
void mean_of_squares(const Call& call) {
  const double* const scalars = scalars_of(call);
  launch_each(gpu(call).stream(), call.results[0].elements(),
              MeanOfSquares<S, of_gradient>{call.results[0].as<S>(), call.operands[1].as<const Wide<S>>(),
                                            scalars + call.ints[0], scalars + call.ints[1],
                                            of_gradient ? call.operands[2].as<const double>() : nullptr, call.commit,
                                            call.reals[0]});
}
template <class S>
void adafactor_mean(const Call& call) {
  mean_of_squares<S, false>(call);
}
template <class S>
void adafactor_squares(const Call& call) {
  mean_of_squares<S, true>(call);
}

/// The update of an element before it is clipped.
template <class T, class S>
struct FactoredUpdate {
  const T* gradient;
  const double *factor, *epsilon;
  const S *rows, *columns;
  const Wide<T>* mean;
  Index stride;
  InMatrix where;

  PARALLEL_DEVICE Wide<T> operator()(Index layer, Index i) const {
    using W = Wide<T>;
    const W least = *epsilon > 0 ? static_cast<W>(*epsilon) : std::numeric_limits<W>::epsilon();
    return where.at(layer, i, [&](Index row, Index column, Index matrix) {
      const W of_rows = mean[matrix] > least ? mean[matrix] : least;
      const W squares = widen(rows[row]) / of_rows * widen(columns[column]);
      return static_cast<W>(*factor) * widen(gradient[layer * stride + i]) /
             std::sqrt(squares > least * least ? squares : least * least);
    });
  }
};
template <class T, class S>
struct FullUpdate {
  const T* gradient;
  const double *factor, *epsilon;
  const S* squares;
  Index stride;

  PARALLEL_DEVICE Wide<T> operator()(Index layer, Index i) const {
    using W = Wide<T>;
    const W least = *epsilon > 0 ? static_cast<W>(*epsilon) : std::numeric_limits<W>::epsilon();
    const Index at = layer * stride + i;
    const W mean = widen(squares[at]);
    return static_cast<W>(*factor) * widen(gradient[at]) / std::sqrt(mean > least * least ? mean : least * least);
  }
};
/// `first`: of the operands the gradient, beside a parameter of T; f(update, part).
template <class T, class F>
void with_factored_update(const Call& call, int first, F f) {
  const View &x = call.operands[first], &rows = call.operands[first + 2], &columns = call.operands[first + 3];
  const MatrixPart part(x, rows, columns, stacked(call));
  with_half<T>(x, [&]<class G>(G) {
    with_half<T>(rows, [&]<class S>(S) {
      f(FactoredUpdate<G, S>{x.as<const G>(), call.operands[first + 1].as<const double>(),
                             scalars_of(call) + call.ints[0], rows.as<const S>(), columns.as<const S>(),
                             call.operands[first + 4].as<const Wide<G>>(), part.stride, InMatrix(part)},
        part);
    });
  });
}
template <class T, class F>
void with_full_update(const Call& call, int first, F f) {
  const View &x = call.operands[first], &squares = call.operands[first + 2];
  const MatrixPart part(x, stacked(call));
  with_half<T>(x, [&]<class G>(G) {
    with_half<T>(squares, [&]<class S>(S) {
      f(FullUpdate<G, S>{x.as<const G>(), call.operands[first + 1].as<const double>(), scalars_of(call) + call.ints[0],
                         squares.as<const S>(), part.stride},
        part);
    });
  });
}
template <class Step>
struct SquareOfUpdate {
  Step step;
  PARALLEL_DEVICE double operator()(Index layer, Index i) const {
    const auto u = static_cast<double>(step(layer, i));
    return u * u;
  }
};
inline void factored_update_squares(const Call& call) {
  with_real(call.operands[0], [&]<class T>(T) {
    with_factored_update<T>(call, 0, [&](const auto& update, const MatrixPart& part) {
      sum_by_layer(call, SquareOfUpdate<std::decay_t<decltype(update)>>{update}, part.layers, part.end - part.begin);
    });
  });
}
inline void full_update_squares(const Call& call) {
  with_real(call.operands[0], [&]<class T>(T) {
    with_full_update<T>(call, 0, [&](const auto& update, const MatrixPart& part) {
      sum_by_layer(call, SquareOfUpdate<std::decay_t<decltype(update)>>{update}, part.layers, part.stride);
    });
  });
}

/// By how much of its update a layer is changed.
struct AdafactorSize {
  const double *update, *parameter, *rate, *step, *least, *threshold;
  double* size;
  double elements;
  PARALLEL_DEVICE void operator()(Index l) const {
    const double of_update = std::sqrt(update[l] / elements) / *threshold,
                 of_parameter = std::sqrt(parameter[l] / elements), most = 1 / std::sqrt(*step);
    size[l] = (*rate < most ? *rate : most) * (*least > of_parameter ? *least : of_parameter) /
              (of_update > 1 ? of_update : 1);
  }
};
inline void adafactor_size(const Call& call) {
  const double* const scalars = scalars_of(call);
  launch_each(gpu(call).stream(), call.results[0].elements(),
              AdafactorSize{call.operands[0].as<const double>(), call.operands[1].as<const double>(),
                            scalars + call.ints[0], scalars + call.ints[1], scalars + call.ints[2],
                            scalars + call.ints[3], call.results[0].as<double>(), call.reals[0]});
}

template <class T, class Step>
struct StepOf {
  Step step;
  T* parameter;
  const double *size, *rate, *decay, *commit;
  Divisor in_layer;
  Index stride;
  bool decays;
  PARALLEL_DEVICE void operator()(Index i) const {
    if (skipped(commit)) return;
    Index layer = i;
    const Index at = in_layer.divide(layer);
    T& p = parameter[layer * stride + at];
    const auto kept = static_cast<Wide<T>>(decays ? 1 - *rate * *decay : 1);
    p = narrow<T>(kept * widen(p) - static_cast<Wide<T>>(size[layer]) * step(layer, at));
  }
};
template <class T, class Step>
void step_by(const Call& call, const Step& step, const MatrixPart& part, Index of_layer, const View& size) {
  const double* const scalars = scalars_of(call);
  if (of_layer == 0) return;
  launch_each(gpu(call).stream(), part.layers * of_layer,
              StepOf<T, Step>{step, call.results[0].as<T>(), size.as<const double>(), scalars + call.ints[1],
                              scalars + call.ints[2], call.commit, Divisor(of_layer), part.stride, call.ints[3] != 0});
}
template <class T>
void adafactor(const Call& call) {
  with_factored_update<T>(call, 1, [&](const auto& update, const MatrixPart& part) {
    step_by<T>(call, update, part, part.end - part.begin, call.operands[6]);
  });
}
template <class T>
void adafactor_full(const Call& call) {
  with_full_update<T>(call, 1, [&](const auto& update, const MatrixPart& part) {
    step_by<T>(call, update, part, part.stride, call.operands[4]);
  });
}

}  // namespace parallel::internals::cuda
