// A rank's part of a matrix or vector as a map of Eigen's, for a program's own code: nothing is copied.
#pragma once
#include <parallel/device/cpu/array.hpp>

namespace parallel::internals {

template <class T>
using RowsOf =
    std::conditional_t<std::is_const_v<T>,
                       const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                       Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

/// A part that lies in the host's memory: of a matrix its rows and columns, of a vector a column, of what this rank has
/// nothing of none. Throws Failure where T is not the view's element type, and for a tensor of more dimensions.
template <class T>
Eigen::Map<RowsOf<T>> as_matrix(const View& part) {
  if (part.rank > 2)
    throw Failure("a view of " + std::to_string(part.rank) +
                      " dimensions is taken for a matrix; take its elements by span(), or map its data by rows and "
                      "columns of your own",
                  exit_code::internal);
  if (part.data == nullptr) return {nullptr, 0, 0};
  return {part.as<T>(), part.extent(0, std::min(part.rank, 1)), part.extent(1, part.rank)};
}

}  // namespace parallel::internals

namespace parallel {
using internals::as_matrix;
}  // namespace parallel
