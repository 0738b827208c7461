// Convolutions and pools against their definitions: strides, paddings, rows left over, one dimension and two, sizes that
// are cut into pieces, equal elements and what is no number.
#include <parallel/operation/convolution.hpp>
#include <parallel/operation/pool.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {

/// Sizes and how windows move, for height and width; in one dimension what stands for the height is 1 and 0.
struct Case {
  std::int64_t batch, channels, out;
  std::int64_t extent[2], window[2], stride[2], padding[2];
  bool flat = false;  ///< one dimension

  Sizes sizes(std::int64_t first, std::int64_t second, const std::int64_t (&last)[2]) const {
    return flat ? Sizes{first, second, last[1]} : Sizes{first, second, last[0], last[1]};
  }
  Ints ints(const Ints& third = {}) const {
    Ints all;
    for (int d = flat ? 1 : 0; d < 2; ++d) all.push_back(stride[d]);
    for (int d = flat ? 1 : 0; d < 2; ++d) all.push_back(padding[d]);
    for (int d = flat ? 1 : 0; d < third.size(); ++d) all.push_back(third[d]);
    return all;
  }
  std::int64_t places(int d) const { return (extent[d] + 2 * padding[d] - window[d]) / stride[d] + 1; }
  std::int64_t left(int d) const { return (extent[d] + 2 * padding[d] - window[d]) % stride[d]; }

  Sizes x_sizes() const { return sizes(batch, channels, extent); }
  Sizes weight_sizes() const { return sizes(out, channels, window); }
  Sizes y_sizes(std::int64_t channels_of_y) const { return sizes(batch, channels_of_y, {places(0), places(1)}); }
  Ints left_over() const { return ints({left(0), left(1)}); }
  Ints windows() const { return ints({window[0], window[1]}); }

  /// f(place, element of the window, element of x), each as row and column.
  template <class F>
  void each(F f) const {
    for (std::int64_t y = 0; y < places(0); ++y)
      for (std::int64_t x = 0; x < places(1); ++x)
        for (std::int64_t h = 0; h < window[0]; ++h)
          for (std::int64_t w = 0; w < window[1]; ++w) {
            const std::int64_t row = y * stride[0] - padding[0] + h, column = x * stride[1] - padding[1] + w;
            if (row >= 0 && row < extent[0] && column >= 0 && column < extent[1])
              f(Sizes{y, x}, Sizes{h, w}, Sizes{row, column});
          }
  }
  Sizes at(std::int64_t first, std::int64_t second, const Sizes& last) const {
    return flat ? Sizes{first, second, last[1]} : Sizes{first, second, last[0], last[1]};
  }
};
const std::vector<Case> cases{
    {2, 3, 4, {5, 6}, {3, 3}, {1, 1}, {1, 1}},        {1, 2, 3, {7, 5}, {3, 2}, {2, 3}, {0, 0}},
    {3, 1, 2, {4, 9}, {1, 1}, {2, 2}, {0, 0}},        {2, 4, 4, {6, 6}, {2, 3}, {2, 3}, {0, 0}},
    {2, 3, 5, {1, 11}, {1, 4}, {1, 2}, {0, 2}, true}, {2, 70, 9, {9, 8}, {3, 3}, {1, 1}, {1, 1}},
    {1, 2, 3, {29, 31}, {5, 4}, {1, 1}, {2, 0}},      {1, 2, 2, {3, 3}, {5, 5}, {1, 1}, {3, 2}},
    {0, 2, 2, {3, 3}, {2, 2}, {1, 1}, {0, 0}},        {1, 5, 17, {1, 900}, {1, 7}, {1, 1}, {0, 3}, true},
};

}  // namespace

