// Whether a communicator is still where it was.
#pragma once
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
      token_ = std::make_shared<const char>();  // what was there is no more
    }
    return *this;
  }
  ~Lifetime() = default;
  /// What is expired when the object is not there any more.
  std::weak_ptr<const char> seen() const { return token_; }

 private:
  std::shared_ptr<const char> token_ = std::make_shared<const char>();
};

}  // namespace parallel::internals
