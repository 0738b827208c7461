// The exchanges of one order that were started and not yet waited for: at most `max_outstanding`.
#pragma once
#include <bit>

#include <parallel/communicator/exchange.hpp>

namespace parallel::internals {

/// Numbers exchanges in the order of their starts. So many as there are places take turns in them.
class Outstanding {
 public:
  std::uint64_t next() const { return next_; }
  int count() const { return std::popcount(places_); }

  /// Throws ExchangeRefused where the place of the next is still taken.
  void need_place(const Exchange& e) const {
    if ((places_ & place(next_)) != 0)
      refuse(e, "as many exchanges are outstanding as there are places; wait for the first of them first");
  }
  std::uint64_t start() {
    places_ |= place(next_);
    return next_++;
  }
  void end(std::uint64_t number) { places_ &= ~place(number); }

  bool contains(std::uint64_t number) const {
    return number < next_ && number + max_outstanding >= next_ && (places_ & place(number)) != 0;
  }
  /// Throws where `wait` may not take the ticket.
  static void need(bool outstanding) {
    if (!outstanding)
      throw Failure(
          "parallel::wait: the ticket is not outstanding; wait once for each start, in the group that started it",
          exit_code::internal);
  }

 private:
  static std::uint64_t place(std::uint64_t number) { return std::uint64_t{1} << (number % max_outstanding); }

  std::uint64_t next_ = 0;
  std::uint64_t places_ = 0;  // one bit each
};

}  // namespace parallel::internals
