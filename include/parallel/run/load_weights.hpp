// A program's parameters out of a file of others, as a table says.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/file/file_tensor.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/weight_table.hpp>

namespace parallel::internals {

namespace weights {
/// Elements of a file on their way into a program. Rows of a matrix that is turned are columns of the file: several
/// that are neighbours there go together, so that each line of memory is read once.
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
    if (rows_ == 0) {
      from_ = from;
      to_ = to;
      step_ = step;
      count_ = count;
      file_dtype_ = of.dtype;
    }
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
  const std::string for_whom = name == p.member ? "" : ", which is " + p.member;
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
    throw damaged(t.in->file(), "the tensor " + name + for_whom + (for_whom.empty() ? "" : ",") + " is " +
                                    text_of(t.shape) + ", but " + text_of(p.how.file_shape()) +
                                    " is expected; give the model the file's sizes, or its row a pattern");
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
      throw damaged(t.in->file(),
                    "it has a tensor " + t.name + ", " + std::string(name_of(t.dtype)) + " " + text_of(t.shape) +
                        ", of which the table of weights says nothing; give it a row, or name it in .ignored");
    }
  }
}

/// What ranks compare of the tensors that they read: of each what the file says of it, and a sample of its bytes. Where
/// the file lies may differ.
template <class Files>
Fact fact_of_tensors(const Files& from) {
  const auto lines = [&from](auto to) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const FileTensor t = from[i];
      to.name(t.name);
      to.name(name_of(t.dtype));
      to.name(text_of(t.shape));
      to.name("hash");
      to.name(std::to_string(fact_of_data("", t.bytes).hash));
      to.end_of_line();
    }
    return to.value();
  };
  return always({"tensors of the weights", lines(agreeing::Hash()), [lines] { return lines(agreeing::Text()); }});
}
/// All ranks read the same. Throws Mismatch.
template <Communicator World, class Files>
void check_alike(World& world, const Files& from, Here here) {
  constexpr const char* doing = "reading weights";
  if (world.size() == 1) return;
  const std::vector<Fact> facts{fact_of_tensors(from)};
  if (!agreeing::alike(world, agreeing::hash_of(doing, facts), doing))
    agreeing::tell(world, doing, here, facts, "let all ranks read the same file, or copies of it");
}
/// What has parameters that weights are read into, and what has tensors by name.
template <class Running>
concept Loads = requires(Running& executor) {
  executor.plan().graph;
  executor.world();
  executor.rank();
};
template <class Files>
concept HasTensors = requires(const Files& from, const std::string& name) {
  from.contains(name);
  from.size();
  from.file();
};
template <class... Given>
constexpr bool loaded = false;
template <class Running, class Files, class Table, class... More>
constexpr bool loaded<Running, Files, Table, More...> =
    Loads<std::remove_reference_t<Running>>&& HasTensors<std::remove_cvref_t<Files>>&&
        std::is_convertible_v<Table, const WeightTable&> &&
    sizeof...(More) < 2;
}  // namespace weights

/// Reads an executor's parameters from a file, as `table` says: each rank its part, where it lies, of mapped files.
/// What the program has padded becomes zeros. Elements of F16, BF16, F32 and F64 are converted. `from`: Safetensors, or
/// what else has tensors by name. Called by all ranks together. Nothing is set where it throws: Misuse where the table
/// is not for the program, Mismatch where ranks read other tensors, Failure(bad_data) where the file has not what the
/// table says, or more.
template <weights::Loads Running, weights::HasTensors Files>
void load_weights(Running& executor, const Files& from, const WeightTable& table, Here here = {}) {
  const std::vector<weights::Bound> all = weights::bound(executor, table);
  weights::check_alike(executor.world(), from, here);
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
template <class... Given>
requires(!weights::loaded<Given...>) void load_weights(Given&&...) {
  static_assert(sizeof...(Given) > 99,
                "parallel: load_weights takes an Executor, then a file that is open and the table of its names; write "
                "load_weights(step.executor(), Safetensors(\"gpt2.safetensors\"), hugging_face_gpt2(classes)), "
                "or member_names(plan) where tensors are called as the members are");
}

}  // namespace parallel::internals

namespace parallel {
using internals::load_weights;
}  // namespace parallel
