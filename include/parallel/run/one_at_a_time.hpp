// That what has one memory is not used by two threads at once.
#pragma once
#include <atomic>
#include <string>

#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// While it lives nobody else comes in: throws Misuse where somebody is there.
class OneAtATime {
 public:
  OneAtATime(std::atomic<bool>& taken, const char* what) : taken_(taken) {
    if (taken_.exchange(true))
      throw Misuse(std::string(what) + " is called by two threads at once; let the thread of its rank alone call it");
  }
  ~OneAtATime() { taken_ = false; }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  std::atomic<bool>& taken_;
};

}  // namespace parallel::internals
