// GPUs that are not there: what is queued on streams runs late, in an order drawn at random that keeps only what
// streams and events say.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "memory.hpp"

struct CUstream_st;
struct CUgraph_st;

#if !defined(PARALLEL_STAND_IN_DEVICES)
#define PARALLEL_STAND_IN_DEVICES 1
#endif

namespace stand_in {

/// What the machine is; `reset` takes it.
struct Options {
  int devices = PARALLEL_STAND_IN_DEVICES;
  std::size_t memory = std::size_t{1} << 30;  ///< of each device, in bytes
  int driver = 13000;                         ///< its CUDA version; 0: there is none
  int major = 9, minor = 0;                   ///< compute capability
  unsigned seed = 1;                          ///< of the order in which streams run
  /// the host's own access to a device's memory is a segmentation fault; costs time
  bool guarded = true;
  /// a race that is found ends the program with an error, as bad addresses do
  bool races_are_errors = true;
};

/// Rows of so many bytes that begin so far apart.
struct Range {
  const std::byte* begin = nullptr;
  std::size_t width = 0;
  bool written = false;
  std::size_t pitch = 0, rows = 1;

  std::size_t bytes() const { return width == 0 || rows == 0 ? 0 : (rows - 1) * pitch + width; }
  const std::byte* end() const { return begin + bytes(); }
  bool overlaps(const Range& other) const {
    if (bytes() == 0 || other.bytes() == 0 || end() <= other.begin || other.end() <= begin) return false;
    if (rows == 1 || other.rows == 1 || pitch != other.pitch) return true;
    const auto apart = other.begin - begin, p = static_cast<std::ptrdiff_t>(pitch);
    const auto shift = static_cast<std::size_t>((apart % p + p) % p);
    return shift < width || shift + other.width > pitch;
  }
  bool covers(const Range& other) const { return rows == 1 && begin <= other.begin && other.end() <= end(); }
};
inline Range reads(const void* p, std::size_t width, std::size_t pitch = 0, std::size_t rows = 1) {
  return {static_cast<const std::byte*>(p), width, false, pitch, rows};
}
inline Range writes(const void* p, std::size_t width, std::size_t pitch = 0, std::size_t rows = 1) {
  return {static_cast<const std::byte*>(p), width, true, pitch, rows};
}

/// Of each lane, how many of its tasks are known to have happened.
using Clock = std::vector<std::uint64_t>;
inline void join(Clock& a, const Clock& b) {
  if (a.size() < b.size()) a.resize(b.size());
  for (std::size_t i = 0; i < b.size(); ++i) a[i] = std::max(a[i], b[i]);
}

struct Lane;

/// One thing that was queued.
struct Task {
  std::string what;
  std::function<void()> work;
  std::function<bool(Task&)> ready;           ///< whether it can run; asked when it is at the head of its lane
  std::vector<std::shared_ptr<Task>> after;   ///< by events
  std::vector<std::shared_ptr<Task>> behind;  ///< order that the program may not rely on
  std::vector<Range> ranges;
  Clock clock;  ///< the host's when it was queued; then what has happened before it
  Lane* lane = nullptr;
  std::uint64_t sequence = 0;  ///< when it ran
  bool done = false;
  bool any_device = false;  ///< it may touch what is another device's
};
using TaskPointer = std::shared_ptr<Task>;
using Maker = std::function<TaskPointer()>;  ///< a graph makes its tasks anew whenever it is launched

/// What runs in order: a stream, or a stream's part in a graph.
struct Lane {
  int device = 0;
  std::size_t number = 0;  ///< its place in clocks
  std::deque<TaskPointer> queue;
  TaskPointer last;
  std::uint64_t count = 0;
  Clock clock;
  std::uint64_t priority = 0;
  bool abandoned = false;  ///< destroyed, or of a graph that was: goes when it is empty
  std::shared_ptr<CUgraph_st> capture;
  std::vector<int> tails;  ///< of the capture: what comes before the next
};

/// Who touched a range last.
struct Access {
  Range range;
  std::size_t lane;
  std::uint64_t count;
  std::string what;
};

inline thread_local int current_device = 0;  ///< of the thread that calls

class Gpu {
 public:
  static Gpu& get() {
    static Gpu gpu;
    return gpu;
  }

  using Lock = std::unique_lock<std::mutex>;
  Lock lock() { return Lock(mutex_); }

  void reset(const Options& o) {
    options = o;
    lanes_.clear();
    defaults_.clear();
    memories_.clear();
    pinned.clear();
    handles.clear();
    accesses_.clear();
    faults_.clear();
    for (int d = 0; d < o.devices; ++d) memories_.push_back(std::make_unique<Memory>(o.memory, o.guarded));
    sticky_.assign(static_cast<std::size_t>(o.devices), 0);
    defaults_.resize(static_cast<std::size_t>(o.devices));
    random_.seed(o.seed);
    eager_ = static_cast<int>(random_() % 3) * 20;
    next_lane_ = 0;
    host_ = {};
    injected_ = 0;
    ran_ = 0;
  }

