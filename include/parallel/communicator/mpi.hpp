// Ranks as processes under MPI, and sums taken in rank order. Boost.MPI has the environment, communicators, element
// types and errors. MPI's own functions are called where it has none: nonblocking collectives, the barrier among them;
// messages and tests of requests whose errors come back with what was sent; copies and splits of communicators that are
// to return errors from then on, and to be given up at a deadline; and a probe, ranks and sizes whose errors are
// returned and not thrown, as a rank asks for them while it tells of another error.
#pragma once
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <optional>
#include <type_traits>
#include <unistd.h>
#include <utility>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/lifetime.hpp>
#include <parallel/communicator/mpi_message.hpp>
#include <parallel/communicator/mpi_window.hpp>
#include <parallel/communicator/ordered_sum.hpp>
#include <parallel/meta/meeting.hpp>

namespace parallel::internals {

/// One process of a job under MPI. Collectives of ranks of one machine go through memory that they share
/// (processes::Window), where it is to be had and the options let them. The calls that stand for an exchange between
/// n > 1 ranks else:
///
///     all_reduce       MPI_Ialltoallv of the terms of each rank's part, an ordered sum, MPI_Iallgatherv of the parts
///     reduce_scatter   MPI_Ialltoall, an ordered sum
///     reduce           MPI_Igather, an ordered sum at the root
///     all_gather       MPI_Iallgather
///     all_to_all       MPI_Ialltoall
///     broadcast        MPI_Ibcast
///     send, receive    MPI_Isend, MPI_Irecv
///     barrier          MPI_Ibarrier
///
/// and with `library_reduction` MPI_Iallreduce, MPI_Ireduce_scatter_block and MPI_Ireduce. The first call is made by
/// `start`, what follows by `wait`. Terms of others wait where the result of an all-reduce will be, if the ranks divide
/// the count and in != out; else, and of the other sums, in rooms that are kept (Plan::terms_of_sums). A rank that
/// waits longer than the deadline says where and ends the job with exit code 75. A message has less than 2^31 elements,
/// of an all-to-all a rank's part. Only the thread that initialised MPI calls it.
class Mpi {
 public:
  /// All ranks of the job; MPI has been initialised.
  explicit Mpi(MpiOptions options = {})
      : Mpi(std::make_shared<processes::Job>(options),
            [](MPI_Comm* group) { return MPI_Comm_dup(MPI_COMM_WORLD, group); }) {}

  int rank() const { return place_.rank(); }
  int size() const { return place_.size(); }
  void record(std::vector<Record>* records) { records_ = records; }
  /// How long this process waits for others, in all its groups.
  void deadline(std::chrono::milliseconds limit) { place_.job->options.deadline = limit; }
  /// What this process is in from now on; gives back what it was in.
  LongPhase within(const LongPhase& now) { return std::exchange(place_.job->phase, now); }

  Mpi split(int color, int key) {
    if (color < 0) throw Failure("parallel::split: the color is negative; count colors from 0", exit_code::internal);
    return Mpi(place_.job, [&](MPI_Comm* group) { return MPI_Comm_split(place_.communicator, color, key, group); });
  }
  /// The ranks on this rank's machine, in their order. Called by all ranks.
  Mpi machine() {
    return Mpi(place_.job, [&](MPI_Comm* group) {
      return MPI_Comm_split_type(place_.communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, group);
    });
  }

  /// Throws ExchangeRefused.
  Ticket start(const Exchange& e) {
    check(e, rank(), size());
    // each rank has one of them, never the whole message
    const bool parts = e.kind == Collective::all_to_all || e.kind == Collective::rotate;
    const std::int64_t counted = parts ? e.count / size() : e.count;
    if (counted > INT_MAX - size()) refuse(e, "MPI counts elements in 31 bits; split the message");
    Ticket ticket = point_to_point(e.kind) ? messages_.start(e) : start_collective(e);
    if (size() > 1) ticket.order = place_.job->history.start(e, size());
    if (records_ != nullptr) records_->push_back(record_of(e, size()));
    return ticket;
  }

  /// Throws Mismatch: of messages, and of collectives that differ among ranks of one machine; between machines where
  /// MPI tells, whose data do not fit.
  void wait(Ticket ticket) {
    ticket.channel >= 0 ? messages_.wait(ticket) : wait_collective(ticket);
    place_.job->history.end(ticket.order);
  }

  /// On communicators of their own, which the first call makes. Between machines a maximum is the library's: it has no
  /// order.
  void aside(const Exchange& e) {
    need_aside();
    aside_->wait(aside_->start(e));
    if (records_ != nullptr) records_->push_back(record_of(e, size()));
  }
  /// Called by all ranks: `aside` makes nothing any more.
  void need_aside() {
    if (aside_ != nullptr) return;
    aside_ = std::make_unique<Mpi>(split(0, rank()));
    aside_->library_maximum_ = true;
  }

