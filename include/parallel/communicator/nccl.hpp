// Ranks with a GPU each: NCCL's collectives and messages on streams of their own, ordered with the computation by
// events. Linked with nccl.
#pragma once
#include <atomic>
#include <numeric>

#include <parallel/communicator/aside.hpp>
#include <parallel/communicator/lifetime.hpp>
#include <parallel/communicator/nccl_line.hpp>

namespace parallel::internals {

/// One rank, whose buffers are memory of its GPU. It keeps the laws of a Communicator in the order of its compute
/// stream: an exchange begins when what that stream was asked for before `start` is done, and what it is asked for
/// after `wait` begins when the exchange is done. The host waits in neither, only in `finish`, `barrier`, `split` and
/// `connect`; so start and wait can be captured as part of a CUDA graph.
///
/// What does not hold here: - Law 2. NCCL adds in an order of its own, which depends on the number of ranks, the
/// message and the machine: sums differ from other
///   backends' in the last bits. With the same NCCL, machine and settings they are the same on every rank and in every run. A maximum may
///   lose a NaN.
/// - Law 8 holds in `finish`: there the host notices that exchanges do not end. NCCL cannot tell different collectives
/// from late ones: where ranks
///   disagree, numbers may be wrong or the deadline ends the run. `missing` is empty.
/// - Messages need a channel: all ranks of the group call `connect` at set-up.
///
/// The calls that stand for an exchange between n > 1 ranks:
///
///     all_reduce, reduce_scatter, all_gather, broadcast, reduce   NCCL's of that name
///     all_to_all                                                  ncclSend and ncclRecv with each rank, one group
///     send, receive                                               ncclSend, ncclRecv on a communicator of the two ranks
///
/// One rank per thread, and its thread alone calls it.
class Nccl {
 public:
  /// Called by all ranks, each with its rank and a GPU of its own, and the same id. Throws Deadline, Failure.
  Nccl(int rank, int ranks, const ncclUniqueId& id, int gpu, const NcclOptions& options = {},
       std::function<std::string()> others = {})
      : Nccl(std::make_shared<nccl::Job>(rank, ranks, gpu, options), [&](nccl::Job& job) {
          job.others = std::move(others);
          ncclConfig_t config = job.config();
          ncclComm_t& all = job.place_for_new();
          const ncclResult_t result = ncclCommInitRankConfig(&all, ranks, id, rank, &config);
          settle_new(job, result, all, all, "the communicator of " + std::to_string(ranks) + " ranks");
          return all;
        }) {}

  int rank() const { return own_->collectives.rank(); }
  int size() const { return own_->collectives.size(); }
  int gpu() const { return job().gpu(); }
  void record(std::vector<Record>* records) { own_->records = records; }
  /// How long this rank waits for others, in all its groups.
  void deadline(std::chrono::milliseconds limit) {
    job().options.deadline = limit;
    if (own_->aside != nullptr) own_->aside->deadline(limit);
  }
  /// What this rank is in from now on; gives back what it was in.
  LongPhase within(const LongPhase& now) {
    if (own_->aside != nullptr) own_->aside->within(now);
    return std::exchange(job().phase, now);
  }
  /// The stream on which buffers are computed, for all groups of this rank. It outlives their exchanges.
  void compute(cudaStream_t stream) { job().compute = stream; }

  /// Throws Deadline, PeerFailed, Failure.
  Nccl split(int color, int key) {
    if (color < 0) throw Failure("parallel::split: the color is negative; count colors from 0", exit_code::internal);
    Nccl group(own_->collectives_job, [&](nccl::Job& job) { return split(job, color, key, job.config()); });
    if (own_->aside != nullptr) group.aside_by(own_->aside->split(color, key));
    return group;
  }

