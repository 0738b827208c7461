// Of a path of more than 127 characters both ends are printed.
// failure: Used<found<Phase::backward, collective<Collective::all_reduce, on<&data>, calls<1>, bytes<16>, member<'s',
//   't', 'r', 'u', 'c', 't', '_', 't', 'h', 'a', 't', '_', 'i', 's', '_', 'c', 'a', 'l', 'l', 'e', 'd', '_', 'b',
//   'y', '_', 'a', '_', 'n', 'a', 'm', 'e', '_', 'o', 'f', '_', 'w', 'h', 'i', 'c', 'h', '_', '.', '.', '.', 't',
//   '_', 'a', 'r', 'e', '_', 'c', 'a', 'l', 'l', 'e', 'd', '_', 'b', 'y', '_', 'a', 'n', 'o', 't', 'h', 'e', 'r',
//   '_', 'o', 'f', '_', 'w', 'h', 'i', 'c', 'h', '_', 'i', 't', '_', 'p', 'r', 'i', 'n', 't', 's', '_', 't', 'h',
//   'e', '_', 'e', 'n', 'd', '_', 'a', 's', '_', 'a', 'r', 'g', 'u', 'm', 'e', 'n', 't', 's', '_', 'a', 'r', 'e',
//   '_', 'o', 'f', '_', 'a', '_', 'f', 'i', 'x', 'e', 'd', '_', 's', 'i', 'z', 'e'>, line<18>>>>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

using Weights = Parameter<float, Shape<4>>;
struct Inner {
  Weights weights_that_are_called_by_another_of_which_it_prints_the_end_as_arguments_are_of_a_fixed_size{ones};
  constexpr auto operator()(Distributed auto x) const {
    return x * weights_that_are_called_by_another_of_which_it_prints_the_end_as_arguments_are_of_a_fixed_size;
  }
};
struct Model {
  Inner struct_that_is_called_by_a_name_of_which_the_compiler_prints_the_beginning;
  constexpr auto operator()(Distributed auto x) const {
    return mean(struct_that_is_called_by_a_name_of_which_the_compiler_prints_the_beginning(x));
  }
};
constexpr auto& trained = plan<Training<Model, AdamW, Tensor<float, Shape<8 / data, 4>>>, Mesh{data = 2}>;

#ifdef WRONG
static_assert(proven<trained.backward.never(all_reduce(data))>);
#else
static_assert(proven<trained.backward.never(all_gather(data))>);
#endif
