// Weights of others: a table says which tensors of a file are which parameters, and how they lie; by it a model is read
// from a file, and written to one. Needs nlohmann-json.
#pragma once
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/file/file_tensor.hpp>
#include <parallel/file/write_safetensors.hpp>
#include <parallel/run/arrangement.hpp>
#include <parallel/run/checkpoint.hpp>
#include <parallel/run/executor.hpp>

namespace parallel::internals {

/// A parameter by its path, the tensors of the file that it is, and how it lies in them. In a name {} is the number of a
/// layer; where none is said, all layers are one tensor, the first dimension of it.
struct WeightRow {
  std::string member;              ///< "blocks.*.attention.q"
  std::vector<std::string> names;  ///< one, or several among which the pattern cuts the parameter
  std::string pattern{};           ///< "in heads size -> (heads size) in", as Arrangement says; none: alike
};

/// Which tensors of a file are which parameters.
struct WeightTable {
  std::vector<WeightRow> rows{};
  /// Names, each with the tensor that it says again: where the file has it, it must be the same, and it is not written.
  std::vector<std::pair<std::string, std::string>> tied{};
  std::vector<std::string> ignored{};  ///< what files have beside, which is neither read nor written

  /// The same for a model that is a member of another, "model".
  WeightTable below(const std::string& path) const {
    WeightTable all = *this;
    for (WeightRow& row : all.rows) row.member = path + "." + row.member;
    return all;
  }
};

namespace weights {
inline constexpr std::string_view layer_number = "{}";

inline bool numbered(const std::string& name) { return name.find(layer_number) != std::string::npos; }
inline std::string of_layer(std::string name, std::int64_t number) {
  if (const std::size_t at = name.find(layer_number); at != std::string::npos)
    name.replace(at, layer_number.size(), std::to_string(number));
  return name;
}
/// Whether a name is this one, of any layer.
inline bool matches(std::string_view name, std::string_view pattern) {
  const std::size_t at = pattern.find(layer_number);
  if (at == std::string_view::npos) return name == pattern;
  const std::string_view behind = pattern.substr(at + layer_number.size());
  if (name.size() <= at + behind.size() || !name.starts_with(pattern.substr(0, at)) || !name.ends_with(behind))
    return false;
  name = name.substr(at, name.size() - at - behind.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}
inline std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string all = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) all += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  return all + "]";
}

/// A row for a program: what it is for, how it lies, and its tensors layer by layer.
struct Bound {
  std::string member;
  Type type{};
  Arrangement how;
  std::int64_t tensors_a_layer = 1;
  std::vector<std::string> names{};
};

/// The table for an executor's program. Throws Misuse where they are not for each other.
template <class Running>
std::vector<Bound> bound(const Running& executor, const WeightTable& table) {
  std::vector<Bound> all;
  const GraphView& g = executor.plan().graph;
  for (const Member& m : g.members) {
    if (m.role != Role::parameter) continue;
    const std::string path(g.path(m));
    const auto row =
        std::find_if(table.rows.begin(), table.rows.end(), [&](const auto& r) { return r.member == path; });
    if (row == table.rows.end())
      throw Misuse("the table of weights has no row for the parameter " + path + "; give it one");
    if (std::find_if(row + 1, table.rows.end(), [&](const auto& r) { return r.member == path; }) != table.rows.end())
      throw Misuse("the table of weights has two rows for the parameter " + path + "; leave one");
    const bool apart = !row->names.empty() && numbered(row->names[0]);
    for (const std::string& name : row->names)
      if (numbered(name) != apart || (apart && m.layers == 0))
        throw Misuse("the row of " + path + " names " + name + "; " +
                     (m.layers == 0 ? "a parameter that is no layer's has no {} in its name"
                                    : "all names of a row have {}, or none"));
    std::vector<std::int64_t> shape = checkpointing::shape_of(m.type.layout);
    if (m.layers > 0) shape.erase(shape.begin());
    const auto tensors = static_cast<std::int64_t>(row->names.size());
    Bound p{path, m.type, Arrangement(row->pattern, shape, m.layers, apart, tensors), tensors, {}};
    for (std::int64_t l = 0; l < (apart ? m.layers : 1); ++l)
      for (const std::string& name : row->names) p.names.push_back(of_layer(name, l));
    all.push_back(std::move(p));
  }
  for (const WeightRow& row : table.rows)
    if (std::none_of(all.begin(), all.end(), [&](const Bound& p) { return p.member == row.member; }))
      throw Misuse("the table of weights has a row for " + row.member + ", but the program no such parameter; it has " +
                   (all.empty() ? "none" : all[0].member + " and others"));
  return all;
}

template <class To, class From>
To converted(const std::byte* at) {
  From from;
  std::memcpy(&from, at, sizeof from);
  if constexpr (std::is_same_v<From, float> || std::is_same_v<From, double>)
    return static_cast<To>(from);
  else
    return static_cast<To>(static_cast<float>(from));
}
/// f(T()), for the element type of a file.
template <class F>
bool of_reals(FileDType dtype, F f) {
  switch (dtype) {
    case FileDType::F32: return f(float()), true;
    case FileDType::F64: return f(double()), true;
    case FileDType::BF16: return f(bfloat16()), true;
    case FileDType::F16: return f(float16()), true;
    default: return false;
  }
}

/// Elements of a file on their way into a program. Rows of a matrix that is turned are columns of the file: several that
/// are neighbours there go together, so that each line of memory is read once.
class Rows {
 public:
  explicit Rows(DType to) : dtype_(to) {}
  /// `count` elements that lie `step` apart from `index` on.
  void add(const FileTensor& of, std::int64_t index, std::int64_t step, std::int64_t count, std::byte* to) {
    const std::byte* const from = of.bytes.data() + index * (bits_of(of.dtype) / 8);
    const bool next = rows_ > 0 && rows_ < most && step > 1 && step == step_ && count == count_ &&
                      of.dtype == file_dtype_ && from == from_ + rows_ * (bits_of(of.dtype) / 8) &&
                      (rows_ == 1 || to == to_ + rows_ * apart_);
    if (!next) finish();
    if (rows_ == 0) from_ = from, to_ = to, step_ = step, count_ = count, file_dtype_ = of.dtype;
    if (rows_ == 1) apart_ = to - to_;
    ++rows_;
  }
  /// All that was added is where it belongs.
  void finish() {
    if (rows_ > 0)
      of_reals(file_dtype_,
               [&]<class From>(From) { dtype_ == DType::f64 ? move_all<double, From>() : move_all<float, From>(); });
    rows_ = 0;
  }

