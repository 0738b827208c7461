// What the ranks of a run in one process share: who failed, and for each group the places in which they publish their
// exchanges.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include <parallel/communicator/outstanding.hpp>
#include <parallel/communicator/threads_run.hpp>

namespace parallel::internals::threading {

/// What one rank publishes about one exchange: on lines of its own, of which others read the first alone where the
/// exchange is small.
struct alignas(64) Post {
  static constexpr std::int64_t room = 40;  ///< so that it is one line
  std::atomic<std::uint32_t> begun{0};      ///< how often it used this slot: the others watch it
  bool brought = false;                     ///< what the rank brings to the exchange stands here, too
  Common common{};
  std::byte brings[room];
  alignas(64) Exchange exchange{};
  std::atomic<std::uint32_t> done{0};  ///< as `begun`
};
static_assert(offsetof(Post, exchange) == 64);

/// An exchange on its way, and after it the next in its place.
struct Slot {
  Sleepers sleepers;
  std::vector<Post> posts;
};

/// A message on its way from one rank to another, and after it the next in its place.
struct Message {
  Sleepers sleepers;
  /// The last round in which one of the two set about the copy, and that in which it was made.
  std::atomic<std::uint32_t> taken{0}, done{0};
  struct alignas(64) Post {
    Exchange exchange{};
    std::atomic<std::uint32_t> begun{0};  ///< how often it used this place
  } posts[2];                             ///< the sender's, the receiver's
};

/// From one rank to another.
struct Channel {
  struct alignas(64) End {
    Outstanding outstanding{max_messages};
  };
  End ends[2];  ///< the sender's, the receiver's: each rank touches its own
  Message messages[max_messages];
};

/// Of a group: each is made by the first of its two ranks that uses it.
class Channels {
 public:
  explicit Channels(std::size_t ranks) : ranks_(ranks), all_(ranks * ranks) {}
  Channels(const Channels&) = delete;
  ~Channels() {
    for (const auto& channel : all_) delete channel.load();
  }

  Channel& between(int from, int to) {
    auto& place = all_[static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to)];
    Channel* channel = place.load(std::memory_order_acquire);
    if (channel != nullptr) return *channel;
    auto made = std::make_unique<Channel>();
    return place.compare_exchange_strong(channel, made.get()) ? *made.release() : *channel;
  }

 private:
  std::size_t ranks_;
  std::vector<std::atomic<Channel*>> all_;
};

/// The ranks of one communicator.
struct Group {
  struct alignas(64) Seat {
    std::atomic<std::uint32_t> barriers{0};
    alignas(64) std::atomic<std::uint64_t> ended{0};  ///< so many of its collectives, from the first on
    int color = 0, key = 0;
    std::shared_ptr<Group> child;
  };

  Group(std::shared_ptr<Run> r, std::vector<int> ranks)
      : run(std::move(r)), members(std::move(ranks)), seats(members.size()), channels(members.size()) {
    for (Slot& slot : slots) slot.posts = std::vector<Post>(members.size());
  }
  int size() const { return static_cast<int>(members.size()); }

  /// The same ranks once more, for what they say to each other aside. Made by the first that asks.
  std::shared_ptr<Group> aside() {
    const std::lock_guard guard(making_);
    if (aside_ == nullptr) aside_ = std::make_shared<Group>(run, members);
    return aside_;
  }

  const std::shared_ptr<Run> run;
  const std::vector<int> members;  ///< their ranks in the run
  std::vector<Seat> seats;
  Channels channels;
  Slot slots[max_outstanding];
  Sleepers at_barrier, before_start;
  bool outlives = false;  ///< ranks whose functions have returned take part here, too: to say so

 private:
  std::mutex making_;
  std::shared_ptr<Group> aside_;
};

}  // namespace parallel::internals::threading
