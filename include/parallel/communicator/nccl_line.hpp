// Exchanges that happen one after the other: a communicator of NCCL, a stream of its own, and events between that and
// the computation.
#pragma once
#include <array>
#include <system_error>

#include <parallel/communicator/nccl_job.hpp>
#include <parallel/communicator/outstanding.hpp>

namespace parallel::internals::nccl {

/// A group's collectives are one, and so is each channel from a rank to another: messages wait for nothing but their
/// other end.
class Line {
 public:
  /// Takes the communicator, which all its ranks have, for so many exchanges at a time.
  Line(std::shared_ptr<Job> job, ncclComm_t communicator, int places)
      : job_(std::move(job)),
        communicator_(communicator),
        stream_(make_stream()),
        begun_(make_event()),
        outstanding_(places) {
    check(ncclCommUserRank(communicator, &rank_) == ncclSuccess && ncclCommCount(communicator, &size_) == ncclSuccess);
    for (Started& s : started_) s.done = make_event();
    job_->lines.push_back(this);
  }
  Line(const Line&) = delete;
  ~Line() {
    std::erase(job_->lines, this);
    end(job_->failed() || std::uncaught_exceptions() > 0);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  ncclComm_t communicator() const { return communicator_; }
  Job& job() const { return *job_; }

  /// Behind what the compute stream was asked for: launch(communicator, stream). Throws ExchangeRefused, PeerFailed,
  /// Failure.
  template <class Launch>
  std::uint64_t start(const Exchange& e, Launch launch) {
    outstanding_.need_place(e);
    if (job_->failed()) job_->need_alive(text(e));
    Started& s = started_[outstanding_.next() % remembered];
    s.exchange = e;
    s.number = ++job_->started;
    s.captured = job_->capturing();
    captured_ = captured_ || s.captured;
    nccl::check(cudaEventRecord(begun_.get(), job_->compute), "an event");
    nccl::check(cudaStreamWaitEvent(stream_.get(), begun_.get(), 0), "an event");
    job_->settle(
        launch(communicator_, stream_.get()), [&] { return communicator_; }, text(e));
    nccl::check(cudaEventRecord(s.done.get(), stream_.get()), "an event");
    return outstanding_.start();
  }
  /// What the compute stream is asked for from now on begins when the exchange is done. The host does not wait.
  void wait(std::uint64_t number) {
    Outstanding::need(outstanding_.contains(number));
    Started& s = started_[number % remembered];
    if (job_->failed()) job_->need_alive(text(s.exchange));
    nccl::check(cudaStreamWaitEvent(job_->compute, s.done.get(), 0), "an event");
    outstanding_.end(number);
  }

  bool idle() const {
    const bool busy = communicator_ != nullptr && cudaStreamQuery(stream_.get()) == cudaErrorNotReady;
    if (busy) cudaGetLastError();
    return !busy;
  }
  /// The first exchange of this line that is not done, of those that were started apart from graphs: its number, or 0.
  std::uint64_t unfinished(std::string& words) const {
    const Started* first = nullptr;
    for (const Started& s : started_)
      if (s.number != 0 && !s.captured && (first == nullptr || s.number < first->number) &&
          cudaEventQuery(s.done.get()) != cudaSuccess)
        first = &s;
    cudaGetLastError();
    if (first == nullptr) return 0;
    words = text(first->exchange) + " of its group of " + std::to_string(size_);
    return first->number;
  }
  bool captured() const { return captured_; }
  /// What NCCL has seen go wrong meanwhile.
  ncclResult_t error() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = communicator_ == nullptr ? ncclSuccess : ncclCommGetAsyncError(communicator_, &state);
    return asked != ncclSuccess ? asked : state == ncclInProgress ? ncclSuccess : state;
  }
  /// Gives the communicator back: when its exchanges are done, or at once. Exchanges of graphs end then, too, a little
  /// later.
  void end(bool at_once) noexcept {
    const ncclComm_t communicator = std::exchange(communicator_, nullptr);
    if (communicator == nullptr) return;
    ncclResult_t state = at_once ? ncclInternalError : ncclCommFinalize(communicator);
    const auto since = Clock::now();
    const auto patient = [&] {
      return Clock::now() - since < job_->options.deadline && (!job_->others || job_->others().empty());
    };
    for (; state == ncclInProgress && patient(); std::this_thread::yield())
      if (ncclCommGetAsyncError(communicator, &state) != ncclSuccess) state = ncclInternalError;
    if (state == ncclSuccess)
      ncclCommDestroy(communicator);
    else if (!captured_)
      ncclCommAbort(communicator);
    else  // ends the exchanges first, but returns only when no graph holds one any more, which the caller may still own
      try {
        std::thread([communicator] { ncclCommAbort(communicator); }).detach();
      } catch (const std::system_error&) {  // no thread is to be had: it ends with the process
      }
  }

 private:
  /// so far the host may be ahead of the GPU, and a deadline still name what hangs
  static constexpr std::size_t remembered = 512;
  static_assert(remembered % max_outstanding == 0 && remembered % max_messages == 0);
  struct Started {
    Exchange exchange{};
    std::uint64_t number = 0;
    bool captured = false;
    Event done;
  };
  static void check(bool fine) {
    if (!fine) throw NcclFailed("parallel::Nccl: a communicator does not know its ranks");
  }

  std::shared_ptr<Job> job_;
  ncclComm_t communicator_;
  int rank_ = 0, size_ = 1;
  Stream stream_;
  Event begun_;
  Outstanding outstanding_;
  bool captured_ = false;  ///< an exchange, as part of a graph
  std::array<Started, remembered> started_{};
};

inline void Job::abort(const std::string& why) noexcept {
  if (failed_) return;
  failed_ = true;
  why_ = why;
  for (Line* line : lines) line->end(true);
}
inline void Job::poll(const std::string& what) {
  for (const Line* line : lines)
    if (const ncclResult_t state = line->error(); state != ncclSuccess) give_up(state, unfinished(what));
}
inline std::string Job::unfinished(const std::string& what) const {
  std::string words = what, candidate;
  std::uint64_t first = 0;
  bool captured = false;
  for (const Line* line : lines) {
    captured = captured || line->captured();
    if (const std::uint64_t number = line->unfinished(candidate); number != 0 && (first == 0 || number < first)) {
      first = number;
      words = candidate;
    }
  }
  return first == 0 && captured
             ? words + " (or in a step that was captured as a graph, whose exchanges have no names any more)"
             : words;
}

}  // namespace parallel::internals::nccl
