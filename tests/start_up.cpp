// A mesh from the command line is refused at start-up with the sentence that the compiler prints, the figures and the
// valid choices.
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>
#include <parallel/run/mesh_argument.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {
struct Model {
  Parameter<float, Shape<6, 8 / tensor>> up;
  Parameter<float, Shape<8 / tensor, 6>> down;
  constexpr auto operator()(Distributed auto x) const { return mean(square(relu(matmul(relu(matmul(x, up)), down)))); }
};
using Step = Training<Model, Sgd, Tensor<float, Shape<4 / data, 6>>>;

/// What `derive` says of a program on the mesh that a user wrote, or nothing.
template <class Program>
std::string said(std::string_view mesh) {
  try {
    derive<Program>(mesh_argument(std::string(mesh), {&data, &tensor, &sequence}));
    return {};
  } catch (const MeshRefused& refused) {
    CHECK(std::string_view(refused.what()).starts_with(sentence_of(refused.reason)));
    return std::string(name_of(refused.reason)) +
           std::string(refused.what()).substr(sentence_of(refused.reason).size());
  }
}
}  // namespace

TEST_CASE("meshes that fit") {
  CHECK(said<Step>("data=2,tensor=4") == "");
  CHECK(said<Within<Step, PeakMemory<1 << 20>, Sent<data, 1 << 10>>>("data=2,tensor=2") == "");
}

TEST_CASE("meshes that are refused with the compiler's sentence") {
  CHECK(
      said<Step>("data=2,tensor=3") ==
      "not_divisible: data=2, tensor=3 does not divide dimension 1 (8) of f32[6, 8/tensor] (up); valid extents of tensor: 1, 2, 4, 8");
  CHECK(said<Step>("data=8") ==
        "not_divisible: data=8 does not divide dimension 0 (4) of f32[4/data, 6]; valid extents of data: 1, 2, 4");
  CHECK(said<Step>("data=2,sequence=2") ==
        "axis_unused: sequence in data=2, sequence=2; the program's axes: tensor, data");
  CHECK(said<Within<Step, PeakMemory<1000>>>("data=2,tensor=2") ==
        "over_memory: 1024 bytes with data=2, tensor=2, the budget is 1000");
  CHECK(said<Within<Step, Sent<data, 100>>>("data=2,tensor=2") ==
        "over_bytes: 196 bytes on data with data=2, tensor=2, the budget is 100");
  const std::string strict = said<Strict<Step>>("data=2,tensor=2");
  CHECK(strict.starts_with("strict: all_reduce on tensor of f32[4/data, 6] +tensor to f32[4/data, 6], 48 bytes, at "));
  CHECK(strict.ends_with("start_up.cpp:16"));
}

TEST_CASE("meshes that cannot be read") {
  const auto refused = [](const char* mesh, std::span<const Axis* const> axes) {
    try {
      mesh_argument(mesh, axes);
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  const Axis* three[] = {&tensor, &sequence, &data};
  CHECK(
      refused("tensor=2,data", three) ==
      "--mesh tensor=2,data: 'data' is not axis=ranks; write for example tensor=2,sequence=2 with the axes tensor, sequence, data");
  CHECK(refused("expert=2", std::span(three).first(1)) ==
        "--mesh expert=2: there is no axis 'expert'; write for example tensor=2 with the axes tensor");
  CHECK(refused(nullptr, three).starts_with("--mesh : no mesh is given; "));
  const char* const not_given = nullptr;  // as argv[1] of a program without arguments
  CHECK_THROWS_WITH_AS(mesh_argument(not_given, {&data}),
                       "--mesh : no mesh is given; write for example data=2 with the axes data", Failure);
  CHECK(refused("data=2", {}) ==
        "--mesh data=2: there is no axis 'data'; the program names no axis, so it has no mesh");
}

TEST_CASE("what a terminal would obey is not printed") {
  CHECK(printable("two\nlines\tof f32[4/data]") == "two\nlines\tof f32[4/data]");
  CHECK(printable("\x1b[31m\r\a\x7f") == "?[31m???");
  CHECK(printable("caf\xc3\xa9 \xe2\x80\x94 \xf0\x9f\x98\x80") == "caf\xc3\xa9 \xe2\x80\x94 \xf0\x9f\x98\x80");
  // control characters above ASCII, alone and cut off
  CHECK(printable("\xc2\x9b"
                  "31m \x9b"
                  "31m \xe2\x80") == "??31m ?31m ??");
  CHECK(printable("\xed\xa0\x80 \xe0\x80\x80 \xf4\x90\x80\x80 \xf0\x80\x80\x80") == "??? ??? ???? ????");  // no UTF-8
}

TEST_CASE("the same budget on a larger mesh") {
  CHECK(said<Within<Step, Sent<data, 150>>>("data=2,tensor=2").starts_with("over_bytes"));
  CHECK(said<Within<Step, Sent<data, 150>>>("data=2,tensor=4") == "");
}