TEST_CASE_TEMPLATE("convolutions, forward and backward", T, float, double OR_HALF) {
  for (const Case& c : cases) {
    const Numbers x = normal_numbers(c.x_sizes(), 1), weight = normal_numbers(c.weight_sizes(), 2),
                  g = normal_numbers(c.y_sizes(c.out), 3);
    Numbers y(g.sizes), of_x(x.sizes), of_weight(weight.sizes);
    const auto rounded = [](double v) { return number(stored<T>(v)); };
    for (std::int64_t n = 0; n < c.batch; ++n)
      for (std::int64_t o = 0; o < c.out; ++o)
        for (std::int64_t i = 0; i < c.channels; ++i)
          c.each([&](const Sizes& place, const Sizes& within, const Sizes& at) {
            const double from = rounded(x(c.at(n, i, at))), by = rounded(weight(c.at(o, i, within))),
                         given = rounded(g(c.at(n, o, place)));
            y(c.at(n, o, place)) += from * by;
            of_x(c.at(n, i, at)) += given * by;
            of_weight(c.at(o, i, within)) += given * from;
          });
    const double near = 4 * tolerance<T>;
    check_near(Run<T>().operand(x).operand(weight).result(y.sizes).ints(c.ints()).run(operation::convolution), y, near);
    check_near(
        Run<T>().operand(g).operand(weight).result(x.sizes).ints(c.left_over()).run(operation::transposed_convolution),
        of_x, near);
    check_near(Run<T>().operand(x).operand(g).result(weight.sizes).ints(c.windows()).run(operation::convolution_weight),
               of_weight, near);
  }
}

TEST_CASE_TEMPLATE("pools, forward and backward; the first of equals has the gradient", T, float, double OR_HALF) {
  for (const Case& c : cases) {
    if (2 * c.padding[0] > c.window[0] || 2 * c.padding[1] > c.window[1]) continue;
    const Numbers x = whole_numbers(c.x_sizes(), 1, 4), g = whole_numbers(c.y_sizes(c.channels), 2, 9);
    Numbers largest(g.sizes, -1), mean(g.sizes), of_largest(x.sizes), of_mean(x.sizes);
    const auto area = static_cast<double>(c.window[0] * c.window[1]);
    for (std::int64_t n = 0; n < c.batch; ++n)
      for (std::int64_t i = 0; i < c.channels; ++i) {
        Numbers best(Sizes{c.places(0), c.places(1), 2}, -1);
        c.each([&](const Sizes& place, const Sizes&, const Sizes& at) {
          const double here = x(c.at(n, i, at));
          mean(c.at(n, i, place)) += here / area;
          of_mean(c.at(n, i, at)) += g(c.at(n, i, place)) / area;
          if (here <= largest(c.at(n, i, place))) return;
          largest(c.at(n, i, place)) = here;
          best({place[0], place[1], 0}) = static_cast<double>(at[0]);
          best({place[0], place[1], 1}) = static_cast<double>(at[1]);
        });
        each_index({c.places(0), c.places(1)}, [&](const Sizes& place) {
          const Sizes at{static_cast<std::int64_t>(best({place[0], place[1], 0})),
                         static_cast<std::int64_t>(best({place[0], place[1], 1}))};
          of_largest(c.at(n, i, at)) += g(c.at(n, i, place));
        });
      }
    const Ints ints = c.windows();
    check_near(Run<T>().operand(x).result(g.sizes).ints(ints).run(operation::max_pool), largest, 0);
    check_near(Run<T>().operand(x).operand(g).result(x.sizes).ints(ints).run(operation::max_pool_derivative),
               of_largest, tolerance<T>);
    check_near(Run<T>().operand(x).result(g.sizes).ints(ints).run(operation::average_pool), mean, tolerance<T>);
    check_near(Run<T>().operand(g).result(x.sizes).ints(ints).run(operation::average_pool_derivative), of_mean,
               tolerance<T>);
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Numbers x({1, 1, 4}, {none, 2, 1, 3});
  check_near(Run<T>().operand(x).result({1, 1, 2}).ints({2, 0, 2}).run(operation::max_pool),
             Numbers({1, 1, 2}, {none, 3}), 0);
}
