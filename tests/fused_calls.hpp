// Calls that follow each other, as an executor has them computed.
#pragma once
#include <vector>

#include <parallel/operation/add.hpp>
#include <parallel/operation/dropout.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/unary.hpp>

#include "device.hpp"

namespace fused_calls {
using namespace parallel;
using namespace parallel::internals;

/// One of them: which operand is the result of the one before, how many others it has, its attributes.
struct Part {
  const Operation* operation;
  int takes = 0, beside = 0;
  Ints ints{};
};

/// The calls of a chain of which `all` has the results, and the operands one behind the other without those that are
/// results.
inline std::vector<Call> chain(const Call& all, const std::vector<Part>& parts) {
  std::vector<Call> calls;
  int next = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    Call& call = calls.emplace_back(all);
    call.operation = part.operation;
    call.ints = part.ints;
    call.operands.count = 0;
    for (int o = 0; o < part.beside + 1; ++o)
      call.operands.push_back(i > 0 && o == part.takes ? calls[i - 1].results[0] : all.operands[next++]);
    call.results = {all.results[static_cast<int>(i)]};
  }
  return calls;
}

/// How many of the first calls the device computes at once, 1 where it has no kernel for two; computes all.
template <class D>
std::size_t compute(const D& device, std::span<Call> calls) {
  FusedKernel kernel{};
  std::size_t n = calls.size();
  while (n > 1 && !(kernel = device.fused(calls.first(n)))) --n;
  if (n > 1) {
    kernel.compute(calls.first(n));
  } else {
    const Kernel alone = device.kernel(*calls[0].operation, calls[0]);
    REQUIRE_MESSAGE(bool(alone), calls[0].operation->name);
    alone(calls[0]);
  }
  if (n < calls.size()) compute(device, calls.subspan(n));
  return n;
}

}  // namespace fused_calls
