// A program's parameters as a file that others read, as a table says. Needs nlohmann-json.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/file/write_safetensors.hpp>
#include <parallel/file/written_in_parts.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/weight_table.hpp>

namespace parallel::internals {

namespace weights {
/// Whoever makes a file first; it is gone where it was not finished.
struct Unfinished {
  std::string name;
  ~Unfinished() {
    std::error_code ignored;
    if (!name.empty()) std::filesystem::remove(name, ignored);
  }
};

/// What a rank has of tensors of a file, which is written where they are full of it.
class WholeTensors {
 public:
  WholeTensors(std::int64_t tensors, std::int64_t elements, FileDType dtype)
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
    WrittenInParts made(beside.name, O_CREAT | O_EXCL);
    made.resize(layout.begin(tensors));
    made.write(layout.bytes().data(), static_cast<std::int64_t>(layout.bytes().size()), 0);
    made.finish();
  }
  agree(world, {}, "writing weights", here);
  WrittenInParts out(file + ".unfinished");
  executor.each_part([&](const NamedTensor& t, const Member& m, const std::byte* part, std::int64_t) {
    const auto p = std::find_if(table.begin(), table.end(), [&](const Bound& x) { return x.member == t.name; });
    if (p == table.end() || part == nullptr || !writes(executor.plan(), m, world.rank())) return;
    const FileDType dtype = layout.tensors()[places.at(p->names[0])].dtype;
    std::int64_t elements = 1, layer = 0;
    for (const std::int64_t size : p->how.file_shape()) elements *= size;
    WholeTensors gathered(p->tensors_a_layer, elements, dtype);
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
  if (first) {
    if (!renamed(beside.name, file)) throw Failure(file + " cannot be written: " + std::strerror(errno), exit_code::io);
    beside.name.clear();
  }
  agree(world, {}, "writing weights", here);  // whoever goes on finds the file
}
template <class World, class Device>
void executor_on(World&, Executor<World, Device>&);
/// Whether save_weights is called with these.
template <class... Given>
constexpr bool saved = false;
template <class World, class Running, class File, class Table, class... More>
constexpr bool saved<World, Running, File, Table, More...> = requires(World&& world, Running&& executor) {
  weights::executor_on(world, executor);
}
&&std::is_convertible_v<File, std::string>&& std::is_convertible_v<Table, const WeightTable&>;
}  // namespace weights

/// Writes an executor's parameters as safetensors, under the names of `table` and as they lie there. Called by all
/// ranks together, on a folder that all see; behind it the file is there for all of them, whole, or as it was. Throws
/// what `load_weights` does, and Failure(io).
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
template <class... Given>
requires(!weights::saved<Given...>) void save_weights(Given&&...) {
  static_assert(
      sizeof...(Given) > 99,
      "parallel: save_weights takes the communicator, an Executor, the file's name and the table of its names; "
      "write save_weights(world, step.executor(), \"gpt2.safetensors\", hugging_face_gpt2(classes)), "
      "or member_names(plan) to call tensors as the members are");
}

}  // namespace parallel::internals

namespace parallel {
using internals::save_weights;
}  // namespace parallel
