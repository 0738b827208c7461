// Averages of a training's weights over its steps: kept beside any optimizer, and evaluated in the parameters' place.
#pragma once
#include <parallel/model/optimizer.hpp>

namespace parallel {

/// How the weights of the steps are averaged. n counts steps from the first that is averaged, `average_from`; before it
/// the average is the parameter itself.
enum class Average {
  exponential,  ///< a = average_decay a + (1 - average_decay) p, from a = p at n = 1: PyTorch's get_ema_avg_fn
  corrected,    ///< the mean of all p, each weighing average_decay less a step than the next: as Adam's mean, corrected
                ///< for what it begins with. With average_decay = 1 all weigh alike: PyTorch's get_swa_avg_fn
};

/// An optimizer that remembers an average of each parameter, `PATH.average`, as it is behind the update:
/// `Averaged<AdamW>`. Beside the optimizer's numbers the program reads `average_decay` and `average_from`, numbers of
/// the run. The average has the parameter's element type, lies as the parameter is updated, so in parts where its state
/// is `Stored`, and costs an update no message. `take_averages` (run/averages.hpp) evaluates it.
template <class Optimizer, Average how = Average::exponential>
struct Averaged : Optimizer {
  static_assert(internals::Updates<Optimizer>,
                "parallel: Averaged takes an optimizer, which has update(Update&); write Averaged<AdamW>");
  static constexpr void update(Update& u) {
    Optimizer::update(u);
    u.states_in(DType::f32);  // states of halves would lose what a step adds
    u.replace(operation::average, {u.state("average")}, {u.updated()}, {"average_decay", "average_from", "step"},
              {how == Average::corrected});
  }
};

}  // namespace parallel
