// Eager tensors: what is applied to numbers is there at once, lies as the rule says, and is printed so.
#include <limits>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/model/module.hpp>
#include <parallel/operation/operations.hpp>
#include <parallel/run/eager.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace {

using Floats = std::vector<float>;
Floats counted(int n) {
  Floats all;
  for (int i = 0; i < n; ++i) all.push_back(static_cast<float>(i + 1));
  return all;
}
struct Model {
  Parameter<float, Shape<2, 2 / tensor>> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return sum(square(matmul(x, w))); }
};
template <class F>
void on(const Mesh& mesh, F f) {
  run_threads(mesh.ranks(), [&](Threads& world) {
    Eager<Threads, Cpu> eager(mesh, world);
    f(eager, world.rank());
  });
}
template <class F>
std::string sentence(F f) {
  try {
    f();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "nothing is refused";
}

/// The part that a rank has of the matrix [4, 4] that counts from 1,
/// by hand.
template <class X>
Floats part_by_hand(const Mesh& mesh, int rank) {
  constexpr Layout layout = X::type.layout;
  const Floats whole = counted(16);
  Floats part;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int64_t at[]{i, j};
      bool mine = true;
      for (int d = 0; d < 2; ++d) {
        std::int64_t size = 4, begin = 0;
        for (const Axis* axis : layout.dims[d]) {
          size /= mesh.extent(axis);
          begin += size * mesh.coordinate(rank, axis);
        }
        mine = mine && at[d] >= begin && at[d] < begin + size;
      }
      if (mine) part.push_back(whole[static_cast<std::size_t>(4 * i + j)]);
    }
  return part;
}

template <class... Annotation>
struct Way {
  template <class X>
  static constexpr bool leads_from = !parallel::internals::spelling::Moving<X, Annotation...>::value.refusal;
  template <class X>
  static auto of(const X& x) {
    return to<Annotation...>(x);
  }
};
using Ways =
    std::tuple<Way<Shape<4, 4>>, Way<Shape<4 / data, 4>>, Way<Shape<4, 4 / data>>, Way<Shape<4 / tensor, 4>>,
               Way<Shape<4 / data, 4 / tensor>>, Way<Shape<4 / data / tensor, 4>>, Way<Shape<4, 4>, On<data, Partial>>,
               Way<Shape<4 / data, 4>, On<tensor, Partial>>, Way<Shape<4, 4 / tensor>, On<data, Partial>>>;

}  // namespace

TEST_CASE("a sum of two tensors, printed with how it lies") {
  on(Mesh{data = 2}, [](auto& eager, int rank) {
    const auto a = eager.template tensor<float, Shape<4 / data, 2>>(counted(8));
    const auto b = eager.template tensor<float, Shape<2>>(Floats{10, 20});
    const auto c = a + b;
    CHECK(eager.text(c) == "f32[4/data, 2] on data=2\n[[11, 22],\n [13, 24],\n [15, 26],\n [17, 28]]");
    CHECK(eager.whole(c) == Floats{11, 22, 13, 24, 15, 26, 17, 28});
    const auto part = eager.part(c);
    CHECK(Floats(part.begin(), part.end()) == (rank == 0 ? Floats{11, 22, 13, 24} : Floats{15, 26, 17, 28}));
    CHECK(eager.text(sum(c)) == "f32[] +data on data=2\n156");
    CHECK(eager.whole(sum(c)) == Floats{156});
  });
}

TEST_CASE("numbers are printed by their types, long dimensions by their ends") {
  on(Mesh{data = 1}, [](auto& eager, int) {
    CHECK(eager.text(eager.template tensor<int, Shape<3>>(std::vector<int>{1, -2, 3})) ==
          "i32[3] on data=1\n[1, -2, 3]");
    CHECK(eager.text(eager.template tensor<float, Shape<3>>({1, -2, 3})) == "f32[3] on data=1\n[1, -2, 3]");
    CHECK(eager.text(eager.template tensor<float, Shape<1, 1, 2>>(Floats{0.5F, 1e-7F})) ==
          "f32[1, 1, 2] on data=1\n[[[0.5, 1e-07]]]");
    CHECK(eager.text(eager.template tensor<float, Shape<2, 600>>(counted(1200))) ==
          "f32[2, 600] on data=1\n[[1, 2, 3, ..., 598, 599, 600],\n [601, 602, 603, ..., 1198, 1199, 1200]]");
  });
}

