// The record of the communicators equals the plan, call by call and byte by byte; an executor that skips, doubles or
// shortens a call is seen.
#include <doctest/doctest.h>

#include "models.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

using Model = models::Gpt<float, models::multiples_of(4)>;
using Step = Accumulate<2, Training<Model, AdamW, Model::Tokens, Model::Tokens>>;

enum class Tampering { none, skip, twice, shorten };

/// A communicator that does one call wrongly, on every rank alike.
class Faulty {
 public:
  explicit Faulty(Threads group, Tampering fault = Tampering::none) : group_(std::move(group)), fault_(fault) {}
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  Faulty split(int color, int key) { return Faulty(group_.split(color, key), fault_); }
  Ticket start(const Exchange& e) {
    Exchange changed = e;
    if (++calls_ == 3) {
      if (fault_ == Tampering::skip) {
        skipped_ = true;
        return Ticket{~0U};
      }
      if (fault_ == Tampering::twice) group_.wait(group_.start(e));
      if (fault_ == Tampering::shorten) changed.count /= 2;
    }
    return group_.start(changed);
  }
  void wait(Ticket t) {
    if (skipped_ && t.number == ~0U) return;
    group_.wait(t);
  }
  void aside(const Exchange& e) { group_.aside(e); }
  void barrier() { group_.barrier(); }
  void record(std::vector<Record>* r) { group_.record(r); }
  void deadline(std::chrono::milliseconds d) { group_.deadline(d); }
  LongPhase within(const LongPhase& now) { return group_.within(now); }

 private:
  Threads group_;
  Tampering fault_;
  int calls_ = 0;
  bool skipped_ = false;
};
static_assert(Communicator<Faulty>);

/// Whether every rank's record of one step is the plan.
bool agrees(const Mesh& mesh, Tampering fault) {
  const OwnedPlan plan = derive<Step>(mesh);
  const auto count = std::int64_t{2} * Model::batch * Model::context;
  const auto tokens = program::numbers<int>(count, 1, Model::vocabulary),
             targets = program::numbers<int>(count, 2, Model::vocabulary);
  std::vector<char> same(static_cast<std::size_t>(mesh.ranks()), 1);
  std::int64_t calls = 0;
  run_threads(mesh.ranks(), [&](Threads& threads) {
    Faulty world(threads.split(0, threads.rank()), fault);
    Parameters parameters(plan, world.rank(), 5);
    Trainer<Faulty, Cpu> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.1, .clip_norm = 1}, 1);
    std::map<std::string, std::vector<Record>> records;
    trainer.executor().each_group([&](const std::string& axes, Faulty& group) {
      records[axes].reserve(4096);
      group.record(&records[axes]);
    });
    trainer.executor().input(0, tokens);
    trainer.executor().input(1, targets);
    trainer.step(1e-3);
    std::int64_t mine = 0;
    for (const auto& group : records) {
      const std::vector<Record>& record = group.second;
      if (!(record == program::planned(plan, [&](const std::string& asked) { return asked == group.first; })))
        same[static_cast<std::size_t>(world.rank())] = 0;
      mine += static_cast<std::int64_t>(record.size());
    }
    if (world.rank() == 0) calls = mine;
  });
  if (fault == Tampering::none) {
    CHECK(calls == plan->calls());
    CHECK(calls >= 10);
  }
  for (const char s : same)
    if (s == 0) return false;
  return true;
}

}  // namespace

TEST_CASE("the record is the plan") {
  CHECK(agrees(Mesh{data = 2, tensor = 2}, Tampering::none));
  CHECK(agrees(Mesh{tensor = 2, sequence = 2}, Tampering::none));
  CHECK(agrees(Mesh{data = 4}, Tampering::none));
}
TEST_CASE("a call skipped, doubled or shortened is seen") {
  for (const Tampering t : {Tampering::skip, Tampering::twice, Tampering::shorten})
    CHECK_FALSE(agrees(Mesh{tensor = 4}, t));
}
