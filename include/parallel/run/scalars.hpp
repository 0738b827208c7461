// The numbers that a program reads at run time, by name: their defaults, and the count of steps.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <parallel/device/device.hpp>
#include <parallel/meta/members.hpp>
#include <parallel/meta/type_name.hpp>
#include <parallel/model/optimizer.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/run/misuse.hpp>
#include <parallel/run/number_ranges.hpp>

namespace parallel::internals {

/// f(name, value) for each of an optimizer's hyperparameters: the members of a struct of doubles.
template <class Hyperparameters, class F>
void each_hyperparameter(const Hyperparameters& numbers, F f) {
  meta::each_member(numbers, [&]<class Number>(const Number& value, auto position) {
    static_assert(
        std::is_arithmetic_v<Number>,
        "parallel: the Hyperparameters of an optimizer are numbers, which its operations read by their names; "
        "take what is none out of the struct");
    if constexpr (std::is_arithmetic_v<Number>)
      f(meta::member_name<Hyperparameters, decltype(position)::value>, static_cast<double>(value));
  });
}

/// How the gradients of a `LossScaled` training are scaled, after Micikevicius et al. (2018). Defaults are PyTorch's
/// (torch.amp.GradScaler).
struct LossScale {
  double scale = 65536;      ///< a power of two from 2^-126 to 2^127; a step that is skipped halves it
  int doubles_after = 2000;  ///< so many steps, none of them skipped, double it
  int steps = 0;             ///< how many there were since it was last changed
};

/// What operations read: dropout, `random` and `sample`.
struct ScalarsOfOperations {
  double seed = 0, step = 0;
  double temperature = 1;       ///< of `sample`
  double top_k = 0, top_p = 0;  ///< of `sample`; 0: among all classes
};
/// What a training reads beside its optimizer's: a backward pass whose loss is scaled; averages of weights.
struct ScalarsOfTrainings {
  double loss_scale = LossScale{}.scale;
  double average_decay = 0.999;  ///< of `Averaged`: how much is kept of the steps before
  double average_from = 1;       ///< and the first step that is averaged
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
  f(operation::muon_matching_adamw, MuonMatchingAdamW::Hyperparameters{});  // what is no matrix they update by AdamW
  f(operation::muon, Muon::Hyperparameters{});
}

inline bool updates_by(const GraphView& g, const Operation& update) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return n.operation == &update; });
}
/// Whether a program's optimizer is this one, of these numbers: Muon reads all of its own also where there is no
/// matrix.
template <class Hyperparameters>
bool is_optimizer_of(const GraphView& g, const Operation& update, const Hyperparameters& numbers) {
  if (updates_by(g, update)) return true;
  if (&update != &operation::muon && &update != &operation::muon_matching_adamw) return false;
  bool all = true;
  each_hyperparameter(numbers, [&](std::string_view name, double) {
    all = all && std::any_of(g.scalars.begin(), g.scalars.end(),
                             [&](const Name& n) { return number_called(g.text(n)) == name; });
  });
  return all;
}
/// Throws Misuse where numbers are one optimizer's and the program's is another: their defaults differ, and a braced
/// list is AdamW's.
template <class Hyperparameters>
void check_optimizer(const GraphView& g) {
  bool known = false, of_it = false;
  std::string other, its_own;
  each_optimizer([&]<class Own>(const Operation& update, const Own& numbers) {
    constexpr bool same = std::is_same_v<Own, Hyperparameters>;
    known = known || same;
    if (!is_optimizer_of(g, update, numbers)) return;
    of_it = same;
    other = update.name;
    its_own = meta::type_name<Own>();
  });
  if (known && !of_it && !other.empty())
    throw Misuse("the hyperparameters are another optimizer's than the program's, which updates by " + other +
                 "; write those of its own, " + its_own + "{...}: a braced list is AdamW's");
  if (!known || !other.empty()) return;
  each_hyperparameter(Hyperparameters{}, [&](std::string_view name, double) {
    if (std::none_of(g.scalars.begin(), g.scalars.end(),
                     [&](const Name& n) { return number_called(g.text(n)) == name; }))
      throw Misuse(
          "the hyperparameters are those of an optimizer of the library, but the program's is none of these and "
          "reads no " +
          std::string(name) +
          "; give yours a struct Hyperparameters { double learning_rate = 0.01; }, and write "
          "Mine::Hyperparameters{...}: a braced list is AdamW's");
  });
}

