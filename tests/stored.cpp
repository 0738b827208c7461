// ZeRO: whatever is stored split, and however long it is gathered, ten steps are those of one rank, and what ranks send
// and keep is what was published (Rajbhandari et al., 2020). No dimension divides.
#include "ten_steps.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace ten_steps;

namespace {

inline constexpr Axis replica{"replica"};
inline constexpr int rows = 8;

struct Block {
  Parameter<double, Shape<5>> gain{normal(1)};
  Parameter<double, Shape<5, 9>> up{normal(0.3)};
  Parameter<double, Shape<9>> bias{normal(0.3)};
  Parameter<double, Shape<9, 5>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    return x + matmul(gelu(matmul(rms_norm(x, gain), up) + bias), down);
  }
};
struct Odd {
  Parameter<double, Shape<7, 5>> in{normal(0.3)};
  Layers<3, Block> blocks;
  Parameter<double, Shape<5>> shift{normal(0.3)};
  Parameter<double, Shape<5, 3>> out{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)) + shift, out) - y));
  }
};
/// A parameter that is used as it lies and by views of it: tied.
struct Tied {
  Parameter<double, Shape<7, 5>> in{normal(0.3)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto h = gelu(matmul(x, in));
    const auto back = matmul(h, transpose(in));
    return mean(square(matmul(back, reshape<7, 5>(in)))) + mean(square(back - x)) + mean(y);
  }
};
/// Only what every pass needs whole: products whose operands want gradients.
struct Products {
  struct Product {
    Parameter<double, Shape<6, 6>> w{normal(0.3)};
    constexpr auto operator()(Distributed auto x) const { return x + matmul(x, w); }
  };
  Layers<4, Product> products;
  constexpr auto operator()(Distributed auto x) const { return mean(square(products(x))); }
};

using X = Tensor<double, Shape<rows / replica / data, 7>>;
using Y = Tensor<double, Shape<rows / replica / data, 3>>;
using Plain = Training<Odd, AdamW, X, Y>;

struct Variant {
  std::string name;
  Graph graph;
  Zero stage = Zero::parameters;
  Gathered gathered = Gathered::per_use;
};
template <template <class...> class Program>
std::vector<Variant> variants() {
  std::vector<Variant> all;
  all.push_back({"stage 1", build<Program<Stored<data, Zero::states>>>(), Zero::states});
  all.push_back({"stage 2", build<Program<Stored<data, Zero::gradients>>>(), Zero::gradients});
  all.push_back({"stage 3", build<Program<Stored<data>>>()});
  all.push_back({"per pass", build<Program<Stored<data, Gathered::per_pass>>>(), Zero::parameters, Gathered::per_pass});
  all.push_back({"per step", build<Program<Stored<data, Gathered::per_step>>>(), Zero::parameters, Gathered::per_step});
  return all;
}
template <class... S>
using Once = AllStored<Plain, S...>;
template <class... S>
using Thrice = AllStored<Accumulate<3, Plain>, S...>;

const Mesh meshes[] = {{data = 1},
                       {data = 2},
                       {data = 4},
                       {data = 8},
                       {replica = 2, data = 2},
                       {replica = 2, data = 4},
                       {replica = 4, data = 2},
                       {replica = 2, data = 1}};

}  // namespace

TEST_CASE("stored split, every parameter trains as on one rank; on one mesh every stage gives the same bits") {
  const Graph plain = build<Plain>();
  const std::vector<double> one = losses(plain, Mesh{});
  CHECK(one.front() > 2 * one.back());
  const std::vector<Variant> all = variants<Once>();
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const std::vector<double> none = losses(plain, mesh);
    check_near(none, one);
    for (const Variant& v : all) {
      INFO(v.name);
      const std::vector<double> stored = losses(v.graph, mesh);
      check_near(stored, one);
      // beside replicas sums are completed on data first, without them over both axes at once
      if (mesh.extent(&replica) == 1) CHECK(stored == none);
    }
  }
}
TEST_CASE("the same with micro-batches, and where the norm clips") {
  const Graph plain = build<Accumulate<3, Plain>>();
  const std::vector<double> one = losses(plain, Mesh{}, 0.1);
  for (const Variant& v : variants<Thrice>())
    for (const Mesh& mesh : meshes) {
      INFO(v.name << " on " << text(mesh));
      check_near(losses(v.graph, mesh, 0.1), one);
    }
}
TEST_CASE("stored over two axes, each splitting what the other leaves") {
  const std::vector<double> one = losses(build<Plain>(), Mesh{});
  const Variant both[] = {
      {"stage 3", build<Once<Stored<data>, Stored<replica>>>()},
      {"stage 1", build<Once<Stored<replica, Zero::states>, Stored<data, Zero::states>>>()},
      {"per step", build<Once<Stored<data, Gathered::per_step>, Stored<replica, Gathered::per_step>>>()}};
  for (const Variant& v : both)
    for (const Mesh& mesh : meshes) {
      INFO(v.name << " on " << text(mesh));
      check_near(losses(v.graph, mesh), one);
    }
}

