// An own operation that is right passes; of each that is deliberately wrong the mistake is named.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/parallel.hpp>
#include <parallel/run/verify_operation.hpp>

using namespace parallel;
namespace library = parallel::operation;

namespace {

/// What is wrong with `project`, which is sum over rows r of (r + 1) x[r, c] w[c].
enum class Fault {
  none,
  row_whole,
  row_split,
  row_of_no_dimension,
  row_communicates,
  claims_linear,
  gradient_factor,
  gradient_transposed,
  gradient_without_sum,
  gradient_of_result_shape,
  gradient_forgotten,
  gradient_forgotten_of_parts,
  gradient_of_third,
  no_gradient,
  gradient_without_offset,
  kernel_without_offset,
  counts_from_offset,
  shape_too_large,
  reads_beyond,
  reads_beyond_part,
  writes_beyond,
  writes_far,
  writes_before,
  writes_operand,
  writes_result_more,
  not_repeated,
  float_differs,
  cost_too_small,
  one_axis_only,
  row_missing,
};

template <Fault fault>
struct Project {
  template <class T>
  static void kernel(const Call& call) {
    const View &in = call.operands[0], &out = call.results[0];
    const T *x = in.as<const T>(), *w = call.operands[1].as<const T>();
    T* y = out.as<T>();
    const std::int64_t rows = fault == Fault::reads_beyond_part ? in.whole[0] : in.size[0], columns = in.size[1];
    const bool on_two = in.offset[1] > 0 && !(in.size[0] < in.whole[0] && in.size[1] == in.whole[1]),
               unasked = fault == Fault::kernel_without_offset || (fault == Fault::one_axis_only && on_two);
    const auto stands = [&](std::int64_t r) {
      return unasked ? r : fault == Fault::counts_from_offset ? in.offset[0] + r : in.at(0, r);
    };
    for (std::int64_t c = 0; c < columns; ++c) {
      T sum = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t from = fault == Fault::reads_beyond ? r + 1 : r;
        const T here = x[from * columns + c];
        sum += static_cast<T>(stands(r) + 1) * (fault == Fault::claims_linear ? here * here : here) * w[c];
      }
      y[c] = sum;
      if (fault == Fault::float_differs && sizeof(T) == 4) y[c] += 1;
    }
    if (fault == Fault::writes_beyond) y[columns] = 0;
    for (std::int64_t i = columns; fault == Fault::writes_far && i < 500 * columns; ++i) y[i] = 0;
    if (fault == Fault::writes_before) y[-10'000] = 0;
    if (fault == Fault::writes_operand) const_cast<T*>(w)[0] = 1;
    if (fault == Fault::writes_result_more) call.results[1].as<T>()[0] = 0;
    static T calls = 0;
    if (fault == Fault::not_repeated) y[0] = calls += 1;
  }
  /// (x, w, g)
  template <class T>
  static void of_x(const Call& call) {
    const View& to = call.results[0];
    const T *w = call.operands[1].as<const T>(), *g = call.operands[2].as<const T>();
    const std::int64_t rows = to.size[0], columns = to.size[1];
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) {
        T d = static_cast<T>((fault == Fault::gradient_without_offset ? r : to.at(0, r)) + 1) * w[c] * g[c];
        if (fault == Fault::claims_linear) d *= 2 * call.operands[0].as<const T>()[r * columns + c];
        if (fault == Fault::gradient_factor) d *= 2;
        to.as<T>()[fault == Fault::gradient_transposed ? c * rows + r : r * columns + c] = d;
      }
  }
  template <class T>
  static void of_w(const Call& call) {
    const View& in = call.operands[0];
    const T *x = in.as<const T>(), *g = call.operands[2].as<const T>();
    for (std::int64_t c = 0; c < in.size[1]; ++c) {
      T sum = 0;
      for (std::int64_t r = 0; r < (fault == Fault::gradient_without_sum ? 1 : in.size[0]); ++r) {
        const T here = x[r * in.size[1] + c];
        sum += static_cast<T>(in.at(0, r) + 1) * (fault == Fault::claims_linear ? here * here : here) * g[c];
      }
      call.results[0].as<T>()[c] = sum;
    }
  }
  static constexpr Shaped shape(const Arguments& a) {
    Type y{a.types[0].dtype, {}};
    y.layout.dims.push_back(Dim(a.size(0, 1) + (fault == Fault::shape_too_large ? 1 : 0)));
    return {{y}, {}};
  }
  static constexpr Signatures table(const Arguments&) {
    // x: row, column; w: column; the result: column
    Signatures rows{uniform_row(2, 1, Broadcast), split_row({{1, 2}, {2}}, {{2}}, 1)};
    if (fault == Fault::row_whole) rows[1].results[0] = Broadcast;
    if (fault == Fault::row_split) rows[1].results[0] = Split<0>;
    if (fault == Fault::row_of_no_dimension) rows[1].operands[0] = Split<2>;
    if (fault == Fault::row_communicates) rows[1].communicates = true;
    if (fault != Fault::row_missing) rows.push_back(split_row({{1, 2}, {2}}, {{2}}, 2));
    rows.push_back(linear_row(2, 0));
    rows.push_back(linear_row(2, 1));
    return rows;
  }
  static constexpr std::int64_t flops(const Arguments& a) {
    return (fault == Fault::cost_too_small ? 1 : 4) * a.types[0].layout.elements();
  }
  static constexpr Operation to_x{.name = "project_gradient_of_x", .flops = flops};
  static constexpr Operation to_w{.name = "project_gradient_of_w", .flops = flops};
  static constexpr void gradient(Gradient& g) {
    if (fault == Fault::gradient_of_result_shape)
      g.give(0, g.cotangent());
    else
      g.give(0, to_x, {g.operand(0), g.operand(1), g.cotangent()});
    if (fault == Fault::gradient_of_third) g.give(2, to_w, {g.operand(0), g.operand(1), g.cotangent()});
    const bool parts = std::any_of(g.type(0).layout.dims.begin(), g.type(0).layout.dims.end(),
                                   [](const Dim& d) { return d.count > 0; });
    if (fault != Fault::gradient_forgotten && !(fault == Fault::gradient_forgotten_of_parts && parts))
      g.give(1, to_w, {g.operand(0), g.operand(1), g.cotangent()});
  }
  static constexpr Operation operation{.name = "project",
                                       .shape = shape,
                                       .signatures = table,
                                       .gradient = fault == Fault::no_gradient ? nullptr : gradient,
                                       .flops = flops};
  static constexpr CpuKernels kernels[]{{&operation, kernel<float>, kernel<double>},
                                        {&to_x, of_x<float>, of_x<double>},
                                        {&to_w, of_w<float>, of_w<double>}};
  static constexpr CpuKernels counting[]{
      {&operation, nullptr, kernel<Counted>}, {&to_x, nullptr, of_x<Counted>}, {&to_w, nullptr, of_w<Counted>}};
};

