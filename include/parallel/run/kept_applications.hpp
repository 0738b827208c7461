// What eager tensors point at. It stays when their session ends, so that a tensor that is left behind is told and not
// read.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include <parallel/graph/applications.hpp>
#include <parallel/run/misuse.hpp>

namespace parallel::internals::eagerly {

/// Carries out nothing any more.
class Ended final : public CarryingOut {
 public:
  int applied(const Application&) override { refuse(); }
  void begin_loop(int, int, const Type&, int) override { refuse(); }
  bool goes_on(const Returned&) override { refuse(); }
  void look(int, std::string_view) override { refuse(); }
  void show(int) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw Misuse(
        "a tensor is used whose session has ended; keep the session as long as its tensors, or take its numbers out "
        "by eager.whole(x)");
  }
};

/// The applications of a session, which `out` carries out. Where the session ends, some hundred bytes of it remain, for
/// the process's life: tensors are copied freely, and nobody knows the last.
class KeptApplications {
 public:
  explicit KeptApplications(CarryingOut* out) : all_(std::make_unique<Applications>()) { all_->out = out; }
  KeptApplications(const KeptApplications&) = delete;
  KeptApplications& operator=(const KeptApplications&) = delete;
  ~KeptApplications() {
    static auto& ended = *new Ended;  // these outlive every tensor
    static auto& left = *new std::vector<std::unique_ptr<Applications>>;
    static std::mutex one_at_a_time;
    *all_ = Applications{};
    all_->out = &ended;
    const std::lock_guard lock(one_at_a_time);
    left.push_back(std::move(all_));
  }
  Applications& operator*() const { return *all_; }

 private:
  std::unique_ptr<Applications> all_;
};

}  // namespace parallel::internals::eagerly
