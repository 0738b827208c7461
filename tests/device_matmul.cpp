// Matrix products and attention against their definitions: all layouts, parts of heads and of sequences, gradients by
// differences.
#include <cctype>
#include <cstdlib>

#include <parallel/communicator/ordered_sum.hpp>
#include <parallel/operation/add.hpp>
#include <parallel/operation/attention.hpp>
#include <parallel/operation/matmul.hpp>

#include "device.hpp"

using namespace parallel;
using namespace parallel::internals;

static Sizes joined(std::initializer_list<Sizes> parts) {
  Sizes result;
  for (const Sizes& p : parts) result.insert(result.end(), p.begin(), p.end());
  return result;
}

#if defined(PARALLEL_TEST_CUDA)  // whose products of halves device_halves has
#define OR_BF16
#else
#define OR_BF16 , bfloat16
#endif
TEST_CASE_TEMPLATE("products of all layouts", T, float, double OR_BF16) {
  struct Case {
    Sizes batch, left, contracted, right;
  };
  std::vector<Case> cases{{{}, {3}, {4}, {5}},       {{}, {1}, {7}, {1}},    {{}, {2, 3}, {4, 5}, {3, 2}},
                          {{2, 3}, {5}, {4}, {6}},   {{}, {}, {9}, {4}},     {{}, {9}, {4}, {}},
                          {{}, {4}, {6}, {2, 3, 4}}, {{4}, {1}, {17}, {33}}, {{}, {65}, {130}, {70}},
                          {{}, {50}, {800}, {3}},    {{}, {3}, {2}, {2100}}, {{}, {2200}, {5}, {3}},
                          {{}, {0}, {3}, {4}},       {{}, {3}, {0}, {4}},    {{}, {17}, {401}, {390}}};
  if (std::is_same_v<T, float>)
    cases.push_back({{}, {520}, {1601}, {200}});  // rows in parts, depths packed several times
  for (const Case& c : cases)
    for (const int left : {0, 1})
      for (const int right : {0, 1}) {
        const Sizes x_sizes = left ? joined({c.batch, c.contracted, c.left}) : joined({c.batch, c.left, c.contracted});
        const Sizes w_sizes =
            right ? joined({c.batch, c.right, c.contracted}) : joined({c.batch, c.contracted, c.right});
        Numbers x = normal_numbers(x_sizes, 1), w = normal_numbers(w_sizes, 2);
        if constexpr (std::is_same_v<T, bfloat16>)  // what a product may lose is not what its operands do
          for (Numbers* of : {&x, &w})
            for (double& v : of->values) v = static_cast<double>(static_cast<float>(bfloat16(static_cast<float>(v))));
        Numbers y(joined({c.batch, c.left, c.right}));
        const std::int64_t m = product(c.left), n = product(c.right), k = product(c.contracted);
        std::size_t at = 0;
        for (std::int64_t b = 0; b < product(c.batch); ++b)
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j, ++at)
              for (std::int64_t l = 0; l < k; ++l)
                y.values[at] += x.values[static_cast<std::size_t>(b * m * k + (left ? l * m + i : i * k + l))] *
                                w.values[static_cast<std::size_t>(b * k * n + (right ? j * k + l : l * n + j))];
        check_near(Run<T>()
                       .operand(x)
                       .operand(w)
                       .result(y.sizes)
                       .ints(operation::Product(static_cast<int>(c.contracted.size()), left, right,
                                                static_cast<int>(c.batch.size())))
                       .run(operation::matmul),
                   y, tolerance<T>);
        if constexpr (std::is_same_v<T, bfloat16>)
          check_near(Run<T>()
                         .operand(x)
                         .operand(w)
                         .template result<float>(y.sizes)
                         .ints(operation::Product(static_cast<int>(c.contracted.size()), left, right,
                                                  static_cast<int>(c.batch.size())))
                         .run(operation::matmul),
                     y, tolerance<float>);
      }
}
#ifndef PARALLEL_TEST_CUDA
TEST_CASE("products are those of the library that the build names") {
  const char* word = std::getenv("PRODUCTS_ARE");
  std::string all = numerics();
  for (char& letter : all) letter = static_cast<char>(std::tolower(letter));
  if (word != nullptr) CHECK(all.find(std::string(", products of ") + word) != std::string::npos);
}
namespace {
void own_product(const Call&) {}
}  // namespace
TEST_CASE("bf16 is widened to float but for a library's products, before which a program's own comes") {
  std::byte numbers[8]{};
  View v{.data = numbers, .dtype = DType::bf16, .rank = 2};
  v.size[0] = v.size[1] = v.whole[0] = v.whole[1] = 2;
  Call call{.operands = {v, v}, .results = {v}};
  const std::string all = numerics();
  const std::size_t kind = all.find("products of oneDNN");
  const bool has = kind != std::string::npos && (std::stoi(all.substr(all.rfind(' '))) & 0xe7) == 0xe7;
  Call given = call;
  CHECK((Cpu{}.kernel(operation::matmul, given) != cpu::in_float) == has);
  given = call;
  CHECK((Cpu{}.kernel(operation::add, given) == cpu::in_float));
  given = call;
  given.operands[1].dtype = DType::f16;
  CHECK((Cpu{}.kernel(operation::matmul, given) == cpu::in_float));
  constexpr CpuKernels mine[]{{&operation::matmul, own_product}};
  given = call;
  CHECK((Cpu{mine}.kernel(operation::matmul, given) == cpu::in_float));
  CHECK((reinterpret_cast<Kernel>(given.context) == own_product));
}
#endif
TEST_CASE("a product of parts is a part of the product, or its term") {
  const Numbers x = normal_numbers({10, 36}, 1), w = normal_numbers({36, 21}, 2);
  const Ints plain = operation::Product(1, 0, 0, 0);
  const Numbers y = Run<double>().operand(x).operand(w).result({10, 21}).ints(plain).run(operation::matmul);
  for (const Box& columns : split(w.sizes, 1, 2)) {
    const Box result{{0, columns.offset[1]}, {10, columns.size[1]}};
    check_near(Run<double>().operand(x).operand(w, columns).result(y.sizes, result).ints(plain).run(operation::matmul),
               part_of(y, result), 1e-14);
  }
  Numbers total(y.sizes);
  for (int i = 0; i < 3; ++i) {
    const Numbers term = Run<double>()
                             .operand(x, split(x.sizes, 1, 3)[static_cast<std::size_t>(i)])
                             .operand(w, split(w.sizes, 0, 3)[static_cast<std::size_t>(i)])
                             .result(y.sizes)
                             .ints(plain)
                             .run(operation::matmul);
    for (std::size_t e = 0; e < total.values.size(); ++e) total.values[e] += term.values[e];
  }
  check_near(total, y, 1e-14);
}

