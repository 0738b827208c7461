// Ranks as processes under MPI: Boost.MPI's communicators and environment, MPI's nonblocking collectives, and sums taken in rank order.
#pragma once
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1  // the C++ bindings that MPI has withdrawn
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <boost/mpi/communicator.hpp>
#include <boost/mpi/environment.hpp>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <parallel/communicator/communicator.hpp>
#include <parallel/communicator/ordered_sum.hpp>

namespace parallel {

struct MpiOptions {
  std::chrono::milliseconds deadline = default_deadline;
  /// Let the MPI library reduce: the order of the terms, and with it the last bits, are the library's.
  bool library_reduction = false;
  /// What `run_mpi` expects; 0: any number.
  int ranks = 0;
};

/// One process of a job under MPI. The calls that stand for an exchange between n > 1 ranks:
///
///     all_reduce       MPI_Ialltoallv of the terms of each rank's part, an ordered sum, MPI_Iallgatherv of the parts
///     reduce_scatter   MPI_Ialltoall, an ordered sum
///     reduce           MPI_Igather, an ordered sum at the root
///     all_gather       MPI_Iallgather
///     all_to_all       MPI_Ialltoall
///     broadcast        MPI_Ibcast
///     barrier          MPI_Ibarrier
///
/// and with `library_reduction` MPI_Iallreduce, MPI_Ireduce_scatter_block and MPI_Ireduce. The first call is made by `start`, what follows
/// by `wait`. Terms of others wait in scratch memory that grows when first used and is kept. A rank that waits longer than the deadline
/// says where and ends the job with exit code 75. A message has less than 2^31 elements. Only the thread that initialised MPI
/// calls it.
class Mpi {
 public:
  /// All ranks of the job; MPI has been initialised.
  explicit Mpi(MpiOptions options = {})
      : Mpi(boost::mpi::communicator(MPI_COMM_WORLD, boost::mpi::comm_duplicate), std::make_shared<MpiOptions>(options)) {}

  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  void record(std::vector<Record>* records) { records_ = records; }
  /// How long this process waits for others, in all its groups.
  void deadline(std::chrono::milliseconds limit) { options_->deadline = limit; }

  Mpi split(int color, int key) {
    if (color < 0) throw Failure("parallel::split: the color is negative; count colors from 0");
    return Mpi(communicator_.split(color, key), options_);
  }

  /// Throws ExchangeRefused.
  Ticket start(const Exchange& e) {
    check(e, rank(), size());
    if (e.count > INT_MAX - size()) refuse(e, "MPI counts elements in 31 bits; split the message");
    Pending& pending = (*pending_)[started_ % max_outstanding];
    if (pending.outstanding) refuse(e, "the sixteenth exchange before it is outstanding; wait for that one first");
    pending.exchange = e;
    if (size() > 1) begin(pending);
    pending.outstanding = true;
    if (records_ != nullptr) records_->push_back(record_of(e, size()));
    return {started_++};
  }

  void wait(Ticket ticket) {
    Pending& pending = (*pending_)[ticket.number % max_outstanding];
    if (ticket.number >= started_ || ticket.number + max_outstanding < started_ || !pending.outstanding)
      throw Failure("parallel::wait: the ticket is not outstanding; wait once for each start, in the group that started it");
    if (size() > 1) {
      complete(pending.request, &pending.exchange);
      finish(pending);
    } else {
      copy(pending.exchange.out, pending.exchange.in, pending.exchange.count * bytes_of(pending.exchange.dtype));
    }
    pending.outstanding = false;
  }

  void barrier(const char* label = "barrier") {
    if (size() == 1) return;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(communicator_, &request);
    complete(request, nullptr, label);
  }

 private:
  struct Pending {
    Exchange exchange{};
    bool outstanding = false;
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<int> lengths, offsets;                 ///< of an all-reduce's parts in the message; part r is summed by rank r
    std::vector<int> sent, received, scratch_offsets;  ///< of its first call; a rank's own term stays where it is
    std::vector<std::byte> scratch;
    std::vector<const void*> terms;
  };

  // Second calls have a context of their own: ranks need not agree on the order of one exchange's wait and another's start.
  Mpi(boost::mpi::communicator first, std::shared_ptr<MpiOptions> options)
      : communicator_(std::move(first)),
        second_(communicator_, boost::mpi::comm_duplicate),
        options_(std::move(options)),
        pending_(std::make_unique<std::array<Pending, max_outstanding>>()) {
    for (Pending& pending : *pending_) {
      for (auto* list : {&pending.lengths, &pending.offsets, &pending.sent, &pending.received, &pending.scratch_offsets})
        list->resize(index(size()));
      pending.terms.resize(index(size()));
    }
  }

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static void copy(void* to, const void* from, std::int64_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, index(bytes));
  }
  static MPI_Datatype type_of(DType dtype) {
    switch (dtype) {
      case DType::f32: return MPI_FLOAT;
      case DType::f64: return MPI_DOUBLE;
      case DType::bf16: return MPI_UINT16_T;
      default: return MPI_INT32_T;
    }
  }
  static void* scratch(Pending& pending, std::int64_t bytes) {
    if (pending.scratch.size() < index(bytes)) pending.scratch.resize(index(bytes));
    return pending.scratch.data();
  }

