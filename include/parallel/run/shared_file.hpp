// A file of safetensors that all ranks write together, each its parts at their places, on a thread of its own: the
// names of files, which ranks wait for which, what is on the disk when, and the sums by which damage is found.
#pragma once
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/file/safetensors.hpp>
#include <parallel/file/write_safetensors.hpp>
#include <parallel/file/written_in_parts.hpp>
#include <parallel/run/whole.hpp>

namespace parallel::internals {

namespace checkpointing {
inline constexpr std::string_view sum_key = "sum:", no_sum = "0000000000000000";

/// Elements' sum, each turned by where it stands in its tensor: one that changes changes the sum, and the sums of parts
/// add up to that of the whole, whoever has which (the mixing is SplitMix64's, Steele et al., 2014).
template <class Bits>
std::uint64_t sum_of(const std::byte* elements, std::int64_t first, std::int64_t count) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, elements + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    std::uint64_t x = std::uint64_t{bits} ^ (static_cast<std::uint64_t>(first + i + 1) * 0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    sum += x ^ (x >> 31);
  }
  return sum;
}
inline std::uint64_t sum_of(std::int64_t size, const std::byte* elements, std::int64_t first, std::int64_t count) {
  switch (size) {
    case 2: return sum_of<std::uint16_t>(elements, first, count);
    case 4: return sum_of<std::uint32_t>(elements, first, count);
    default: return sum_of<std::uint64_t>(elements, first, count);
  }
}
inline std::string hexadecimal(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

/// The text of a header, with the sum of all its other characters in it.
inline std::string summed(std::string header) {
  const std::string key = "\"" + std::string(sum_key) + "\":\"";
  const std::size_t at = header.find(key) + key.size();
  header.replace(at, no_sum.size(), no_sum);
  agreeing::Hash hash;
  hash.bytes(std::as_bytes(std::span(header)));
  return header.replace(at, no_sum.size(), hexadecimal(hash.value()));
}
/// What a file says of itself under a key. Throws Failure(bad_data) where it says nothing.
inline std::string said(const Safetensors& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) throw damaged(file.file(), "it has no '" + key + "'; it is no checkpoint");
  return found->second;
}
/// Throws Failure(bad_data) where a file is not as it was written.
inline void check(const Safetensors& file) {
  std::string header(file.header());
  if (said(file, std::string(sum_key)) == no_sum || summed(header) != header)
    throw damaged(file.file(), "its header is not as it was written");
  for (std::size_t i = 0; i < file.size(); ++i) {
    const FileTensor t = file[i];
    if (bits_of(t.dtype) < 16)
      throw damaged(file.file(), "the tensor " + t.name + " has elements of " + std::string(name_of(t.dtype)) +
                                     ", which no program has");
    const std::uint64_t sum = sum_of(bits_of(t.dtype) / 8, t.bytes.data(), 0, t.elements());
    if (said(file, std::string(sum_key) + t.name) != hexadecimal(sum))
      throw damaged(file.file(), "the tensor " + t.name + " is not as it was written");
  }
}
}  // namespace checkpointing

/// How checkpoints are kept.
struct KeptCheckpoints {
  int newest = 3;  ///< so many
  /// How long the first rank, which has written its part, looks for what others write; and how long ranks wait for each
  /// other while they read.
  std::chrono::milliseconds deadline{600'000};
};

/// What the ranks write into one file, and this one's parts of it. Whole tensors in the order in which all ranks name
/// them; which of them a rank writes, `writes` says.
struct SharedFile {
  struct Part {
    std::size_t tensor = 0;
    Layout layout{};
    std::vector<std::byte> bytes{};
    std::uint64_t sum = 0;
  };
  std::int64_t step = 0;
  std::shared_ptr<const Plan> plan{};
  std::vector<FileEntry> tensors{};
  std::map<std::string, std::string> metadata{};
  std::vector<Part> parts{};
  std::string file{}, beside{};  ///< its name, and that until all of it is on the disk

