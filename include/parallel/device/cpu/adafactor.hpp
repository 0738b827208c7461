// What optimizers make of whole matrices and layers: sums of squares, and Adafactor's updates, in sweeps over the
// gradient that write nothing of its size.
#pragma once
#include <parallel/device/cpu/optimizer.hpp>
#include <parallel/device/matrices.hpp>

namespace parallel::internals::cpu {

// Operands and positions stand at the operations (operation/optimizing.hpp).

/// The last whole number: whether layers are stacked.
inline bool stacked(const Call& call) { return call.ints[call.ints.size() - 1] != 0; }
/// f(T{}) for the element type of a view of reals.
template <class F>
void with_real(const View& x, F f) {
  x.dtype == DType::f64 ? f(double{}) : f(float{});
}

/// The sum of the squares of each layer, f64.
inline void layer_squares(const Call& call) {
  const View& x = call.operands[0];
  const MatrixPart part(x, stacked(call));
  with_real(x, [&]<class T>(T) {
    for (Index l = 0; l < part.layers; ++l)
      call.results[0].as<double>()[l] = sum_of_squares(x.as<const T>() + l * part.stride, part.stride);
  });
}

/// (x, factor): sums of squares by row and by column, of what the rank has.
template <class T>
[[gnu::flatten]] void factored_squares(const Call& call) {
  const View &x = call.operands[0], &rows = call.results[0], &columns = call.results[1];
  const MatrixPart part(x, rows, columns, stacked(call));
  const T factor = static_cast<T>(*call.operands[1].as<const double>());
  set(rows.as<T>(), rows.elements(), T{0});
  set(columns.as<T>(), columns.elements(), T{0});
  for (Index l = 0; l < part.layers; ++l)
    for (Index r = part.first_row(); r < part.last_row(); ++r) {
      const Index from = part.from(r), n = part.to(r) - from;
      Lanes<T> sum = Lanes<T>::Zero();
      by_lanes(
          n,
          [&](T* column, const T* some) {
            const Lanes<T> square = (factor * lanes(some)).square();
            lanes(column) += square;
            sum += square;  // behind the last element lanes are 0
          },
          columns.as<T>() + part.columns_of(l, r) + from, x.as<const T>() + part.at(l, r) + from);
      rows.as<T>()[l * part.rows + r] = sum.sum();
    }
}

/// What Adafactor forgets of a mean: t to the power of -beta2_decay.
template <class T>
T forgotten(const Call& call) {
  const double* const scalars = scalars_of(call);
  return static_cast<T>(std::pow(scalars[call.ints[0]], -scalars[call.ints[1]]));
}
template <class T>
[[gnu::flatten]] void adafactor_mean(const Call& call) {
  const T weight = forgotten<T>(call), share = static_cast<T>(call.reals[0]);
  by_lanes(
      call.results[0].elements(),
      [=](T* mean, const T* sum) { lanes(mean) += weight * (share * lanes(sum) - lanes(mean)); },
      call.results[0].as<T>(), call.operands[1].as<const T>());
}
template <class T>
[[gnu::flatten]] void adafactor_squares(const Call& call) {
  const T weight = forgotten<T>(call), factor = static_cast<T>(*call.operands[2].as<const double>());
  by_lanes(
      call.results[0].elements(),
      [=](T* mean, const T* gradient) { lanes(mean) += weight * ((factor * lanes(gradient)).square() - lanes(mean)); },
      call.results[0].as<T>(), call.operands[1].as<const T>());
}

template <class T>
T least_root(double epsilon) {
  return epsilon > 0 ? static_cast<T>(epsilon) : std::numeric_limits<T>::epsilon();
}
/// Calls row(part, layer, row, begin, count, share, position) for each row of which the rank has something, where share
/// times a column's mean is the mean of an element's squares. `first`: of the operands rows, columns and mean of rows.
template <class T, class Row>
[[gnu::always_inline]] inline void by_rows(const Call& call, const View& x, int first, T least, Row row) {
  const View &rows = call.operands[first], &columns = call.operands[first + 1], &mean = call.operands[first + 2];
  const MatrixPart part(x, rows, columns, stacked(call));
  for (Index l = 0; l < part.layers; ++l)
    for (Index r = part.first_row(); r < part.last_row(); ++r) {
      const Index from = part.from(r);
      const T share = rows.as<const T>()[l * part.rows + r] / std::max(mean.as<const T>()[part.matrix_of(l, r)], least);
      row(l, part.at(l, r) + from, part.to(r) - from, share, columns.as<const T>() + part.columns_of(l, r) + from);
    }
}
/// The update before it is clipped.
template <class T, class G, class V>
[[gnu::always_inline]] inline Lanes<T> of_root(const G& g, const V& mean_of_squares, T least) {
  return g / mean_of_squares.max(least * least).sqrt();
}

template <class T>
[[gnu::flatten]] void factored_update_squares_of(const Call& call) {
  const View& x = call.operands[0];
  const T factor = static_cast<T>(*call.operands[1].as<const double>()),
          least = least_root<T>(call.operands[5].as<const double>()[call.ints[0]]);
  double* const sums = call.results[0].as<double>();
  std::fill_n(sums, call.results[0].elements(), 0.0);
  by_rows<T>(call, x, 2, least, [=](Index l, Index at, Index n, T share, const T* columns) {
    sums[l] += static_cast<double>(sum_by_lanes<T>(
        n,
        [=](const T* g, const T* column) -> Lanes<T> {
          return of_root<T>(factor * lanes(g), share * lanes(column), least).square();
        },
        x.as<const T>() + at, columns));
  });
}
inline void factored_update_squares(const Call& call) {
  with_real(call.operands[0], [&]<class T>(T) { factored_update_squares_of<T>(call); });
}
template <class T>
[[gnu::flatten]] void full_update_squares_of(const Call& call) {
  const View& x = call.operands[0];
  const MatrixPart part(x, stacked(call));
  const T factor = static_cast<T>(*call.operands[1].as<const double>()),
          least = least_root<T>(call.operands[3].as<const double>()[call.ints[0]]);
  for (Index l = 0; l < part.layers; ++l)
    call.results[0].as<double>()[l] = static_cast<double>(sum_by_lanes<T>(
        part.stride,
        [=](const T* g, const T* squares) -> Lanes<T> {
          return of_root<T>(factor * lanes(g), lanes(squares), least).square();
        },
        x.as<const T>() + l * part.stride, call.operands[2].as<const T>() + l * part.stride));
}
inline void full_update_squares(const Call& call) {
  with_real(call.operands[0], [&]<class T>(T) { full_update_squares_of<T>(call); });
}

/// (squares of the update, squares of the parameter, scalars): by how much of the update a parameter is changed.
inline void adafactor_size(const Call& call) {
  const double* const scalars = call.operands[2].as<const double>();
  const double rate = scalars[call.ints[0]], step = scalars[call.ints[1]], least = scalars[call.ints[2]],
               threshold = scalars[call.ints[3]], elements = call.reals[0];
  for (Index l = 0; l < call.results[0].elements(); ++l) {
    const double update = std::sqrt(call.operands[0].as<const double>()[l] / elements),
                 parameter = std::sqrt(call.operands[1].as<const double>()[l] / elements);
    call.results[0].as<double>()[l] =
        std::min(rate, 1 / std::sqrt(step)) * std::max(least, parameter) / std::max(1.0, update / threshold);
  }
}

/// What is left of a parameter that decays.
template <class T>
T left_of_parameter(const Call& call) {
  const double* const scalars = scalars_of(call);
  return static_cast<T>(call.ints[3] != 0 ? 1 - scalars[call.ints[1]] * scalars[call.ints[2]] : 1);
}
template <class T>
[[gnu::flatten]] void adafactor(const Call& call) {
  const View &x = call.results[0], &g = call.operands[1];
  const T factor = static_cast<T>(*call.operands[2].as<const double>()), kept = left_of_parameter<T>(call),
          least = least_root<T>(call.operands[7].as<const double>()[call.ints[0]]);
  const double* const sizes = call.operands[6].as<const double>();
  by_rows<T>(call, x, 3, least, [=, &x, &g](Index l, Index at, Index n, T share, const T* columns) {
    const T size = static_cast<T>(sizes[l]);
    by_lanes(
        n,
        [=](T* p, const T* gradient, const T* column) {
          lanes(p) = kept * lanes(p) - size * of_root<T>(factor * lanes(gradient), share * lanes(column), least);
        },
        x.as<T>() + at, g.as<const T>() + at, columns);
  });
}
template <class T>
[[gnu::flatten]] void adafactor_full(const Call& call) {
  const View &x = call.results[0], &g = call.operands[1], &squares = call.operands[3];
  const MatrixPart part(x, stacked(call));
  const T factor = static_cast<T>(*call.operands[2].as<const double>()), kept = left_of_parameter<T>(call),
          least = least_root<T>(call.operands[5].as<const double>()[call.ints[0]]);
  for (Index l = 0; l < part.layers; ++l) {
    const T size = static_cast<T>(call.operands[4].as<const double>()[l]);
    by_lanes(
        part.stride,
        [=](T* p, const T* gradient, const T* mean) {
          lanes(p) = kept * lanes(p) - size * of_root<T>(factor * lanes(gradient), lanes(mean), least);
        },
        x.as<T>() + l * part.stride, g.as<const T>() + l * part.stride, squares.as<const T>() + l * part.stride);
  }
}

}  // namespace parallel::internals::cpu
