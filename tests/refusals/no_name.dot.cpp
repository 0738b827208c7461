// "up.down" would be a path of two steps.
// figures: member<1>
#include <boost/hana/at_key.hpp>

#include <parallel/model/hana.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;
namespace hana = boost::hana;

#ifdef WRONG
constexpr auto key = hana::string_c<'u', 'p', '.', 'd', 'o', 'w', 'n'>;
#else
constexpr auto key = hana::string_c<'u', 'p'>;
#endif
struct Model {
  hana::map<hana::pair<std::remove_const_t<decltype(key)>, Parameter<float, Shape<6, 6>>>> layer{
      hana::make_pair(key, Parameter<float, Shape<6, 6>>{})};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, layer[key]))); }
};
constexpr auto& p = plan<Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>, Mesh{data = 2}>;
