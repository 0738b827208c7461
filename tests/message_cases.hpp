// What every communicator must do with messages from rank to rank, for the tests of all backends.
#pragma once
#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "communicator_cases.hpp"

namespace messages {

using namespace parallel;
using namespace parallel::internals;
using cases::index;

inline std::byte pattern(std::uint64_t message, std::size_t i) {
  return static_cast<std::byte>((message * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u) >> 37);
}

/// One end of a message, with a buffer of its own between guards.
class End {
 public:
  End(std::uint64_t message, Collective kind, int peer, std::int64_t count, DType dtype = DType::f32)
      : message_(message), bytes_(index(count * bytes_of(dtype))), buffer_(bytes_ + 2 * guard) {
    exchange = {.kind = kind, .count = count, .dtype = dtype, .label = "a message", .peer = peer};
    std::byte* const data = buffer_.data() + guard;
    exchange.in = exchange.out = data;
    for (std::size_t i = 0; i < bytes_ && kind == Collective::send; ++i) data[i] = pattern(message, i);
  }

  /// What is wrong after the wait; empty if nothing. What was sent may be written then, so it is.
  std::string wrong() {
    for (std::size_t i = 0; i < buffer_.size(); ++i) {
      const bool inside = i >= guard && i < guard + bytes_;
      if (buffer_[i] != (inside ? pattern(message_, i - guard) : std::byte{0}))
        return text(exchange) + ", message " + std::to_string(message_) + ": byte " + std::to_string(i) + " of " +
               std::to_string(bytes_);
    }
    std::fill(buffer_.begin(), buffer_.end(), std::byte{0x55});
    return "";
  }

  Exchange exchange{};

 private:
  static constexpr std::size_t guard = 64;

  std::uint64_t message_;
  std::size_t bytes_;
  std::vector<std::byte> buffer_;
};

/// As many messages as there may be to each neighbour of a ring, in both directions, waited for from the last to the first.
template <class C>
std::string ring(C& c, int rounds) {
  const int n = c.size(), me = c.rank(), next = (me + 1) % n, previous = (me + n - 1) % n;
  std::string wrong;
  for (int round = 0; round < rounds && n > 1; ++round) {
    std::vector<End> ends;
    ends.reserve(4 * max_messages);
    std::vector<Ticket> tickets;
    const auto start = [&](Collective kind, int peer, int from, int direction, int k) {
      const auto message = static_cast<std::uint64_t>(((round * n + from) * 2 + direction) * max_messages + k);
      ends.emplace_back(message, kind, peer, (k * 41 + round) % 700);
      tickets.push_back(c.start(ends.back().exchange));
    };
    // Where n = 2 both directions are one channel; then the order of the starts says which message is which.
    for (int k = 0; k < (n == 2 ? max_messages / 2 : max_messages); ++k) {
      start(Collective::send, next, me, 0, k);
      start(Collective::send, previous, me, 1, k);
      start(Collective::receive, previous, previous, 0, k);
      start(Collective::receive, next, next, 1, k);
    }
    for (std::size_t i = ends.size(); i-- > 0;) {
      c.wait(tickets[i]);
      if (wrong.empty()) wrong = ends[i].wrong();
    }
  }
  return wrong;
}

/// What all ranks do, drawn alike by all of them: messages between any two, and collectives on the same group whose
/// waits have their place in the order, too. Each rank waits for its messages when it likes.
template <class C>
std::string random_traffic(C& c, unsigned seed, int events) {
  const int n = c.size(), me = c.rank();
  std::mt19937 common(seed), own(seed * 64 + static_cast<unsigned>(me));
  const auto draw = [](std::mt19937& random, int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  std::vector<std::uint64_t> next(index(2 * n));  // of each channel
  std::vector<std::pair<End, Ticket>> mine;
  std::vector<std::pair<cases::Case<float>, Ticket>> sums;
  std::string wrong;
  const auto note = [&](const std::string& words) {
    if (wrong.empty()) wrong = words;
  };
  const auto wait_end = [&](std::size_t i) {
    c.wait(mine[i].second);
    note(mine[i].first.wrong());
    mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i));
  };
  const auto wait_sum = [&] {
    c.wait(sums.front().second);
    note(sums.front().first.wrong());
    sums.erase(sums.begin());
  };
  for (int event = 0; event < events; ++event) {
    const int what = draw(common, 10), a = draw(common, n), b = (a + 1 + draw(common, std::max(n - 1, 1))) % n,
              size = draw(common, 4);
    const std::int64_t count = size == 0 ? 0 : draw(common, size == 1 ? 20000 : 300);
    const auto dtype = static_cast<DType>(draw(common, 4));
    if (what == 0 && sums.size() < max_outstanding) {
      cases::Case<float> one(cases::kinds[event % 6], count / (n * n) * n * n, DType::f32, false, a, false, me, n);
      const Ticket ticket = c.start(one.exchange);
      sums.emplace_back(std::move(one), ticket);
    } else if (what == 1 && !sums.empty()) {
      wait_sum();
    } else if (a != b && (me == a || me == b)) {
      const Collective kind = me == a ? Collective::send : Collective::receive;
      const int peer = me == a ? b : a;
      std::uint64_t& number = next[index(2 * peer + (me == b ? 1 : 0))];
      const auto place_before = std::find_if(mine.begin(), mine.end(), [&](const auto& end) {
        const Exchange& e = end.first.exchange;
        return e.kind == kind && e.peer == peer && end.second.number + max_messages == number;
      });
      if (place_before != mine.end())
        wait_end(static_cast<std::size_t>(place_before - mine.begin()));
      else if (!mine.empty() && draw(own, 4) == 0)
        wait_end(index(draw(own, static_cast<int>(mine.size()))));
      End end(static_cast<std::uint64_t>(event), kind, peer, count, dtype);
      const Ticket ticket = c.start(end.exchange);
      number = ticket.number + 1;
      mine.emplace_back(std::move(end), ticket);
    }
  }
  while (!mine.empty()) wait_end(index(draw(own, static_cast<int>(mine.size()))));
  while (!sums.empty()) wait_sum();
  return wrong;
}