  Options options;
  std::map<const std::byte*, std::size_t> pinned;  ///< host memory from cudaMallocHost
  std::set<const void*> handles;                   ///< events and graphs that were made and not destroyed

  // Errors
  /// Notes what is wrong, in words; the device's later calls return the error.
  void fault(int device, int error, const std::string& words) {
    faults_.push_back(words);
    if (error != 0 && sticky_[static_cast<std::size_t>(device)] == 0) sticky_[static_cast<std::size_t>(device)] = error;
  }
  int sticky(int device) const {
    return static_cast<std::size_t>(device) < sticky_.size() ? sticky_[static_cast<std::size_t>(device)] : 0;
  }
  std::vector<std::string> faults() { return std::exchange(faults_, {}); }
  void inject(int error, std::string function, int calls) {
    injected_ = error;
    injected_in_ = std::move(function);
    injected_after_ = calls;
  }
  /// The error that the test has asked for, at the n-th call of a function, or of any if it named none.
  int injected(const char* function) {
    if (injected_ == 0 || (!injected_in_.empty() && injected_in_ != function) || --injected_after_ > 0) return 0;
    return std::exchange(injected_, 0);
  }

  // Memory
  Memory& memory(int device) { return *memories_[static_cast<std::size_t>(device)]; }
  /// The device whose memory the pointer is in, or -1.
  int device_of(const void* p) const {
    for (std::size_t d = 0; d < memories_.size(); ++d)
      if (memories_[d]->contains(p)) return static_cast<int>(d);
    return -1;
  }
  bool is_pinned(const void* p, std::size_t bytes) const {
    auto after = pinned.upper_bound(static_cast<const std::byte*>(p));
    if (after == pinned.begin()) return false;
    --after;
    return static_cast<const std::byte*>(p) + bytes <= after->first + after->second;
  }

  // Lanes
  template <class L>
  L* add(int device) {
    auto lane = std::make_unique<L>();
    L* const p = lane.get();
    p->device = device;
    p->number = next_lane_++;
    p->priority = random_();
    lanes_.push_back({std::move(lane), p});
    return p;
  }
  bool known(const Lane* lane) const {
    for (const auto& l : lanes_)
      if (l.lane == lane) return !lane->abandoned;
    return false;
  }
  /// The stream 0 of a device.
  template <class L>
  L* default_of(int device) {
    Lane*& lane = defaults_[static_cast<std::size_t>(device)];
    if (lane == nullptr) lane = add<L>(device);
    return static_cast<L*>(lane);
  }
  void abandon(Lane* lane) {
    lane->abandoned = true;
    tidy();
  }

  /// Queues a task. Whether and when it runs is nobody's business until somebody synchronises.
  void push(Lane& lane, const TaskPointer& task) {
    join(task->clock, host_);
    task->lane = &lane;
    lane.queue.push_back(task);
    lane.last = task;
    changed_.notify_all();
  }
  /// At random moments something runs.
  void some() {
    const Closing closing{*this};
    while (static_cast<int>(random_() % 100) < eager_ && step()) {
    }
  }

  /// Perhaps one thing runs.
  void one() {
    const Closing closing{*this};
    if (random_() % 4 != 0) step();
  }

  /// Runs until the condition holds; what other threads have yet to queue is waited for. False if nothing came for a
  /// minute.
  template <class Done>
  bool until(Lock& lock, Done done) {
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      bool ran = false;
      {
        const Closing closing{*this};
        while (!done() && step()) ran = true;
      }
      if (ran) {
        limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        changed_.notify_all();
      }
      if (done()) break;
      if (std::chrono::steady_clock::now() > limit) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    return true;
  }
  /// The host has seen that a task is over.
  void seen(const Task& task) {
    join(host_, task.clock);
    for (const auto& l : lanes_)
      if (!l.lane->queue.empty()) return;
    std::erase_if(accesses_, [&](const Access& a) { return happened(a, host_); });
  }
  void changed() { changed_.notify_all(); }
  /// The memory of all devices, until what the host called returns or waits.
  void open() {
    if (!std::exchange(open_, true))
      for (auto& m : memories_) m->open(true);
  }
  template <class F>
  void each_lane(F f) {
    for (auto& l : lanes_) f(*l.lane);
  }

  Clock before(const Task& task) const {
    Clock clock = task.clock;
    join(clock, task.lane->clock);
    for (const auto& t : task.after) join(clock, t->clock);
    return clock;
  }

 private:
  struct Owned {
    std::shared_ptr<void> owner;
    Lane* lane;
    template <class L>
    Owned(std::unique_ptr<L> l, Lane* p) : owner(std::move(l)), lane(p) {}
  };
  struct Closing {
    ~Closing() {
      if (!std::exchange(gpu.open_, false)) return;
      for (auto& m : gpu.memories_) m->open(false);
    }
    Gpu& gpu;
  };