  void begin(Pending& p) {
    const Exchange& e = p.exchange;
    const MPI_Datatype type = type_of(e.dtype);
    const std::int64_t width = bytes_of(e.dtype);
    const int n = size(), count = static_cast<int>(e.count), block = count / n;
    const bool library = options_->library_reduction && reduces(e.kind);
    const MPI_Op operation = e.maximum ? MPI_MAX : MPI_SUM;
    switch (e.kind) {
      case Collective::all_reduce: {
        if (library) {
          MPI_Iallreduce(e.in == e.out ? MPI_IN_PLACE : e.in, e.out, count, type, operation, communicator_, &p.request);
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
        MPI_Ialltoallv(e.in, p.sent.data(), p.offsets.data(), type, scratch(p, mine * width * n), p.received.data(),
                       p.scratch_offsets.data(), type, communicator_, &p.request);
        break;
      }
      case Collective::reduce_scatter:
        if (library)
          MPI_Ireduce_scatter_block(e.in, e.out, block, type, operation, communicator_, &p.request);
        else
          MPI_Ialltoall(e.in, block, type, scratch(p, e.count * width), block, type, communicator_, &p.request);
        break;
      case Collective::reduce:
        if (library)
          MPI_Ireduce(rank() == e.root && e.in == e.out ? MPI_IN_PLACE : e.in, e.out, count, type, operation, e.root, communicator_,
                      &p.request);
        else
          MPI_Igather(rank() == e.root ? MPI_IN_PLACE : e.in, count, type, rank() == e.root ? scratch(p, n * e.count * width) : nullptr,
                      count, type, e.root, communicator_, &p.request);
        break;
      case Collective::all_gather: MPI_Iallgather(e.in, block, type, e.out, block, type, communicator_, &p.request); break;
      case Collective::all_to_all: MPI_Ialltoall(e.in, block, type, e.out, block, type, communicator_, &p.request); break;
      default:
        if (rank() == e.root) copy(e.out, e.in, e.count * width);
        MPI_Ibcast(e.out, count, type, e.root, communicator_, &p.request);
    }
  }

  /// After the first call of an exchange: the ordered sum, and the second call.
  void finish(Pending& p) {
    const Exchange& e = p.exchange;
    if (!reduces(e.kind) || options_->library_reduction) return;
    if (e.kind == Collective::reduce && rank() != e.root) return;
    const bool all = e.kind == Collective::all_reduce;
    const std::int64_t width = bytes_of(e.dtype), first = all ? p.offsets[index(rank())] : 0;
    const std::int64_t count = all ? p.lengths[index(rank())] : e.kind == Collective::reduce ? e.count : e.count / size();
    for (int r = 0; r < size(); ++r) p.terms[index(r)] = p.scratch.data() + r * count * width;
    if (e.kind != Collective::reduce_scatter) p.terms[index(rank())] = static_cast<const std::byte*>(e.in) + first * width;
    void* const out = static_cast<std::byte*>(e.out) + first * width;
    ordered_sum(e.dtype, e.maximum, &out, 1, p.terms.data(), size(), count);
    if (!all) return;
    const MPI_Datatype type = type_of(e.dtype);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, type, e.out, p.lengths.data(), p.offsets.data(), type, second_, &p.request);
    complete(p.request, &e);
  }

  void complete(MPI_Request& request, const Exchange* e, const char* label = "") {
    std::chrono::steady_clock::time_point since{};
    for (int tests = 1;; ++tests) {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) return;
      if (tests % 16 != 0) continue;
      std::this_thread::yield();
      if (tests % 64 != 0) continue;
      const auto time = std::chrono::steady_clock::now();
      if (since == std::chrono::steady_clock::time_point{}) since = time;
      if (time - since >= options_->deadline) late(e != nullptr ? text(*e) : label);
    }
  }

  [[noreturn]] void late(const std::string& what) const {
    int world = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    std::string words = "parallel::wait: rank " + std::to_string(rank()) + " of " + std::to_string(size());
    if (world != rank()) words += " (rank " + std::to_string(world) + " of the job)";
    words +=
        " waited " + text(options_->deadline) + " in " + what + "; another rank hangs, has ended or calls something else; the job ends\n";
    std::fputs(words.c_str(), stderr);
    MPI_Abort(MPI_COMM_WORLD, 75);
    std::_Exit(75);
  }

  boost::mpi::communicator communicator_, second_;
  std::shared_ptr<MpiOptions> options_;
  std::unique_ptr<std::array<Pending, max_outstanding>> pending_;
  std::uint64_t started_ = 0;
  std::vector<Record>* records_ = nullptr;
};
static_assert(Communicator<Mpi>);

/// Calls f(Mpi&) with all ranks of the job. It returns after all ranks have; if one throws, it says why and ends the job with the exit
/// code that the exception maps to.
template <class F>
void run_mpi(F&& f, MpiOptions options = {}) {
  const boost::mpi::environment environment(boost::mpi::threading::funneled);
  std::string why = "an exception";
  int code = 1;
  try {
    Mpi world(options);
    const std::string expected = "parallel::run_mpi: " + std::to_string(options.ranks) + " ranks are expected, but ";
    if (options.ranks > 1 && world.size() == 1)
      throw Failure(expected + "this one runs alone, as a program does that was started without mpirun; start it with mpirun -n " +
                        std::to_string(options.ranks) + " (as root with --allow-run-as-root, on fewer cores with --oversubscribe)",
                    78);
    if (options.ranks > 0 && world.size() != options.ranks)
      throw Failure(
          expected + std::to_string(world.size()) + " are running; start the program with mpirun -n " + std::to_string(options.ranks), 78);
    Mpi end = world.split(0, world.rank());  // a context of its own: a rank that is early must not meet an exchange of the others
    f(world);
    end.barrier("the end of the program");
    return;
  } catch (const std::exception& error) {
    why = error.what(), code = exit_code_of(error);
  } catch (...) {
  }
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::fprintf(stderr, "%s (rank %d of %d; the job ends with exit code %d)\n", why.c_str(), rank, ranks, code);
  MPI_Abort(MPI_COMM_WORLD, code);
}

}  // namespace parallel
