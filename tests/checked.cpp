// The modes in which ranks look at each other: fingerprints of calls, and of what they hold alike.
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/checked.hpp>
#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/run/trainer.hpp>

#include "models.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

using World = Checked<Threads>;
static_assert(Communicator<World>);

/// What each rank is told where rank 1 does `wrong` and the others `right`.
template <class F, class G>
std::vector<std::string> told(int ranks, F right, G wrong) {
  std::vector<std::string> all(static_cast<std::size_t>(ranks));
  try {
    run_threads(ranks, [&](Threads& threads) {
      World world(threads);
      try {
        threads.rank() == 1 ? wrong(world) : right(world);
        agreeing::end(world);
      } catch (const Failure& error) {
        all[static_cast<std::size_t>(threads.rank())] = std::to_string(error.exit_code) + " " + error.what();
        throw;
      }
    });
  } catch (const Failure&) {
  }
  return all;
}

using Model = models::Gpt<float, models::multiples_of(12)>;
using Step = Training<Model, AdamW, Model::Tokens, Model::Tokens>;

/// The losses of three steps, or what rank 0 was told. `damage(trainer, rank)`: behind each step, and whether it did
/// any.
template <class F>
std::string trained(const Mesh& mesh, int compared_every, F damage) {
  const OwnedPlan plan = derive<Step>(mesh);
  const auto tokens = program::numbers<int>(144, 1, Model::vocabulary),
             targets = program::numbers<int>(144, 2, Model::vocabulary);
  std::string said;
  try {
    run_threads(mesh.ranks(), [&](Threads& threads) {
      World world(threads);
      Parameters parameters(*plan, world.rank(), 5);
      Trainer<World, Cpu> trainer(*plan, world, parameters, {}, 1);
      trainer.compare_replicas_every(compared_every);
      for (int step = 0; step < 3; ++step) {
        trainer.executor().input(0, tokens);
        trainer.executor().input(1, targets);
        const double loss = trainer.step().loss;
        if (world.rank() == 0) said += std::to_string(loss) + " ";
        if (damage(trainer, world.rank())) compare_replicas(world, trainer.executor());
      }
    });
  } catch (const Mismatch& error) {
    said = error.what();
  }
  return said;
}

}  // namespace

TEST_CASE("ranks that call something else are told so, with both lines") {
  std::vector<double> in(64, 1), out(64);
  struct Wrong {
    Exchange exchange;
    std::string words;
  };
  const auto call = [&](World& world, Exchange e) {
    std::vector<double> own(64);
    e.in = in.data();
    e.out = own.data();
    exchange(world, e);
  };
  const Exchange right{Collective::all_reduce, nullptr, nullptr, 12, DType::f32, false, 0, "loss"};
  const std::vector<Wrong> wrong{
      {{Collective::all_gather, nullptr, nullptr, 12, DType::f32, false, 0, "loss"}, "all_gather of 12 f32 (loss)"},
      {{Collective::reduce_scatter, nullptr, nullptr, 12, DType::f32, false, 0, "loss"},
       "reduce_scatter of 12 f32 (loss)"},
      {{Collective::broadcast, nullptr, nullptr, 12, DType::f32, false, 0, "loss"},
       "broadcast of 12 f32 from rank 0 (loss)"},
      {{Collective::all_reduce, nullptr, nullptr, 6, DType::f32, false, 0, "loss"}, "all_reduce of 6 f32 (loss)"},
      {{Collective::all_reduce, nullptr, nullptr, 12, DType::i32, false, 0, "loss"}, "all_reduce of 12 i32 (loss)"},
      {{Collective::all_reduce, nullptr, nullptr, 12, DType::f32, true, 0, "loss"},
       "all_reduce (maximum) of 12 f32 (loss)"},
      {{Collective::all_reduce, nullptr, nullptr, 12, DType::f32, false, 0, "norm"}, "all_reduce of 12 f32 (norm)"}};
  for (const Wrong& w : wrong)
    for (const std::string& sentence : told(
             3, [&](World& world) { call(world, right); }, [&](World& world) { call(world, w.exchange); })) {
      INFO(sentence);
      CHECK(sentence.starts_with("76 "));
      CHECK(sentence.find("ranks 0, 2 are at collective 1 of its group, all_reduce of 12 f32 (loss) (checked.cpp:") !=
            std::string::npos);
      CHECK(sentence.find("rank 1 at collective 1 of its group, " + w.words + " (checked.cpp:") != std::string::npos);
    }
  const Exchange root_0{Collective::broadcast, nullptr, nullptr, 12, DType::f32, false, 0, "x"},
      root_2{Collective::broadcast, nullptr, nullptr, 12, DType::f32, false, 2, "x"};
  for (const std::string& sentence : told(
           3, [&](World& world) { call(world, root_0); }, [&](World& world) { call(world, root_2); }))
    CHECK(sentence.find("rank 1 at collective 1 of its group, broadcast of 12 f32 from rank 2 (x)") !=
          std::string::npos);
  // two calls in another order, one more, one fewer
  const auto both = [&](World& world, const Exchange& a, const Exchange& b) {
    call(world, a);
    call(world, b);
  };
  for (const std::string& sentence : told(
           3, [&](World& world) { both(world, right, root_0); }, [&](World& world) { both(world, root_0, right); }))
    CHECK(sentence.starts_with("76 "));
  for (const std::string& sentence : told(
           3, [&](World& world) { call(world, right); }, [&](World& world) { both(world, right, root_0); }))
    CHECK(sentence.find("rank 1 at collective 2 of its group, broadcast of 12 f32 from rank 0 (x) (checked.cpp:") !=
          std::string::npos);
  for (const std::string& sentence : told(
           3, [&](World& world) { both(world, right, root_0); }, [&](World& world) { call(world, right); }))
    CHECK(sentence.find("rank 1 at the end of the run") != std::string::npos);
  for (const std::string& sentence : told(
           3, [&](World& world) { both(world, right, root_0); }, [&](World& world) { both(world, right, root_0); }))
    CHECK(sentence == "");
}

TEST_CASE("a training in both modes has the losses of one without") {
  const auto nothing = [](auto&, int) { return false; };
  for (const Mesh& mesh : {Mesh{data = 2, tensor = 2}, Mesh{data = 3}, Mesh{tensor = 2}})
    CHECK(trained(mesh, 1, nothing) == trained(mesh, 0, nothing));
}

TEST_CASE("a flipped bit in any member on any rank is found and named") {
  const Mesh mesh{data = 2, tensor = 2};
  const OwnedPlan plan = derive<Step>(mesh);
  int flipped = 0;
  for (int member = 0; member < static_cast<int>(plan->graph.members.size()); ++member) {
    if (plan->graph.members[static_cast<std::size_t>(member)].role == Role::input) continue;
    const auto flip = [&](auto& trainer, int rank) {
      View part = trainer.executor().member(member);
      if (rank == 2) reinterpret_cast<unsigned char*>(part.data)[part.elements() * bytes_of(part.dtype) - 1] ^= 0x80;
      return true;
    };
    const std::string said = trained(mesh, 0, flip), path(plan->graph.path(member));
    const bool split = plan->graph.members[static_cast<std::size_t>(member)].type.layout.on(&tensor).split();
    INFO(path, ": ", said);
    CHECK(said.find(path + (split ? " of rank 0 and of rank 2" : " of ranks 0, 1, 3 and of rank 2")) !=
          std::string::npos);
    ++flipped;
  }
  CHECK(flipped > 20);
}