 private:
  static constexpr std::int64_t most = 64, wide = 16;  ///< rows, and how much of each at once: a line
  template <class To, class From>
  void move() const {
    const auto at = [&](std::int64_t r, std::int64_t i) {
      return converted<To, From>(from_ + (i * step_ + r) * static_cast<std::int64_t>(sizeof(From)));
    };
    const auto put = [&](std::int64_t r, std::int64_t begin, const To* from, std::int64_t n) {
      std::memcpy(to_ + r * apart_ + begin * static_cast<std::int64_t>(sizeof(To)), from,
                  static_cast<std::size_t>(n) * sizeof(To));
    };
    To tile[most][wide];
    for (std::int64_t begin = 0; begin < count_; begin += wide) {
      const std::int64_t n = std::min(wide, count_ - begin);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t r = 0; r < rows_; ++r) tile[r][i] = at(r, begin + i);
      for (std::int64_t r = 0; r < rows_; ++r) put(r, begin, tile[r], n);
    }
  }
  /// Elements that lie one behind the other, which are one row.
  template <class To, class From>
  void move_row() const {
    if constexpr (std::is_same_v<To, From>)
      return static_cast<void>(std::memcpy(to_, from_, static_cast<std::size_t>(count_) * sizeof(To)));
    for (std::int64_t i = 0; i < count_; ++i) {
      const To value = converted<To, From>(from_ + i * static_cast<std::int64_t>(sizeof(From)));
      std::memcpy(to_ + i * static_cast<std::int64_t>(sizeof(To)), &value, sizeof value);
    }
  }
  template <class To, class From>
  void move_all() const {
    step_ == 1 ? move_row<To, From>() : move<To, From>();
  }