namespace {
/// The definition: scores, softmax, values; for every query and head of the whole tensors.
struct Attention {
  Numbers q, k, v;
  bool causal;
  double scale;
  double score(const Sizes& i, std::int64_t key) const {  // i: batch, position, head
    const std::int64_t group = i[2] / (q.sizes[2] / k.sizes[2]);
    double s = 0;
    for (std::int64_t d = 0; d < q.sizes[3]; ++d) s += q({i[0], i[1], i[2], d}) * k({i[0], key, group, d});
    return scale * s;
  }
  std::int64_t seen(const Sizes& i) const { return causal ? i[1] + 1 : k.sizes[1]; }
  double statistic(const Sizes& i) const {
    double largest = -1e300, sum = 0;
    for (std::int64_t j = 0; j < seen(i); ++j) largest = std::max(largest, score(i, j));
    for (std::int64_t j = 0; j < seen(i); ++j) sum += std::exp(score(i, j) - largest);
    return largest + std::log(sum);
  }
  Numbers statistics() const {
    return defined({q.sizes[0], q.sizes[1], q.sizes[2]}, [&](const Sizes& i) { return statistic(i); });
  }
  Sizes result_sizes() const { return {q.sizes[0], q.sizes[1], q.sizes[2], v.sizes[3]}; }
  Numbers result() const {
    const Numbers logs = statistics();
    Numbers out(result_sizes());
    each_index(logs.sizes, [&](const Sizes& i) {
      for (std::int64_t j = 0; j < seen(i); ++j) {
        const double p = std::exp(score(i, j) - logs(i));
        for (std::int64_t d = 0; d < v.sizes[3]; ++d)
          out({i[0], i[1], i[2], d}) += p * v({i[0], j, i[2] / (q.sizes[2] / k.sizes[2]), d});
      }
    });
    return out;
  }
  /// By differences, of the sum of g times the result.
  Numbers gradient(Numbers Attention::*operand, const Numbers& g) const {
    Attention moved = *this;
    Numbers found((this->*operand).sizes);
    const auto loss = [&] {
      const Numbers out = moved.result();
      return std::inner_product(out.values.begin(), out.values.end(), g.values.begin(), 0.0);
    };
    for (std::size_t i = 0; i < found.values.size(); ++i) {
      double& value = (moved.*operand).values[i];
      const double here = value, h = 1e-5;
      value = here + h;
      const double above = loss();
      value = here - h;
      found.values[i] = (above - loss()) / (2 * h);
      value = here;
    }
    return found;
  }
};
/// q, k and v and their gradients in a part: heads and queries of q, groups of k and v.
template <class T>
struct AttentionPart {
  const Attention& whole;
  Box q, k, v;
  Run<T> forward{}, backward{};
  Numbers out{}, statistic{};