  /// Lets the messages of all groups go on, which MPI does only while it is called, and the collectives of this one.
  /// Waits for nobody.
  void progress() {
    look_for_messages();
    if (window_ != nullptr) window_->advance();
  }

  std::weak_ptr<std::atomic<bool>> lifetime() const { return lifetime_.seen(); }
  void barrier() {
    if (size() == 1) return;
    const std::uint64_t order = place_.job->history.start_barrier(size());
    if (window_ != nullptr) {
      wait_for(window_->start(window_->barrier()), nullptr, "barrier");
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      processes::need(MPI_Ibarrier(place_.communicator, &request), "barrier");
      place_.complete(request, nullptr, "barrier");
    }
    place_.job->history.end(order);
  }

 private:
  void wait_collective(Ticket ticket) {
    Outstanding::need(outstanding_.contains(ticket.number));
    Pending& pending = (*pending_)[ticket.number % max_outstanding];
    if (window_ != nullptr) {
      wait_for(pending.queued, &pending.exchange);
    } else if (size() > 1) {
      place_.complete(pending.request, &pending.exchange);
      finish(pending);
    } else {
      copy(pending.exchange.out, pending.exchange.in, pending.exchange.count * bytes_of(pending.exchange.dtype));
    }
    outstanding_.end(ticket.number);
  }
  void look_for_messages() {
    int there = 0;
    processes::need(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, place_.communicator, &there, MPI_STATUS_IGNORE),
                    "a look for messages");
  }
  /// A collective in the window. Messages of this rank go on meanwhile: others may wait for them before they come here.
  void wait_for(std::uint64_t number, const Exchange* e, const char* label = "") {
    if (place_.job->messages > 0) look_for_messages();
    int tries = 0;
    const auto done = [&](bool& moved) {
      for (int spins = crowded_ ? 15 : 0; spins < 16; ++spins) {
        if (window_->done(number)) return true;
        if (window_->advance())
          moved = true;
        else
          threading::pause();
      }
      if (++tries % 16 == 0) look_for_messages();
      return window_->done(number);
    };
    place_.until(done, e, label);
  }
  struct Pending {
    Exchange exchange{};
    std::uint64_t queued = 0;  ///< its number in the window; nothing else of this is used then
    MPI_Request request = MPI_REQUEST_NULL;
    /// of an all-reduce's parts in the message; part r is summed by rank r
    std::vector<int> lengths, offsets;
    std::vector<int> sent, received, scratch_offsets;  ///< of its first call; a rank's own term stays where it is
    std::byte* others = nullptr;  ///< where terms of others wait, of all ranks one behind the other
    std::byte* room = nullptr;    ///< that was lent for them
    std::vector<const void*> terms;
  };