  /// One more tensor of the file.
  void add(const FileEntry& tensor) {
    metadata[std::string(checkpointing::sum_key) + tensor.name] = checkpointing::no_sum;
    tensors.push_back(tensor);
  }
};

/// The files of a folder that all ranks see, `step-000000001000.safetensors`.
template <Communicator World>
class SharedFiles {
 public:
  /// Called by all ranks together. Makes the folder, and removes what an interrupted run has left there. Throws
  /// Failure(io) where it cannot be made.
  SharedFiles(World& world, std::string folder, KeptCheckpoints kept = {}, Here here = {})
      : world_(world), folder_(std::move(folder)), kept_(kept) {
    if (kept_.newest < 1)
      throw Misuse("of checkpoints the newest " + std::to_string(kept_.newest) + " are to be kept; keep one or more");
    if (world_.rank() == 0) {
      std::error_code error;
      std::filesystem::create_directories(folder_, error);
      if (error) throw Failure("the folder '" + folder_ + "' cannot be made: " + error.message(), exit_code::io);
      remove(unfinished);
    }
    agree(world_, {always(fact("folder of checkpoints", folder_))}, "checkpoints", here);
  }
  /// Waits for what is being written, with all ranks. Where an exception ends the run, of this rank or another, what is
  /// not there is not waited for, and not kept.
  ~SharedFiles() {
    try {
      if (std::uncaught_exceptions() == 0) wait();
    } catch (const std::exception&) {
      // which the next exchange says again, at the latest that of the run's end
    }
    give_up(ended_);
    if (thread_.joinable()) thread_.join();
  }
  SharedFiles(const SharedFiles&) = delete;
  SharedFiles& operator=(const SharedFiles&) = delete;

  /// Begins to write a file, on a thread. Called by all ranks together, when the one before is there.
  void write(SharedFile file) {
    file.file = this->file(file.step);
    // each file has names of its own: what was left of the one before is removed while others write this one
    beside_ = std::string(unfinished) + std::to_string(file.step) + "-" + std::to_string(count_++);
    file.beside = folder_ + "/" + beside_;
    file.metadata[std::string(checkpointing::sum_key)] = checkpointing::no_sum;
    state_ = State::writing;
    part_failed_ = false;
    thread_ = std::thread([this, own = std::move(file)]() mutable { write_on_thread(own); });
  }
  /// Waits until what is being written is there; called by all ranks together. Whether it is, on all. A disk may take
  /// as long as it does: ranks ask each other again and again, so that one that is gone is missed in time.
  bool wait() {
    while (thread_.joinable()) {
      const State own = after(std::chrono::milliseconds(10));
      double any[] = {own == State::writing ? 1.0 : 0, own == State::failed ? 1.0 : 0,
                      own == State::written && world_.rank() == 0 ? 1.0 : 0};
      world_.aside({Collective::all_reduce, any, any, 3, DType::f64, true, 0, "whether a checkpoint is being written"});
      if (any[1] > 0) give_up(part_failed_);
      if (any[0] > 0) continue;
      thread_.join();
      there_ = any[2] > 0;
      if (!there_ && world_.rank() == 0) remove(beside_);
    }
    return there_;
  }
  std::chrono::milliseconds deadline() const { return kept_.deadline; }

  /// The steps of which there are checkpoints, the newest last.
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    for (const std::string& name : names())
      if (const auto step = step_of(name)) all.push_back(*step);
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string file(std::int64_t step) const {
    char digits[32];
    std::snprintf(digits, sizeof digits, "step-%012lld", static_cast<long long>(step));
    return folder_ + "/" + digits + std::string(ending);
  }

 private:
  static constexpr std::string_view unfinished = ".unfinished-", ending = ".safetensors";
  enum class State { writing, written, failed };

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
      all.push_back(at->path().filename().string());
    return all;
  }
  /// The files whose names begin so.
  void remove(std::string_view begin) const {
    std::error_code ignored;
    for (const std::string& name : names())
      if (name.starts_with(begin)) std::filesystem::remove(folder_ + "/" + name, ignored);
  }
  static std::optional<std::int64_t> step_of(std::string_view name) {
    if (!name.starts_with("step-") || !name.ends_with(ending)) return std::nullopt;
    name = name.substr(5, name.size() - 5 - ending.size());
    std::int64_t step = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
    return error == std::errc() && end == name.data() + name.size() ? std::optional(step) : std::nullopt;
  }

  /// On the thread.
  void write_on_thread(SharedFile& w) noexcept;
  void write_parts(SharedFile& w, const SafetensorsHeader& header) const;
  void finish(SharedFile& w, std::map<std::string, std::uint64_t> sums) const;
  std::string part_of(const SharedFile& w, int rank) const { return w.beside + ".rank-" + std::to_string(rank); }
  /// The thread leaves what it has not written.
  void give_up(std::atomic<bool>& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    why = true;
    wake_.notify_all();
  }
  void go_on() const {
    if (ended_) throw Failure("the run ends");
    if (part_failed_) throw Failure("a rank could not write its part");
  }
  /// What the thread has come to, at once or in so much time.
  State after(std::chrono::milliseconds time) const {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait_for(lock, time, [this] { return state_ != State::writing; });
    return state_;
  }
  void come_to(State state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_ = state;
    wake_.notify_all();
  }

