// What the ranks of a communicator of the stand-in for NCCL do together: a call happens when it is at the head of its
// stream on every rank.
#pragma once
#include <array>
#include <map>
#include <set>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime_api.h"
#include "nccl_types.hpp"

namespace stand_in {

enum class Kind { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, send, receive };
inline const char* name_of(Kind kind) {
  constexpr const char* names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclAlltoAll",
                                   "ncclBroadcast", "ncclReduce",        "ncclSend",      "ncclRecv"};
  return names[static_cast<int>(kind)];
}

/// One call. `count` is the one that the function takes: of a block where there are blocks.
struct Call {
  Kind kind = Kind::all_reduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int peer = 0;  ///< or the root

  bool message() const { return kind == Kind::send || kind == Kind::receive; }
  bool agrees(const Call& o) const {
    return kind == o.kind && count == o.count && type == o.type && op == o.op && peer == o.peer;
  }
  std::string text() const {
    return std::string(name_of(kind)) + " of " + std::to_string(count) + " of type " + std::to_string(type) + ", op " +
           std::to_string(op) + ", peer or root " + std::to_string(peer);
  }
  std::size_t in_elements(int rank, int n) const {
    if (kind == Kind::receive || (kind == Kind::broadcast && rank != peer)) return 0;
    return kind == Kind::reduce_scatter || kind == Kind::all_to_all ? count * static_cast<std::size_t>(n) : count;
  }
  std::size_t out_elements(int rank, int n) const {
    if (kind == Kind::send || (kind == Kind::reduce && rank != peer)) return 0;
    return kind == Kind::all_gather || kind == Kind::all_to_all ? count * static_cast<std::size_t>(n) : count;
  }
};

inline std::size_t width_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 4;
  }
}

/// The terms of all ranks from element i on, added in the order of a ring: it begins with another rank for each part of
/// the message.
template <class T>
void reduce(const std::vector<const void*>& terms, void* out, std::size_t first, std::size_t count, std::size_t total,
            ncclRedOp_t op) {
  const std::size_t n = terms.size(), part = total / n + 1;
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = (first + i) / part + 1;
    T sum = static_cast<const T*>(terms[begin % n])[first + i];
    for (std::size_t r = 1; r < n; ++r) {
      const T term = static_cast<const T*>(terms[(begin + r) % n])[first + i];
      if constexpr (std::is_same_v<T, std::int32_t>)
        sum = op == ncclMax ? std::max(sum, term)
                            : static_cast<T>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(term));
      else if constexpr (sizeof(T) == 2)
        sum = op == ncclMax ? T(std::fmax(float(sum), float(term))) : T(float(sum) + float(term));
      else
        sum = op == ncclMax ? std::fmax(sum, term) : sum + term;  // a NaN is lost, as by the device's fmax
    }
    result[i] = sum;
  }
  if (count > 0) std::memcpy(out, result.data(), count * sizeof(T));
}

struct Launch;

/// All ranks of a communicator.
struct Clique {
  explicit Clique(int ranks)
      : n(ranks),
        devices(static_cast<std::size_t>(ranks), -1),
        posted(static_cast<std::size_t>(ranks)),
        splits(static_cast<std::size_t>(ranks)) {}

  struct Posted {
    Call call;
    std::shared_ptr<Launch> launch;
  };
  struct Split {
    int color = 0, key = 0;
  };

  int n, joined = 0;
  std::vector<int> devices;
  ncclResult_t error = ncclSuccess;
  /// collectives whose streams have come to them
  std::vector<std::deque<Posted>> posted;
  std::map<std::pair<int, int>, std::array<std::deque<Posted>, 2>> channels;  ///< from, to: sends, receives
  /// from, to: 1 the sender has asked, 2 the receiver
  std::map<std::pair<int, int>, int> connected;
  std::vector<std::vector<Split>> splits;  ///< of each rank, what it asked for
  /// by the number of the split, and the color
  std::map<std::pair<std::size_t, int>, std::shared_ptr<Clique>> children;

  bool ready() const { return joined == n; }
  void join(Gpu& gpu, int rank, int device) {
    devices[static_cast<std::size_t>(rank)] = device;
    if (++joined != n) return;
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < a; ++b)
        if (devices[static_cast<std::size_t>(a)] == devices[static_cast<std::size_t>(b)]) {
          error = ncclInvalidUsage;
          gpu.fault(device, 0,
                    "stand_in: ranks " + std::to_string(b) + " and " + std::to_string(a) +
                        " of a communicator are both on device " + std::to_string(device));
        }
  }
  void match(Gpu& gpu);

 private:
  void together(Gpu& gpu);
  void carry(const Call& send, const Call& receive);
};

/// One communicator of one rank.
struct Member {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  bool blocking = true, aborted = false, finalizing = false;
  ncclResult_t error = ncclSuccess;
  /// calls of a communicator run in the order in which they were made, whatever the stream
  TaskPointer last;
  std::weak_ptr<CUgraph_st> last_graph;  ///< or the last one that was captured
  int last_node = -1;
  std::shared_ptr<void> held = std::make_shared<char>();  ///< by each graph that has captured a call
  /// what has not been done when a call returned; each says whether it is done now
  std::vector<std::function<bool()>> pending;
  std::vector<std::function<bool()>> later;  ///< as pending, but the communicator does not say so
  int polls = 0;

  bool in_graphs() const { return held.use_count() > 1; }
};