  Box of_result() const {
    return {{q.offset[0], q.offset[1], q.offset[2], v.offset[3]}, {q.size[0], q.size[1], q.size[2], v.size[3]}};
  }
  void run(const Numbers& g) {
    const Box rows{{q.offset[0], q.offset[1], q.offset[2]}, {q.size[0], q.size[1], q.size[2]}};
    const Sizes statistics{whole.q.sizes[0], whole.q.sizes[1], whole.q.sizes[2]};
    out = forward.operand(whole.q, q)
              .operand(whole.k, k)
              .operand(whole.v, v)
              .result(whole.result_sizes(), of_result())
              .result(statistics, rows)
              .ints({whole.causal, 0, 0})
              .reals(whole.scale)
              .run(operation::attention);
    statistic = forward.get(1);
    const Numbers result = whole.result(), logs = whole.statistics();
    backward.operand(whole.q, q)
        .operand(whole.k, k)
        .operand(whole.v, v)
        .operand(result, of_result())
        .operand(logs, rows)
        .operand(g, of_result());
    backward.result(whole.q.sizes, q)
        .result(whole.k.sizes, k)
        .result(whole.v.sizes, v)
        .ints({whole.causal, 0, 0})
        .reals(whole.scale)
        .run(operation::attention_derivative);
    check_near(out, part_of(result, of_result()), 2 * tolerance<T>);
    check_near(statistic, part_of(logs, rows), 2 * tolerance<T>);
  }
};
void add_part(Numbers& whole, const Numbers& part, const Box& box) {
  each_index(part.sizes, [&](const Sizes& i) {
    Sizes at = i;
    for (std::size_t d = 0; d < i.size(); ++d) at[d] += box.offset[d];
    whole(at) += part(i);
  });
}
}  // namespace