template <Fault fault>
VerifiedOperation tried(bool find_missing = false) {
  using P = Project<fault>;
  return verify_operation<P::operation>({{.shape = {12, 8}}, {.shape = {8}}},
                                        {.kernels = P::kernels, .counting = P::counting, .find_missing = find_missing});
}
template <class F>
std::string said(F f) {
  try {
    f();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "nothing";
}
template <Fault fault>
std::string sentence() {
  return said([] { tried<fault>(); });
}

/// Each row over its sum, whose gradient may forget the exchange.
constexpr Signatures share_table(const Arguments&) {
  Signatures rows{uniform_row(1, 1, Broadcast), split_row({{1, 2}}, {{1, 2}}, 1), split_row({{1, 2}}, {{1, 2}}, 2)};
  rows[2].communicates = true;
  return rows;
}
template <bool exchanges>
struct Share {
  static constexpr void lower(Lowering& l) {
    const Type row = library::pending_on(library::statistic(l.type(0), {1}), l.exchanging);
    const int total = l.exchange(l.emit(library::sum, {l.operands[0]}, {row}, {1}, 1), l.exchanging);
    l.result = l.emit(over_sum, {l.operands[0], total}, l.results);
  }
  static constexpr void gradient(Gradient& g) {
    const AxisList exchanging = library::split_along(g.type(0).layout, {1});
    const Type row = library::pending_on(library::statistic(conjugate(g.type(0)), {1}), exchanging);
    int product = g.emit(library::row_product, {g.result(), g.cotangent()}, {row}, {1});
    if (exchanges) product = g.exchange(product, exchanging);
    g.give(0, derivative, {g.cotangent(), g.operand(1), product});
  }
  static constexpr Operation share{
      .name = "share", .shape = library::same_shape, .signatures = share_table, .lower = lower};
  static constexpr Operation over_sum{.name = "over_sum", .gradient = gradient};
  static constexpr Operation derivative{.name = "share_gradient"};
  /// (x, sum): x / sum, and (g, sum, product): (g - product) / sum
  static void kernel(const Call& call) {
    const double *x = call.operands[0].as<const double>(), *sum = call.operands[1].as<const double>();
    const std::int64_t rows = call.operands[1].elements(), columns = call.results[0].elements() / rows;
    for (std::int64_t i = 0; i < call.results[0].elements(); ++i) {
      const double less = call.operands.size() > 2 ? call.operands[2].as<const double>()[i / columns] : 0;
      call.results[0].as<double>()[i] = (x[i] - less) / sum[i / columns];
    }
  }
  static constexpr CpuKernels kernels[]{{&over_sum, nullptr, kernel}, {&derivative, nullptr, kernel}};
};

inline constexpr Operation shapeless{.name = "shapeless"};

}  // namespace

