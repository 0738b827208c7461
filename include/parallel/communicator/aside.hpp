// The way on which ranks exchange the host's memory where their communicator has only that of a device.
#pragma once
#include <chrono>
#include <memory>
#include <utility>

#include <parallel/communicator/exchange.hpp>
#include <parallel/communicator/long_phase.hpp>

namespace parallel::internals {

/// Another communicator of the same ranks.
class Aside {
 public:
  Aside() = default;
  Aside(const Aside&) = delete;
  virtual ~Aside() = default;
  virtual void exchange(const Exchange& e) = 0;
  virtual void deadline(std::chrono::milliseconds limit) = 0;
  virtual LongPhase within(const LongPhase& now) = 0;
  virtual std::shared_ptr<Aside> split(int color, int key) = 0;
};

/// By a communicator, which it keeps (a value) or refers to (a reference).
template <class C>
class AsideBy : public Aside {
 public:
  explicit AsideBy(C&& communicator) : on_(std::forward<C>(communicator)) {}
  void exchange(const Exchange& e) override { on_.aside(e); }
  void deadline(std::chrono::milliseconds limit) override { on_.deadline(limit); }
  LongPhase within(const LongPhase& now) override { return on_.within(now); }
  std::shared_ptr<Aside> split(int color, int key) override {
    using Group = std::remove_reference_t<C>;
    return std::make_shared<AsideBy<Group>>(on_.split(color, key));
  }

 private:
  C on_;
};

}  // namespace parallel::internals
