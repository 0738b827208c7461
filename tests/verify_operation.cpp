// An own operation that is right passes; of each that is deliberately wrong the mistake is named.
#include <cmath>

#include <doctest/doctest.h>

#include <parallel/parallel.hpp>
#include <parallel/run/verify_operation.hpp>

using namespace parallel;
namespace library = parallel::operation;

namespace {

template <class T>
void cubed_kernel(const Call& call) {
  const T* x = call.operands[0].as<const T>();
  T* y = call.results[0].as<T>();
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) y[i] = x[i] * x[i] * x[i];
}
template <class T>
void cubed_gradient_kernel(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>();
  T* to = call.results[0].as<T>();
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) to[i] = 3 * x[i] * x[i] * g[i];
}
constexpr std::int64_t three_per_element(const Arguments& a) { return 3 * a.types[0].layout.elements(); }
inline constexpr Operation cubed_derivative{.name = "cubed_gradient", .flops = three_per_element};
constexpr void cubed_gradient(Gradient& g) { g.give(0, cubed_derivative, {g.operand(0), g.cotangent()}); }
inline constexpr Operation cubed{.name = "cubed",
                                 .shape = library::same_shape,
                                 .signatures = library::nonlinear_table,
                                 .element_by_element = 1,
                                 .gradient = cubed_gradient,
                                 .flops = three_per_element};
inline constexpr CpuKernels kernels[]{
    {&cubed, cubed_kernel<float>, cubed_kernel<double>},
    {&cubed_derivative, cubed_gradient_kernel<float>, cubed_gradient_kernel<double>},
};
inline constexpr CpuKernels counting[]{{&cubed, nullptr, cubed_kernel<Counted>},
                                       {&cubed_derivative, nullptr, cubed_gradient_kernel<Counted>}};

}  // namespace

TEST_CASE("an own operation that is right passes") {
  const VerifiedOperation done =
      verify_operation<cubed>({{.shape = {12, 8}}}, {.kernels = kernels, .counting = counting, .find_missing = true});
  CHECK(done.rows == 3);
  CHECK(done.ways > 20);
  CHECK(done.derivatives >= 48);
  CHECK(done.missing.empty());
}
