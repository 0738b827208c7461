// A training kept on disk: what a run puts into a file that its ranks write together (shared_file.hpp), all that
// outlives a step, whole and under its names, and what it takes out to go on from there, on any mesh.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parallel/meta/other_names.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/shared_file.hpp>

namespace parallel::internals {

namespace checkpointing {
/// A number so that it is read as the same.
inline std::string exact(double number) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%a", number);
  return digits;
}

inline constexpr std::string_view version_key = "parallel.checkpoint", version = "1", step_key = "step",
                                  number_key = "number:", note_key = "note:";

constexpr FileDType file_dtype(DType dtype) {
  switch (dtype) {
    case DType::f64: return FileDType::F64;
    case DType::bf16: return FileDType::BF16;
    case DType::f16: return FileDType::F16;
    case DType::i32: return FileDType::I32;
    default: return FileDType::F32;
  }
}

/// The end of a sentence about a checkpoint that is damaged.
inline constexpr const char* move_away = "; to go on from the checkpoint before it, or to begin, move it away";

/// The checkpoint that was saved behind so many steps, as it was written. Throws Failure: missing_input where there is
/// none, bad_data where it is damaged or another.
inline Safetensors opened(const std::string& file, std::int64_t step) {
  const auto reading = [&](auto part) {
    try {
      return part();
    } catch (const Failure& failure) {
      if (failure.exit_code != exit_code::bad_data) throw;
      const std::string words = failure.what();  // without a reader's mend
      throw Failure(words.substr(0, words.find("; ", file.size())) + move_away, exit_code::bad_data);
    }
  };
  Safetensors from = reading([&] { return Safetensors(file); });
  if (const std::string is = reading([&] { return said(from, std::string(version_key)); }); is != version)
    throw damaged(file, "it is a checkpoint of version " + is + "; this library reads version 1");
  reading([&] { check(from); });
  if (const std::string is = said(from, std::string(step_key)); is != std::to_string(step))
    throw damaged(file, "it was saved behind " + is + " steps, which its name does not say; name it as it was");
  return from;
}
/// A number that was saved, and otherwise none. Throws Failure(bad_data) where a word is, or a number below `least` or
/// above `most`.
inline std::optional<double> number_in(const Safetensors& from, const std::string& name,
                                       double least = std::numeric_limits<double>::lowest(),
                                       double most = std::numeric_limits<double>::max()) {
  const auto found = from.metadata().find(std::string(number_key) + name);
  if (found == from.metadata().end()) return std::nullopt;
  const std::string& digits = found->second;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (digits.empty() || end != digits.c_str() + digits.size() || !(value >= least && value <= most))
    throw damaged(from.file(),
                  "its number " + name + " is '" + digits.substr(0, 40) + "', which it cannot be" + move_away);
  return value;
}
/// How the loss was scaled; none where it was not. Throws as number_in.
inline std::optional<LossScale> loss_scale_in(const Safetensors& from) {
  constexpr int most = std::numeric_limits<int>::max();
  const auto scale = number_in(from, "loss_scale");
  const double doubles_after = number_in(from, "loss_scale.doubles_after", 1, most).value_or(2000),
               steps = number_in(from, "loss_scale.steps", 0, most).value_or(0);
  if (!scale) return std::nullopt;
  return LossScale{*scale, static_cast<int>(doubles_after), static_cast<int>(steps)};
}
/// What Checkpoints are made of otherwise: refused.
template <class... Given>
void otherwise() {
  static_assert(sizeof...(Given) > 99,
                "parallel: Checkpoints are made of the communicator, then the folder; write Checkpoints "
                "checkpoints(world, \"folder\"), and save or resume a trainer by them");
}
}  // namespace checkpointing

/// What a training goes on from.
struct Resumed {
  std::int64_t step = 0;                       ///< how many steps were done; 0: there was no checkpoint
  std::map<std::string, std::string> notes{};  ///< what was noted beside
  template <class Bool>
  requires(std::is_same_v<Bool, bool>) explicit operator Bool() const {
    static_assert(sizeof(Bool) > 99,
                  "parallel: what a training goes on from is a step, 0 where there was no checkpoint; write "
                  "checkpoints.resume(step).step > 0");
    return false;
  }
};