  // Second calls have a context of their own: ranks need not agree on the order of one exchange's wait and another's
  // start.
  template <class Make>
  Mpi(const std::shared_ptr<processes::Job>& job, Make make)
      : place_{processes::made(job, "the making of a group", make), job},
        window_(place_.size() > 1 && job->options.shared_memory && !job->options.library_reduction
                    ? processes::Window::of(place_)
                    : nullptr),
        second_(processes::duplicate(job, place_.communicator)),
        messages_(place_),
        pending_(std::make_unique<std::array<Pending, max_outstanding>>()) {
    for (Pending& pending : *pending_) {
      for (auto* list :
           {&pending.lengths, &pending.offsets, &pending.sent, &pending.received, &pending.scratch_offsets})
        list->resize(index(size()));
      pending.terms.resize(index(size()));
    }
  }

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static void copy(void* to, const void* from, std::int64_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, index(bytes));
  }
  std::byte* room(Pending& p, std::int64_t bytes) {
    p.room = place_.job->rooms.take(bytes);
    return p.others = p.room;
  }

  Ticket start_collective(const Exchange& e) {
    outstanding_.need_place(e);
    Pending& pending = (*pending_)[outstanding_.next() % max_outstanding];
    pending.exchange = e;
    if (window_ != nullptr)
      pending.queued = window_->start(pending.exchange);
    else if (size() > 1)
      begin(pending);
    return {outstanding_.start()};
  }

  void begin(Pending& p) {
    using processes::started;
    const Exchange& e = p.exchange;
    const MPI_Datatype type = processes::type_of(e.dtype);
    const std::int64_t width = bytes_of(e.dtype);
    const int n = size(), count = static_cast<int>(e.count), block = static_cast<int>(block_of(e, n));
    const MPI_Comm group = place_.communicator;
    const bool library = reduced_by_library(e);
    const MPI_Op operation = e.maximum ? MPI_MAX : MPI_SUM;
    switch (e.kind) {
      case Collective::all_reduce: {
        if (library) {
          started(MPI_Iallreduce(e.in == e.out ? MPI_IN_PLACE : e.in, e.out, count, type, operation, group, &p.request),
                  e);
          break;
        }
        for (int r = 0, first = 0; r < n; first += p.lengths[index(r)], ++r) {
          p.lengths[index(r)] = block + (r < count % n ? 1 : 0);
          p.offsets[index(r)] = first;
        }
        const int mine = p.lengths[index(rank())];
        for (int r = 0; r < n; ++r) {
          p.sent[index(r)] = r == rank() ? 0 : p.lengths[index(r)];
          p.received[index(r)] = r == rank() ? 0 : mine;
          p.scratch_offsets[index(r)] = r * mine;
        }
        // a rank's own part of it is where it will write the sum
        const bool in_result = e.in != e.out && count % n == 0;
        p.others = in_result ? static_cast<std::byte*>(e.out) : room(p, mine * width * n);
        started(MPI_Ialltoallv(e.in, p.sent.data(), p.offsets.data(), type, p.others, p.received.data(),
                               p.scratch_offsets.data(), type, group, &p.request),
                e);
        break;
      }
      case Collective::reduce_scatter:
        if (library)
          started(MPI_Ireduce_scatter_block(e.in, e.out, block, type, operation, group, &p.request), e);
        else
          started(MPI_Ialltoall(e.in, block, type, room(p, e.count * width), block, type, group, &p.request), e);
        break;
      case Collective::reduce: {
        const bool root = rank() == e.root;
        if (library)
          started(MPI_Ireduce(root && e.in == e.out ? MPI_IN_PLACE : e.in, e.out, count, type, operation, e.root, group,
                              &p.request),
                  e);
        else
          started(MPI_Igather(root ? MPI_IN_PLACE : e.in, count, type, root ? room(p, n * e.count * width) : nullptr,
                              count, type, e.root, group, &p.request),
                  e);
        break;
      }
      case Collective::rotate:
        for (int r = 0; r < n; ++r) {
          p.sent[index(r)] = r == (rank() + 1) % n ? block : 0;
          p.received[index(r)] = rank() == (r + 1) % n ? block : 0;
          p.offsets[index(r)] = 0;
        }
        started(MPI_Ialltoallv(e.in, p.sent.data(), p.offsets.data(), type, e.out, p.received.data(), p.offsets.data(),
                               type, group, &p.request),
                e);
        break;
      case Collective::gather:
        started(MPI_Igather(e.in, block, type, e.out, block, type, e.root, group, &p.request), e);
        break;
      case Collective::scatter:
        started(MPI_Iscatter(e.in, block, type, e.out, block, type, e.root, group, &p.request), e);
        break;
      case Collective::all_gather:
        started(MPI_Iallgather(e.in, block, type, e.out, block, type, group, &p.request), e);
        break;
      case Collective::all_to_all:
        started(MPI_Ialltoall(e.in, block, type, e.out, block, type, group, &p.request), e);
        break;
      default:
        if (rank() == e.root) copy(e.out, e.in, e.count * width);
        started(MPI_Ibcast(e.out, count, type, e.root, group, &p.request), e);
    }
  }

  bool reduced_by_library(const Exchange& e) const {
    return reduces(e.kind) && !is_half(e.dtype) &&
           (place_.job->options.library_reduction || (library_maximum_ && e.maximum));
  }

  /// After the first call of an exchange: the ordered sum, and the second call.
  void finish(Pending& p) {
    const Exchange& e = p.exchange;
    if (!reduces(e.kind) || reduced_by_library(e)) return;
    if (e.kind == Collective::reduce && rank() != e.root) return;
    const bool all = e.kind == Collective::all_reduce;
    const std::int64_t width = bytes_of(e.dtype), first = all ? p.offsets[index(rank())] : 0;
    const std::int64_t count = all                            ? p.lengths[index(rank())]
                               : e.kind == Collective::reduce ? e.count
                                                              : e.count / size();
    for (int r = 0; r < size(); ++r) p.terms[index(r)] = p.others + r * count * width;
    if (e.kind != Collective::reduce_scatter)
      p.terms[index(rank())] = static_cast<const std::byte*>(e.in) + first * width;
    void* const out = static_cast<std::byte*>(e.out) + first * width;
    ordered_sum(e.dtype, e.maximum, &out, 1, p.terms.data(), size(), count);
    if (p.room != nullptr) place_.job->rooms.give_back(std::exchange(p.room, nullptr));
    if (!all) return;
    const MPI_Datatype type = processes::type_of(e.dtype);
    processes::started(
        MPI_Iallgatherv(MPI_IN_PLACE, 0, type, e.out, p.lengths.data(), p.offsets.data(), type, second_, &p.request),
        e);
    place_.complete(p.request, &e);
  }

  processes::Place place_;
  std::unique_ptr<processes::Window> window_;
  boost::mpi::communicator second_;
  processes::Messages messages_;
  Outstanding outstanding_{max_outstanding};  // collectives
  std::unique_ptr<std::array<Pending, max_outstanding>> pending_;
  std::vector<Record>* records_ = nullptr;
  std::unique_ptr<Mpi> aside_;
  Lifetime lifetime_{};
  bool library_maximum_ = false;
  /// more ranks than cores: one that spins keeps another off
  bool crowded_ = processes::Job::ranks() > sysconf(_SC_NPROCESSORS_ONLN);
};
static_assert(Communicator<Mpi>);