TEST_CASE("elements that a rank sends: 2, 2, 2 and 3 times the parameters, with m micro-batches 2, 2, m + 1 and 3 m") {
  const auto check = [](const Graph& graph, int n, double times) {
    const OwnedPlan plan = derive(graph, Mesh{data = n}, {}, {});
    const double padded = 4.0 * n * ((36 + n - 1) / n) * 8, own = (n - 1.0) / n;
    const double whole = plan->all.collectives(all_reduce(data)) > 2 && times == 2 ? 4.0 * 36 * 8 : padded;
    CHECK(plan->backward.sent() + plan->forward.sent(all_gather) + plan->optimizer.sent(all_gather) ==
          doctest::Approx(times * own * whole).epsilon(1e-12));
  };
  for (const int n : {2, 4, 8}) {
    CAPTURE(n);
    using Step = Training<Products, AdamW, Wanted<double, Shape<rows / data, 6>>>;
    check(build<Step>(), n, 2);
    check(build<AllStored<Step, Stored<data, Zero::states>>>(), n, 2);
    check(build<AllStored<Step, Stored<data, Zero::gradients>>>(), n, 2);
    check(build<AllStored<Step, Stored<data>>>(), n, 3);
    check(build<AllStored<Step, Stored<data, Gathered::per_pass>>>(), n, 2);
    check(build<AllStored<Step, Stored<data, Gathered::per_step>>>(), n, 2);
    check(build<Accumulate<5, Step>>(), n, 2);
    check(build<AllStored<Accumulate<5, Step>, Stored<data, Zero::states>>>(), n, 2);
    check(build<AllStored<Accumulate<5, Step>, Stored<data, Zero::gradients>>>(), n, 6);
    check(build<AllStored<Accumulate<5, Step>, Stored<data>>>(), n, 15);
    check(build<AllStored<Accumulate<5, Step>, Stored<data, Gathered::per_pass>>>(), n, 10);
    check(build<AllStored<Accumulate<5, Step>, Stored<data, Gathered::per_step>>>(), n, 6);
  }
}

template <int m>
struct Hybrid {
  template <class... S>
  using Step = AllStored<Accumulate<m, Training<Odd, AdamW, Wanted<double, Shape<12 / replica / data, 7>>,
                                                Tensor<double, Shape<12 / replica / data, 3>>>>,
                         S...>;
};
/// Of the programs' parameters how many layers there are, elements of one, and whether a gradient is made with it.
struct Stacked {
  int layers, elements;
  bool read_backward;
};
constexpr Stacked odd[] = {{1, 35, true}, {3, 5, true},  {3, 45, true}, {3, 9, false},
                           {3, 45, true}, {1, 5, false}, {1, 15, true}};

template <int m>
void check_hybrid() {
  std::vector<Variant> all = variants<Hybrid<m>::template Step>();
  all.push_back({"stage 3 on hosts", build<typename Hybrid<m>::template Step<Stored<data>, Stored<host>>>()});
  for (const Variant& v : all)
    for (const Mesh& mesh : {Mesh{replica = 2, data = 2}, Mesh{replica = 2, data = 3}, Mesh{replica = 3, data = 2},
                             Mesh{replica = 4, data = 1}, Mesh{replica = 1, data = 4}}) {
      INFO(v.name << " with " << m << " micro-batches on " << text(mesh));
      const int n = mesh.extent(&data), groups = mesh.extent(&replica);
      const bool once = v.stage != Zero::parameters || v.gathered == Gathered::per_step;
      double parts = 0, gathers = 0;
      for (const Stacked& p : odd) {
        const double part = 8.0 * p.layers * ((p.elements + n - 1) / n);
        parts += part;
        gathers += part * (once ? 1 : v.gathered == Gathered::per_use && p.read_backward ? 2 * m : m);
      }
      const OwnedPlan plan = derive(v.graph, mesh, {}, {});
      const auto near = [](double bytes) { return doctest::Approx(bytes).epsilon(1e-12); };
      CHECK(plan->sent(all_gather(data)) == near((n - 1) * gathers));
      CHECK(plan->sent(reduce_scatter(data)) == near((n - 1) * parts * (v.stage == Zero::states ? 1 : m)));
      CHECK(plan->backward.sent(all_reduce(data)) == 0);
      CHECK(plan->backward.sent(all_reduce(replica)) == near(2.0 * (groups - 1) / groups * parts));
      CHECK(plan->sent(replica) - plan->backward.sent(all_reduce(replica)) <= 16);  // the loss
    }
}

