// A rank's part of a parameter as matrices, of whole ones or of a share of a flat view, for kernels of every device.
#pragma once
#include <algorithm>

#include <parallel/device/kernel.hpp>

namespace parallel::internals {

/// Elements lie layer by layer, `stride` apart; of a layer a rank has those from `begin` to `end` of its matrices,
/// which are `rows` times `columns` each, one behind the other. What the axes that split dimensions leave counts as
/// whole.
struct MatrixPart {
  std::int64_t layers = 1, rows = 1, columns = 1;
  std::int64_t begin = 0, end = 0, stride = 0;

  /// Of what is no matrix, or where only layers matter.
  MatrixPart(const View& x, bool stacked) : layers(stacked ? x.size[0] : 1) {
    stride = layers > 0 ? x.elements() / layers : 0;
    end = stride;
    columns = std::max<std::int64_t>(stride, 1);
  }
  /// `by_row`, `by_column`: what has all its dimensions but the last, or the last but one.
  MatrixPart(const View& x, const View& by_row, const View& by_column, bool stacked) : MatrixPart(x, stacked) {
    rows = layers > 0 ? by_row.elements() / layers : 0;  // of all matrices
    columns = by_column.size[by_column.rank - 1];
    in_matrix = by_row.size[by_row.rank - 1];
    if (x.rank == by_row.rank + 1) return;
    begin = x.offset[x.rank - 1];
    end = std::max(begin, x.whole[x.rank - 1]);
  }
  std::int64_t in_matrix = 1;  ///< rows of one

  /// The first row of which the part has something, and the one behind the last.
  std::int64_t first_row() const { return begin / columns; }
  std::int64_t last_row() const { return end > begin ? (end - 1) / columns + 1 : first_row(); }
  /// Of a row the columns that the part has.
  std::int64_t from(std::int64_t row) const { return std::max(begin - row * columns, std::int64_t{0}); }
  std::int64_t to(std::int64_t row) const { return std::min(end - row * columns, columns); }
  /// Where in the part element (layer, row, 0) lies, or would.
  std::int64_t at(std::int64_t layer, std::int64_t row) const { return layer * stride + row * columns - begin; }
  /// Where a row's matrix begins among the columns.
  std::int64_t columns_of(std::int64_t layer, std::int64_t row) const {
    return (layer * (rows / in_matrix) + row / in_matrix) * columns;
  }
  std::int64_t matrix_of(std::int64_t layer, std::int64_t row) const {
    return layer * (rows / in_matrix) + row / in_matrix;
  }
};

}  // namespace parallel::internals
