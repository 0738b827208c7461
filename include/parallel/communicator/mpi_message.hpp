// Messages between two processes: MPI_Isend and MPI_Irecv, which keep the order of a pair's messages.
#pragma once
#include <array>

#include <parallel/communicator/mpi_place.hpp>
#include <parallel/communicator/outstanding.hpp>

namespace parallel::internals::processes {

/// Of one group. They travel apart from its collectives, in a communicator of their own.
class Messages {
 public:
  /// Called by all ranks of the group.
  explicit Messages(const Place& group)
      : place_{duplicate(group.job, group.communicator), group.job},
        ends_(static_cast<std::size_t>(2 * group.size())) {}

  /// Throws ExchangeRefused.
  Ticket start(const Exchange& e) {
    auto& end = ends_[static_cast<std::size_t>(channel_of(e))];
    if (end == nullptr) end = std::make_unique<End>();
    end->outstanding.need_place(e);
    Pending& pending = end->pending[end->outstanding.next() % max_messages];
    pending.exchange = e;
    const int count = static_cast<int>(e.count);
    // The tag says the element type; the receiver takes any, so that it is not the tag that decides which message comes
    // next.
    if (e.kind == Collective::send)
      started(MPI_Isend(e.in, count, type_of(e.dtype), e.peer, static_cast<int>(e.dtype), place_.communicator,
                        &pending.request),
              e);
    else
      started(MPI_Irecv(e.out, count, type_of(e.dtype), e.peer, MPI_ANY_TAG, place_.communicator, &pending.request), e);
    ++place_.job->messages;
    return {end->outstanding.start(), channel_of(e)};
  }

  /// Throws Mismatch, at the receiver: MPI tells nobody else.
  void wait(Ticket ticket) {
    const auto channel = static_cast<std::size_t>(ticket.channel);
    Outstanding::need(channel < ends_.size() && ends_[channel] != nullptr);
    End& end = *ends_[channel];
    Outstanding::need(end.outstanding.contains(ticket.number));
    Pending& pending = end.pending[ticket.number % max_messages];
    MPI_Status status{};
    const int code = place_.test(pending.request, &pending.exchange, "", &status);
    end.outstanding.end(ticket.number);
    --place_.job->messages;
    if (pending.exchange.kind == Collective::receive) agree(pending.exchange, code, status);
    if (code != MPI_SUCCESS) fail(code, text(pending.exchange));
  }

 private:
  struct Pending {
    Exchange exchange{};
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// This rank's end of its channel to or from a peer; made when first used.
  struct End {
    Outstanding outstanding{max_messages};
    std::array<Pending, max_messages> pending;
  };

  void agree(const Exchange& e, int code, const MPI_Status& status) const {
    const bool longer = code != MPI_SUCCESS && boost::mpi::exception("", code).error_class() == MPI_ERR_TRUNCATE;
    if (code != MPI_SUCCESS && !longer) return;
    Exchange sent = e;
    sent.kind = Collective::send;
    sent.peer = place_.rank();
    sent.label = "";
    sent.dtype = static_cast<DType>(status.MPI_TAG);
    MPI_Count bytes = 0;  // not all libraries say how long a message was that they cut
    need(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
    sent.count = bytes / bytes_of(sent.dtype);
    if (!longer && sent.count == e.count && sent.dtype == e.dtype) return;
    throw Mismatch("parallel::wait: a send and its receive differ; give both the same count and dtype: " +
                   place_.who(place_.rank()) + " " + text(e) + ", " + place_.who(e.peer) + " " + text(sent) +
                   (longer ? ", or of more" : ""));
  }
  Place place_;
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace parallel::internals::processes