  /// Prepares messages from each rank r to rank r + distance, counted around. Each channel is a communicator of two
  /// ranks, so that messages wait for their other end alone. The first is sent here, because it would hold the host.
  /// Throws Deadline, PeerFailed, Failure.
  void connect(int distance) {
    const int n = size(), d = (distance % n + n) % n;
    if (d == 0 || own_->channels[channel_to(d)] != nullptr) return;
    // Ranks that are d apart form rings; a rank takes part in one channel at a time, so a ring's channels are made in
    // turns.
    const int ring = n / std::gcd(n, d);
    int place = 0;
    for (int r = rank() % std::gcd(n, d); r != rank(); r = (r + d) % n) ++place;
    const auto turn_of = [&](int from) { return from == ring - 1 && ring % 2 == 1 ? 2 : from % 2; };
    for (int turn = 0; turn < 2 + ring % 2; ++turn) {
      const bool sends = turn_of(place) == turn, receives = turn_of((place + ring - 1) % ring) == turn;
      const int peer = (rank() + (sends ? d : n - d)) % n;
      ncclConfig_t config = job().config();
      config.minCTAs = 1;
      config.maxCTAs = job().options.message_blocks;
      const ncclComm_t pair = split(job(),
                                    sends      ? rank()
                                    : receives ? peer
                                               : NCCL_SPLIT_NOCOLOR,
                                    sends ? 0 : 1, config);
      if (pair == nullptr) continue;
      const Exchange first{.kind = sends ? Collective::send : Collective::receive,
                           .in = job().room(),
                           .out = job().room() + 1,
                           .count = 1,
                           .label = "the first message",
                           .peer = peer};
      auto& channel = own_->channels[index(channel_of(first))];
      channel = std::make_unique<nccl::Line>(own_->collectives_job, pair, max_messages);
      channel->wait(channel->start(first, [&](ncclComm_t c, cudaStream_t s) { return launch_message(first, c, s); }));
    }
    job().finish("the first messages");
  }

  /// Throws ExchangeRefused, PeerFailed, Failure.
  Ticket start(const Exchange& e) {
    check(e, rank(), size());
    Ticket ticket;
    if (point_to_point(e.kind)) {
      const auto& channel = own_->channels[index(channel_of(e))];
      if (channel == nullptr)
        refuse(
            e,
            "there is no channel between the two ranks; let all ranks of the group call connect with their distance at set-up");
      ticket = {channel->start(e, [&](ncclComm_t c, cudaStream_t s) { return launch_message(e, c, s); }),
                channel_of(e)};
    } else {
      ticket = {own_->collectives.start(e, [&](ncclComm_t c, cudaStream_t s) { return launch(e, c, s); })};
    }
    if (size() > 1) ticket.order = job().history.start(e, size());
    if (own_->records != nullptr) own_->records->push_back(record_of(e, size()));
    return ticket;
  }
  void wait(Ticket ticket) {
    job().history.end(ticket.order);
    if (ticket.channel < 0) return own_->collectives.wait(ticket.number);
    Outstanding::need(index(ticket.channel) < own_->channels.size() &&
                      own_->channels[index(ticket.channel)] != nullptr);
    own_->channels[index(ticket.channel)]->wait(ticket.number);
  }

  /// By the way that these ranks have beside NCCL, where they have one; else by NCCL, behind all that the compute
  /// stream was asked for. Throws what that way does.
  void aside(const Exchange& e) {
    if (own_->aside != nullptr) {
      own_->aside->exchange(e);
      if (own_->records != nullptr) own_->records->push_back(record_of(e, size()));
      return;
    }
    const auto bytes = [&](std::int64_t elements) { return index(elements * bytes_of(e.dtype)); };
    const std::size_t in = bytes(elements_in(e, rank(), size())), out = bytes(elements_out(e, rank(), size()));
    if (own_->room_bytes < in + out) {
      own_->room = nccl::make_room(in + out);
      own_->room_bytes = in + out;
    }
    Exchange there = e;
    there.in = own_->room.get();
    there.out = static_cast<std::byte*>(own_->room.get()) + in;
    nccl::check(cudaMemcpyAsync(own_->room.get(), e.in, in, cudaMemcpyHostToDevice, job().compute), "a copy");
    exchange(*this, there);
    nccl::check(cudaMemcpyAsync(e.out, there.out, out, cudaMemcpyDeviceToHost, job().compute), "a copy");
    finish(e.label);
  }
  /// How these ranks, and groups that are split from now on, exchange the host's memory; null: by NCCL.
  void aside_by(std::shared_ptr<Aside> way) { own_->aside = std::move(way); }