  DType dtype_;
  FileDType file_dtype_ = FileDType::F32;
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  std::int64_t rows_ = 0, step_ = 1, count_ = 0, apart_ = 0;
};

/// A tensor that a file has as the table says. Throws Failure(bad_data) where it has not.
template <class Files>
FileTensor found(const Files& from, const std::string& name, const Bound& p) {
  const std::string for_whom = ", which is " + p.member;
  if (!from.contains(name)) {
    std::string like;
    for (std::size_t i = 0; i < from.size() && like.empty(); ++i) {
      const std::string other = from[i].name;
      if (other.ends_with("." + name) || name.ends_with("." + other)) like = "; it has " + other;
    }
    throw damaged(from.file(), "it has no tensor " + name + for_whom + like);
  }
  FileTensor t = from[name];
  if (!of_reals(t.dtype, [](auto) {}))
    throw damaged(t.in->file(), "the tensor " + name + " has elements of " + std::string(name_of(t.dtype)) +
                                    "; weights are F32, F16, BF16 or F64");
  if (t.shape != p.how.file_shape())
    throw damaged(t.in->file(), "the tensor " + name + for_whom + ", is " + text_of(t.shape) + ", but " +
                                    text_of(p.how.file_shape()) + " is expected");
  return t;
}

/// What a table does not read is what it says. Throws Failure(bad_data).
template <class Files>
void check_rest(const Files& from, const std::vector<Bound>& all, const WeightTable& table) {
  std::set<std::string, std::less<>> known;
  for (const Bound& p : all) known.insert(p.names.begin(), p.names.end());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const FileTensor t = from[i];
    const auto tied =
        std::find_if(table.tied.begin(), table.tied.end(), [&](const auto& x) { return x.first == t.name; });
    if (known.count(t.name) > 0) continue;
    if (tied != table.tied.end()) {
      const FileTensor same = from[tied->second];
      if (t.dtype != same.dtype || t.shape != same.shape || !std::ranges::equal(t.bytes, same.bytes))
        throw damaged(t.in->file(),
                      "the tensor " + t.name + " is not " + same.name + " again; the model has one for both");
    } else if (std::none_of(table.ignored.begin(), table.ignored.end(),
                            [&](const std::string& name) { return matches(t.name, name); })) {
      throw damaged(t.in->file(), "it has a tensor " + t.name + ", " + std::string(name_of(t.dtype)) + " " +
                                      text_of(t.shape) + ", of which the table of weights says nothing");
    }
  }
}

/// Whoever makes a file first; it is gone where it was not finished.
struct Unfinished {
  std::string name;
  ~Unfinished() {
    std::error_code ignored;
    if (!name.empty()) std::filesystem::remove(name, ignored);
  }
};

/// A file that several ranks write, each its own bytes.
class WrittenInParts {
 public:
  /// `make`: anew, whatever lies in its place.
  WrittenInParts(std::string name, bool make)
      : name_(std::move(name)),
        number_(::open(name_.c_str(), O_WRONLY | O_CLOEXEC | (make ? O_CREAT | O_EXCL : 0), 0666)) {
    check(number_ >= 0);
  }
  ~WrittenInParts() { ::close(number_); }
  WrittenInParts(const WrittenInParts&) = delete;
  WrittenInParts& operator=(const WrittenInParts&) = delete;
  void resize(std::int64_t bytes) { check(::ftruncate(number_, bytes) == 0); }
  void write(const void* bytes, std::int64_t count, std::int64_t at) {
    for (std::int64_t done = 0; done < count;) {
      const ssize_t n = ::pwrite(number_, static_cast<const char*>(bytes) + done,
                                 static_cast<std::size_t>(count - done), static_cast<off_t>(at + done));
      check(n > 0 || errno == EINTR);
      done += std::max<ssize_t>(n, 0);
    }
  }
  void finish() { check(::fsync(number_) == 0); }