/// What a program reads where nobody has said otherwise; of its optimizer's hyperparameters that optimizer's own, of an
/// optimizer of somebody else's AdamW's, then another's. Nothing for a name that none knows.
inline std::optional<double> default_of(const GraphView& g, std::string_view name) {
  std::optional<double> found;
  const auto look = [&](std::string_view member, double value) {
    if (member == name) found = value;
  };
  each_hyperparameter(ScalarsOfOperations{}, look);
  each_hyperparameter(ScalarsOfTrainings{}, look);
  each_optimizer([&](const Operation&, const auto& numbers) { each_hyperparameter(numbers, look); });
  each_optimizer([&](const Operation& update, const auto& numbers) {
    if (is_optimizer_of(g, update, numbers)) each_hyperparameter(numbers, look);
  });
  return found;
}

/// A number that a program reads.
struct NamedNumber {
  std::string name;
  std::optional<double> value{};       ///< as the next step reads it; none: it was never set, and has no default
  std::optional<double> by_default{};  ///< where nobody says otherwise
};

/// A program's numbers on one rank. The step of a program that updates parameters counts itself from 1, unless it is
/// set; one that was skipped does not count. The scale of the loss moves by itself, too.
template <class Device>
class Scalars {
 public:
  Scalars() = default;
  Scalars(const Plan& plan, const Device& device)
      : g_(&plan.graph), memory_(device.mirrored(plan.memory.blocks[static_cast<int>(MemoryBlock::scalars)])) {
    if (g_->scalar_value < 0) return;
    offset_ = plan.storage[static_cast<std::size_t>(g_->scalar_value)].offset;
    for (std::size_t i = 0; i < g_->scalars.size(); ++i) {
      const std::optional<double> known = default_of(*g_, number_called(g_->text(g_->scalars[i])));
      numbers()[i] = known.value_or(0);
      if (!known) unset_.push_back(i);
    }
    const auto is_updated = [](const Member& m) { return m.role == Role::parameter && m.updated >= 0; };
    if (std::any_of(g_->members.begin(), g_->members.end(), is_updated)) step_ = find("step");
    if (g_->commit >= 0) loss_scale_ = find("loss_scale");
    if (step_ < g_->scalars.size()) numbers()[step_] = 1;
  }
  std::byte* data() const { return memory_.data(); }

  bool reads(std::string_view name) const { return find(name) < g_->scalars.size(); }
  /// Throws Misuse for a name that the program does not read, and for a number out of its range.
  void set(std::string_view name, double value) {
    const std::size_t i = find(name);
    if (i == g_->scalars.size()) throw not_read(name);
    if (i == loss_scale_) {
      LossScale next = scaling_;
      next.scale = value;
      next.steps = 0;
      return scale_loss(next);
    }
    check_number(name, value);
    if (i == step_ && value < 1)
      throw Misuse("the number " + std::string(name) + " is " + shortest(value) +
                   "; give a whole number from 1 on, as a training counts its steps");
    numbers()[i] = value;
    step_is_given_ = step_is_given_ || i == step_;
    std::erase(unset_, i);
  }
  /// Sets a number of all groups, too. Throws Misuse as `set` does.
  void set_all(std::string_view name, double value) {
    bool any = false;
    for (const Name& n : g_->scalars)
      if (number_called(g_->text(n)) == name) {
        set(g_->text(n), value);
        any = true;
      }
    if (!any) set(name, value);
  }
  /// The number as the next step reads it. `skipped()`: whether the last was. Throws Misuse for one that the program
  /// does not read, or that was never set.
  template <class F>
  double get(std::string_view name, F skipped) {
    const std::size_t i = find(name);
    if (i == g_->scalars.size()) throw not_read(name);
    if (std::find(unset_.begin(), unset_.end(), i) != unset_.end()) throw never_set(i);
    if (i == loss_scale_) return loss_scale(skipped).scale;
    return numbers()[i] + (i == step_ && counts(skipped) ? 1 : 0);
  }
  /// A step begins. `skipped()`: whether the one before was.
  template <class F>
  void begin_step(F skipped) {
    if (!unset_.empty()) throw never_set(unset_[0]);
    if (step_ < g_->scalars.size() && counts(skipped)) ++numbers()[step_];
    move_loss_scale(skipped);
    has_begun_ = moves_loss_scale_ = true;
    step_is_given_ = false;
    memory_.send();
  }

