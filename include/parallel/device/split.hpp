// A call of a fused operation as two calls: what a device does that has no kernel for it, or does piece by piece.
#pragma once
#include <parallel/device/kernel.hpp>
#include <parallel/operation/fused.hpp>

namespace parallel {

struct SplitCall {
  Call first{}, then{};
};
/// The second call works in place where nobody else reads what the first one gives: then both results are one storage.
inline SplitCall split(const operation::Fusion& f, const Call& call) {
  SplitCall s{call, call};
  const int own = call.operands.size() - f.beside, results = call.results.size();
  s.first.operands.count = own;
  s.first.results.count = results - 1;
  s.first.ints.count -= f.ints;
  s.then.operands.count = 0;
  for (int o = own; o < call.operands.size() || s.then.operands.size() == f.takes;)
    s.then.operands.push_back(s.then.operands.size() != f.takes ? call.operands[o++]
                              : f.shares ? call.operands[static_cast<int>(call.ints[call.ints.size() - 1])]
                                         : call.results[results - 2]);
  s.then.results = {call.results[results - 1]};
  s.then.ints.count = 0;
  for (int i = s.first.ints.size(); i < call.ints.size() && !f.shares; ++i) s.then.ints.push_back(call.ints[i]);
  return s;
}

}  // namespace parallel
