// A user's own operation that works over a split dimension, by an exchange of its own: a part of the program of
// docs/adding-an-operation.md, and the checks that it is right. Only public names stand here.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace own {

namespace operation {
namespace library = parallel::operation;

// x             result
// S, the rows   S
// S, the last   S      exchanges the sum of a row; backward the inner product of a row
constexpr Signatures share_table(const Arguments& a) {
  Signatures rows{uniform_row(1, 1, Broadcast)};
  IndexLabels labels;
  for (int d = 0; d < a.rank(0); ++d) labels.push_back(d + 1);
  for (int d = 0; d < a.rank(0); ++d) {
    if (a.size(0, d) == 1) continue;
    Signature row = split_row({labels}, {labels}, d + 1);
    row.communicates = d == a.rank(0) - 1;
    rows.push_back(row);
  }
  return rows;
}
constexpr void share_lower(Lowering&);
constexpr void share_gradient(Gradient&);
inline constexpr Operation share{
    .name = "share", .shape = library::same_shape, .signatures = share_table, .lower = share_lower};
inline constexpr Operation over_sum{.name = "over_sum", .gradient = share_gradient};  ///< (x, sum): x / sum
inline constexpr Operation share_derivative{.name = "share_gradient"};  ///< (g, sum, product): (g - product) / sum

constexpr void share_lower(Lowering& l) {
  const Ints last{l.type(0).layout.rank() - 1};
  const Type row = library::pending_on(library::statistic(l.type(0), last), l.exchanging);
  const int total = l.exchange(l.emit(library::sum, {l.operands[0]}, {row}, last, 1), l.exchanging);
  l.result = l.emit(over_sum, {l.operands[0], total}, l.results);
}
constexpr void share_gradient(Gradient& g) {
  const Ints last{g.type(0).layout.rank() - 1};
  const AxisList exchanging = library::split_along(g.type(0).layout, last);
  const Type row = library::pending_on(library::statistic(conjugate(g.type(0)), last), exchanging);
  const int product = g.exchange(g.emit(library::row_product, {g.result(), g.cotangent()}, {row}, last), exchanging);
  g.give(0, share_derivative, {g.cotangent(), g.operand(1), product});
}
}  // namespace operation

/// Each row of x over the sum of its elements.
template <Distributed X>
constexpr auto share(const X& x, Here here = {}) {
  return Apply<operation::share>{}(here, x);
}

template <class T>
void over_sum_kernel(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *sum = call.operands[1].as<const T>();
  T* y = call.results[0].as<T>();
  const std::int64_t rows = call.operands[1].elements(), columns = call.results[0].elements() / rows;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) y[r * columns + c] = x[r * columns + c] / sum[r];
}
template <class T>
void share_gradient_kernel(const Call& call) {
  const T *g = call.operands[0].as<const T>(), *sum = call.operands[1].as<const T>();
  const T* product = call.operands[2].as<const T>();
  T* to = call.results[0].as<T>();
  const std::int64_t rows = call.operands[1].elements(), columns = call.results[0].elements() / rows;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * columns + c] = (g[r * columns + c] - product[r]) / sum[r];
}

inline constexpr CpuKernels kernels[]{
    {&operation::over_sum, over_sum_kernel<float>, over_sum_kernel<double>},
    {&operation::share_derivative, share_gradient_kernel<float>, share_gradient_kernel<double>},
};

}  // namespace own

namespace {

enum class Way { own, composed };

/// Rows of exponentials over their sums: by the own operation, or by those of the library.
template <Way way>
struct Model {
  Parameter<double, Shape<6, 12 / tensor>> weight{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto e = exp(matmul(x, weight));
    if constexpr (way == Way::own)
      return mean(square(own::share(e) - y));
    else
      return mean(square(divide(e, reshape<8, 1>(sum<1>(e))) - y));
  }
};
template <Way way>
using Step = Training<Model<way>, Sgd, Tensor<double, Shape<8 / data, 6>>, Tensor<double, Shape<8 / data, 12>>>;

// Of each of a rank's 4 rows a sum goes forward, and an inner product back.
constexpr auto& step_plan = plan<Step<Way::own>, Mesh{data = 2, tensor = 2}>;
static_assert(step_plan.forward.calls(all_reduce(tensor).of(4 * 8)) == 1);
static_assert(step_plan.backward.calls(all_reduce(tensor).of(4 * 8)) == 1);

template <Way way>
std::vector<double> losses(const Mesh& mesh) {
  const OwnedPlan planned = derive<Step<way>>(mesh);
  std::vector<double> x(8 * 6), y(8 * 12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 2 * random_uniform(1, 0, i) - 1;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = random_uniform(2, 0, i) / 6;
  std::vector<double> result;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(planned, world.rank(), 1);
    Trainer<Threads, CpuDouble> trainer(planned, world, parameters, Sgd::Hyperparameters{.learning_rate = 30}, 1,
                                        CpuDouble{own::kernels});
    trainer.executor().input(0, x);
    trainer.executor().input(1, y);
    for (int step = 0; step < 20; ++step) {
      const double loss = trainer.step().loss;
      if (world.rank() == 0) result.push_back(loss);
    }
  });
  return result;
}

}  // namespace

TEST_CASE("an own operation exchanges what it needs, and learns as the library's own do") {
  const std::vector<double> expected = losses<Way::composed>(Mesh{});
  CHECK(expected.back() < 0.9 * expected.front());
  for (const Mesh& mesh : {Mesh{}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{tensor = 3}, Mesh{data = 2, tensor = 2}}) {
    const std::vector<double> found = losses<Way::own>(mesh);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}