TEST_CASE("from every placement to every other") {
  int pairs = 0;
  const Mesh mesh{data = 2, tensor = 2};
  const auto one = [&](auto& eager, int rank, auto from, auto where) {
    const auto x = decltype(from)::of(eager.template tensor<float, Shape<4, 4>>(counted(16)));
    if constexpr (decltype(where)::template leads_from<std::remove_const_t<decltype(x)>>) {
      const auto y = decltype(where)::of(x);
      using Y = std::remove_const_t<decltype(y)>;
      CHECK(eager.whole(y) == counted(16));
      // which terms a pending sum has is open
      bool pending = false;
      for (const Placed& p : Y::type.layout.others) pending = pending || p.placement == Partial;
      const auto part = eager.part(y);
      if (!pending) CHECK(Floats(part.begin(), part.end()) == part_by_hand<Y>(mesh, rank));
      if (rank == 0) ++pairs;
    }
  };
  on(mesh, [&](auto& eager, int rank) {
    std::apply(
        [&](auto... from) {
          const auto all = [&](auto first) { (one(eager, rank, first, from), ...); };
          (all(from), ...);
        },
        Ways{});
  });
  CHECK(pairs == 66);  // the others are refused: an axis that is not the innermost would move
}

TEST_CASE("gradients of tensors and parameters, and a step by hand") {
  on(Mesh{data = 2, tensor = 2}, [](auto& eager, int) {
    const auto model = eager.template model<Model>(1);
    eager.set("w", Floats{1, 2, 3, 4});
    const auto x = eager.template wanted<float, Shape<2 / data, 2>>(Floats{1, 0, 0, 1});
    const auto loss = model(x);
    CHECK(eager.whole(loss) == Floats{30});
    const auto [dx, dw] = eager.gradient(loss, x, model.w);
    CHECK(eager.whole(dw) == Floats{2, 4, 6, 8});
    CHECK(eager.whole(dx) == Floats{10, 22, 22, 50});  // 2 x w w^T
    CHECK(eager.gradient(loss, "w") == Floats{2, 4, 6, 8});
    const auto lower = model.w - constant<float>(0.25) * dw;
    CHECK(eager.whole(lower) == Floats{0.5, 1, 1.5, 2});
    eager.set("w", eager.whole(lower));
    CHECK(eager.whole(model(x)) == Floats{7.5});
    eager.forget();
    CHECK(eager.whole(model.w) == Floats{0.5, 1, 1.5, 2});
    CHECK(sentence([&] { eager.gradient(loss, "w"); }).find("forgotten") != std::string::npos);
    CHECK(eager.gradient(model(eager.template tensor<float, Shape<2 / data, 2>>(Floats{1, 0, 0, 1})), "w") ==
          Floats{1, 2, 3, 4});
  });
}

TEST_CASE("what stands in an order is given and read as it is counted") {
  on(Mesh{sequence = 2}, [](auto& eager, int rank) {
    const auto x = eager.template wanted<float, Shape<8 / zigzag(sequence)>>(counted(8));
    const auto y = eager.template tensor<float, Shape<8>>(counted(8));
    const auto part = [&](const auto& of) {
      const auto own = eager.part(of);
      return Floats(own.begin(), own.end());
    };
    CHECK(part(x) == (rank == 0 ? Floats{1, 2, 7, 8} : Floats{3, 4, 5, 6}));
    const auto all = to<On<sequence, Invariant>>(x);
    CHECK(part(all) == Floats{1, 2, 7, 8, 3, 4, 5, 6});
    CHECK(eager.whole(all) == counted(8));
    CHECK(part(in_order(all)) == counted(8));
    CHECK(part(to<Shape<8 / cyclic(sequence)>>(in_order(all))) ==
          (rank == 0 ? Floats{1, 3, 5, 7} : Floats{2, 4, 6, 8}));
    const auto loss = sum(cumulative_sum<0>(in_order(all)) * y) + sum(x * y);
    Floats wanted;
    for (int i = 0; i < 8; ++i) wanted.push_back(static_cast<float>(36 - i * (i + 1) / 2 + i + 1));
    CHECK(eager.whole(eager.gradient(loss, x)) == wanted);
  });
}

TEST_CASE("a tensor is told that its session has ended") {
  run_threads(2, [](Threads& world) {
    const auto left = [&] {
      Eager<Threads, Cpu> ends(Mesh{data = 2}, world);
      const auto x = ends.tensor<float, Shape<4 / data>>(counted(4));
      return x + x;
    }();
    Eager<Threads, Cpu> eager(Mesh{data = 2}, world);  // may stand where the other one stood
    const auto own = eager.tensor<float, Shape<4 / data>>(counted(4));
    for (const auto& told : {sentence([&] { left + left; }), sentence([&] { look(left, "left"); }),
                             sentence([&] { gelu(recompute(left)); })})
      CHECK(told.starts_with("a tensor is used whose session has ended"));
    CHECK(sentence([&] { eager.whole(left); }).find("not of this session") != std::string::npos);
    CHECK(sentence([&] { own + left; }).find("not of this session") != std::string::npos);
    CHECK(eager.whole(own) == counted(4));
  });
}

