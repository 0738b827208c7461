// Bare matrix products of floats on the shapes of training steps, by turns: the library's, and those of OpenBLAS and
// oneDNN where they were there when this was built.
//
//   products [--rounds 7] [--threads 1]     so many threads at once, each its own products, as ranks have
#include <functional>
#include <random>
#include <string_view>

#include <parallel/device/cpu/product.hpp>

#include "limits.hpp"
#ifdef WITH_OPENBLAS
#include <cblas.h>
#endif
#ifdef WITH_ONEDNN
#include <dnnl.h>
#endif

namespace {

using namespace parallel::internals;
using cpu::Index;
using cpu::Matrix;

/// out[m, n] = left[m, k] right[k, n], either as it lies or transposed.
struct Shape {
  const char* name;
  Index m, n, k;
  bool left = false, right = false;
};
// Of GPT-2 124M on 4 x 64 tokens (A), of 6 layers of 384 channels on 8 x 256 (C), forward, and of what the gradients of
// input and weight are; and few rows.
constexpr Shape shapes[] = {
    {"A, up", 256, 3072, 768},
    {"A, down", 256, 768, 3072},
    {"A, up's input", 256, 768, 3072, false, true},
    {"A, up's weight", 768, 3072, 256, true},
    {"A, head", 256, 50257, 768, false, true},
    {"A, head's weight", 50257, 768, 256, true},
    {"C, up", 2048, 1536, 384},
    {"C, up's input", 2048, 384, 1536, false, true},
    {"C, up's weight", 384, 1536, 2048, true},
    {"C, projection", 2048, 384, 384},
    {"64 rows", 64, 3072, 768},
    {"128 rows", 128, 3072, 768},
};

struct Operands {
  std::vector<float> left, right, out;
  explicit Operands(const Shape& s)
      : left(static_cast<std::size_t>(s.m * s.k)),
        right(static_cast<std::size_t>(s.k * s.n)),
        out(static_cast<std::size_t>(s.m * s.n)) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> between(-1, 1);
    for (float& x : left) x = between(random);
    for (float& x : right) x = between(random);
  }
};
using Product = std::function<void(const Shape&, Operands&)>;

void by_library(const Shape& s, Operands& o) {
  cpu::multiply<float>(s.m, s.n, s.k, 1, {o.left.data(), s.left ? s.m : s.k, s.left},
                       {o.right.data(), s.right ? s.k : s.n, s.right}, {o.out.data(), s.n});
}
#ifdef WITH_OPENBLAS
void by_openblas(const Shape& s, Operands& o) {
  const auto transposed = [](bool is) { return is ? CblasTrans : CblasNoTrans; };
  const auto m = static_cast<blasint>(s.m), n = static_cast<blasint>(s.n), k = static_cast<blasint>(s.k);
  cblas_sgemm(CblasRowMajor, transposed(s.left), transposed(s.right), m, n, k, 1, o.left.data(), s.left ? m : k,
              o.right.data(), s.right ? k : n, 0, o.out.data(), n);
}
#endif
#ifdef WITH_ONEDNN
void by_onednn(const Shape& s, Operands& o) {
  if (dnnl_sgemm(s.left ? 'T' : 'N', s.right ? 'T' : 'N', s.m, s.n, s.k, 1, o.left.data(), s.left ? s.m : s.k,
                 o.right.data(), s.right ? s.k : s.n, 0, o.out.data(), s.n) != dnnl_success)
    std::exit(1);
}
#endif

struct Named {
  const char* name;
  Product product;
};
const std::vector<Named>& products() {
  static const std::vector<Named> all{
      {"this library", by_library},
#ifdef WITH_OPENBLAS
      {"OpenBLAS", by_openblas},
#endif
#ifdef WITH_ONEDNN
      {"oneDNN", by_onednn},
#endif
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 7, threads = 1;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    int* const to = flag == "--rounds" ? &rounds : flag == "--threads" ? &threads : nullptr;
    if (to == nullptr || i + 1 == argc || (*to = std::atoi(argv[i + 1])) < 1) {
      std::fprintf(stderr, "products [--rounds 7] [--threads 1]\n");
      return 2;
    }
  }
#ifdef WITH_OPENBLAS
  openblas_set_num_threads(1);
#endif
  const std::string ranks = threads == 1 ? "one thread: " : std::to_string(threads) + " threads, each: ";
  std::vector<double> peak;
  std::vector<std::vector<double>> of_all(products().size());  // per product: what all shapes take, a round each
  for (const Shape& s : shapes) {
    std::vector<std::vector<double>> seconds(products().size());
    std::vector<std::vector<float>> results(products().size());
    const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    const int times = static_cast<int>(std::max(1.0, 2e9 / flops));
    for (int round = 0; round <= rounds; ++round) {
      if (round > 0) peak.push_back(bench::fma_peak());
      for (std::size_t p = 0; p < products().size(); ++p) {
        std::vector<double> took(static_cast<std::size_t>(threads));
        bench::on_threads(threads, [&](int t) {
          Operands o(s);
          products()[p].product(s, o);  // memory and caches
          took[static_cast<std::size_t>(t)] = bench::seconds([&] {
                                                for (int i = 0; i < times; ++i) products()[p].product(s, o);
                                              }) /
                                              times;
          if (t == 0) results[p] = o.out;
        });
        if (round > 0) seconds[p].push_back(bench::spread(took).median);
      }
    }
    for (std::size_t p = 0; p < products().size(); ++p) {
      for (std::size_t i = 0; i < results[p].size(); ++i)
        if (std::abs(results[p][i] - results[0][i]) > 1e-3F * static_cast<float>(s.k)) {
          std::fprintf(stderr, "products: %s gives another product of %s\n", products()[p].name, s.name);
          return 1;
        }
      const std::string what = ranks + s.name + ": " + products()[p].name;
      bench::row("products", what, bench::per(flops * 1e-9, seconds[p]), "GFLOP/s");
      if (p > 0)
        bench::row("products", what + " / this library", bench::ratio(seconds[0], seconds[p]), "times as fast");
      of_all[p].resize(static_cast<std::size_t>(rounds));
      for (std::size_t r = 0; r < of_all[p].size(); ++r) of_all[p][r] += seconds[p][r];
    }
  }
  for (std::size_t p = 1; p < products().size(); ++p)
    bench::row("products", ranks + "all of them: " + products()[p].name + " / this library",
               bench::ratio(of_all[0], of_all[p]), "times as fast");
  bench::row("products", ranks + "the FMA peak", bench::spread(peak), "GFLOP/s");
}
