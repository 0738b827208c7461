// What a communicator is: ranks that carry out collectives together and send each other messages, each started first
// and waited for later.
#pragma once
#include <chrono>
#include <concepts>
#include <vector>

#include <parallel/communicator/exchange.hpp>
#include <parallel/communicator/long_phase.hpp>

namespace parallel::internals {

/// The ranks of a job, or a group of them: those of a set of axes of a mesh.
///
/// Laws
/// 1. What an exchange computes is the table of `Exchange`.
/// 2. Terms are combined in rank order, ((r0 + r1) + r2) + ..., in the arithmetic of their element type: every
///    backend gives the same bits. Sums of bf16 and f16 are taken in float and rounded once, but by NCCL. i32 wraps
///    around. A maximum is NaN where a term is NaN.
/// 3. All ranks of a group start the same collectives (kind, count, dtype, maximum, root) in the same order, and wait
///    for them in the same order, which need not be that of the starts. `start` never waits for another rank; a wait
///    may need that the others have come to theirs, and then those of all collectives before it.
/// 4. Ranks that share several groups wait for the tickets of all their groups in an order that is the same for all of
///    them.
/// 5. At most n = `max_outstanding` collectives of a group are outstanding: the k-th start needs that the (k - n)-th
///    was waited for. `wait` takes a ticket once.
/// 6. Between start and wait the caller writes neither `in` nor `out`, and does not read `out`. After wait, both are
///    its own again. Where ranks are threads and an exception leaves one's function in between, both must live on:
///    declare them before the group or outside that function, or call `abandon` before they go.
/// 7. In steady state, start and wait allocate nothing.
/// 8. An exchange that other ranks never reach ends in bounded time: by the deadline (30 s unless set), for the whole
///    run at once. So do `split` and the end of a run. In a long phase a rank waits as long as that says.
/// 9. A group of one rank copies and does nothing else.
///
/// Laws of messages
/// 1. Of the messages from rank a to rank b of a group, the k-th send and the k-th receive belong together; they agree
///    in count and dtype. Messages and collectives do not order each other.
/// 2. The wait of a send returns when `in` may be written again, the wait of a receive when `out` holds the message.
///    Both need that the peer has started its end, or less; neither needs that the peer waits for it.
/// 3. At most `max_messages` sends to a rank, and as many receives from it, are outstanding, each as in 5. above. They
///    may be waited for in any order.
///
/// `aside` carries out an exchange of the host's memory among the ranks, aside from all others, and returns when it is
/// done: what ranks say to each other about their run goes this way. All ranks of the group call it in one order. It is
/// no part of a graph of a device, and where a device's memory is all that there is (Nccl without a way beside it) it
/// takes its place among the group's collectives.
///
/// `split` is called by all ranks, at set-up; the ranks that give the same color form a group, ordered by (key, rank).
/// While `record(&records)` is on, every start appends a Record; `record(nullptr)` switches it off. The caller reserves
/// the memory.
///
/// Models: Threads (threads.hpp), Mpi (mpi.hpp), Nccl (nccl.hpp).
template <class C>
concept Communicator = std::movable<C> && requires(C c, const C& constant, const Exchange& e, Ticket t,
                                                   std::vector<Record>* records, const LongPhase& phase) {
  { constant.rank() } -> std::same_as<int>;
  { constant.size() } -> std::same_as<int>;
  { c.split(0, 0) } -> std::same_as<C>;
  { c.start(e) } -> std::same_as<Ticket>;
  { c.wait(t) } -> std::same_as<void>;
  { c.aside(e) } -> std::same_as<void>;
  { c.barrier() } -> std::same_as<void>;
  { c.record(records) } -> std::same_as<void>;
  { c.deadline(std::chrono::milliseconds(1)) } -> std::same_as<void>;
  { c.within(phase) } -> std::same_as<LongPhase>;  // this rank is in it from now on; gives back what it was in
};

/// The rank's group on a set of axes of a mesh, whose ranks number their coordinates as the mesh does. Called by all
/// ranks of `world`.
template <Communicator C>
C group(C& world, const Mesh& mesh, const AxisList& axes) {
  AxisList others;
  for (int i = 0; i < mesh.count; ++i)
    if (!axes.contains(mesh.axes[i].axis)) others.push_back(mesh.axes[i].axis);
  return world.split(mesh.coordinate(world.rank(), others), mesh.coordinate(world.rank(), axes));
}

/// Starts one exchange and waits for it.
template <Communicator C>
void exchange(C& communicator, const Exchange& e) {
  communicator.wait(communicator.start(e));
}

/// Calls f() on every rank, and returns when all have: loading a corpus, writing a file. Until then ranks wait `limit`
/// for each other, or the deadline, if that is longer; the sentence of a deadline names the phase. Called by all ranks
/// of `world`, also those that have nothing to do in it. `name` outlives the run, as a literal does.
template <Communicator C, class F>
void long_phase(C& world, const char* name, std::chrono::milliseconds limit, F f, Here here = {}) {
  struct Within {
    C& world;
    LongPhase before;
    ~Within() { world.within(before); }
  };
  const Within within{world, world.within({name, limit})};
  f();
  if constexpr (requires { world.barrier(here); })
    world.barrier(here);
  else
    world.barrier();
}

}  // namespace parallel::internals

namespace parallel {
using internals::Communicator;
using internals::exchange;
using internals::group;
using internals::long_phase;
}  // namespace parallel