/// The checkpoints of a folder that all ranks see, `step-000000001000.safetensors`. A rank writes what it holds, on a
/// thread of its own; a step waits for a copy only, and a save for the one before. A checkpoint is there when all of it
/// is on the disk, or not at all. What cannot be written, as on a full disk, is said on the standard error, and the
/// training goes on.
template <class World>
class Checkpoints {
 public:
  /// Called by all ranks together. Makes the folder, and removes what an interrupted run has left there. Throws
  /// Failure(io) where it cannot be made.
  Checkpoints(World& world, std::string folder, KeptCheckpoints kept = {}, Here here = {})
      : world_(world), files_(world, std::move(folder), kept, here) {}
  template <class Folder, class... More>
  requires(!Communicator<std::remove_cvref_t<Folder>>)
      Checkpoints(Folder&&, std::type_identity_t<World>& world, More&&...)
      : Checkpoints(world, "") {
    checkpointing::otherwise<Folder, World, More...>();
  }
  template <int is_named = 0>
  Checkpoints(World& world, std::string folder, const OtherNames&, Here here = {})
      : Checkpoints(world, std::move(folder), KeptCheckpoints{}, here) {
    static_assert(is_named > 0,
                  "parallel: the options of Checkpoints are newest, how many are kept, and deadline, in this order; "
                  "write Checkpoints(world, \"folder\", {.newest = 2}), and save as often as you want one");
  }
  template <class Number>
  requires(std::is_arithmetic_v<Number>) Checkpoints(World& world, std::string folder, Number, Here here = {})
      : Checkpoints(world, std::move(folder), KeptCheckpoints{}, here) {
    static_assert(sizeof(Number) > 99,
                  "parallel: how many checkpoints are kept is said by name; write Checkpoints(world, \"folder\", "
                  "{.newest = 3}), and save as often as you want one");
  }

  /// Writes what an executor's program holds behind `step` steps, with its numbers and some notes. Called by all ranks
  /// together, which are compared. Throws Misuse where the folder has a checkpoint of a later step, with which a run
  /// would go on instead.
  template <class Device>
  void save(Executor<World, Device>& executor, std::int64_t step, const std::map<std::string, std::string>& notes = {},
            Here here = {});
  /// Waits until what is being written is there, however long the disk takes; called by all ranks together. Whether it
  /// is, on all of them.
  bool wait() { return files_.wait(); }

  /// Goes on from the newest checkpoint: tensors, the count of steps, the seed and the scale of the loss; other numbers
  /// are the program's own. Called by all ranks together, on any mesh. Throws Failure(bad_data) where the file is
  /// damaged or has another step's name, or was written by a program of other tensors.
  template <class Device>
  Resumed resume(Executor<World, Device>& executor, Here here = {});
  /// The same of a Trainer's executor.
  template <class Run>
  requires requires(Run& run) { run.executor(); }
  void save(Run& run, std::int64_t step, const std::map<std::string, std::string>& notes = {}, Here here = {}) {
    save(run.executor(), step, notes, here);
  }
  template <class Run>
  requires requires(Run& run) { run.executor(); }
  Resumed resume(Run& run, Here here = {}) { return resume(run.executor(), here); }
  template <class First, class Second, class... More>
  requires(
      !requires(std::remove_cvref_t<First> & run) { run.steps(); } &&
      !requires(std::remove_cvref_t<First> & run) { run.executor(); }) void save(First&&, Second&&, More&&...) {
    static_assert(sizeof...(More) > 99,
                  "parallel: a checkpoint is of what trains, then behind how many steps; write checkpoints.save(step, "
                  "i + 1), of a Trainer or its Executor");
  }
  template <class... Given>
  Resumed load(const Given&...) {
    static_assert(sizeof...(Given) > 99,
                  "parallel: a training goes on from its newest checkpoint by resume; write const int first = "
                  "checkpoints.resume(step).step");
    return {};
  }

  /// The steps of which there are checkpoints, the newest last.
  std::vector<std::int64_t> steps() const { return files_.steps(); }
  std::string file(std::int64_t step) const { return files_.file(step); }

 private:
  template <class Device>
  void read(Executor<World, Device>& executor, Resumed& resumed, Here here) const;

  World& world_;
  SharedFiles<World> files_;
};

template <class World>
template <class Device>
void Checkpoints<World>::save(Executor<World, Device>& executor, std::int64_t step,
                              const std::map<std::string, std::string>& notes, Here here) {
  using namespace checkpointing;
  if (step < 1)
    throw Misuse("a checkpoint is saved behind " + std::to_string(step) + " steps; save behind one or more");
  agree(world_, {always(fact("step of the checkpoint", step))}, "saving a checkpoint", here);
  wait();
  if (const std::vector<std::int64_t> there = steps(); !there.empty() && there.back() > step)
    throw Misuse("a checkpoint is saved behind " + std::to_string(step) + " steps, but the folder has one behind " +
                 std::to_string(there.back()) +
                 ", with which a run would go on; resume from it, or take another folder");
  SharedFile w{.step = step, .plan = executor.kept_plan()};
  w.metadata = {{std::string(version_key), std::string(version)}, {std::string(step_key), std::to_string(step)}};
  for (const auto& [key, text] : notes) w.metadata[std::string(note_key) + key] = text;
  executor.each_scalar([&](std::string_view name, double value) {
    w.metadata[std::string(number_key) + std::string(name)] = exact(value);
  });
  if (executor.reads("loss_scale")) {
    const LossScale scale = executor.loss_scale();
    w.metadata[std::string(number_key) + "loss_scale.steps"] = std::to_string(scale.steps);
    w.metadata[std::string(number_key) + "loss_scale.doubles_after"] = std::to_string(scale.doubles_after);
  }
  executor.each_part([&](const NamedTensor& t, const Member& m, const std::byte* bytes, std::int64_t count) {
    w.add({t.name, file_dtype(t.type.dtype), shape_of(t.type.layout)});
    if (bytes != nullptr && writes(*w.plan, m, world_.rank()))
      w.parts.push_back({w.tensors.size() - 1, t.type.layout, {bytes, bytes + count}});
  });
  files_.write(std::move(w));
}

