// What a program is asked to show of itself while it runs: numbers of a tensor by its path, of a line's results, of an
// operation's, step by step. It is asked from outside, by PARALLEL_WATCH, so that no program is changed for it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parallel/meta/library.hpp>
#include <parallel/run/statistics.hpp>

namespace parallel::internals {

/// What one line says of a step.
struct WatchedTensor {
  std::string program{};  ///< `the training made at gpt.cpp:125`
  std::int64_t step = 0;  ///< of this program, from 1
  std::string name{};     ///< as it was asked for, of a line's or an operation's results with operation and line
  std::string type{};     ///< `f32[64, 256/tensor]`; of a layer that layer's
  int layer = -1;         ///< of what a loop over layers computes; -1: outside of one
  int rank = -1;          ///< whose part it is; -1: the whole
  Statistics statistics{};
  struct Element {
    std::int64_t index = 0;  ///< in the whole, row by row
    double value = 0;
  };
  std::vector<Element> elements{};  ///< where some were asked for
  bool single = false;              ///< type f32 or shorter: an element is printed in as few digits
};
using Watcher = std::function<void(const WatchedTensor&)>;

/// What is asked of all executors that a process makes from now on.
struct LookedFor {
  std::string watch{};  ///< names, commas between
  std::string check{};  ///< finite, nan, inputs, or nothing
  Watcher watcher{};    ///< nothing: lines on the standard error
  /// Who asked, for sentences.
  const char *watched_by = "PARALLEL_WATCH", *checked_by = "PARALLEL_CHECK";
};
/// At first PARALLEL_WATCH and PARALLEL_CHECK.
PARALLEL_INLINE LookedFor& looked_for();

/// Watches names, as PARALLEL_WATCH does, in every executor that this process makes from now on; "" watches nothing.
/// Before ranks begin. `to`: called on rank 0 instead of printing.
PARALLEL_INLINE void watch(std::string names, Watcher to = {});

/// A name that is watched: WHAT, WHAT@RANK or WHAT@all, WHAT[I,J].
struct WatchedName {
  static constexpr int whole = -1, all = -2;
  std::string asked{}, what{};
  int rank = whole;
  bool some = false;  ///< elements are asked for
  std::vector<std::int64_t> element{};
};
/// Throws Failure(usage), whose sentence begins with who asked.
PARALLEL_INLINE std::vector<WatchedName> watched_names(const std::string& names, const char* asked_by);

/// The lines of one executor on one rank.
class Watching {
 public:
  /// `program`: for sentences. `keeps`: it shows parameters and state, which another program does not change. Throws
  /// Failure(usage) for a name that is not there, where it has to be.
  Watching(const Plan& plan, int rank, int ranks, bool keeps, bool lenient, std::string program);

  enum class When { begin, before, after, end };
  /// f(value, View as the host reads it) for what is looked at then, at a node or (-1) at none.
  template <class View_of>
  void look(When when, int node, int layer, View_of view) {
    for (const int t : places(when, node)) note(t, layer, view(targets_[static_cast<std::size_t>(t)].value));
  }
  /// Whether a node's result is looked at, so that it is computed by itself.
  bool looks_at(int node) const { return !places(When::after, node).empty(); }
  /// This rank's numbers of the step, for the first rank, and forgets them.
  std::string taken();
  /// What all ranks have taken.
  void tell(std::int64_t step, const std::vector<std::string>& taken) const;

 private:
  struct Target {
    int name = 0;  ///< which of the names
    std::string shown{};
    int value = 0;
    When when = When::end;
    int node = -1;
    int layer = -1;        ///< the slice of a stack that is shown; -1: all
    bool pending = false;  ///< ranks hold terms of it
  };
  struct Row {
    std::uint64_t part = 0;  ///< which elements these are
    Statistics statistics{};
    std::vector<WatchedTensor::Element> elements{};
  };
  const std::vector<int>& places(When when, int node) const {
    static const std::vector<int> none;
    const auto found = places_.find({static_cast<int>(when), node});
    return found == places_.end() ? none : found->second;
  }
  void note(int target, int layer, const View& view);
  void find(int name, bool keeps, bool lenient);
  void check_held(const WatchedName& name, std::size_t first) const;
  void add(Target target);
  int computed_by(int value) const;
  int gradient_of(int member, int& reader) const;
  std::vector<std::string> known(bool keeps) const;
  /// Extents of the dimensions, and of a slice only those behind the first.
  std::vector<std::int64_t> extents(const Target& target) const;

  const Plan& plan_;
  const GraphView& g_;
  int rank_;
  std::string program_;
  Watcher watcher_;
  std::vector<WatchedName> names_;
  std::vector<bool> computes_;  // per node: whether an event computes it
  std::vector<Target> targets_{};
  std::map<std::pair<int, int>, std::vector<int>> places_{};
  std::map<std::pair<int, int>, Row> rows_{};  // by target and layer
};

/// A line of text.
PARALLEL_INLINE std::string text(const WatchedTensor& watched);

}  // namespace parallel::internals

namespace parallel {
using internals::watch;
using internals::WatchedTensor;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/run/watching.ipp>
#endif
