// What each optimizer does with one element, in double, as its paper or PyTorch's documentation writes it.
#pragma once
#include <cmath>
#include <vector>

#include <parallel/model/optimizer.hpp>

namespace optimizer_steps {

using namespace parallel;

/// `update`, `states`: the operation, and how many numbers an element has beside its parameter. `scalars`: in the order
/// of the operation's positions. `step`: own is the parameter and its state, g the gradient, t the step from 1.
template <class Optimizer>
struct Of;

template <>
struct Of<Sgd> {
  using Numbers = Sgd::Hyperparameters;
  static constexpr const Operation& update = operation::sgd;
  static constexpr int states = 0;
  static std::vector<double> scalars(const Numbers& n, int) { return {n.learning_rate, n.weight_decay}; }
  static void step(const Numbers& n, bool decays, double g, int, double* own) {
    own[0] -= n.learning_rate * (g + (decays ? n.weight_decay * own[0] : 0));
  }
};
template <>
struct Of<Momentum> {
  using Numbers = Momentum::Hyperparameters;
  static constexpr const Operation& update = operation::momentum;
  static constexpr int states = 1;
  static std::vector<double> scalars(const Numbers& n, int) { return {n.learning_rate, n.momentum, n.weight_decay}; }
  static void step(const Numbers& n, bool decays, double g, int, double* own) {
    g += decays ? n.weight_decay * own[0] : 0;
    own[1] = n.momentum * own[1] + g;
    own[0] -= n.learning_rate * own[1];
  }
};
template <>
struct Of<Nesterov> : Of<Momentum> {
  static constexpr const Operation& update = operation::nesterov;
  static void step(const Numbers& n, bool decays, double g, int, double* own) {
    g += decays ? n.weight_decay * own[0] : 0;
    own[1] = n.momentum * own[1] + g;
    own[0] -= n.learning_rate * (g + n.momentum * own[1]);
  }
};
/// What Adam and AdamW do with a gradient.
template <class Numbers>
void step_by_moments(const Numbers& n, double g, int t, double* own) {
  own[1] += (g - own[1]) * (1 - n.beta1);
  own[2] = n.beta2 * own[2] + (1 - n.beta2) * g * g;
  const double mean = own[1] / (1 - std::pow(n.beta1, t)), variance = own[2] / (1 - std::pow(n.beta2, t));
  own[0] -= n.learning_rate * mean / (std::sqrt(variance) + n.epsilon);
}
template <>
struct Of<Adam> {
  using Numbers = Adam::Hyperparameters;
  static constexpr const Operation& update = operation::adam;
  static constexpr int states = 2;
  static std::vector<double> scalars(const Numbers& n, int t) {
    return {n.learning_rate, n.beta1, n.beta2, n.epsilon, n.weight_decay, static_cast<double>(t)};
  }
  static void step(const Numbers& n, bool decays, double g, int t, double* own) {
    step_by_moments(n, g + (decays ? n.weight_decay * own[0] : 0), t, own);
  }
};
template <>
struct Of<AdamW> {
  using Numbers = AdamW::Hyperparameters;
  static constexpr const Operation& update = operation::adamw;
  static constexpr int states = 2;
  static std::vector<double> scalars(const Numbers& n, int t) {
    return {n.learning_rate, n.beta1, n.beta2, n.epsilon, n.weight_decay, static_cast<double>(t)};
  }
  static void step(const Numbers& n, bool decays, double g, int t, double* own) {
    own[0] *= 1 - n.learning_rate * (decays ? n.weight_decay : 0);
    step_by_moments(n, g, t, own);
  }
};
template <>
struct Of<Lion> {
  using Numbers = Lion::Hyperparameters;
  static constexpr const Operation& update = operation::lion;
  static constexpr int states = 1;
  static std::vector<double> scalars(const Numbers& n, int) {
    return {n.learning_rate, n.beta1, n.beta2, n.weight_decay};
  }
  static void step(const Numbers& n, bool decays, double g, int, double* own) {
    const double c = n.beta1 * own[1] + (1 - n.beta1) * g;
    own[0] -= n.learning_rate * ((c > 0 ? 1 : c < 0 ? -1 : 0) + (decays ? n.weight_decay * own[0] : 0));
    own[1] = n.beta2 * own[1] + (1 - n.beta2) * g;
  }
};

/// f(optimizer) for each.
template <class F>
void each(F f) {
  f(Sgd{});
  f(Momentum{});
  f(Nesterov{});
  f(Adam{});
  f(AdamW{});
  f(Lion{});
}

}  // namespace optimizer_steps
