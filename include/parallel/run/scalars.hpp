// The numbers that a program reads at run time, by name: their defaults, and the count of steps.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <parallel/device/device.hpp>
#include <parallel/meta/members.hpp>
#include <parallel/model/optimizer.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// f(name, value) for each of an optimizer's hyperparameters: the members of a struct of doubles.
template <class Hyperparameters, class F>
void each_hyperparameter(const Hyperparameters& numbers, F f) {
  meta::each_member(numbers, [&](double value, auto position) {
    f(meta::member_name<Hyperparameters, decltype(position)::value>, value);
  });
}

/// What operations read: dropout, `random` and `sample`.
struct ScalarsOfOperations {
  double seed = 0, step = 0;
  double temperature = 1;       ///< of `sample`
  double top_k = 0, top_p = 0;  ///< of `sample`; 0: among all classes
};

/// f(operation, hyperparameters) for the update of each optimizer; of those that a program has, the last is its own.
template <class F>
void each_optimizer(F f) {
  f(operation::sgd, Sgd::Hyperparameters{});
  f(operation::momentum, Momentum::Hyperparameters{});
  f(operation::nesterov, Nesterov::Hyperparameters{});
  f(operation::adafactor_full, Adafactor::Hyperparameters{});
  f(operation::adafactor, Adafactor::Hyperparameters{});
  f(operation::lion, Lion::Hyperparameters{});
  f(operation::adam, Adam::Hyperparameters{});
  f(operation::adamw, AdamW::Hyperparameters{});
  f(operation::muon, Muon::Hyperparameters{});  // what is no matrix it updates by AdamW
  f(operation::muon_matching_adamw, MuonMatchingAdamW::Hyperparameters{});
}

inline bool updates_by(const GraphView& g, const Operation& update) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return n.operation == &update; });
}
/// Throws Misuse where numbers are one optimizer's and the program's is another: their defaults differ, and a braced
/// list is AdamW's.
template <class Hyperparameters>
void check_optimizer(const GraphView& g) {
  bool known = false, of_it = false;
  std::string other;
  each_optimizer([&]<class Own>(const Operation& update, const Own&) {
    constexpr bool same = std::is_same_v<Own, Hyperparameters>;
    known = known || same;
    if (!updates_by(g, update)) return;
    of_it = same;
    other = update.name;
  });
  if (known && !of_it && !other.empty())
    throw Misuse("the hyperparameters are another optimizer's than the program's, which updates by " + other +
                 "; write those of its own, as Adam::Hyperparameters{...}: a braced list is AdamW's");
}

/// What a program reads where nobody has said otherwise; of its optimizer's hyperparameters that optimizer's own, of an
/// optimizer of somebody else's AdamW's, then another's. Nothing for a name that none knows.
inline std::optional<double> default_of(const GraphView& g, std::string_view name) {
  std::optional<double> found;
  const auto look = [&](std::string_view member, double value) {
    if (member == name) found = value;
  };
  each_hyperparameter(ScalarsOfOperations{}, look);
  each_optimizer([&](const Operation&, const auto& numbers) { each_hyperparameter(numbers, look); });
  each_optimizer([&](const Operation& update, const auto& numbers) {
    if (updates_by(g, update)) each_hyperparameter(numbers, look);
  });
  return found;
}

/// A program's numbers on one rank. The step of a program that updates parameters counts itself from 1, unless it is
/// set; one that was skipped does not count.
template <class Device>
class Scalars {
 public:
  Scalars() = default;
  Scalars(const Plan& plan, const Device& device)
      : g_(&plan.graph), memory_(device.mirrored(plan.memory.blocks[static_cast<int>(MemoryBlock::scalars)])) {
    if (g_->scalar_value < 0) return;
    offset_ = plan.storage[static_cast<std::size_t>(g_->scalar_value)].offset;
    for (std::size_t i = 0; i < g_->scalars.size(); ++i) {
      const std::optional<double> known = default_of(*g_, g_->text(g_->scalars[i]));
      numbers()[i] = known.value_or(0);
      if (!known) unset_.push_back(i);
    }
    const auto is_updated = [](const Member& m) { return m.role == Role::parameter && m.updated >= 0; };
    if (std::any_of(g_->members.begin(), g_->members.end(), is_updated)) step_ = find("step");
    if (step_ < g_->scalars.size()) numbers()[step_] = 1;
  }
  std::byte* data() const { return memory_.data(); }

  bool reads(std::string_view name) const { return find(name) < g_->scalars.size(); }
  /// Throws Misuse for a name that the program does not read.
  void set(std::string_view name, double value) {
    const std::size_t i = find(name);
    if (i == g_->scalars.size()) throw Misuse("the program reads no number '" + std::string(name) + "'; " + names());
    numbers()[i] = value;
    step_is_given_ = step_is_given_ || i == step_;
    std::erase(unset_, i);
  }
  /// A step begins. `skipped()`: whether the one before was.
  template <class F>
  void begin_step(F skipped) {
    if (!unset_.empty())
      throw Misuse("the program reads the number '" + std::string(g_->text(g_->scalars[unset_[0]])) +
                   "', which was never set; call scalar(name, value)");
    if (step_ < g_->scalars.size() && has_begun_ && !step_is_given_ && !skipped()) ++numbers()[step_];
    has_begun_ = true;
    step_is_given_ = false;
    memory_.send();
  }

  /// f(name, value) for each.
  template <class F>
  void each(F f) const {
    for (std::size_t i = 0; i < g_->scalars.size(); ++i) f(g_->text(g_->scalars[i]), numbers()[i]);
  }

 private:
  double* numbers() const { return reinterpret_cast<double*>(memory_.host() + offset_); }
  /// The position of a name, or how many there are.
  std::size_t find(std::string_view name) const {
    std::size_t i = 0;
    while (i < g_->scalars.size() && g_->text(g_->scalars[i]) != name) ++i;
    return i;
  }
  std::string names() const {
    std::string all;
    for (const Name& name : g_->scalars) all += (all.empty() ? "it reads " : ", ") + std::string(g_->text(name));
    return all.empty() ? "it reads none" : all;
  }

  const GraphView* g_ = nullptr;
  MirroredOf<Device> memory_{};
  std::int64_t offset_ = 0;
  std::vector<std::size_t> unset_{};
  std::size_t step_ = static_cast<std::size_t>(-1);  // where the step stands, if it counts itself
  bool has_begun_ = false, step_is_given_ = false;
};

}  // namespace parallel::internals