 private:
  void check(bool good) const {
    if (!good) throw Failure(name_ + " cannot be written: " + std::strerror(errno), exit_code::io);
  }
  std::string name_;
  int number_;
};

/// What a rank has of tensors of a file, which is written where they are full of it.
class Gathered {
 public:
  Gathered(std::int64_t tensors, std::int64_t elements, FileDType dtype)
      : elements_(elements), size_(bits_of(dtype) / 8), held_(static_cast<std::size_t>(tensors * elements)) {
    bytes_.resize(held_.size() * static_cast<std::size_t>(size_));
  }
  template <class To, class From>
  void take(std::int64_t tensor, std::int64_t index, std::int64_t step, std::int64_t count, const std::byte* from) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = tensor * elements_ + index + i * step;
      To to;
      if constexpr (Half<To>)
        to = To(converted<float, From>(from + i * static_cast<std::int64_t>(sizeof(From))));
      else
        to = converted<To, From>(from + i * static_cast<std::int64_t>(sizeof(From)));
      std::memcpy(bytes_.data() + at * size_, &to, sizeof to);
      held_[static_cast<std::size_t>(at)] = true;
    }
  }
  /// Writes each tensor's elements behind `begin(tensor)`, and has none any more.
  template <class Begin>
  void write(WrittenInParts& to, Begin begin) {
    for (std::int64_t all = static_cast<std::int64_t>(held_.size()), at = 0; at < all;) {
      std::int64_t end = at;
      const std::int64_t last = (at / elements_ + 1) * elements_;
      while (end < last && held_[static_cast<std::size_t>(end)]) ++end;
      if (end > at)
        to.write(bytes_.data() + at * size_, (end - at) * size_, begin(at / elements_) + at % elements_ * size_);
      at = std::max(end, at + 1);
    }
    held_.assign(held_.size(), false);
  }

 private:
  std::int64_t elements_, size_;
  std::vector<bool> held_;
  std::vector<std::byte> bytes_{};
};

/// Writes a program's parameters to a file that begins with `layout.bytes()`, and has the tensors of the table where
/// `layout` says. Called by all ranks together.
template <Communicator World, class Device, class FileLayout>
void save(World& world, Executor<World, Device>& executor, const std::string& file, const std::vector<Bound>& table,
          const FileLayout& layout, Here here) {
  agree(world, {always(fact("file of weights", file))}, "writing weights", here);
  const bool first = world.rank() == 0;
  Unfinished beside{first ? file + ".unfinished" : ""};
  const std::size_t tensors = layout.tensors().size();
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < tensors; ++i) places[layout.tensors()[i].name] = i;
  if (first) {
    std::error_code ignored;
    std::filesystem::remove(beside.name, ignored);  // of a run that was interrupted
    WrittenInParts made(beside.name, true);
    made.resize(layout.begin(tensors));
    made.write(layout.bytes().data(), static_cast<std::int64_t>(layout.bytes().size()), 0);
    made.finish();
  }
  agree(world, {}, "writing weights", here);
  WrittenInParts out(file + ".unfinished", false);
  executor.each_part([&](const NamedTensor& t, const Member& m, const std::byte* part, std::int64_t) {
    const auto p = std::find_if(table.begin(), table.end(), [&](const Bound& x) { return x.member == t.name; });
    if (p == table.end() || part == nullptr || !checkpointing::writes(executor.plan(), m, world.rank())) return;
    const FileDType dtype = layout.tensors()[places.at(p->names[0])].dtype;
    std::int64_t elements = 1, layer = 0;
    for (const std::int64_t size : p->how.file_shape()) elements *= size;
    Gathered gathered(p->tensors_a_layer, elements, dtype);
    const auto write = [&] {
      gathered.write(out, [&](std::int64_t tensor) {
        return layout.begin(places.at(p->names[static_cast<std::size_t>(layer * p->tensors_a_layer + tensor)]));
      });
    };
    const std::int64_t size = bytes_of(t.type.dtype);
    each_run(executor.plan(), t.type.layout, world.rank(),
             [&](std::int64_t position, std::int64_t begin, std::int64_t count) {
               p->how.each_run(
                   begin, count,
                   [&](std::int64_t at, std::int64_t tensor, std::int64_t index, std::int64_t step, std::int64_t n) {
                     if (index < 0) return;
                     if (const std::int64_t of = tensor / p->tensors_a_layer; of != layer) {
                       write();
                       layer = of;
                     }
                     const std::byte* const from = part + (position + at - begin) * size;
                     of_reals(dtype, [&]<class To>(To) {
                       if (t.type.dtype == DType::f64)
                         gathered.take<To, double>(tensor % p->tensors_a_layer, index, step, n, from);
                       else
                         gathered.take<To, float>(tensor % p->tensors_a_layer, index, step, n, from);
                     });
                   });
             });
    write();
  });
  out.finish();
  agree(world, {}, "writing weights", here);
  if (!first) return;
  if (!renamed(beside.name, file)) throw Failure(file + " cannot be written: " + std::strerror(errno), exit_code::io);
  beside.name.clear();
}
}  // namespace weights

