// Messages between two threads: whoever waits first, when both have started, copies from the sender's buffer to the
// receiver's.
#pragma once
#include <parallel/communicator/threads_place.hpp>

namespace parallel::internals::threading {

/// Starts this rank's end of a message. Throws ExchangeRefused.
inline Ticket start_message(const Place& place, const Exchange& e) {
  const bool receives = e.kind == Collective::receive;
  Channel& channel = place.group->channels.between(receives ? e.peer : place.rank, receives ? place.rank : e.peer);
  Outstanding& outstanding = channel.ends[receives].outstanding;
  outstanding.need_place(e);
  const std::uint64_t number = outstanding.start();
  Message& message = channel.messages[number % max_messages];
  Message::Post& post = message.posts[receives];
  const std::uint32_t now = round(number, max_messages);
  post.exchange = e;
  post.begun = now;
  if (reached(message.posts[!receives].begun, now)) message.sleepers.wake();
  return {number, channel_of(e)};
}

/// Copies the message if the peer has not. Throws PeerFailed, Mismatch, Deadline.
inline void wait_message(const Place& place, Ticket ticket) {
  const bool receives = ticket.channel % 2 == 1;
  const int peer = ticket.channel / 2;
  Outstanding::need(ticket.channel >= 0 && peer < place.size());
  Channel& channel = place.group->channels.between(receives ? peer : place.rank, receives ? place.rank : peer);
  Outstanding& outstanding = channel.ends[receives].outstanding;
  Outstanding::need(outstanding.contains(ticket.number));
  Message& message = channel.messages[ticket.number % max_messages];
  const Exchange& mine = message.posts[receives].exchange;
  const Message::Post& theirs = message.posts[!receives];
  const std::uint32_t now = round(ticket.number, max_messages);
  // Their post holds a later message when they have gone on, and this one was copied then.
  place.meet(message.sleepers, &mine, [&](int r) { return r != peer || reached(theirs.begun, now); });
  std::uint32_t before = now - 1;
  if (message.taken.compare_exchange_strong(before, now)) {
    const Exchange &from = message.posts[0].exchange, &to = message.posts[1].exchange;
    if (from.count != to.count || from.dtype != to.dtype)
      place.fail(
          Mismatch("parallel::wait: a send and its receive differ; give both the same count and dtype: " +
                   place.who(place.rank) + " " + text(mine) + ", " + place.who(peer) + " " + text(theirs.exchange)),
          place.run().deadline);
    place.touch(mine, [&] {
      if (from.count == 0) return;
      place.buffers->copy(to.out, from.in, from.count * bytes_of(from.dtype));
      place.buffers->done();
    });
    message.done = now;
    message.sleepers.wake();
  } else {
    place.meet(message.sleepers, &mine, [&](int r) { return r != peer || reached(message.done, now); });
  }
  outstanding.end(ticket.number);
}

}  // namespace parallel::internals::threading