TEST_CASE("an own operation that is right passes") {
  const VerifiedOperation done = tried<Fault::none>(true);
  CHECK(done.rows == 5);
  CHECK(done.ways > 100);
  CHECK(done.derivatives == 48 + 8);
  CHECK(done.missing.empty());
  CHECK(verify_operation<Share<true>::share>({{.shape = {4, 12}, .least = 0.5, .most = 1.5}},
                                             {.kernels = Share<true>::kernels})
            .rows == 3);
}

TEST_CASE("what is wrong with an operation is named") {
  const auto begins = [](const std::string& words, const std::string& expected) {
    INFO(words);
    CHECK(words.starts_with(expected));
    CHECK(words.find('\n') == std::string::npos);
  };
  const std::string row = "project: row 1 of its table, Split<0>, Broadcast -> ",
                    wrong = ", is wrong on an axis of 2 ranks: ";
  begins(sentence<Fault::row_whole>(), row + "Broadcast" + wrong + "the result is whole, but not alike on all ranks");
  begins(sentence<Fault::row_split>(), row + "Split<0>" + wrong + "the kernel of project writes outside its part of");
  begins(
      sentence<Fault::row_of_no_dimension>(),
      "project: row 1 of its table, Split<2>, Broadcast -> Partial, splits dimension 2 of operand 0, which is f64[12, "
      "8]; dimensions count from 0");
  begins(sentence<Fault::row_communicates>(),
         row + "Partial, communicates, but the operation has no .lower that says what ranks exchange; write it, or ");
  begins(sentence<Fault::claims_linear>(),
         "project: row 3 of its table, Partial, Broadcast -> Partial" + wrong + "the result is ");
  begins(sentence<Fault::gradient_factor>(), "project: the gradient of operand 0 is ");
  begins(sentence<Fault::gradient_transposed>(), "project: the gradient of operand 0 is ");
  begins(sentence<Fault::gradient_without_sum>(), "project: the gradient of operand 1 is ");
  begins(sentence<Fault::gradient_of_result_shape>(),
         "project: its gradient gives an operand what has another shape; sum over what was repeated");
  begins(sentence<Fault::gradient_forgotten>(),
         "project: its gradient gives operand 1 nothing, but a central difference at [0] is ");
  begins(sentence<Fault::gradient_forgotten_of_parts>(),
         row + "Partial" + wrong + "operand 1 is given no gradient, which it is where nothing is split");
  begins(sentence<Fault::gradient_without_offset>(), row + "Partial" + wrong + "the gradient of operand 0 is ");
  begins(sentence<Fault::counts_from_offset>(), "project: operands that lie as f64[12/zigzag(first), 8]");
  begins(sentence<Fault::kernel_without_offset>(), row + "Partial" + wrong + "the result is ");
  begins(
      sentence<Fault::shape_too_large>(),
      "project: computed whole on one rank, the kernel of project does not write element 8 of 9 of its part of result "
      "0; write all of it");
  begins(sentence<Fault::reads_beyond>(), "project: the result is nan at [0], computed whole on one rank");
  CHECK(sentence<Fault::reads_beyond_part>().find("the result is nan at [0]") != std::string::npos);
  begins(sentence<Fault::reads_beyond_part>(), row + "Partial" + wrong);
  begins(sentence<Fault::writes_beyond>(),
         "project: computed whole on one rank, the kernel of project writes outside its part of result 0");
  begins(sentence<Fault::writes_far>(),
         "project: computed whole on one rank, the kernel of project writes outside its part of result 0, 31936 bytes "
         "behind its 64; write View::elements() of it, no more");
  begins(sentence<Fault::writes_before>(),
         "project: computed whole on one rank, the kernel of project writes outside its part of result 0, 80000 bytes "
         "before its 64; ");
  CHECK(sentence<Fault::gradient_of_third>() ==
        "the gradient of project gives to operand 2, but the operation has 2, counted from 0");
  begins(sentence<Fault::no_gradient>(),
         "project: it has no gradient, but a central difference of operand 0 at [0, 0]");
  CHECK(sentence<Fault::no_gradient>().find("; give it one, .gradient, or say .smooth = false where none is meant") !=
        std::string::npos);
  begins(
      sentence<Fault::writes_operand>(),
      "project: computed whole on one rank, the kernel of project writes to its operand 1; write to the results only");
  CHECK(
      sentence<Fault::writes_result_more>() ==
      "project: computed whole on one rank, a kernel asks for call.results[1], but has 1 there, counted from 0; it has "
      "the operands that the operation is applied to, and a result for each type that its .shape gives");
  begins(sentence<Fault::not_repeated>(), "project: computed twice from the same numbers, the result differs");
  begins(sentence<Fault::float_differs>(),
         "project: its kernels for float and for double compute different things: in float the result is ");
  begins(sentence<Fault::cost_too_small>(),
         "project: on these operands project is said to be 96 operations but its kernel counts 288; say so in .flops");
  begins(sentence<Fault::one_axis_only>(),
         "project: operands that lie as f64[12/first, 8/second], f64[8/second] ~first ");
  begins(said([] {
           verify_operation<Share<false>::share>({{.shape = {4, 12}, .least = 0.5, .most = 1.5}},
                                                 {.kernels = Share<false>::kernels});
         }),
         "share: row 2 of its table, Split<1> -> Split<1>" + wrong + "the gradient of operand 0 is ");
}

