// Models that Boost.Hana describes are models like any others: the same plans under their names, the same losses.
#include <boost/hana/adapt_struct.hpp>
#include <boost/hana/at_key.hpp>
#include <boost/hana/define_struct.hpp>
#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/model/hana.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
namespace hana = boost::hana;
using namespace hana::literals;

namespace {

constexpr auto up_key = hana::string_c<'u', 'p'>;
constexpr auto down_key = hana::string_c<'d', 'o', 'w', 'n'>;
constexpr auto experts_key = hana::string_c<'e', 'x', 'p', 'e', 'r', 't', 's'>;
template <const auto& key>
using Key = std::remove_const_t<std::remove_reference_t<decltype(key)>>;

using Up = Parameter<float, Shape<4, 8 / tensor>>;
using Down = Parameter<float, Shape<8 / tensor, 4>>;

struct Plain {
  Up up{normal(0.5)};
  Down down{normal(0.5)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(relu(matmul(x, up)), down) - y));
  }
};

/// With a base, a constructor, and a member that nobody else sees.
struct Base {
  int unused = 0;
};
class Constructed : Base {
 public:
  constexpr Constructed() : up{normal(0.5)}, down_{normal(0.5)} {}
  Up up;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(relu(matmul(x, up)), down_) - y));
  }

 private:
  Down down_;

 public:
  struct hana_accessors_impl {
    static constexpr auto apply() {
      return hana::make_tuple(hana::make_pair(up_key, [](auto&& model) -> decltype(auto) { return (model.up); }),
                              hana::make_pair(down_key, [](auto&& model) -> decltype(auto) { return (model.down_); }));
    }
  };
};

struct Defined {
  BOOST_HANA_DEFINE_STRUCT(Defined, (Up, up), (Down, down));
  constexpr Defined() : up{normal(0.5)}, down{normal(0.5)} {}
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(relu(matmul(x, up)), down) - y));
  }
};

struct OfTuple {
  hana::tuple<Up, Down> layer{Up{normal(0.5)}, Down{normal(0.5)}};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(relu(matmul(x, layer[0_c])), layer[1_c]) - y));
  }
};

using Keyed = hana::map<hana::pair<Key<up_key>, Up>, hana::pair<Key<down_key>, Down>>;
struct OfMap {
  Keyed layer{hana::make_pair(up_key, Up{normal(0.5)}), hana::make_pair(down_key, Down{normal(0.5)})};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(relu(matmul(x, layer[up_key])), layer[down_key]) - y));
  }
};

using Bias = Parameter<float, Shape<4 / tensor>>;
/// More members than a struct by itself may have.
struct Many {
  BOOST_HANA_DEFINE_STRUCT(Many, (Bias, a), (Bias, b), (Bias, c), (Bias, d), (Bias, e), (Bias, f), (Bias, g), (Bias, h),
                           (Bias, i), (Bias, j), (Bias, k), (Bias, l), (Bias, m), (Bias, n), (Bias, o), (Bias, p),
                           (Bias, q), (Bias, r));
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(x + a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + r - y));
  }
};

/// As experts are: structs in a tuple in a map.
struct Expert {
  Up up{normal(0.5)};
  Down down{normal(0.5)};
  constexpr auto operator()(Distributed auto x) const { return matmul(relu(matmul(x, up)), down); }
};
struct Nested {
  hana::map<hana::pair<Key<experts_key>, hana::tuple<Expert, Expert>>> parts{
      hana::make_pair(experts_key, hana::tuple<Expert, Expert>{})};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto& experts = parts[experts_key];
    return mean(square(experts[0_c](x) + experts[1_c](x) - y));
  }
};

using X = Tensor<float, Shape<8 / data, 4>>;
template <class Model>
using Step = Training<Model, Sgd, X, X>;
inline constexpr Mesh mesh{data = 2, tensor = 2};

template <class Model>
std::vector<std::string> names() {
  return Parameters::names(derive<Step<Model>>(mesh));
}
template <class Model>
std::vector<double> losses() {
  const OwnedPlan plan = derive<Step<Model>>(mesh);
  std::vector<double> all;
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(*plan, world.rank(), 3);
    Trainer<Threads, Cpu> trainer(*plan, world, parameters, Sgd::Hyperparameters{.learning_rate = 0.1}, 3);
    std::vector<float> x(32), y(32);
    for (std::size_t i = 0; i < 32; ++i) {
      x[i] = static_cast<float>(i % 5) / 5;
      y[i] = static_cast<float>(i % 3) / 3;
    }
    for (int step = 0; step < 4; ++step) {
      trainer.executor().input(0, x);
      trainer.executor().input(1, y);
      const double loss = trainer.step().loss;
      if (world.rank() == 0) all.push_back(loss);
    }
  });
  return all;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("names are the struct's, the index, the key") {
  CHECK(names<Plain>() == Names{"up", "down"});
  CHECK(names<Constructed>() == Names{"up", "down"});
  CHECK(names<Defined>() == Names{"up", "down"});
  CHECK(names<OfTuple>() == Names{"layer.0", "layer.1"});
  CHECK(names<OfMap>() == Names{"layer.up", "layer.down"});
  CHECK(names<Nested>() ==
        Names{"parts.experts.0.up", "parts.experts.0.down", "parts.experts.1.up", "parts.experts.1.down"});
  CHECK(names<Many>().size() == 18);
  CHECK(names<Many>().back() == "r");
}

TEST_CASE("plans are a plain struct's") {
  constexpr auto& plain = plan<Step<Plain>, mesh>;
  const auto same = [](const Plan& other) {
    CHECK(other.events.size() == plain.events.size());
    CHECK(other.peak_memory() == plain.peak_memory());
    CHECK(other.sent(data) == plain.sent(data));
    CHECK(other.sent(tensor) == plain.sent(tensor));
    CHECK(other.calls() == plain.calls());
  };
  same(plan<Step<Constructed>, mesh>);
  same(plan<Step<Defined>, mesh>);
  same(plan<Step<OfTuple>, mesh>);
  same(plan<Step<OfMap>, mesh>);
}

TEST_CASE("losses are a plain struct's, bit for bit") {
  const std::vector<double> plain = losses<Plain>();
  CHECK(plain.back() < plain.front());
  CHECK(losses<Constructed>() == plain);
  CHECK(losses<Defined>() == plain);
  CHECK(losses<OfTuple>() == plain);
  CHECK(losses<OfMap>() == plain);
}

TEST_CASE("many members and nested ones train") {
  for (const auto& all : {losses<Many>(), losses<Nested>()}) CHECK(all.back() < all.front());
}
