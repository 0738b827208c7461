// A stand-in for NCCL's header of this name: ranks are threads of this process, or devices that one thread drives. Of NCCL's freedoms it
// takes what a program must bear: calls that are not done when they return, sums in the order of a ring, sends that wait for their receive.
#pragma once
#include "clique.hpp"

struct ncclComm {
  std::shared_ptr<stand_in::Member> member;
};

namespace stand_in {

/// Of this process: communicators that some ranks have yet to join, and all there are.
struct Meetings {
  std::map<std::string, std::shared_ptr<Clique>> by_id;
  std::vector<std::weak_ptr<Member>> members;
  std::uint64_t ids = 0;
  static Meetings& get() {
    static Meetings meetings;
    return meetings;
  }
};

/// What a thread has called since ncclGroupStart.
struct Grouped {
  int depth = 0;
  struct Entry {
    std::shared_ptr<Member> member;
    Call call;
    cudaStream_t stream;
  };
  std::vector<Entry> calls;
  std::vector<std::pair<std::shared_ptr<Member>, std::function<bool()>>> pending;
};
inline thread_local Grouped grouped;

inline ncclResult_t refuse_nccl(Gpu& gpu, ncclResult_t result, const std::string& words) {
  gpu.fault(current_device, 0, "stand_in: NCCL: " + words);
  return result;
}

/// All communicators see an error from now on, as when the network or a rank of another process is gone.
inline void fail_communicators(ncclResult_t result) {
  Gpu& gpu = Gpu::get();
  const auto lock = gpu.lock();
  for (auto& weak : Meetings::get().members)
    if (const auto member = weak.lock()) member->error = result;
}

inline std::shared_ptr<Member> member_of(Gpu& gpu, std::shared_ptr<Clique> clique, int rank, int device,
                                         bool blocking) {
  auto member = std::make_shared<Member>();
  member->clique = std::move(clique);
  member->rank = rank;
  member->device = device;
  member->blocking = blocking;
  member->clique->join(gpu, rank, device);
  Meetings::get().members.push_back(member);
  gpu.changed();
  return member;
}

inline ncclResult_t state_of(const Member& member) {
  return member.error != ncclSuccess ? member.error : member.clique->error;
}

/// Waits until what a call began is done, or leaves it to the polls of a communicator that does not block.
inline ncclResult_t complete(Gpu& gpu, Gpu::Lock& lock, const std::shared_ptr<Member>& member,
                             std::function<bool()> done, const char* function) {
  if (grouped.depth > 0) {
    grouped.pending.push_back({member, std::move(done)});
    return ncclSuccess;
  }
  if (!member->blocking) {
    member->pending.push_back(std::move(done));
    return ncclInProgress;
  }
  if (!gpu.until(lock, [&] { return done() || state_of(*member) != ncclSuccess; }))
    return refuse_nccl(gpu, ncclSystemError, std::string(function) + " waits for ever");
  return state_of(*member);
}

/// Queues the calls of a group on one communicator and stream as one.
inline void launch(Gpu& gpu, const std::shared_ptr<Member>& member, const std::vector<Call>& calls, Lane& lane) {
  const Maker make = [member, calls] {
    const auto launch = std::make_shared<Launch>();
    launch->member = member;
    launch->calls = calls;
    auto task = std::make_shared<Task>();
    task->what = name_of(calls.front().kind);
    task->ready = [launch](Task& t) { return arrive(launch, t); };
    for (const Call& c : calls) {
      task->ranges.push_back(reads(c.in, c.in_elements(member->rank, member->clique->n) * width_of(c.type)));
      task->ranges.push_back(writes(c.out, c.out_elements(member->rank, member->clique->n) * width_of(c.type)));
    }
    return task;
  };
  if (lane.capture != nullptr) {
    if (member->last_graph.lock() == lane.capture) lane.tails.push_back(member->last_node);
    queue(gpu, lane, make);
    lane.capture->held.push_back(member->held);
    member->last_graph = lane.capture;
    member->last_node = lane.tails.front();
    return;
  }
  const TaskPointer task = make();
  if (member->last != nullptr && !member->last->done) task->behind.push_back(member->last);
  member->last = task;
  gpu.push(lane, task);
  gpu.some();
}

/// Whether both ends of all messages of a group have been asked for: the first message between two ranks connects them, on the host.
inline bool connect(const std::shared_ptr<Member>& member, const std::vector<Call>& calls) {
  bool all = true;
  for (const Call& call : calls) {
    if (!call.message()) continue;
    const bool sends = call.kind == Kind::send;
    int& ends =
        member->clique->connected[sends ? std::pair(member->rank, call.peer) : std::pair(call.peer, member->rank)];
    ends |= sends ? 1 : 2;
    all = all && ends == 3;
  }
  return all;
}

/// What ncclGroupEnd does, and every call that is in no group.
inline ncclResult_t end_group(Gpu& gpu, Gpu::Lock& lock) {
  const auto calls = std::exchange(grouped.calls, {});
  const auto pending = std::exchange(grouped.pending, {});
  ncclResult_t result = ncclSuccess;
  const auto note = [&](ncclResult_t r) {
    if (r != ncclSuccess && (result == ncclSuccess || result == ncclInProgress)) result = r;
  };
  for (const auto& [member, done] : pending) note(complete(gpu, lock, member, done, "ncclGroupEnd"));
  std::vector<std::pair<std::shared_ptr<Member>, std::pair<Lane*, std::vector<Call>>>> launches;
  for (const Grouped::Entry& e : calls) {
    Lane* const lane = lane_of(gpu, e.stream);
    if (lane == nullptr || lane->device != e.member->device)
      return refuse_nccl(gpu, ncclInvalidArgument, "a stream is not of the communicator's device");
    const auto same = std::find_if(launches.begin(), launches.end(),
                                   [&](const auto& l) { return l.first == e.member && l.second.first == lane; });
    if (same == launches.end())
      launches.push_back({e.member, {lane, {e.call}}});
    else
      same->second.second.push_back(e.call);
  }
  std::vector<std::size_t> late;
  for (auto& [member, what] : launches) connect(member, what.second);
  gpu.changed();
  for (auto& [member, what] : launches) {
    auto& [lane, list] = what;
    // Where nothing is to be connected a call of a communicator that does not block is now and then late, too.
    const bool now =
        connect(member, list) && (member->blocking || lane->capture != nullptr || ++member->polls % 3 != 0);
    if (now) {
      launch(gpu, member, list, *lane);
    } else {
      note(complete(
          gpu, lock, member,
          [&gpu, m = member, l = list, on = lane] {
            if (!connect(m, l)) return false;
            launch(gpu, m, l, *on);
            return true;
          },
          "ncclGroupEnd"));
    }
  }
  return result;
}

inline ncclResult_t nccl_call(const char* function, auto f) {
  ncclResult_t result = ncclSuccess;
  const cudaError_t error = call(function, [&](Gpu& gpu, Gpu::Lock& lock) {
    result = f(gpu, lock);
    return cudaSuccess;
  });
  return error != cudaSuccess && result == ncclSuccess ? ncclUnhandledCudaError : result;
}

/// Who ends a communicator waits on the host until the graphs that have captured its calls are gone.
inline void outlive_graphs(const Member& member, const char* function) {
  if (!member.in_graphs()) return;
  {
    const auto lock = Gpu::get().lock();
    refuse_nccl(Gpu::get(), ncclInvalidUsage,
                std::string(function) + " waits for a graph that has captured calls of the communicator");
  }
  while (member.in_graphs()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline ncclResult_t add(const Call& c, ncclComm_t comm, cudaStream_t stream) {
  return nccl_call(name_of(c.kind), [&](Gpu& gpu, Gpu::Lock& lock) {
    if (comm == nullptr) return refuse_nccl(gpu, ncclInvalidArgument, "a call on no communicator");
    const auto member = comm->member;
    if (state_of(*member) != ncclSuccess) return state_of(*member);
    if (!member->clique->ready() || !member->pending.empty() || member->finalizing)
      return refuse_nccl(
          gpu, ncclInvalidUsage,
          std::string(name_of(c.kind)) + " on a communicator that is still busy; poll ncclCommGetAsyncError");
    const int n = member->clique->n;
    const auto there = [&](const void* p, std::size_t elements) {
      return elements == 0 ||
             (gpu.device_of(p) == member->device && gpu.memory(member->device).holds(p, elements * width_of(c.type)));
    };
    if (!there(c.in, c.in_elements(member->rank, n)) || !there(c.out, c.out_elements(member->rank, n)))
      return refuse_nccl(gpu, ncclInvalidArgument,
                         c.text() + ": a buffer is not all of it memory of device " + std::to_string(member->device));
    if (c.peer < 0 || c.peer >= n) return refuse_nccl(gpu, ncclInvalidArgument, c.text() + ": the peer or root");
    grouped.calls.push_back({member, c, stream});
    return grouped.depth > 0 ? ncclSuccess : end_group(gpu, lock);
  });
}

}  // namespace stand_in

inline const char* ncclGetErrorString(ncclResult_t result) {
  constexpr const char* words[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error",
                                   "NCCL operation in progress"};
  return result < ncclNumResults ? words[result] : "unknown result code";
}
inline const char* ncclGetLastError(ncclComm_t) { return "the last error of the stand-in"; }
inline ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
inline ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return stand_in::nccl_call("ncclGetUniqueId", [&](stand_in::Gpu&, stand_in::Gpu::Lock&) {
    *id = {};
    std::snprintf(id->internal, sizeof id->internal, "stand-in %llu",
                  static_cast<unsigned long long>(++stand_in::Meetings::get().ids));
    return ncclSuccess;
  });
}
inline ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t* config) {
  *comm = nullptr;
  return stand_in::nccl_call("ncclCommInitRankConfig", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    if (rank < 0 || rank >= ranks) return stand_in::refuse_nccl(gpu, ncclInvalidArgument, "a rank that is none");
    auto& clique = stand_in::Meetings::get().by_id[id.internal];
    if (clique == nullptr) clique = std::make_shared<stand_in::Clique>(ranks);
    if (clique->n != ranks || clique->devices[static_cast<std::size_t>(rank)] >= 0)
      return stand_in::refuse_nccl(gpu, ncclInvalidUsage, "a rank joins twice, or another number of ranks");
    *comm = new ncclComm{
        stand_in::member_of(gpu, clique, rank, stand_in::current_device, config == nullptr || config->blocking != 0)};
    const auto member = (*comm)->member;
    return stand_in::complete(
        gpu, lock, member, [clique] { return clique->ready(); }, "ncclCommInitRankConfig");
  });
}
inline ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}
inline ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  return stand_in::nccl_call("ncclCommInitAll", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    const auto clique = std::make_shared<stand_in::Clique>(count);
    for (int r = 0; r < count; ++r)
      comms[r] = new ncclComm{stand_in::member_of(gpu, clique, r, devices == nullptr ? r : devices[r], true)};
    return clique->error;
  });
}
/// The new communicator is given when all have asked. As with NCCL 2.28 on a GPU, a parent that does not block may be in
/// progress no more before that.
inline ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  *child = nullptr;
  return stand_in::nccl_call("ncclCommSplit", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    const auto parent = comm->member;
    const auto clique = parent->clique;
    if (!clique->ready() || !parent->pending.empty())
      return stand_in::refuse_nccl(gpu, ncclInvalidUsage, "ncclCommSplit of a communicator that is still busy");
    auto& mine = clique->splits[static_cast<std::size_t>(parent->rank)];
    const std::size_t number = mine.size();
    mine.push_back({color, key});
    gpu.changed();
    const bool blocking =
        config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT ? parent->blocking : config->blocking != 0;
    const auto done = [&gpu, parent, clique, number, color, key, child, blocking, device = parent->device,
                       made = false]() mutable {
      for (const auto& list : clique->splits)
        if (list.size() <= number) return false;
      if (color == NCCL_SPLIT_NOCOLOR) return true;
      int ranks = 0, rank = 0;
      for (int r = 0; r < clique->n; ++r) {
        const auto& other = clique->splits[static_cast<std::size_t>(r)][number];
        if (other.color != color) continue;
        ++ranks;
        if (other.key < key || (other.key == key && r < parent->rank)) ++rank;
      }
      auto& group = clique->children[{number, color}];
      if (group == nullptr) group = std::make_shared<stand_in::Clique>(ranks);
      if (!made) {
        made = true;
        *child = new ncclComm{stand_in::member_of(gpu, group, rank, device, blocking)};
        if (!blocking && !parent->blocking) (*child)->member->pending.push_back([group] { return group->ready(); });
      }
      return group->ready();
    };
    if (!parent->blocking && stand_in::grouped.depth == 0) {
      parent->later.push_back(done);
      return ncclInProgress;
    }
    return stand_in::complete(gpu, lock, parent, done, "ncclCommSplit");
  });
}
/// Each look may find that something has gone on; what was begun is never done at the first.
inline ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  return stand_in::nccl_call("ncclCommGetAsyncError", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock&) {
    stand_in::Member& member = *comm->member;
    *state = stand_in::state_of(member);
    if (*state != ncclSuccess) return ncclSuccess;
    if (!member.later.empty() && ++member.polls % 2 == 0) {
      auto later = std::exchange(member.later, {});
      std::erase_if(later, [](const auto& done) { return done(); });
      member.later = std::move(later);
    }
    if (!member.pending.empty()) {
      *state = ncclInProgress;
      if (++member.polls % 2 == 0) {
        auto pending = std::exchange(member.pending, {});
        std::erase_if(pending, [](const auto& done) { return done(); });
        member.pending = std::move(pending);
      }
    }
    gpu.one();
    return ncclSuccess;
  });
}
inline ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->member->clique->n;
  return ncclSuccess;
}
inline ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->member->rank;
  return ncclSuccess;
}
inline ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  *device = comm->member->device;
  return ncclSuccess;
}
inline ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return stand_in::nccl_call("ncclCommFinalize", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    const auto member = comm->member;
    if (member->finalizing) return stand_in::refuse_nccl(gpu, ncclInvalidArgument, "ncclCommFinalize twice");
    const auto done = [member] { return (member->last == nullptr || member->last->done) && !member->in_graphs(); };
    const ncclResult_t result = stand_in::complete(gpu, lock, member, done, "ncclCommFinalize");
    member->finalizing = true;
    return result;
  });
}
/// Waits for what is on its way.
inline ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  stand_in::outlive_graphs(*comm->member, "ncclCommDestroy");
  return stand_in::nccl_call("ncclCommDestroy", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    stand_in::finish(gpu, lock, comm->member->last, "ncclCommDestroy");
    delete comm;
    return ncclSuccess;
  });
}
/// What is on its way ends at once, with whatever numbers.
inline ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    stand_in::Gpu& gpu = stand_in::Gpu::get();
    const auto lock = gpu.lock();
    comm->member->aborted = true;
    stand_in::withdraw(*comm->member);
    gpu.changed();
  }
  stand_in::outlive_graphs(*comm->member, "ncclCommAbort");
  delete comm;
  return ncclSuccess;
}