/// The calls of one group that are one kernel.
struct Launch {
  std::shared_ptr<Member> member;
  std::vector<Call> calls;
  Task* task = nullptr;
  std::size_t done = 0;
  bool arrived = false;
};

inline void Clique::carry(const Call& send, const Call& receive) {
  if (send.count > 0) std::memcpy(receive.out, send.in, send.count * width_of(send.type));
}

inline void Clique::together(Gpu& gpu) {
  const Call first = posted[0].front().call;
  for (auto& queue : posted)
    if (!queue.front().call.agrees(first)) {
      error = ncclInvalidUsage;
      gpu.fault(0, 0,
                "stand_in: ranks of a communicator call different collectives: " + first.text() + " and " +
                    queue.front().call.text());
      return;
    }
  const auto size = static_cast<std::size_t>(n), count = first.count, width = width_of(first.type);
  std::vector<const void*> in;
  std::vector<std::byte*> out;
  Clock clock;
  for (auto& queue : posted) {
    in.push_back(queue.front().call.in);
    out.push_back(static_cast<std::byte*>(queue.front().call.out));
    stand_in::join(clock, gpu.before(*queue.front().launch->task));
  }
  const auto combine = [&](void* to, std::size_t begin, std::size_t length, std::size_t total) {
    switch (first.type) {
      case ncclFloat32: return reduce<float>(in, to, begin, length, total, first.op);
      case ncclFloat64: return reduce<double>(in, to, begin, length, total, first.op);
      case ncclInt32: return reduce<std::int32_t>(in, to, begin, length, total, first.op);
      case ncclFloat16: return reduce<__half>(in, to, begin, length, total, first.op);
      case ncclBfloat16: return reduce<__nv_bfloat16>(in, to, begin, length, total, first.op);
      default: error = ncclInvalidArgument;
    }
  };
  gpu.open();
  const auto bytes = [&](std::size_t r) { return static_cast<const std::byte*>(in[r]); };
  if (count > 0) switch (first.kind) {
      case Kind::all_reduce: {
        std::vector<std::byte> sum(count * width);
        combine(sum.data(), 0, count, count);
        for (std::byte* p : out) std::memcpy(p, sum.data(), sum.size());
        break;
      }
      case Kind::reduce: combine(out[static_cast<std::size_t>(first.peer)], 0, count, count); break;
      case Kind::reduce_scatter:
        for (std::size_t r = 0; r < size; ++r) combine(out[r], r * count, count, count * size);
        break;
      case Kind::all_gather:
        for (std::size_t r = 0; r < size; ++r)
          for (std::size_t s = 0; s < size; ++s) std::memmove(out[r] + s * count * width, bytes(s), count * width);
        break;
      case Kind::all_to_all:
        for (std::size_t r = 0; r < size; ++r)
          for (std::size_t s = 0; s < size; ++s)
            std::memcpy(out[r] + s * count * width, bytes(s) + r * count * width, count * width);
        break;
      case Kind::broadcast:
        for (std::byte* p : out) std::memmove(p, bytes(static_cast<std::size_t>(first.peer)), count * width);
        break;
      default: break;
    }
  for (auto& queue : posted) {
    stand_in::join(queue.front().launch->task->clock, clock);
    ++queue.front().launch->done;
    queue.pop_front();
  }
}

inline void Clique::match(Gpu& gpu) {
  const auto all = [&] {
    return std::none_of(posted.begin(), posted.end(), [](const auto& queue) { return queue.empty(); });
  };
  while (error == ncclSuccess && all()) together(gpu);
  for (auto& [ends, queues] : channels)
    while (error == ncclSuccess && !queues[0].empty() && !queues[1].empty()) {
      Posted &send = queues[0].front(), &receive = queues[1].front();
      if (send.call.count != receive.call.count || send.call.type != receive.call.type) {
        error = ncclInvalidUsage;
        gpu.fault(0, 0, "stand_in: a send and its receive differ: " + send.call.text() + " and " + receive.call.text());
        break;
      }
      gpu.open();
      carry(send.call, receive.call);
      stand_in::join(receive.launch->task->clock, gpu.before(*send.launch->task));
      ++send.launch->done;
      ++receive.launch->done;
      queues[0].pop_front();
      queues[1].pop_front();
    }
}

/// Called when the launch is at the head of its lane: whether all that it takes part in has happened.
inline bool arrive(const std::shared_ptr<Launch>& launch, Task& task) {
  Member& member = *launch->member;
  Clique& clique = *member.clique;
  if (member.aborted) return true;
  if (!launch->arrived) {
    launch->arrived = true;
    launch->task = &task;
    for (const Call& call : launch->calls) {
      if (call.kind == Kind::send)
        clique.channels[{member.rank, call.peer}][0].push_back({call, launch});
      else if (call.kind == Kind::receive)
        clique.channels[{call.peer, member.rank}][1].push_back({call, launch});
      else
        clique.posted[static_cast<std::size_t>(member.rank)].push_back({call, launch});
    }
  }
  clique.match(Gpu::get());
  return launch->done == launch->calls.size();
}

/// Takes back what a rank had posted: the others wait for it in vain.
inline void withdraw(Member& member) {
  const auto of_member = [&](const Clique::Posted& p) { return p.launch->member.get() == &member; };
  std::erase_if(member.clique->posted[static_cast<std::size_t>(member.rank)], of_member);
  for (auto& [ends, queues] : member.clique->channels)
    for (auto& queue : queues) std::erase_if(queue, of_member);
}

}  // namespace stand_in