  Gpu() { reset({}); }

  bool can_run(Task& task) {
    for (const auto* list : {&task.after, &task.behind})
      for (const auto& t : *list)
        if (!t->done) return false;
    return !task.ready || task.ready(task);
  }

  /// Runs one task; false if none can run. Some lanes are favoured for a while, so that one gets far ahead of another.
  bool step() {
    Lane* best = nullptr;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      Lane& lane = *lanes_[i].lane;
      if (!lane.queue.empty() && can_run(*lane.queue.front()) && (best == nullptr || lane.priority > best->priority))
        best = &lane;
    }
    if (best == nullptr) return false;
    if (random_() % 8 == 0) best->priority = random_();
    run(*best);
    return true;
  }

  void run(Lane& lane) {
    const TaskPointer task = lane.queue.front();
    lane.queue.pop_front();
    task->clock = before(*task);
    if (task->clock.size() <= lane.number) task->clock.resize(lane.number + 1);
    task->clock[lane.number] = ++lane.count;
    lane.clock = task->clock;
    if (check(*task) && task->work) {
      open();
      task->work();
    }
    task->done = true;
    task->sequence = ++ran_;
    task->work = nullptr;
    task->ready = nullptr;
    task->after.clear();
    task->behind.clear();
    if (lane.abandoned && lane.queue.empty()) tidy();
  }
  void tidy() {
    std::erase_if(lanes_, [](const Owned& l) { return l.lane->abandoned && l.lane->queue.empty(); });
  }

  /// Whether all that the task touches is there; and that nobody else touches it at the same time.
  bool check(Task& task) {
    for (const Range& r : task.ranges) {
      if (r.bytes() == 0) continue;
      const int device = device_of(r.begin);
      const bool mine = device == task.lane->device || task.any_device;
      if (device < 0 ? is_pinned(r.begin, r.bytes()) : mine && memory(device).holds(r.begin, r.bytes())) continue;
      fault(task.lane->device, 700 /* cudaErrorIllegalAddress */,
            "stand_in: " + task.what + " on device " + std::to_string(task.lane->device) + " touches " +
                std::to_string(r.bytes()) + " bytes that " +
                (device < 0 ? "are the host's"
                 : !mine    ? "are another device's"
                            : "were not allocated, or were freed"));
      return false;
    }
    for (const Range& r : task.ranges) {
      for (const Access& a : accesses_) {
        if (!r.overlaps(a.range) || (!a.range.written && !r.written) || a.lane == task.lane->number ||
            happened(a, task.clock))
          continue;
        fault(task.lane->device, options.races_are_errors ? 719 /* cudaErrorLaunchFailure */ : 0,
              "stand_in: a race: " + task.what + (r.written ? " writes" : " reads") + " what " + a.what +
                  (a.range.written ? " writes" : " reads") + " on another stream; let an event order them");
        break;
      }
    }
    for (const Range& r : task.ranges) {
      std::erase_if(accesses_, [&](const Access& a) {
        return r.covers(a.range) && (r.written || !a.range.written) && happened(a, task.clock);
      });
      accesses_.push_back({r, task.lane->number, task.lane->count, task.what});
    }
    return true;
  }
  static bool happened(const Access& a, const Clock& clock) {
    return a.lane < clock.size() && clock[a.lane] >= a.count;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937 random_;
  int eager_ = 0;
  bool open_ = false;
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<Owned> lanes_;
  std::vector<Lane*> defaults_;
  std::size_t next_lane_ = 0;
  Clock host_;
  std::vector<Access> accesses_;
  std::vector<std::string> faults_;
  std::vector<int> sticky_;
  int injected_ = 0, injected_after_ = 0;
  std::string injected_in_;
  std::uint64_t ran_ = 0;
};

/// A machine anew: all streams, events and memory of before are gone. For the start of a test.
inline void reset(const Options& options = {}) {
  Gpu& gpu = Gpu::get();
  const auto lock = gpu.lock();
  gpu.reset(options);
  current_device = 0;
}
/// What the program did wrong, in words, since it was last asked for: races, bad addresses, calls that a device does
/// not take.
inline std::vector<std::string> faults() {
  Gpu& gpu = Gpu::get();
  const auto lock = gpu.lock();
  return gpu.faults();
}
/// The n-th call from now, of this function or of any, returns the error.
inline void inject(int error, const std::string& function = "", int n = 1) {
  Gpu& gpu = Gpu::get();
  const auto lock = gpu.lock();
  gpu.inject(error, function, n);
}
/// Whether bytes from here are memory of a device (allocated and not freed).
inline bool on_device(const void* p, std::size_t bytes = 1) {
  Gpu& gpu = Gpu::get();
  const auto lock = gpu.lock();
  const int device = gpu.device_of(p);
  return device >= 0 && gpu.memory(device).holds(p, bytes);
}

}  // namespace stand_in