  /// Waits until the GPU has done all that the compute stream was asked for: the end of a step, or before its numbers
  /// are read. Throws Deadline and PeerFailed, which name the exchange that is not done; no exchange of this rank is on
  /// its way then.
  void finish(const char* what = "a step") { job().finish(what); }
  /// How others wait on the host for what their streams get from exchanges: called with what says that it has come, it
  /// throws as finish does.
  std::function<void(const std::function<bool()>&)> waiter() const {
    return [job = own_->collectives_job](const std::function<bool()>& done) {
      job->need_alive("a step");
      job->until(done, "a step");
    };
  }
  /// The end: waits until the exchanges of all groups are done. The compute stream may be gone.
  void close() {
    job().until(
        [&] {
          return std::all_of(job().lines.begin(), job().lines.end(),
                             [](const nccl::Line* line) { return line->idle(); });
        },
        "the end of the program");
  }
  void barrier() {
    exchange(*this, {Collective::all_reduce, job().room(), job().room(), 1, DType::f32, false, 0, "barrier"});
    finish("barrier");
  }
  std::weak_ptr<std::atomic<bool>> lifetime() const { return lifetime_.seen(); }
  /// Ends all exchanges of this rank.
  void abandon(const std::string& why = "it abandoned its exchanges") { job().abort(why); }

 private:
  struct Own {
    Own(std::shared_ptr<nccl::Job> job, ncclComm_t communicator)
        : collectives_job(job),
          collectives(std::move(job), communicator, max_outstanding),
          channels(static_cast<std::size_t>(2 * collectives.size())) {}
    std::shared_ptr<nccl::Job> collectives_job;
    nccl::Line collectives;
    std::vector<std::unique_ptr<nccl::Line>> channels;  ///< by channel_of
    std::vector<Record>* records = nullptr;
    std::shared_ptr<Aside> aside;
    nccl::Room room;  ///< of the GPU, for what is exchanged aside by NCCL
    std::size_t room_bytes = 0;
  };

  Lifetime lifetime_{};
  template <class Make>
  Nccl(const std::shared_ptr<nccl::Job>& job, Make make) : own_(std::make_unique<Own>(job, make(*job))) {}

  nccl::Job& job() const { return *own_->collectives_job; }
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::size_t channel_to(int d) const { return index(2 * ((rank() + d) % size())); }

  /// Null where the rank has no color. A thread of NCCL's gives the child, of NCCL 2.28 also when the parent is in
  /// progress no more; and the child may be in progress for longer.
  ncclComm_t split(nccl::Job& job, int color, int key, ncclConfig_t config) {
    ncclComm_t& child = job.place_for_new();
    const auto given = [&] { return std::atomic_ref(child).load(std::memory_order_acquire) != nullptr; };
    const std::string what = "a split of " + std::to_string(size()) + " ranks";
    job.need_alive(what);
    const ncclComm_t parent = own_->collectives.communicator();
    settle_new(job, ncclCommSplit(parent, color, key, &child, &config), parent, child, what);
    if (color == NCCL_SPLIT_NOCOLOR) return nullptr;
    job.until(given, what);
    settle_new(job, ncclInProgress, child, child, what);
    return child;
  }
  /// Waits as `settle` does; on failure the new communicator, which no line owns yet, is given back.
  static void settle_new(nccl::Job& job, ncclResult_t result, ncclComm_t asked, const ncclComm_t& made,
                         const std::string& what) {
    try {
      job.settle(
          result, [&] { return asked; }, what);
    } catch (...) {
      if (made != nullptr) ncclCommAbort(made);
      throw;
    }
  }

