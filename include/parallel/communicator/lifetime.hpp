// Whether a communicator is still where it was, and whether a step is under way on it.
#pragma once
#include <atomic>
#include <memory>

namespace parallel::internals {

/// A member by which others see whether the object that it is of is there and was not moved away.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(Lifetime&& other) noexcept { other.token_ = nullptr; }
  Lifetime& operator=(Lifetime&& other) noexcept {
    if (this != &other) {
      other.token_ = nullptr;
      token_ = std::make_shared<std::atomic<bool>>(false);  // what was there is no more
    }
    return *this;
  }
  ~Lifetime() = default;
  /// What is expired when the object is not there any more. What it points to is true while one takes a step.
  std::weak_ptr<std::atomic<bool>> seen() const { return token_; }

 private:
  std::shared_ptr<std::atomic<bool>> token_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace parallel::internals