  /// How the next step's loss is scaled. `skipped()`: whether the last was. Throws Misuse where none is.
  template <class F>
  LossScale loss_scale(F skipped) {
    check_scaled();
    move_loss_scale(skipped);
    return scaling_;
  }
  /// Throws Misuse where the program scales no loss, and for what is no scale.
  void scale_loss(const LossScale& to) {
    check_scaled();
    int exponent = 0;
    if (std::frexp(to.scale, &exponent) != 0.5 || to.scale < smallest_scale || to.scale > largest_scale)
      throw Misuse("the scale of the loss is " + shortest(to.scale) +
                   "; give a power of two from 2^-126 to 2^127, so that it changes no bits");
    if (to.doubles_after < 1 || to.steps < 0 || to.steps >= to.doubles_after)
      throw Misuse("the scale of the loss doubles after " + std::to_string(to.doubles_after) + " steps, of which " +
                   std::to_string(to.steps) + " were; give a number from 1 on, and fewer");
    scaling_ = to;
    numbers()[loss_scale_] = to.scale;
    moves_loss_scale_ = false;
  }

  /// Whether a number has a value: that which was set, or its default.
  bool has(std::string_view name) const {
    const std::size_t i = find(name);
    return i < g_->scalars.size() && std::find(unset_.begin(), unset_.end(), i) == unset_.end();
  }
  /// f(name, value) for each.
  template <class F>
  void each(F f) const {
    for (std::size_t i = 0; i < g_->scalars.size(); ++i) f(g_->text(g_->scalars[i]), numbers()[i]);
  }

 private:
  static constexpr double smallest_scale = 0x1p-126, largest_scale = 0x1p127;
  /// Once behind every step.
  template <class F>
  void move_loss_scale(F skipped) {
    if (loss_scale_ >= g_->scalars.size() || !moves_loss_scale_) return;
    moves_loss_scale_ = false;
    if (skipped()) {
      scaling_.scale = std::max(scaling_.scale / 2, smallest_scale);
      scaling_.steps = 0;
    } else if (++scaling_.steps == scaling_.doubles_after) {
      scaling_.scale = std::min(scaling_.scale * 2, largest_scale);
      scaling_.steps = 0;
    }
    numbers()[loss_scale_] = scaling_.scale;
  }
  void check_scaled() const {
    if (loss_scale_ >= g_->scalars.size()) throw Misuse("the program scales no loss; write LossScaled<Program>");
  }
  /// Whether the next step has the next number.
  template <class F>
  bool counts(F skipped) const {
    return has_begun_ && !step_is_given_ && !skipped();
  }
  Misuse not_read(std::string_view name) const {
    return Misuse("the program reads no number '" + std::string(name) + "'; " + names());
  }
  Misuse never_set(std::size_t i) const {
    return Misuse("the program reads the number '" + std::string(g_->text(g_->scalars[i])) +
                  "', which was never set; call scalar(name, value)");
  }
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
  std::size_t loss_scale_ = static_cast<std::size_t>(-1);
  LossScale scaling_{};
  bool has_begun_ = false, step_is_given_ = false, moves_loss_scale_ = false;
};

}  // namespace parallel::internals
