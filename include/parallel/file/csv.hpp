// Tables of numbers as text: CSV after RFC 4180, with another separator if need be.
#pragma once
#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/file/mapped_file.hpp>
#include <parallel/meta/letters.hpp>

namespace parallel::internals {

/// How a table of numbers is read.
struct CsvOptions {
  bool header = true;                  ///< the first line names the columns
  std::vector<std::string> columns{};  ///< those to read, in this order; none: all. Others may hold anything
  char separator = ',';
  std::optional<double> empty{};  ///< what an empty field is; none: it is refused
};

/// Row by row, so `values` is a tensor of shape [rows, columns].
template <class T>
struct CsvTable {
  std::vector<std::string> columns{};  ///< their names; "1", "2" and so on where the file has none
  std::size_t rows = 0;
  std::vector<T> values{};
  std::span<const T> row(std::size_t r) const { return std::span(values).subspan(r * columns.size(), columns.size()); }
};

/// Goes through a CSV file field by field, and knows where it is.
class CsvFields {
 public:
  CsvFields(const MappedFile& in, char separator) : in_(in), text_(in.text()), separator_(separator) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a mark that the text is UTF-8
  }
  /// Goes to the next line that is not empty; false at the end.
  bool next_line() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) step();
    column_ = 0;
    ended_ = false;
    return at_ < text_.size();
  }
  /// The next field of the line, without its quotes and the spaces about it; nothing behind the last. Stands until the
  /// next call.
  std::optional<std::string_view> next_field() {
    if (ended_) return std::nullopt;
    ++column_;
    field_line_ = line_;
    std::string_view field;
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '"') {
      field = quoted();
      skip_spaces();
    } else {
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      field = text_.substr(begin, at_ - begin);
      while (field.ends_with(' ') || field.ends_with('\t')) field.remove_suffix(1);
    }
    ended_ = at_ == text_.size() || text_[at_] != separator_;
    if (!ended_)
      ++at_;
    else if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r')
      throw refused("has something behind its closing quote");
    return field;
  }
  Failure refused(const std::string& why) const {
    return damaged(in_.file(),
                   "line " + std::to_string(field_line_) + ", column " + std::to_string(column_) + " " + why);
  }
  std::size_t column() const { return column_; }

 private:
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t') && text_[at_] != separator_) ++at_;
  }
  std::string_view quoted() {
    unquoted_.clear();
    for (++at_; at_ < text_.size(); step()) {
      if (text_[at_] == '"') {
        if (!text_.substr(at_ + 1).starts_with('"')) {
          ++at_;
          return unquoted_;
        }
        ++at_;
      }
      unquoted_ += text_[at_];
    }
    throw refused("begins with a quote that nothing closes");
  }

  const MappedFile& in_;
  std::string_view text_;
  char separator_;
  std::size_t at_ = 0, line_ = 1, field_line_ = 1, column_ = 0;
  bool ended_ = true;
  std::string unquoted_{};
};

/// How many lines of a text are not empty; more where fields have ends of lines.
inline std::size_t lines_of(std::string_view text) {
  std::size_t lines = 0;
  bool ended = true;
  for (const char c : text) {
    const bool ends = c == '\n' || c == '\r';
    lines += ended && !ends ? 1 : 0;
    ended = ends;
  }
  return lines;
}

/// Whether names of columns are numbers, and not such as count the columns: then they are a row.
inline bool are_numbers(const std::vector<std::string>& names) {
  bool numbers = true, count = true;
  for (std::size_t c = 0; c < names.size(); ++c) {
    const char* const end = names[c].data() + names[c].size();
    double value = 0;
    const auto parsed = std::from_chars(names[c].data(), end, value);
    numbers = numbers && parsed.ec == std::errc{} && parsed.ptr == end;
    count = count && names[c] == std::to_string(c + (names[0] == "1" ? 1 : 0));
  }
  return numbers && !count;
}

/// A table of numbers, in the memory that these take. Throws Failure: missing_input where there is no file; bad_data,
/// with line and column, where a field is no number, a line has more or fewer fields than the first, a column that is
/// asked for is not there, there are no lines, or that which is to name the columns has numbers.
template <class T = float>
CsvTable<T> read_csv(const std::string& file, const CsvOptions& how = {}) {
  const MappedFile in(file);
  CsvTable<T> table;
  std::vector<std::string> names;
  CsvFields first(in, how.separator);
  if (!first.next_line()) throw damaged(file, "it has no lines; its first names the columns");
  while (const auto field = first.next_field())
    names.push_back(how.header ? std::string(*field) : std::to_string(names.size() + 1));
  if (how.header && are_numbers(names))
    throw damaged(file, "its first line has numbers, but is to name the columns; say {.header = false}");
  table.columns = how.columns.empty() ? names : how.columns;

  std::vector<std::size_t> place(names.size(), table.columns.size());  // in a row of the table; the last: nowhere
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto found = how.columns.empty() ? names.begin() + static_cast<std::ptrdiff_t>(c)
                                           : std::find(names.begin(), names.end(), table.columns[c]);
    if (found == names.end()) {
      std::string known;
      for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
      throw damaged(file, "it has no column '" + table.columns[c] + "' in its first line; it has " + known);
    }
    std::size_t& to = place[static_cast<std::size_t>(found - names.begin())];
    if (to != table.columns.size()) throw damaged(file, "its column '" + table.columns[c] + "' is asked for twice");
    if (!how.columns.empty() && std::find(found + 1, names.end(), table.columns[c]) != names.end())
      throw damaged(file, "it has two columns '" + table.columns[c] + "', so which is meant nobody knows");
    to = c;
  }

  // As large as it will be, and never twice while it grows. A line has a separator less than the first has fields, and
  // its end, so that no file has more lines than this, however many are empty.
  const std::size_t lines =
      std::min(lines_of(in.text()), in.text().size() / std::max(names.size(), std::size_t{2}) + 1);
  table.values.reserve(lines * table.columns.size());

  CsvFields fields = how.header ? std::move(first) : CsvFields(in, how.separator);  // or the first line is numbers, too
  const auto number = [&](std::string_view field) {
    if (field.empty() && how.empty) return static_cast<T>(*how.empty);
    T value{};
    std::string_view digits = field;
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range)
      throw fields.refused("is '" + std::string(field.substr(0, 40)) + "', a number that is too large or too small");
    if (error != std::errc{} || end != digits.data() + digits.size())
      throw fields.refused("is '" + std::string(field.substr(0, 40)) + "'; a " +
                           (std::is_integral_v<T> ? "whole number" : "number") + " is expected" +
                           (field.find_first_of(";\t|") < field.size()
                                ? "; say what separates the columns, as in {.separator = ';'}"
                                : ""));
    return value;
  };
  while (fields.next_line()) {
    table.values.resize(table.values.size() + table.columns.size());
    T* const row = table.values.data() + table.rows * table.columns.size();
    while (const auto field = fields.next_field()) {
      if (fields.column() > names.size())
        throw fields.refused("is one more than the " + std::to_string(names.size()) + " of the first line");
      const std::size_t to = place[fields.column() - 1];
      if (to < table.columns.size()) row[to] = number(*field);
    }
    if (fields.column() < names.size())
      throw fields.refused("is the last, but the first line has " + std::to_string(names.size()));
    ++table.rows;
  }
  return table;
}

}  // namespace parallel::internals

namespace parallel {
using internals::CsvOptions;
using internals::CsvTable;
using internals::read_csv;
}  // namespace parallel
