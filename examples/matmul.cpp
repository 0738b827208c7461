// The matrix product of every tutorial, split over two ranks in the three ways there are.
//
// A product of 4 x 5 by 5 x 8 can be split by the rows of the left matrix (data parallel), by the columns of the right
// one (model parallel), or by the inner dimension, where each rank holds a term of the result: a pending sum, which one
// all-reduce completes. The placements are all that differs; the product is written once. The inner 5 does not divide
// by 2: the third product is 4 x 6 by 6 x 8, and what the library says of 5 stands at the end of the output. (Written
// as a constant, plan<Inner<5>, Mesh{ranks = 2}> is the same sentence as a compile error.)
//
//   meson compile -C build/demo examples/matmul && build/demo/examples/matmul [--record FILE]
#include <cstdio>
#include <numeric>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/parameters.hpp>

using namespace parallel;

inline constexpr Axis ranks{"ranks"};

struct Product {
  constexpr auto operator()(Distributed auto x, Distributed auto w) const { return matmul(x, w); }
};

using Rows = Evaluation<Product, Tensor<float, Shape<4, 5>, On<ranks, Split<0>>>,
                        Tensor<float, Shape<5, 8>, On<ranks, Broadcast>>>;
using Columns = Evaluation<Product, Tensor<float, Shape<4, 5>, On<ranks, Broadcast>>,
                           Tensor<float, Shape<5, 8>, On<ranks, Split<1>>>>;
template <int inner>
using Inner = Evaluation<Product, Tensor<float, Shape<4, inner>, On<ranks, Split<1>>>,
                         Tensor<float, Shape<inner, 8>, On<ranks, Split<0>>>>;

constexpr Mesh two{ranks = 2};
static_assert(plan<Rows, two>.calls() == 0);
static_assert(plan<Columns, two>.calls() == 0);
static_assert(plan<Inner<6>, two>.collectives(ranks) == 1 && plan<Inner<6>, two>.all.elements(ranks) == 4 * 8);

/// Runs a product of the numbers 0, 1, 2, ... on two ranks and prints what each rank holds of the result.
template <class Program>
void show(const char* title, int inner, const std::string& record = "") {
  std::vector<float> x(static_cast<std::size_t>(4 * inner)), w(static_cast<std::size_t>(inner * 8));
  std::iota(x.begin(), x.end(), 0.0F);
  std::iota(w.begin(), w.end(), 0.0F);
  std::vector<std::string> held(2);
  run_threads(2, [&](Threads& world) {
    const Plan& planned = plan<Program, two>;
    Parameters none(planned, world.rank(), 0);  // both factors are inputs
    Executor<Threads, Cpu> executor(planned, world, none);
    executor.input(0, x);
    executor.input(1, w);
    Recording recording(record, planned, world.rank());
    executor.record(recording);
    executor.run();
    recording.write();
    const View y = executor.output(0);
    std::string& lines = held[static_cast<std::size_t>(world.rank())];
    for (std::int64_t i = 0; i < y.size[0]; ++i) {
      for (std::int64_t j = 0; j < y.size[1]; ++j) {
        char number[16];
        std::snprintf(number, sizeof number, "%6.0f", static_cast<double>(y.as<float>()[i * y.size[1] + j]));
        lines += number;
      }
      lines += "\n";
    }
  });
  std::printf("%s: %s, %lld all-reduce of %lld elements\n", title,
              text(plan<Program, two>.graph.value(plan<Program, two>.graph.outputs[0].value).type).c_str(),
              static_cast<long long>(plan<Program, two>.calls()),
              static_cast<long long>(plan<Program, two>.all.elements(ranks)));
  for (int r = 0; r < 2; ++r) std::printf("rank %d\n%s", r, held[static_cast<std::size_t>(r)].c_str());
  std::printf("\n");
}

int main(int argc, char** argv) {
  return guarded("matmul", [&] {
    const std::string record = record_argument(argc, argv);
    show<Rows>("by rows", 5);
    show<Columns>("by columns", 5);
    show<Inner<6>>("by the inner dimension", 6, record);
    try {
      derive<Inner<5>>(two);
    } catch (const MeshRefused& refused) {
      std::printf("5 by 2: %s\n", refused.what());
    }
    return exit_code::done;
  });
}

// Expected output:
// by rows: f32[4/ranks, 8], 0 all-reduce of 0 elements
// rank 0
//    240   250   260   270   280   290   300   310
//    640   675   710   745   780   815   850   885
// rank 1
//   1040  1100  1160  1220  1280  1340  1400  1460
//   1440  1525  1610  1695  1780  1865  1950  2035
//
// by columns: f32[4, 8/ranks], 0 all-reduce of 0 elements
// rank 0
//    240   250   260   270
//    640   675   710   745
//   1040  1100  1160  1220
//   1440  1525  1610  1695
// rank 1
//    280   290   300   310
//    780   815   850   885
//   1280  1340  1400  1460
//   1780  1865  1950  2035
//
// by the inner dimension: f32[4, 8], 1 all-reduce of 32 elements
// rank 0
//    440   455   470   485   500   515   530   545
//   1160  1211  1262  1313  1364  1415  1466  1517
//   1880  1967  2054  2141  2228  2315  2402  2489
//   2600  2723  2846  2969  3092  3215  3338  3461
// rank 1
//    440   455   470   485   500   515   530   545
//   1160  1211  1262  1313  1364  1415  1466  1517
//   1880  1967  2054  2141  2228  2315  2402  2489
//   2600  2723  2846  2969  3092  3215  3338  3461
//
// 5 by 2: parallel: the mesh does not divide a dimension; choose an extent of the axis that divides it: ranks=2 does not divide dimension 1 (5) of f32[4, 5/ranks]; valid extents of ranks: 1, 5
