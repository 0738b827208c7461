// The pictures of tensors that tools/plan draws, as text and as SVG.
#include <doctest/doctest.h>

#include "../tools/planner/picture.hpp"
#include "../tools/planner/svg.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {
constexpr Mesh four{data = 2, tensor = 2};

Type typed(std::initializer_list<Dim> dims, std::initializer_list<Placed> others = {}) {
  Type type;
  for (const Dim& d : dims) type.layout.dims.push_back(d);
  for (const Placed& p : others) type.layout.others.push_back(p);
  return type;
}
int count(const std::string& words, const std::string& word) {
  int n = 0;
  for (std::size_t at = 0; (at = words.find(word, at)) != std::string::npos; at += word.size()) ++n;
  return n;
}
}  // namespace

TEST_CASE("a picture as text is a grid of ranks and their slices") {
  CHECK(planner::picture(typed({Dim(512) / data, Dim(768) / tensor}), four) ==
        "f32[512/data, 768/tensor] on data=2, tensor=2\n\n"
        "        tensor=0               tensor=1\n"
        "data=0  0  [0:256, 0:384]      1  [0:256, 384:768]\n"
        "data=1  2  [256:512, 0:384]    3  [256:512, 384:768]\n");
}

TEST_CASE("a pending sum is hatched, and what a rank lacks is a dash") {
  CHECK(planner::picture(typed({Dim(12) / data, 64}, {{&tensor, Partial}}), four) ==
        "f32[12/data, 64] +tensor on data=2, tensor=2\n\n"
        "        tensor=0               tensor=1\n"
        "data=0  0  /// [0:6, 0:64]     1  /// [0:6, 0:64]\n"
        "data=1  2  /// [6:12, 0:64]    3  /// [6:12, 0:64]\n\n"
        "/// a term: the value is the sum over tensor\n");
  CHECK(planner::picture(typed({8}, {{&tensor, At<1>}}), Mesh{tensor = 2}) ==
        "f32[8] At<1>@tensor on tensor=2\n\n"
        "tensor=0    tensor=1\n"
        "0  -        1  [0:8]\n\n"
        "-   nothing\n");
}

TEST_CASE("a long axis goes down, and a scalar has no slices") {
  const std::string drawn = planner::picture(typed({}, {{&data, Partial}}), Mesh{data = 6});
  CHECK(drawn.find("data=5  5  /// []\n") != std::string::npos);
  CHECK(count(drawn, "///") == 7);
}

TEST_CASE("an SVG has a block for each slice and a sheet for each rank that holds it") {
  const std::string split = planner::svg(typed({Dim(512) / data, Dim(768) / tensor}), four);
  CHECK(count(split, "class=\"sheet\"") == 4);
  CHECK(count(split, "class=\"hatched\"") == 0);
  for (const char* words : {">rank 0<", ">rank 3<", ">0:256<", ">384:768<", ">↓ dimension 0, 512/data<"})
    CHECK(split.find(words) != std::string::npos);

  const std::string pending = planner::svg(typed({Dim(12) / data, 64}, {{&tensor, Partial}}), four);
  CHECK(count(pending, "class=\"sheet\"") == 4);
  CHECK(count(pending, "class=\"hatched\"") == 4);
  CHECK(pending.find(">ranks 2, 3<") != std::string::npos);
  CHECK(pending.find("<g class=\"block\"><title>ranks 2, 3: [6:12, 0:64]</title>") != std::string::npos);
  CHECK(count(pending, "<style>") == 1);
  // a page has its own
  CHECK(count(planner::svg(typed({Dim(12) / data, 64}, {{&tensor, Partial}}), four, false), "<style>") == 0);

  CHECK(count(planner::svg(typed({8, 8}, {{&tensor, Broadcast}}), four), "class=\"other\"") == 2);
  CHECK(planner::svg(typed({8}, {{&tensor, At<1>}}), four).find("ranks 0, 2 hold nothing") != std::string::npos);
}

TEST_CASE("a third split dimension makes panels; many slices leave a gap; names are escaped") {
  static constexpr Axis odd{"a<b&\"c\""};
  const Mesh mesh{data = 2, tensor = 2, odd = 16};
  const std::string drawn = planner::svg(typed({Dim(4) / data, Dim(6) / tensor, Dim(32) / odd}), mesh);
  CHECK(count(drawn, "class=\"panel\"") == 2);
  CHECK(count(drawn, "class=\"sheet\"") == 2 * 2 * 11);
  CHECK(count(drawn, ">…<") == 2);
  CHECK(drawn.find("32/a&lt;b&amp;&quot;c&quot;") != std::string::npos);
  CHECK(drawn.find("a<b") == std::string::npos);
}
