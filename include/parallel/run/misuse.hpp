// A call that a plan has no answer to.
#pragma once
#include <string>

#include <parallel/run/failure.hpp>

namespace parallel::internals {

/// What a program asks of a plan, or hands to it, is not there or does not fit: an input of another size, an output or
/// a number that it has not.
struct Misuse : Failure {
  explicit Misuse(const std::string& sentence, int code = exit_code::internal) : Failure(sentence, code) {}
};

}  // namespace parallel::internals

namespace parallel {
using internals::Misuse;
}  // namespace parallel
