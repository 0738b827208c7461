// A ring of three ranks sends two thirds of a message, twice.
// failure: Above<measured<5, millionths<333333>>, limit<5>>
#include "program.hpp"

constexpr auto& three = plan<Training<Perceptron, Sgd, Tensor<float, Shape<9 / data, 4>>>, Mesh{data = 3, tensor = 1}>;

#ifdef WRONG
static_assert(at_most<three.forward.sent(data), 5>);
#else
static_assert(at_most<three.forward.sent(data), 6>);
#endif