namespace processes {
/// MPI's start and end, in which ranks wait for each other: nothing can be asked to give up there, either.
class Environment {
 public:
  explicit Environment(std::chrono::milliseconds deadline) : deadline_(deadline) {
    if (boost::mpi::environment::finalized())
      throw Failure(
          "parallel::run_mpi: MPI has ended in this process, and cannot begin again; do all within one run_mpi",
          exit_code::internal);
    const Watch watch(deadline, [deadline] { late(deadline, "start"); });
    environment_.emplace(boost::mpi::threading::funneled);
  }
  /// Where an exception has left the job, it ends by Job::end.
  void finish() {
    const Watch watch(deadline_, [deadline = deadline_] { late(deadline, "end"); });
    environment_.reset();
  }

 private:
  [[noreturn]] static void late(std::chrono::milliseconds deadline, const char* what) {
    std::fprintf(
        stderr,
        "parallel::run_mpi: a process waited %s in MPI's %s; another hangs or was not started; the job ends with "
        "exit code 75\n",
        text(deadline).c_str(), what);
    std::_Exit(exit_code::peer);  // MPI is not there to abort
  }
  std::chrono::milliseconds deadline_;
  std::optional<boost::mpi::environment> environment_;
};
/// Whether run_mpi is called with these.
template <class... Given>
constexpr bool runs = false;
template <class F, class... Options>
constexpr bool runs<F, Options...> = std::is_invocable_v<F&, Mpi&> && sizeof...(Options) < 2 &&
                                     (std::is_convertible_v<Options, MpiOptions> && ...);
}  // namespace processes

/// Calls f(Mpi&) with all ranks of the job. It returns after all ranks have; if one throws, it says why and ends the
/// job with the exit code that the exception maps to. A rank that calls exit(0) meanwhile ends the job with 70. Once in
/// a process: MPI cannot begin twice.
template <class F>
requires(processes::runs<F>) void run_mpi(F&& f, MpiOptions options = {}) {
  using processes::Job;
  processes::Environment environment(options.deadline);
  try {
    const Unfinished unfinished(&Job::end);
    Mpi world(options);
    Unfinished::is_rank(world.rank(), world.size());
    const std::string expected = "parallel::run_mpi: " + std::to_string(options.ranks) + " ranks are expected, but ";
    if (options.ranks > 1 && world.size() == 1)
      throw Failure(
          expected +
              "this one runs alone, as a program does that was started without mpirun; start it with mpirun -n " +
              std::to_string(options.ranks) +
              " (as root with --allow-run-as-root, on fewer cores with --oversubscribe)",
          exit_code::configuration);
    if (options.ranks > 0 && world.size() != options.ranks)
      throw Failure(expected + std::to_string(world.size()) + " are running; start the program with mpirun -n " +
                        std::to_string(options.ranks),
                    exit_code::configuration);
    world.need_aside();
    f(world);
    world.record(nullptr);  // what it recorded to may have ended with it
    agreeing::end(world);
  } catch (...) {
    const Ending ending = ending_of(std::current_exception());
    // the first rank says it, and ends the job
    if (Job::rank() > 0 && found_by(std::current_exception()) == Job::ranks())
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::fprintf(stderr, "%s (%s; the job ends with exit code %d)\n", ending.sentence.c_str(), Job::who().c_str(),
                 ending.exit_code);
    Job::end(ending.exit_code);
  }
  environment.finish();
}
template <class... Given>
requires(!processes::runs<Given...>) int run_mpi(Given&&...) {
  static_assert(sizeof...(Given) > 99,
                "parallel: run_mpi takes what each rank does with its communicator, and options by their names, since "
                "mpirun starts the ranks; write run_mpi([&](Mpi& world) { ... }, {.ranks = 4})");
  return 0;  // also a program that returns it has one error
}

}  // namespace parallel::internals

namespace parallel {
using internals::Mpi;
using internals::run_mpi;
}  // namespace parallel