/// A sender that waits only when it has the answer, and ranks that all wait for their sends first.
template <class C>
std::string waits_late(C& c) {
  constexpr std::int64_t large = 1 << 19;
  const int n = c.size(), me = c.rank();
  std::string wrong;
  const auto wait = [&](End& end, Ticket t) {
    c.wait(t);
    if (wrong.empty()) wrong = end.wrong();
  };
  for (const std::int64_t count : {std::int64_t{3}, large}) {
    if (me == 0 && n > 1) {
      End question(1, Collective::send, 1, count), answer(2, Collective::receive, 1, count);
      const Ticket first = c.start(question.exchange), second = c.start(answer.exchange);
      wait(answer, second);
      wait(question, first);
    } else if (me == 1) {
      End question(1, Collective::receive, 0, count), answer(2, Collective::send, 0, count);
      wait(question, c.start(question.exchange));
      wait(answer, c.start(answer.exchange));
    }
    if (n == 1) continue;
    const int next = (me + 1) % n, previous = (me + n - 1) % n;
    End in(index(previous), Collective::receive, previous, count), out(index(me), Collective::send, next, count);
    const Ticket first = c.start(in.exchange), second = c.start(out.exchange);
    wait(out, second);
    wait(in, first);
  }
  return wrong;
}

/// Messages that no communicator carries, tickets that none gave, and one too many.
template <class C>
std::string refusals(C& c) {
  float x[max_messages + 1]{};
  const int n = c.size(), me = c.rank();
  struct Refused {
    Exchange exchange;
    const char* words;
  };
  const int other = (me + 1) % n;
  std::vector<Refused> all;
  for (const Collective kind : {Collective::send, Collective::receive}) {
    for (const int peer : {-1, n})
      all.push_back({{.kind = kind, .in = x, .out = x, .count = 1, .peer = peer}, "the peer is no rank of the group"});
    all.push_back({{.kind = kind, .in = x, .out = x, .count = 1, .peer = me}, "the peer is this rank itself"});
    if (n > 1) all.push_back({{.kind = kind, .count = 1, .peer = other}, "a buffer is missing"});
    if (n > 1) all.push_back({{.kind = kind, .in = x, .out = x, .count = -1, .peer = other}, "negative"});
  }
  for (const Refused& one : all) {
    try {
      c.start(one.exchange);
      return text(one.exchange) + " was accepted";
    } catch (const ExchangeRefused& error) {
      if (std::string(error.what()).find(one.words) == std::string::npos) return error.what();
    }
  }
  std::vector<Ticket> tickets;
  if (n > 1 && me < 2) {
    const Collective kind = me == 0 ? Collective::send : Collective::receive;
    const auto end = [&](int i) {
      return Exchange{.kind = kind, .in = x + i, .out = x + i, .count = 1, .peer = 1 - me};
    };
    for (int i = 0; i < max_messages; ++i) tickets.push_back(c.start(end(i)));
    try {
      c.start(end(max_messages));
      return "one message too many was accepted";
    } catch (const ExchangeRefused&) {
    }
    for (const Ticket t : tickets) c.wait(t);
    tickets.push_back({tickets[15].number + 1, tickets[15].channel});
  }
  tickets.push_back({0, 2 * n});
  tickets.push_back({0, 2 * me});
  for (const Ticket t : tickets) {
    try {
      c.wait(t);
      return "a ticket was taken that is not outstanding";
    } catch (const Failure&) {
    }
  }
  return "";
}

/// What `record` notes of a message: the same at both ends, but for the kind.
template <class C>
std::string records(C& c) {
  if (c.rank() > 1 || c.size() == 1) return "";
  std::vector<Record> noted;
  noted.reserve(4);
  c.record(&noted);
  const Collective kind = c.rank() == 0 ? Collective::send : Collective::receive;
  End small(1, kind, 1 - c.rank(), 3, DType::bf16), large(2, kind, 1 - c.rank(), 500, DType::f64);
  exchange(c, small.exchange);
  exchange(c, large.exchange);
  c.record(nullptr);
  const std::vector<Record> wanted = {{kind, 6, DType::bf16, c.size(), false},
                                      {kind, 4000, DType::f64, c.size(), false}};
  return noted == wanted ? "" : "the records";
}

/// All of the above.
template <class C>
std::string every_case(C& c, int rounds, int events) {
  for (const std::string& wrong : {ring(c, rounds), waits_late(c), refusals(c), records(c)})
    if (!wrong.empty()) return wrong;
  for (unsigned seed = 1; seed <= 4; ++seed)
    if (const auto wrong = random_traffic(c, seed, events); !wrong.empty()) return wrong;
  return "";
}

}  // namespace messages