TEST_CASE("a row that would be sound is told where it is asked for") {
  CHECK(tried<Fault::row_missing>(true).missing ==
        std::vector<std::string>{"Split<1>, Split<0> -> Split<0> on 2 ranks",
                                 "Split<1>, Split<0> -> Split<0> on 4 ranks"});
}

TEST_CASE("a kernel has the numbers that its operation is given, and no others") {
  double scalars[]{0.5, 0.25, 0.125}, factor = 1;
  const View given{.data = scalars, .dtype = DType::f64, .rank = 1, .size = {3}},
      behind{.data = &factor, .dtype = DType::f64};
  Call call;
  for (const View& last : {given, behind}) {
    call.operands.push_back(last);
    call.ints = {2, 0, 7};
    CHECK((call.number(0) == 0.125 && call.number(1) == 0.5));
    for (const int i : {2, 3, -1})
      CHECK(said([&] { call.number(i); })
                .starts_with("a kernel asks for call.number(" + std::to_string(i) +
                             "), which is none of the numbers that its operation is given"));
  }
}

TEST_CASE("mistakes in using it are one sentence") {
  using P = Project<Fault::none>;
  CHECK(said([] { verify_operation<shapeless>({{.shape = {4}}}); }) ==
        "shapeless has no .shape, so no program can apply it; verify the operation that the verb applies");
  CHECK(said([] {
          verify_operation<P::operation>({{.shape = {12, 8}}, {.shape = {8}}});
        }) ==
        "verify_operation of project: there is no kernel for the operation project on f64; give one in the table of "
        "kernels (.kernels), for double");
  CHECK(said([] {
          verify_operation<library::add>({{.shape = {4}}, {.shape = {3}}});
        }).starts_with("add refuses these operands: parallel: the shapes do not broadcast"));
  CHECK(said([] {
          verify_operation<library::add>({{.shape = {4}}, {.shape = {4}}}, {.ranks = {1}});
        }) == "verify_operation: an axis of 1 ranks shows nothing; give .ranks from 2 on");
  CHECK(said([] {
          verify_operation<P::operation>({{.shape = {12, 17}}, {.shape = {17}}}, {.kernels = P::kernels});
        }).starts_with("verify_operation of project: no number of ranks divides all that row 2"));
  CHECK(said([] {
          verify_operation<library::scale>({{.shape = {12, 8}}});
        }) ==
        "verify_operation of scale: its kernels read a number, call.reals, and .reals gives none; give what the verb "
        "gives, .reals = {0.7}, or {0} where that is meant");
  verify_operation<library::scale>({{.shape = {12, 8}}}, {.reals = {0}});
  static constexpr Operation nameless{.name = {}, .shape = library::same_shape, .signatures = library::nonlinear_table};
  CHECK(said([] { verify_operation<nameless>({{.shape = {4}}}); }) ==
        "verify_operation: the operation has no name; give it one, .name");
  const auto of = [](const TriedOperand& first, const TriedOperand& second, VerifyOptions options = {}) {
    options.kernels = P::kernels;
    return said([&] { verify_operation<P::operation>({first, second}, options); });
  };
  const std::string name = "verify_operation of project: ";
  CHECK(of({.shape = {-4, 8}}, {.shape = {8}}) == name + "operand 0 has a dimension of -4; give extents from 1 on");
  CHECK(of({.shape = {4, 8}}, {.shape = {0}}) == name + "operand 1 has a dimension of 0; give extents from 1 on");
  CHECK(of({.shape = {4, 8}}, {.shape = {8}, .least = 2, .most = 1}) ==
        name + "operand 1 is to be drawn from .least = 2 to .most = 1; give two numbers of which .least is not above");
  CHECK(of({.shape = {4, 8}}, {.shape = {8}, .below = -1}) ==
        name + "operand 1 is to be drawn .below = -1; give 1 or more");
  CHECK(of({.shape = {4, 8}}, {.shape = {8}}, {.step = 0}) ==
        name + ".step of the differences is 0; give a small number above 0, as 1e-5");
  CHECK(of({.shape = {4, 8}}, {.shape = {8}}, {.tolerance = 0}) ==
        name + ".tolerance is 0 and .gradient_tolerance 1e-05; give numbers above 0");
  CHECK(of({.shape = {7, 5}}, {.shape = {5}}) ==
        name +
            "2 ranks divide no dimension that its table splits, so nothing split would be tried; give extents that "
            ".ranks divide, as 12");
  CHECK(of({.shape = {7, 4}}, {.shape = {4}}) == "nothing");  // one dimension is
}