TEST_CASE_TEMPLATE("attention: whole, heads in parts, queries in parts, sizes of values in parts", T, float, double) {
  struct Case {
    std::int64_t batch, sequence, heads, groups, size, value_size;
  };
  for (const Case& c : {Case{2, 5, 4, 4, 3, 3}, Case{1, 5, 4, 2, 3, 5}, Case{1, 1, 1, 1, 1, 1}, Case{1, 4, 6, 1, 2, 2},
                        Case{1, 7, 4, 2, 4, 2}})
    for (const bool causal : {true, false}) {
      const Attention whole{normal_numbers({c.batch, c.sequence, c.heads, c.size}, 1),
                            normal_numbers({c.batch, c.sequence, c.groups, c.size}, 2),
                            normal_numbers({c.batch, c.sequence, c.groups, c.value_size}, 3), causal, 0.7};
      const Numbers g = normal_numbers(whole.result_sizes(), 4);
      const Numbers dq = whole.gradient(&Attention::q, g), dk = whole.gradient(&Attention::k, g),
                    dv = whole.gradient(&Attention::v, g);
      const auto check_parts = [&](const std::vector<Box>& q, const std::vector<Box>& k, const std::vector<Box>& v) {
        Numbers found_q(dq.sizes), found_k(dk.sizes), found_v(dv.sizes);
        for (std::size_t i = 0; i < q.size(); ++i) {
          if (product(q[i].size) == 0) continue;
          AttentionPart<T> part{whole, q[i], k[i], v[i]};
          part.run(g);
          add_part(found_q, part.backward.get(0), q[i]);
          add_part(found_k, part.backward.get(1), k[i]);
          add_part(found_v, part.backward.get(2), v[i]);
        }
        check_near(found_q, dq, 1e-8 + 4 * tolerance<T>);
        check_near(found_k, dk, 1e-8 + 4 * tolerance<T>);
        check_near(found_v, dv, 1e-8 + 4 * tolerance<T>);
      };
      const Box q = all_of(whole.q.sizes), k = all_of(whole.k.sizes), v = all_of(whole.v.sizes);
      check_parts({q}, {k}, {v});
      if (c.groups % 2 == 0)
        check_parts(split(whole.q.sizes, 2, 2), split(whole.k.sizes, 2, 2), split(whole.v.sizes, 2, 2));
      if (c.heads > 1) check_parts(split(whole.q.sizes, 2, 2), {k, k}, {v, v});
      if (c.heads % 3 == 0) check_parts(split(whole.q.sizes, 2, 3), {k, k, k}, {v, v, v});
      if (c.sequence > 1) check_parts(split(whole.q.sizes, 1, 2), {k, k}, {v, v});
      if (c.value_size > 1) check_parts({q, q}, {k, k}, split(whole.v.sizes, 3, 2));
    }
}
TEST_CASE_TEMPLATE("attention over several blocks of queries", T, float, double) {
  const Attention whole{normal_numbers({1, 150, 2, 8}, 1), normal_numbers({1, 150, 1, 8}, 2),
                        normal_numbers({1, 150, 1, 8}, 3), true, 0.5};
  const Numbers g = normal_numbers(whole.result_sizes(), 4);
  // The gradients by their definition, with probabilities p: dv = p g, ds = p (g v - g out), dq = ds k, dk = ds q.
  const Numbers out = whole.result(), logs = whole.statistics();
  Numbers dq(whole.q.sizes), dk(whole.k.sizes), dv(whole.v.sizes);
  each_index(logs.sizes, [&](const Sizes& i) {
    for (std::int64_t j = 0; j <= i[1]; ++j) {
      const double p = std::exp(whole.score(i, j) - logs(i));
      double inner = 0;
      for (std::int64_t d = 0; d < 8; ++d)
        inner += g({i[0], i[1], i[2], d}) * (whole.v({i[0], j, 0, d}) - out({i[0], i[1], i[2], d}));
      for (std::int64_t d = 0; d < 8; ++d) {
        dv({i[0], j, 0, d}) += p * g({i[0], i[1], i[2], d});
        dq({i[0], i[1], i[2], d}) += whole.scale * p * inner * whole.k({i[0], j, 0, d});
        dk({i[0], j, 0, d}) += whole.scale * p * inner * whole.q({i[0], i[1], i[2], d});
      }
    }
  });
  for (const int n : {1, 3}) {
    Numbers found_q(dq.sizes), found_k(dk.sizes), found_v(dv.sizes);
    for (const Box& rows : split(whole.q.sizes, 1, n)) {
      AttentionPart<T> part{whole, rows, all_of(whole.k.sizes), all_of(whole.v.sizes)};
      part.run(g);
      add_part(found_q, part.backward.get(0), rows);
      add_part(found_k, part.backward.get(1), all_of(dk.sizes));
      add_part(found_v, part.backward.get(2), all_of(dv.sizes));
    }
    check_near(found_q, dq, 10 * tolerance<T>);
    check_near(found_k, dk, 10 * tolerance<T>);
    check_near(found_v, dv, 10 * tolerance<T>);
  }
}