template <class World>
template <class Device>
Resumed Checkpoints<World>::resume(Executor<World, Device>& executor, Here here) {
  using namespace checkpointing;
  wait();
  const std::vector<std::int64_t> there = steps();
  const std::int64_t step = there.empty() ? 0 : there.back();
  agree(world_, {always(fact("newest checkpoint", step))}, "going on from a checkpoint", here);
  Resumed resumed{step, {}};
  if (step > 0)
    long_phase(
        world_, "reading a checkpoint", files_.deadline(), [&] { read(executor, resumed, here); }, here);
  return resumed;
}

template <class World>
template <class Device>
void Checkpoints<World>::read(Executor<World, Device>& executor, Resumed& resumed, Here here) const {
  using namespace checkpointing;
  const Safetensors from = opened(file(resumed.step), resumed.step);
  std::size_t known = 0;
  const std::vector<NamedTensor> all = executor.tensors();
  for (const NamedTensor& t : all) {
    if (!from.contains(t.name))
      throw damaged(from.file(), "it has no tensor " + t.name +
                                     "; another program, or optimizer, wrote it: go on with those, or begin "
                                     "in a folder of its own");
    const FileTensor saved = from[t.name];
    if (saved.dtype != file_dtype(t.type.dtype) || saved.shape != shape_of(t.type.layout))
      throw damaged(from.file(), "the tensor " + t.name + " is " + std::string(name_of(saved.dtype)) + " " +
                                     text_of(saved.shape) + ", in the program " + text(t.type) +
                                     "; go on with the model that was saved, or begin in a folder of its own");
    ++known;
  }
  if (known != from.size()) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::string name = from[i].name;
      if (std::none_of(all.begin(), all.end(), [&](const NamedTensor& t) { return t.name == name; }))
        throw damaged(from.file(), "it has a tensor " + name +
                                       ", which the program has not; another program, or optimizer, wrote it: "
                                       "go on with those, or read the parameters alone by load_weights");
    }
  }
  for (const NamedTensor& t : all) {
    const FileTensor saved = from[t.name];
    switch (t.type.dtype) {
      case DType::f64: executor.set(t.name, saved.as<double>(), here); break;
      case DType::bf16: executor.set(t.name, saved.as<bfloat16>(), here); break;
      case DType::f16: executor.set(t.name, saved.as<float16>(), here); break;
      case DType::i32: executor.set(t.name, saved.as<int>(), here); break;
      default: executor.set(t.name, saved.as<float>(), here);
    }
  }
  try {
    for (const char* name : {"step", "seed"})
      if (const auto value = number_in(from, name); value && executor.reads(name)) executor.scalar(name, *value);
    if (const auto scale = loss_scale_in(from); scale && executor.reads("loss_scale")) executor.loss_scale(*scale);
  } catch (const Misuse& misuse) {
    throw damaged(from.file(), misuse.what());
  }
  for (const auto& [key, words] : from.metadata())
    if (key.starts_with(note_key)) resumed.notes[key.substr(note_key.size())] = words;
}

/// With options, which OtherNames has, too.
template <Communicator World>
Checkpoints(World&, std::string, KeptCheckpoints, Here = {}) -> Checkpoints<World>;
/// Of a folder before its communicator, or of what is none: refused.
template <class World, class... Given>
requires(!Communicator<std::remove_const_t<World>>) Checkpoints(World&, const Given&...)
->Checkpoints<void>;
template <>
class Checkpoints<void> {
 public:
  template <class... Given>
  explicit Checkpoints(const Given&...) {
    checkpointing::otherwise<Given...>();
  }
  template <class... Given>
  void save(const Given&...) {}
  template <class... Given>
  Resumed resume(const Given&...) {
    return {};
  }
};

}  // namespace parallel::internals

namespace parallel {
using internals::Checkpoints;
using internals::KeptCheckpoints;
using internals::Resumed;
}  // namespace parallel
