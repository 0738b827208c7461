// Ranks under NCCL for tests: functions run on them, and cases whose buffers are the host's.
#pragma once
#include <atomic>
#include <map>

#include <doctest/doctest.h>

#include <parallel/communicator/nccl_threads.hpp>

#include "message_cases.hpp"

namespace nccl_runs {

using namespace parallel;
using namespace parallel::internals;
using namespace std::chrono_literals;
using cases::index;

/// A machine for so many ranks: the stand-in's is made anew; a real one has the GPUs that it has.
inline bool machine(int ranks, [[maybe_unused]] unsigned seed = 1, [[maybe_unused]] bool guarded = true) {
#if defined(PARALLEL_STAND_IN)
  stand_in::reset({.devices = ranks, .memory = std::size_t{1} << 28, .seed = seed, .guarded = guarded});
#endif
  int gpus = 0;
  return cudaGetDeviceCount(&gpus) == cudaSuccess && gpus >= ranks;
}
/// What the stand-in has found wrong with the program.
inline void no_faults() {
#if defined(PARALLEL_STAND_IN)
  for (const std::string& words : stand_in::faults()) FAIL_CHECK(words);
#endif
}

/// Until the GPU has what cudaMemset and cudaMemcpy brought it: they return before, and other streams do not wait for
/// their stream 0.
inline void until_there() { cudaStreamSynchronize(nullptr); }

/// A communicator for cases with buffers of the host: each exchange has copies of them on the GPU.
class Staged {
 public:
  explicit Staged(Nccl of) : nccl_(std::move(of)) {}
  /// Every rank with every other.
  void connect() {
    for (int d = 1; d < nccl_.size(); ++d) nccl_.connect(d);
  }
  int rank() const { return nccl_.rank(); }
  int size() const { return nccl_.size(); }
  void record(std::vector<Record>* records) { nccl_.record(records); }
  void deadline(std::chrono::milliseconds limit) { nccl_.deadline(limit); }
  LongPhase within(const LongPhase& now) { return nccl_.within(now); }
  void aside(const Exchange& e) { nccl_.aside(e); }
  void barrier() { nccl_.barrier(); }
  Staged split(int color, int key) { return Staged(nccl_.split(color, key)); }

  Ticket start(const Exchange& e) {
    parallel::internals::check(e, rank(), size());
    const auto bytes = [&](std::int64_t elements) { return index(elements * bytes_of(e.dtype)); };
    const std::size_t in = bytes(elements_in(e, rank(), size())), out = bytes(elements_out(e, rank(), size()));
    Copies c{e, {}, {}, out};
    c.in = room(e.in == e.out ? std::max(in, out) : in);
    c.out = e.in == e.out ? c.in : room(out);
    cudaMemcpy(c.in.data, e.in, in, cudaMemcpyHostToDevice);
    until_there();
    Exchange there = e;
    there.in = c.in.data;
    there.out = c.out.data;
    const Ticket ticket = nccl_.start(there);
    copies_[{ticket.channel, ticket.number}] = c;
    return ticket;
  }
  void wait(Ticket ticket) {
    nccl_.wait(ticket);
    nccl_.finish("a case");
    const auto found = copies_.find({ticket.channel, ticket.number});
    const Copies& c = found->second;
    cudaMemcpy(c.exchange.out, c.out.data, c.bytes, cudaMemcpyDeviceToHost);
    free_.insert({c.in.bytes, c.in.data});
    if (c.out.data != c.in.data) free_.insert({c.out.bytes, c.out.data});
    copies_.erase(found);
  }

 private:
  struct Room {
    std::size_t bytes = 0;
    void* data = nullptr;
  };
  struct Copies {
    Exchange exchange{};
    Room in, out;
    std::size_t bytes = 0;
  };
  Room room(std::size_t bytes) {
    if (bytes == 0) return {};
    Room r{bytes, nullptr};
    if (const auto known = free_.find(bytes); known != free_.end()) {
      r.data = known->second;
      free_.erase(known);
    } else if (cudaMalloc(&r.data, bytes) != cudaSuccess)
      throw std::runtime_error("no memory for a case");
    cudaMemset(r.data, 0xff, bytes);
    return r;
  }

  Nccl nccl_;
  std::map<std::pair<int, std::uint64_t>, Copies> copies_;
  std::multimap<std::size_t, void*> free_;
};
static_assert(Communicator<Staged>);

/// Runs f on every rank, where there are so many GPUs; what it returns says what is wrong.
template <class F>
void all_right(int ranks, F f, NcclOptions options = {}, unsigned seed = 1, bool guarded = true) {
  if (!machine(ranks, seed, guarded)) {
    REQUIRE(ranks > 1);  // no GPU at all is a failure
    return;
  }
  std::vector<std::string> wrong(index(ranks));
  run_nccl(
      ranks,
      [&](Nccl& t) {
        cases::rank_order = false;
        wrong[index(t.rank())] = f(t);
      },
      options);
  for (const std::string& words : wrong) CHECK(words == "");
  no_faults();
}
template <class F>
void all_right_staged(int ranks, F f, NcclOptions options = {}, unsigned seed = 1) {
  all_right(
      ranks,
      [&](Nccl& t) {
        Staged staged(t.split(0, t.rank()));
        return f(staged);
      },
      options, seed, false);
}

/// What one rank saw of its end.
struct Seen {
  std::string words;
  int code = 0;
  std::chrono::milliseconds after{};
};

inline std::atomic<int> ended_by_exception = 0;
/// For ranks that are to be missed: waits until another has given up.
inline void until_missed() {
  while (ended_by_exception == 0) std::this_thread::sleep_for(1ms);
}

/// Runs f on every rank and returns the sentence that run_nccl throws; `seen` gets each rank's own.
template <class F>
std::string fails(int ranks, std::vector<Seen>& seen, F f, std::chrono::milliseconds deadline = 5s,
                  int* code = nullptr) {
  REQUIRE(machine(ranks));
  seen.assign(index(ranks), {});
  ended_by_exception = 0;
  const auto since = std::chrono::steady_clock::now();
  try {
    run_nccl(ranks,
             [&](Nccl& t) {
               Seen& mine = seen[index(t.rank())];
               try {
                 f(t);
               } catch (const std::exception& error) {
                 mine = {
                     error.what(), exit_code_of(error),
                     std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - since)};
                 ++ended_by_exception;
                 throw;
               }
             },
             {.deadline = deadline});
  } catch (const std::exception& error) {
    if (code != nullptr) *code = exit_code_of(error);
    return error.what();
  }
  return "nothing";
}
inline bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// Numbers on the GPU of the calling thread.
struct Numbers {
  explicit Numbers(std::vector<float> values) : count(values.size()) {
    void* p = nullptr;
    if (cudaMalloc(&p, count * sizeof(float)) != cudaSuccess) throw std::runtime_error("no memory");
    data = static_cast<float*>(p);
    cudaMemcpy(data, values.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    until_there();
  }
  Numbers(const Numbers&) = delete;
  std::vector<float> read() const {
    std::vector<float> values(count);
    cudaMemcpy(values.data(), data, count * sizeof(float), cudaMemcpyDeviceToHost);
    return values;
  }
  std::size_t count;
  float* data = nullptr;
};

}  // namespace nccl_runs
