// What is said of the first numbers that are not finite.
#pragma once
#include <charconv>
#include <cmath>

#include <parallel/algebra/notation.hpp>
#include <parallel/communicator/agreement.hpp>
#include <parallel/run/finite.hpp>
#include <parallel/run/misuse.hpp>
#include <parallel/run/watching.hpp>

namespace parallel::internals {

namespace finiteness {
inline void refuse_word(const std::string& word, const char* asked_by) {
  if (word != "" && word != "finite" && word != "nan" && word != "inputs")
    throw Failure(std::string(asked_by) + ": '" + word +
                      "' is nothing that can be checked; write finite, or nan where infinities are meant, or inputs",
                  exit_code::usage);
}
/// "3 NaN", "2 infinite", "3 NaN and 2 infinite"
inline std::string counts(const Finiteness& f) {
  std::string words = f.nans > 0 ? std::to_string(f.nans) + " NaN" : "";
  if (f.infinities > 0) words += (words.empty() ? "" : " and ") + std::to_string(f.infinities) + " infinite";
  return words + " of " + std::to_string(f.elements);
}
inline std::string range(const Finiteness& f) {
  return f.least > f.most ? "" : ", from " + shortest(f.least) + " to " + shortest(f.most);
}
/// Found things in order: those of members first, then by event. What has only arrived at a stage stands behind what
/// another has made.
inline std::string found(bool arrived, std::int64_t event, int code, const std::string& sentence) {
  return std::to_string(arrived ? 1 : 0) + " " + std::to_string(event) + " " + std::to_string(code) + " " + sentence;
}
}  // namespace finiteness

PARALLEL_INLINE void check_numbers(std::string what) {
  const char* const asked_by = "check_numbers";
  finiteness::refuse_word(what, asked_by);
  looked_for().check = std::move(what);
  looked_for().checked_by = asked_by;
}

PARALLEL_INLINE FiniteCheck::FiniteCheck(const Plan& plan, int rank, std::string program)
    : plan_(plan), g_(plan.graph), rank_(rank), program_(std::move(program)), only_nans_(looked_for().check == "nan") {
  finiteness::refuse_word(looked_for().check, looked_for().checked_by);
}

PARALLEL_INLINE void FiniteCheck::begin_step(std::int64_t step, double loss_scale) {
  step_ = step;
  scaled_ = loss_scale > 1;
  events_ = 0;
  first_.clear();
}

PARALLEL_INLINE Finiteness FiniteCheck::look(const Type& type, const View& view) const {
  Finiteness f;
  if (view.data == nullptr) return f;
  each_number(plan_, type, rank_, view, [&](std::int64_t index, double x) {
    ++f.elements;
    if (std::isfinite(x)) {
      f.least = std::min(f.least, x);
      f.most = std::max(f.most, x);
    } else {
      ++(std::isnan(x) ? f.nans : f.infinities);
      f.first = f.first < 0 ? index : std::min(f.first, index);
    }
  });
  return f;
}

/// "3 NaN of 32, the first at [1, 5] of f32[4, 8/tensor]"
PARALLEL_INLINE std::string FiniteCheck::place(const Type& type, const Finiteness& f) const {
  std::string at;
  std::int64_t rest = f.first;
  for (int d = type.layout.rank() - 1; d >= 0; --d) {
    at = std::to_string(rest % type.layout.dims[d].size) + (at.empty() ? "" : ", ") + at;
    rest /= type.layout.dims[d].size;
  }
  return finiteness::counts(f) + (at.empty() ? " of " : ", the first at [" + at + "] of ") + text(type);
}

/// `blocks.2.mlp.up`; `first`: the element of a stack that tells the layer where no loop does.
PARALLEL_INLINE std::string FiniteCheck::path_of(const Member& m, int layer, std::int64_t first) const {
  std::string path(g_.path(m));
  const auto star = path.find('*');
  if (star == std::string::npos) return path;
  if (layer < 0 && first >= 0 && m.layers > 0) layer = static_cast<int>(first / (m.type.layout.elements() / m.layers));
  if (layer >= 0) path.replace(star, 1, std::to_string(layer));
  return path;
}

PARALLEL_INLINE void FiniteCheck::member(const Member& m, const View& view) {
  if (!first_.empty()) return;
  const Finiteness f = look(m.type, view);
  if (!refuses(f)) return;
  const bool input = m.role == Role::input;
  first_ = finiteness::found(false, -1, input ? exit_code::bad_data : exit_code::failed,
                             (input                       ? "an input is"
                              : m.role == Role::parameter ? "a parameter is"
                                                          : "state is") +
                                 std::string(" not finite before step ") + std::to_string(step_) + " of " + program_ +
                                 ": " + path_of(m, -1, f.first) + " on rank " + std::to_string(rank_) + " has " +
                                 place(m.type, f) + finiteness::range(f) +
                                 (input ? "; look at the data that is handed over"
                                        : "; look at what sets it, or go on from a checkpoint before it") +
                                 (f.nans == 0 ? ", or check for nan alone where infinities are meant" : ""));
}

PARALLEL_INLINE void FiniteCheck::note(int node, int layer, int micro_batch, const Type& type,
                                       const Finiteness& result) {
  if (!refuses(result)) return;
  const Node& n = g_.node(node);
  const std::vector<Finiteness>& operands = operands_[node];
  bool nan_came = false, infinity_came = false;
  for (const Finiteness& o : operands) {
    nan_came = nan_came || o.nans > 0;
    infinity_came = infinity_came || o.infinities > 0;
  }
  // infinities that were written down, as those of a mask, or come from such
  if (result.nans == 0 && (infinity_came || !std::isfinite(n.reals[0]))) return;
  if (scaled_ && n.phase != Phase::forward) return;  // how the scale of a loss is found
  const Origin origin = g_.origin(n);
  const std::string name(n.operation->name), line = agreeing::text(origin.source);
  std::string words = name;
  if (n.is(Structural::move))
    words = std::string(name_of(n.transition.collective)) + " over " + text(n.transition.axes);
  if (origin.operation != nullptr && origin.operation->name != name && origin.operation->computes)
    words += (n.phase == Phase::backward ? " in the backward pass of " : " of ") + std::string(origin.operation->name);
  else if (n.phase == Phase::backward)
    words += " in the backward pass";
  if (n.phase == Phase::optimizer) words += " in the optimizer";
  if (!line.empty()) words += " at " + line;
  words += " on rank " + std::to_string(rank_);
  if (layer >= 0) words += ", in layer " + std::to_string(layer);
  if (g_.value(n.result).region > 0 && micro_batch > 0) words += ", micro-batch " + std::to_string(micro_batch);
  if (n.member >= 0) {
    const bool stacked = g_.value(n.result).stack > 0;
    words += ", charged to " + path_of(g_.member(n.member), layer, stacked ? result.first : -1);
  }
  std::string came;
  bool indexed = false;
  for (const std::string_view takes : {"embedding", "gather", "scatter_add", "negative_log_likelihood"})
    indexed = indexed || (result.nans > 0 && name == takes);
  for (std::size_t o = 0; o < operands.size(); ++o) {
    const Finiteness& f = operands[o];
    const Value& value = g_.value(n.operands[static_cast<int>(o)]);
    if (f.elements == 0) continue;
    if (g_.scalar_value >= 0 && value.node == g_.value(g_.scalar_value).node) continue;
    came += "; operand " + std::to_string(o) + ", " + text(value.type) + ", " +
            (f.nans + f.infinities == 0 ? "is finite" : "has " + finiteness::counts(f)) + finiteness::range(f);
  }
  const char* const advice =
      nan_came        ? "; they came with its operands: look at what made those"
      : infinity_came ? "; it makes them of infinities, as of a row in which a mask leaves nothing"
      : indexed ? "; its operands are finite: look at the indices, of which one may lie outside of what they count"
      : result.nans > 0 ? "; its operands are finite: look at what it is defined for"
                        : "; its operands are finite: what it computes is too large for its element type";
  first_ = finiteness::found(nan_came, events_, exit_code::failed,
                             "the first numbers that are not finite in step " + std::to_string(step_) + " of " +
                                 program_ + " were made by " + words + ": " + place(type, result) + came + advice);
}

PARALLEL_INLINE void FiniteCheck::tell(const std::vector<std::string>& found) {
  struct First {
    std::int64_t arrived = 0, event = 0, code = 0;
    std::string sentence{};
  };
  const First* best = nullptr;
  std::vector<First> all;
  for (const std::string& words : found) {
    if (words.empty()) continue;
    First first;
    const char *at = words.data(), *const end = at + words.size();
    for (std::int64_t* number : {&first.arrived, &first.event, &first.code})
      at = std::from_chars(at, end, *number).ptr + 1;
    first.sentence.assign(at, end);
    all.push_back(std::move(first));
  }
  for (const First& f : all)
    if (best == nullptr || std::pair(f.arrived, f.event) < std::pair(best->arrived, best->event)) best = &f;
  if (best != nullptr)
    throw FoundTogether(best->sentence, static_cast<int>(best->code), static_cast<int>(found.size()));
}

}  // namespace parallel::internals
