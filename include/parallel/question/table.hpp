// Rows of cells as lines of text: a column is as wide as what stands in it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace parallel::printing {

/// A line of a table.
struct Row {
  std::vector<std::string> cells{};
  bool runs_on = false;  ///< the last cell runs on over the columns behind it: a heading, a list
};

/// Rows whose columns stand below each other.
struct Table {
  std::vector<std::size_t> widths{};  ///< of the columns, at least
  std::vector<Row> rows{};

  /// A line each, with a newline.
  std::string text() const {
    std::vector<std::size_t> wide = widths;
    for (const Row& row : rows)
      for (std::size_t c = 0; c + (row.runs_on ? 1 : 0) < row.cells.size(); ++c) {
        if (c == wide.size()) wide.push_back(0);
        if (wide[c] < row.cells[c].size() + 2) wide[c] = row.cells[c].size() + 2;
      }
    std::string out;
    for (const Row& row : rows) {
      std::string line;
      std::size_t column = 0;
      for (std::size_t c = 0; c < row.cells.size(); column += wide[c++])
        if (!row.cells[c].empty()) {
          line.resize(column, ' ');
          line += row.cells[c];
        }
      out += line + "\n";
    }
    return out;
  }
};

}  // namespace parallel::printing
