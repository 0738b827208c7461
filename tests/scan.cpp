// Scan: a cell over time computes what its steps written one behind the other compute, forward and back, on every mesh.
#include <doctest/doctest.h>

#include <parallel/question/assertion.hpp>

#include "program.hpp"
#include "scan_models.hpp"

using namespace scans;
using lockstep::Array;

namespace {

template <class Program, int steps>
std::vector<Array> trained(const Mesh& mesh, int micro_batches = 1) {
  using T = double;
  const OwnedPlan plan = derive<Program>(mesh);
  const auto h = program::numbers<T>(micro_batches * batch * width, 1),
             x = program::numbers<T>(micro_batches * steps * batch * features, 2),
             y = program::numbers<T>(micro_batches * batch * width, 3);
  return program::outputs(*plan, [&](auto& executor, auto& parameters) {
    program::randomize<T>(*plan, executor.rank(), parameters);
    executor.input(0, h);
    executor.input(1, x);
    executor.input(2, y);
  });
}
void check_same(const std::vector<Array>& some, const std::vector<Array>& others, double bound = 1e-12) {
  REQUIRE(some.size() == others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    INFO("output " << i);
    REQUIRE(some[i].size == others[i].size);
    CHECK(lockstep::difference(some[i], others[i]) < bound);
  }
}
const Mesh meshes[] = {Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}, Mesh{data = 4}};

}  // namespace

using Looped = Trained<double, 4, Model<double, 4, Plain>>;
using OneByOne = Trained<double, 4, Model<double, 4, Written>>;

TEST_CASE("a scan's loss and gradients are those of its steps one behind the other") {
  const auto scanned = trained<Looped, 4>(Mesh{data = 1});
  CHECK(scanned.size() == 2 + 15 + 2);
  for (const Array& a : scanned) CHECK(lockstep::difference(a, lockstep::zeros(a.size)) > 1e-3);
  check_same(scanned, trained<OneByOne, 4>(Mesh{data = 1}));
}
TEST_CASE("every mesh scans alike, whatever is kept, and where") {
  const auto one = trained<Looped, 4>(Mesh{data = 1});
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    check_same(trained<Looped, 4>(mesh), one);
  }
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    check_same(trained<Trained<double, 4, Model<double, 4, Again>>, 4>(mesh), one);
    check_same(trained<Trained<double, 4, Model<double, 4, InPairs>>, 4>(mesh), one);
    check_same(trained<Trained<double, 4, Model<double, 4, OnTheHost>>, 4>(mesh), one);
  }
}
TEST_CASE("micro-batches scan their slices of an input") {
  using Input = Trained<double, 4, Model<double, 4, Plain, false>>;
  using InputWritten = Trained<double, 4, Model<double, 4, Written, false>>;
  const auto written = trained<Accumulate<3, InputWritten>, 4>(Mesh{data = 1}, 3);
  check_same(trained<Accumulate<3, Input>, 4>(Mesh{data = 1}, 3), written);
  check_same(trained<Accumulate<3, Input>, 4>(Mesh{data = 2, tensor = 2}, 3), written);
  check_same(trained<Accumulate<3, Looped>, 4>(Mesh{data = 2, tensor = 2}, 3),
             trained<Accumulate<3, OneByOne>, 4>(Mesh{data = 1}, 3));
}
