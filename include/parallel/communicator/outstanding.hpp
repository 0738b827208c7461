// The exchanges of one order that were started and not yet waited for: at most so many as there are places.
#pragma once
#include <bitset>

#include <parallel/communicator/exchange.hpp>

namespace parallel::internals {

/// Numbers exchanges in the order of their starts. They take turns in the places.
class Outstanding {
 public:
  /// At most `max_outstanding` places.
  explicit Outstanding(int places) : places_(static_cast<std::uint64_t>(places)) {}
  std::uint64_t next() const { return next_; }
  /// All before this one have ended.
  std::uint64_t first() const { return first_; }
  int count() const { return static_cast<int>(taken_.count()); }

  /// Throws ExchangeRefused where the place of the next is still taken.
  void need_place(const Exchange& e) const {
    if (taken_[place(next_)])
      refuse(e, "as many exchanges are outstanding as there are places; wait for the first of them first");
  }
  std::uint64_t start() {
    taken_.set(place(next_));
    return next_++;
  }
  void end(std::uint64_t number) {
    taken_.reset(place(number));
    while (first_ < next_ && !taken_[place(first_)]) ++first_;
  }

  bool contains(std::uint64_t number) const {
    return number < next_ && number + places_ >= next_ && taken_[place(number)];
  }
  /// Throws where `wait` may not take the ticket.
  static void need(bool outstanding) {
    if (!outstanding)
      throw Failure(
          "parallel::wait: the ticket is not outstanding; wait once for each start, in the group that started it",
          exit_code::internal);
  }

 private:
  std::size_t place(std::uint64_t number) const { return number % places_; }

  std::uint64_t places_, next_ = 0, first_ = 0;
  std::bitset<max_outstanding> taken_{};
};

}  // namespace parallel::internals
