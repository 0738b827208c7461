// Options by names that they do not have: one sentence instead of a compiler's search through overloads.
#pragma once
#include <initializer_list>

#include <parallel/meta/letters.hpp>

namespace parallel::internals {

/// What stands behind a name in braces, whatever it is.
struct AnyValue {
  AnyValue() = default;
  template <class Value>
  AnyValue(const Value&) {}
  AnyValue(std::initializer_list<double>) {}
};
/// Options as they are called here and elsewhere. What takes options has an overload that takes these, a template, so
/// that it comes behind the other where a list has the names of that alone. A list without names fits it never.
struct OtherNames {
  struct Never {
    explicit Never() = default;
  } before{};
  // of optimizers
  AnyValue learning_rate{}, lr{}, eta{}, step_size{}, momentum{}, dampening{}, nesterov{}, beta1{}, beta2{},
      beta2_decay{}, beta{}, betas{}, b1{}, b2{}, alpha{}, rho{}, epsilon{}, eps{}, epsilon1{}, epsilon2{},
      clip_threshold{}, weight_decay{}, decay{}, l2{}, adamw_learning_rate{}, clip_norm{}, max_norm{}, max_grad_norm{},
      amsgrad{}, decoupled{}, warmup{}, warmup_steps{};
  // of samples
  AnyValue samples{}, batch{}, batch_size{}, seed{}, random_state{}, last{}, shuffled{}, shuffle{}, drop_last{},
      replacement{}, epochs{}, num_replicas{}, world_size{}, ranks{}, rank{}, num_workers{}, workers{}, threads{},
      prefetch_factor{}, prefetch{}, ahead{}, depth{}, buffer_size{}, context{}, stride{}, end_of_document{}, eos{},
      eos_token{}, eos_token_id{}, ignore_index{}, ignored{}, pad{};
  // of checkpoints and runs
  AnyValue newest{}, keep{}, keep_last{}, max_to_keep{}, save_total_limit{}, save_top_k{}, every{}, interval{}, n{},
      np{}, size{}, timeout{}, deadline{}, library_reduction{}, reduction{};
};

}  // namespace parallel::internals