  World& world_;
  std::string folder_, beside_{};
  KeptCheckpoints kept_;
  std::thread thread_{};
  std::int64_t count_ = 0;
  bool there_ = false;
  State state_ = State::written;
  std::atomic<bool> ended_{false}, part_failed_{false};
  mutable std::mutex mutex_{};
  mutable std::condition_variable wake_{};
};

template <Communicator World>
void SharedFiles<World>::write_on_thread(SharedFile& w) noexcept {
  try {
    // the file's order is not that of the tensors
    const SafetensorsHeader header(w.file, w.tensors, w.metadata);
    write_parts(w, header);
    std::map<std::string, std::uint64_t> sums;
    for (const SharedFile::Part& p : w.parts) sums[w.tensors[p.tensor].name] = p.sum;
    if (world_.rank() == 0) {
      finish(w, std::move(sums));
      return come_to(State::written);
    }
    NewFile part(part_of(w, world_.rank()), "the file '" + part_of(w, world_.rank()) + "'");
    for (const auto& [name, sum] : sums) {
      const std::string line = checkpointing::hexadecimal(sum) + name + '\n';
      part.write(line.data(), line.size());
    }
    part.put_in_place();
    come_to(State::written);
  } catch (const std::exception& error) {
    std::error_code ignored;
    if (world_.rank() == 0) std::filesystem::remove(w.beside, ignored);
    std::fprintf(stderr, "parallel: rank %d: the checkpoint %s was not written: %s%s\n", world_.rank(), w.file.c_str(),
                 error.what(), ended_ ? "" : "; the training goes on");
    come_to(State::failed);
  }
}

template <Communicator World>
void SharedFiles<World>::write_parts(SharedFile& w, const SafetensorsHeader& header) const {
  const std::size_t last = header.tensors().size();
  WrittenInParts to(w.beside, O_CREAT);
  to.resize(header.begin(last));
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < last; ++i) places[header.tensors()[i].name] = i;
  for (SharedFile::Part& p : w.parts) {
    const std::size_t place = places.at(w.tensors[p.tensor].name);
    const std::int64_t size = bits_of(header.tensors()[place].dtype) / 8, begin = header.begin(place);
    each_run(*w.plan, p.layout, world_.rank(), [&](std::int64_t position, std::int64_t index, std::int64_t count) {
      const std::byte* from = p.bytes.data() + position * size;
      p.sum += checkpointing::sum_of(size, from, index, count);
      constexpr std::int64_t piece = 1 << 24;  // so that the end of a run waits for no more
      for (std::int64_t done = 0, bytes = count * size; done < bytes; done += piece) {
        go_on();
        to.write(from + done, std::min(piece, bytes - done), begin + index * size + done);
      }
    });
    p.bytes = {};
  }
  to.finish();
}

/// By the first rank, when all parts are there.
template <Communicator World>
void SharedFiles<World>::finish(SharedFile& w, std::map<std::string, std::uint64_t> sums) const {
  const auto last_time = std::chrono::steady_clock::now() + kept_.deadline;
  for (int r = 1; r < world_.size(); ++r) {
    const std::string part = part_of(w, r);
    while (!std::filesystem::exists(part)) {
      go_on();
      if (std::chrono::steady_clock::now() > last_time)
        throw Failure("rank " + std::to_string(r) + " has not written its part in time");
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(5), [this] { return ended_ || part_failed_; });
    }
    std::ifstream lines(part);
    for (std::string line; std::getline(lines, line);)
      sums[line.substr(checkpointing::no_sum.size())] +=
          std::strtoull(line.substr(0, checkpointing::no_sum.size()).c_str(), nullptr, 16);
    if (!lines.eof()) throw Failure(part + " cannot be read", exit_code::io);
  }
  for (const auto& [name, sum] : sums)
    w.metadata[std::string(checkpointing::sum_key) + name] = checkpointing::hexadecimal(sum);
  const std::string header = checkpointing::summed(SafetensorsHeader(w.file, w.tensors, w.metadata).bytes());
  {
    WrittenInParts to(w.beside);
    to.write(header.data(), static_cast<std::int64_t>(header.size()), 0);
    to.finish();
  }
  if (!renamed(w.beside, w.file)) throw Failure(w.file + " cannot be written: " + std::strerror(errno), exit_code::io);
  std::error_code ignored;
  for (int r = 1; r < world_.size(); ++r) std::filesystem::remove(part_of(w, r), ignored);
  const std::vector<std::int64_t> there = steps();
  for (std::size_t i = 0; i + static_cast<std::size_t>(kept_.newest) < there.size(); ++i)
    std::filesystem::remove(file(there[i]), ignored);
}

}  // namespace parallel::internals