  static ncclDataType_t type_of(DType dtype) {
    switch (dtype) {
      case DType::f32: return ncclFloat32;
      case DType::f64: return ncclFloat64;
      case DType::bf16: return ncclBfloat16;
      case DType::f16: return ncclFloat16;
      default: return ncclInt32;
    }
  }

  ncclResult_t launch(const Exchange& e, ncclComm_t group, cudaStream_t stream) const {
    const ncclDataType_t type = type_of(e.dtype);
    const ncclRedOp_t op = e.maximum ? ncclMax : ncclSum;
    const std::size_t count = index(e.count), block = index(block_of(e, size()));
    if (size() == 1) {
      const auto bytes = count * index(bytes_of(e.dtype));
      if (bytes > 0 && e.in != e.out)
        nccl::check(cudaMemcpyAsync(e.out, e.in, bytes, cudaMemcpyDeviceToDevice, stream), "a copy");
      return ncclSuccess;
    }
    switch (e.kind) {
      case Collective::all_reduce: return ncclAllReduce(e.in, e.out, count, type, op, group, stream);
      case Collective::reduce_scatter: return ncclReduceScatter(e.in, e.out, block, type, op, group, stream);
      case Collective::all_gather: return ncclAllGather(e.in, e.out, block, type, group, stream);
      case Collective::reduce: return ncclReduce(e.in, e.out, count, type, op, e.root, group, stream);
      case Collective::broadcast:
        return ncclBroadcast(rank() == e.root ? e.in : e.out, e.out, count, type, e.root, group, stream);
      default: break;
    }
    // all_to_all; of a ring, rotate; and with one root, gather and scatter
    const std::size_t width = block * index(bytes_of(e.dtype));
    const bool rotates = e.kind == Collective::rotate, whole_in = rotates || e.kind == Collective::gather,
               whole_out = rotates || e.kind == Collective::scatter;
    const auto sends_to = [&](int r) {
      if (rotates) return r == (rank() + 1) % size();
      return to_root(e.kind) ? r == e.root : !from_root(e.kind) || rank() == e.root;
    };
    const auto receives_from = [&](int r) {
      if (rotates) return rank() == (r + 1) % size();
      return from_root(e.kind) ? r == e.root : !to_root(e.kind) || rank() == e.root;
    };
    ncclResult_t result = ncclGroupStart();
    for (int r = 0; r < size() && result == ncclSuccess; ++r) {
      const auto* from = static_cast<const std::byte*>(e.in) + (whole_in ? 0 : index(r) * width);
      auto* const to = static_cast<std::byte*>(e.out) + (whole_out ? 0 : index(r) * width);
      if (sends_to(r)) result = ncclSend(from, block, type, r, group, stream);
      if (result == ncclSuccess && receives_from(r)) result = ncclRecv(to, block, type, r, group, stream);
    }
    const ncclResult_t ended = ncclGroupEnd();
    return result != ncclSuccess ? result : ended;
  }
  /// On the communicator of the channel, whose rank 0 sends.
  static ncclResult_t launch_message(const Exchange& e, ncclComm_t channel, cudaStream_t stream) {
    if (e.kind == Collective::send) return ncclSend(e.in, index(e.count), type_of(e.dtype), 1, channel, stream);
    return ncclRecv(e.out, index(e.count), type_of(e.dtype), 0, channel, stream);
  }

  std::unique_ptr<Own> own_;
};
static_assert(Communicator<Nccl>);

}  // namespace parallel::internals

namespace parallel {
using internals::Nccl;
}  // namespace parallel