TEST_CASE("mistakes are one sentence") {
  on(Mesh{data = 1}, [](auto& eager, int) {
    const auto a = eager.template tensor<float, Shape<2>>(Floats{1, 2});
    CHECK(sentence([&] {
            eager.template tensor<float, Shape<3>>(Floats{1, 2});
          }).find("has 3 elements, but what was given has 2") != std::string::npos);
    run_threads(1, [&](Threads& world) {
      Eager<Threads, Cpu> other(Mesh{data = 1}, world);
      const auto b = other.template tensor<float, Shape<2>>(Floats{1, 2});
      CHECK(sentence([&] { a + b; }).find("not of this session") != std::string::npos);
      CHECK(sentence([&] { eager.whole(b); }).find("not of this session") != std::string::npos);
    });
    CHECK(sentence([&] { eager.gradient(sum(a), a); }).find("`wanted`") != std::string::npos);
    const auto w = eager.template wanted<float, Shape<2>>(Floats{1, 2});
    const auto v = eager.template wanted<float, Shape<2>>(Floats{3, 4});
    for (const auto& loss : {sum(v), sum(v * sign(w))})
      CHECK(sentence([&] { eager.gradient(loss, v, w); }) ==
            "no gradient comes to operand 2 of eager.gradient: the scalar was not made of it, or only by what has no "
            "gradient, as argmax, sign and comparisons; leave it out");
    CHECK(sentence([&] { eager.set("w", Floats{}); }).find("no parameter w") != std::string::npos);
    const char* const none = nullptr;
    for (const std::string& said :
         {sentence([&] { eager.set(none, Floats{}); }), sentence([&] { eager.scalar(none, 1); }),
          sentence([&] { eager.gradient(sum(w), none); })})
      CHECK(said == "a null pointer was given as a name; give the name as text, \"mlp.up\"");
    const auto token = eager.template tensor<int, Shape<1>>(std::vector<int>{5});
    const auto table = eager.template tensor<float, Shape<2, 1>>(Floats{1, 2});
    CHECK(sentence([&] { embedding(token, table); }).find("5") != std::string::npos);
    CHECK(sentence([&] { eager.scalar("seeds", 3); }) ==
          "no operation reads a number 'seeds'; operations read seed, step, temperature, top_k, top_p");
    CHECK(sentence([&] { eager.scalar("learning_rate", 3); }).starts_with("no operation reads a number"));
    CHECK(sentence([&] { eager.scalar("step", 2.5); }) == "the number step is 2.5; give a whole number from 0 on");
    eager.scalar("seed", 3), eager.scalar("top_p", 0.5);
    eager.forget();
    CHECK(sentence([&] { a + a; }).find("forgotten") != std::string::npos);
  });
  CHECK(sentence([] {
          run_threads(2, [](Threads& world) { Eager<Threads, Cpu>(Mesh{data = 3}, world); });
        }).find("has 3 ranks, but 2 were started") != std::string::npos);
  CHECK(sentence([] {
          on(Mesh{data = 2}, [](auto& eager, int) { eager.template tensor<float, Shape<3 / data>>(counted(3)); });
        }).find("does not divide") != std::string::npos);
  const std::string apart = sentence([] {
    on(Mesh{data = 2}, [](auto& eager, int rank) {
      const auto x = eager.template tensor<float, Shape<4>>(counted(4));
      const auto y = eager.whole(x + x), z = eager.whole(x * x);
      if (rank == 0)
        eager.whole(x + x);
      else
        eager.whole(x * x);
    });
  });
  CHECK(apart.find("eager.cpp:" + std::to_string(__LINE__ - 5)) != std::string::npos);
  CHECK(apart.find("eager.cpp:" + std::to_string(__LINE__ - 4)) != std::string::npos);
}

TEST_CASE("what plans are watched for is none of its business") {
  watch("blocks.2.mlp.up");
  check_numbers("finite");
  on(Mesh{data = 2}, [](auto& eager, int) {
    const auto x =
        eager.template tensor<float, Shape<4 / data>>(Floats{1, 2, 3, -std::numeric_limits<float>::infinity()});
    CHECK(eager.whole(x + x)[1] == 4);
  });
  check_numbers("");
  watch("");
}