TEST_CASE("a parameter that views of it use, too, is reduced once, on the axis that it is stored over first") {
  using Step = Training<Tied, AdamW, X, Y>;
  const std::vector<double> one = losses(build<Step>(), Mesh{});
  const auto check = [&](const std::string& name, const Graph& graph) {
    for (const Mesh& mesh : meshes) {
      INFO(name << " on " << text(mesh));
      const OwnedPlan plan = derive(graph, mesh, {}, {});
      int whole = 0;
      each_event(*plan, [&](const Event& e) {
        const Node& node = plan->graph.node(e.node);
        whole += e.kind == EventKind::start && node.phase == Phase::backward && reduces(node.transition.collective) &&
                 local_elements(plan->graph.value(node.operands[0]).type.layout, mesh) == 35;
      });
      CHECK(whole == (mesh.ranks() > 1 ? 1 : 0));
      check_near(losses(graph, mesh), one);
    }
  };
  check("plain", build<Step>());
  check("states over data", build<AllStored<Step, Stored<data, Zero::states>>>());
  check("states over replica", build<AllStored<Step, Stored<replica, Zero::states>>>());
  check("gradients over data", build<AllStored<Step, Stored<data, Zero::gradients>>>());
  check("gradients over replica", build<AllStored<Step, Stored<replica, Zero::gradients>>>());
  check("parameters over data", build<AllStored<Step, Stored<data>>>());
  check("parameters over replica", build<AllStored<Step, Stored<replica>>>());
  check("for each pass over data", build<AllStored<Step, Stored<data, Gathered::per_pass>>>());
  check("for each step over replica", build<AllStored<Step, Stored<replica, Gathered::per_step>>>());
}
TEST_CASE("hybrid sharding: each micro-batch reduces on one axis; on the other the parts are completed once a step") {
  check_hybrid<1>();
  check_hybrid<3>();
  check_hybrid<4>();
}

TEST_CASE("what a rank keeps: a share of the states, and of the parameters, and one layer of these at a time") {
  const auto of = [](const Variant& v, Use use, int n) {
    return derive(v.graph, Mesh{data = n}, {}, {})->memory.of(use);
  };
  const auto share = [](std::int64_t layers, std::int64_t elements, std::int64_t n) {
    return aligned(layers * ((elements + n - 1) / n) * 8);
  };
  const auto shares = [&](std::int64_t n) {
    return share(1, 35, n) + share(3, 5, n) + 2 * share(3, 45, n) + share(3, 9, n) + share(1, 5, n) + share(1, 15, n);
  };
  for (const Variant& v : variants<Once>())
    for (const int n : {2, 4, 8}) {
      INFO(v.name << " on " << n);
      CHECK(of(v, Use::optimizer_state, n) == 2 * shares(n));
      CHECK(of(v, Use::parameters, n) == shares(v.stage == Zero::parameters ? n : 1));
    }
}

TEST_CASE("the record is the plan, whatever is stored") {
  for (const Variant& v : variants<Thrice>())
    for (const Mesh& mesh : {Mesh{data = 4}, Mesh{replica = 2, data = 2}}) {
      INFO(v.name << " on " << text(mesh));
      const OwnedPlan plan = derive(v.graph, mesh, {}, {});
      run_threads(mesh.ranks(), [&](Threads& world) {
        under_test::Parameters parameters(*plan, world.rank(), 5);
        Executor<Threads, under_test::Device> executor(*plan, world, parameters);
        std::map<std::string, std::vector<Record>> records;
        executor.each_group([&](const std::string& axes, Threads& group) {
          records[axes].reserve(4096);
          group.record(&records[axes]);
        });
        for (int i = 0; i < 2; ++i)
          executor.input(i, program::numbers<double>(3 * rows * (i == 0 ? 7 : 3), static_cast<std::uint64_t>(i)));
        executor.scalar("step", 1);
        executor.run();
        for (const auto& group : records)
          CHECK((group.second ==
                 program::planned(*plan, [&](const std::string& asked) { return asked == group.first; })));
      });
    }
}