inline ncclResult_t ncclGroupStart() {
  ++stand_in::grouped.depth;
  return ncclSuccess;
}
inline ncclResult_t ncclGroupEnd() {
  return stand_in::nccl_call("ncclGroupEnd", [&](stand_in::Gpu& gpu, stand_in::Gpu::Lock& lock) {
    if (stand_in::grouped.depth == 0)
      return stand_in::refuse_nccl(gpu, ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    return --stand_in::grouped.depth > 0 ? ncclSuccess : stand_in::end_group(gpu, lock);
  });
}

inline ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                                  ncclComm_t comm, cudaStream_t stream) {
  return stand_in::add({stand_in::Kind::all_reduce, in, out, count, type, op}, comm, stream);
}
inline ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                                      ncclComm_t comm, cudaStream_t stream) {
  return stand_in::add({stand_in::Kind::reduce_scatter, in, out, count, type, op}, comm, stream);
}
inline ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                                  cudaStream_t stream) {
  return stand_in::add({stand_in::Kind::all_gather, in, out, count, type}, comm, stream);
}
inline ncclResult_t ncclAlltoAll(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                                 cudaStream_t stream) {
  return stand_in::add({stand_in::Kind::all_to_all, in, out, count, type}, comm, stream);
}
inline ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                                  ncclComm_t comm, cudaStream_t stream) {
  return stand_in::add({stand_in::Kind::broadcast, in, out, count, type, ncclSum, root}, comm, stream);
}
inline ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               int root, ncclComm_t comm, cudaStream_t stream) {
  return stand_in::add({stand_in::Kind::reduce, in, out, count, type, op, root}, comm, stream);
}
inline ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                             cudaStream_t stream) {
  return stand_in::add({stand_in::Kind::send, in, nullptr, count, type, ncclSum, peer}, comm, stream);
}
inline ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                             cudaStream_t stream) {
  return stand_in::add({stand_in::Kind::receive, nullptr, out, count, type, ncclSum, peer}, comm, stream);
}