/// Reads an executor's parameters from a file, as `table` says: each rank its part, where it lies, of mapped files. What
/// the program has padded becomes zeros. Elements of F16, BF16, F32 and F64 are converted. `from`: Safetensors, or
/// what else has tensors by name. Nothing is set where it throws: Misuse where the table is not for the program,
/// Failure(bad_data) where the file has not what the table says, or more.
template <class Running, class Files>
void load_weights(Running& executor, const Files& from, const WeightTable& table, Here here = {}) {
  const std::vector<weights::Bound> all = weights::bound(executor, table);
  for (const weights::Bound& p : all)
    for (const std::string& name : p.names) weights::found(from, name, p);
  weights::check_rest(from, all, table);
  for (const weights::Bound& p : all) {
    std::vector<FileTensor> tensors;
    for (const std::string& name : p.names) tensors.push_back(weights::found(from, name, p));
    const Plan& plan = executor.plan();
    const auto write = [&](std::byte* part) {
      weights::Rows rows(p.type.dtype);
      const std::int64_t size = bytes_of(p.type.dtype);
      each_run(plan, p.type.layout, executor.rank(),
               [&](std::int64_t position, std::int64_t first, std::int64_t count) {
                 p.how.each_run(
                     first, count,
                     [&](std::int64_t at, std::int64_t tensor, std::int64_t index, std::int64_t step, std::int64_t n) {
                       std::byte* const to = part + (position + at - first) * size;
                       if (index < 0) return static_cast<void>(std::memset(to, 0, static_cast<std::size_t>(n * size)));
                       rows.add(tensors[static_cast<std::size_t>(tensor)], index, step, n, to);
                     });
               });
      rows.finish();
    };
    executor.change(p.member, write, here);
  }
}

/// Writes an executor's parameters as safetensors, under the names of `table` and as they lie there. Called by all ranks
/// together, on a folder that all see; the file is there whole, or as it was. Throws what `load_weights` does, and
/// Failure(io).
template <Communicator World, class Device>
void save_weights(World& world, Executor<World, Device>& executor, const std::string& file, const WeightTable& table,
                  FileDType dtype = FileDType::F32,
                  const std::map<std::string, std::string>& metadata = {{"format", "pt"}}, Here here = {}) {
  if (!weights::of_reals(dtype, [](auto) {}))
    throw Misuse("weights are to be written as " + std::string(name_of(dtype)) + "; say F32, F16, BF16 or F64");
  const std::vector<weights::Bound> all = weights::bound(executor, table);
  std::vector<FileEntry> entries;
  for (const weights::Bound& p : all)
    for (const std::string& name : p.names) entries.push_back({name, dtype, p.how.file_shape()});
  weights::save(world, executor, file, all, SafetensorsHeader(file, std::move(entries), metadata), here);
}

}  // namespace parallel::internals

namespace parallel {
using internals::load_weights;
using internals::save_weights;
using internals::WeightRow;
using internals::WeightTable;
}  // namespace parallel
