// Objects, locks, records and descriptions of machines, changed by chance, are read as tools/plan reads them, and what
// is still read is asked everything: there are answers and sentences, nothing else.
//
//     planner_fuzz [COUNT [SEED [FIRST [ASKED]]]]     10000 inputs of seed 1 unless said, the first with number 0
//
// Reading is cheap and asking is not: ASKED says that one input in so many is asked everything, where it was read;
// the others are only read. All are asked unless said. The same numbers make the same inputs. It ends with 1 where
// one was a fault.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <typeinfo>
#include <unistd.h>

#include "../tools/planner/advise_file.hpp"
#include "../tools/planner/laid_run.hpp"
#include "changed.hpp"
#include "models.hpp"
#include "pipeline_models.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace planner;
using changed::Random;
using changed::Words;

namespace {

using Model = models::Gpt<float, models::multiples_of(4)>;
using Step = Training<Model, AdamW, Model::Tokens, Model::Tokens>;
using Small = models::Regression<float, 8, 8>;
using Rows = Tensor<float, Shape<8 / data, 8>>;
using Plain = Training<Small, Sgd, Rows, Rows>;
using Staged =
    Accumulate<4, Training<pipelines::Gpt<float>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;
using Again = AllStored<Accumulate<4, Training<pipelines::Gpt<float, pipelines::layers / stage, pipelines::context,
                                                              Recompute<2, Repeat::collectives>>,
                                               AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>,
                        Stored<data>>;

struct Around {
  Parameter<float, Shape<4, 3, 2, 2>> w{normal(0.5)};
  constexpr auto operator()(Distributed auto x, Distributed auto seen) const {
    const auto all = matmul(x, w);
    return mean(masked_attention<true, Context::ring>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all), seen));
  }
};
using Ring = Training<Around, AdamW, Tensor<float, Shape<2, 8 / sequence, 4>>, Tensor<int, Shape<2, 8 / sequence>>>;

/// What the files are made from.
struct Whole {
  std::vector<Words> programs{}, meshes{};
  object::Found found{};  ///< all programs, for what is laid over their plans
  std::string lock{}, machine{};
  std::vector<std::string> records{};  ///< of the ranks of a small mesh
};
template <class Program>
void add(Whole& whole) {
  whole.programs.emplace_back(std::begin(object::program<Program>.words), std::end(object::program<Program>.words));
}
template <class Program, Mesh m>
void add_mesh(Whole& whole) {
  whole.meshes.emplace_back(std::begin(object::mesh<Program, m>.words), std::end(object::mesh<Program, m>.words));
}
/// Two steps of a rank, as a run that is the plan records them.
std::string record_of(const Plan& plan, int rank) {
  std::string text = "parallel record 2\nmesh " + parallel::text(plan.mesh) + "\nrank " + std::to_string(rank) + "\n";
  double now = 1;
  for (int step = 1; step <= 2; ++step)
    for (const Recorded& r : expected(plan, rank)) {
      text += std::to_string(step) + " " + r.event + " " + std::to_string(r.node) + " " + r.what + " " + r.axes + " " +
              std::to_string(r.ranks) + " " + r.dtype + " " + std::to_string(r.bytes) + " " + std::to_string(now) +
              " " + std::to_string(now + 0.5) + "\n";
      now += 0.5;
    }
  return text;
}
Whole make_whole() {
  Whole whole;
  add<Step>(whole);
  add<Accumulate<2, Step>>(whole);
  add<Plain>(whole);
  add<Staged>(whole);
  add<Again>(whole);
  add<Evaluation<Small, Rows, Rows>>(whole);
  add<Ring>(whole);
  add<Pipelined<schedules::interleaved<2>, Staged>>(whole);
  add<Pipelined<schedules::zero_bubble_h1, Staged>>(whole);
  add<Balanced<Staged>>(whole);
  add<Strict<Evaluation<models::Mlp<float, 8, 8>, Rows>>>(whole);
  add<Within<Plain, PeakMemory<1 << 20>, Sent<data, 1 << 16>>>(whole);
  add_mesh<Plain, Mesh{data = 2, tensor = 2}>(whole);
  add_mesh<Staged, Mesh{stage = 2, data = 2}.on_stage(1)>(whole);
  whole.found = object::find(changed::bytes_of(whole.programs[3]) + changed::bytes_of(whole.programs[2]));
  tell_apart(whole.found);
  Asked asked{.mesh = "stage=2,data=2"};
  asked.program = "Accumulate";
  asked.locking = true;
  const std::vector<Answer> all = answers(whole.found, asked);
  std::vector<Lock> locks;
  for (const Answer& a : all) locks.push_back(lock_of(*a.plan, a.name));
  whole.lock = written(locks);
  whole.machine = machine_to_json(machines::h100).dump(1);
  for (int rank = 0; rank < 4; ++rank)
    whole.records.push_back(record_of(*all[static_cast<std::size_t>(rank / 2)].plan, rank));
  return whole;
}

/// Counted over all children.
struct Counts {
  long inputs, accepted, asked, answers, sentences, faults, at;
};
Counts* counts = nullptr;

/// What was read is counted, and so is what is asked everything.
bool read_and_asked(bool asked) {
  ++counts->accepted;
  if (asked) ++counts->asked;
  return asked;
}

/// An answer, or a sentence: then false. Other exceptions are faults.
template <class F>
bool question(F f) {
  try {
    f();
    ++counts->answers;
    return true;
  } catch (const object::Damaged&) {
  } catch (const Failure&) {
  } catch (const MachineRefused&) {
  } catch (const std::length_error&) {
  } catch (const std::invalid_argument&) {
  }
  ++counts->sentences;
  return false;
}

void write_file(const std::string& file, const std::string& contents) {
  NewFile out(file, file);
  std::fwrite(contents.data(), 1, contents.size(), out.stream());
  out.put_in_place();
}

/// All that is asked of a program on a mesh.
void ask(const object::Found& found, const Asked& on, const std::string& folder) {
  std::vector<Answer> all;
  question([&] { all = answers(found, on); });
  const auto printed = [&](auto set) {
    question([&] {
      Asked asked = on;
      set(asked);
      std::ostringstream out;
      print(all, asked, out);
    });
  };
  if (!all.empty()) {
    for (const auto format :
         {Asked::Format::text, Asked::Format::json, Asked::Format::dot, Asked::Format::timeline, Asked::Format::html})
      printed([&](Asked& a) { a.format = format; });
    std::vector<std::string> paths{"*", "input.0"};
    const auto& members = all[0].plan->graph.members;
    for (std::size_t m = 0; m < members.size() && m < 3; ++m) paths.emplace_back(all[0].plan->graph.path(members[m]));
    for (const std::string& path : paths) {
      printed([&](Asked& a) { a.why = path; });
      printed([&](Asked& a) { a.picture = path; });
      printed([&](Asked& a) { a.svg = path; });
    }
    printed([](Asked& a) { a.schedule = true; });
    printed([](Asked& a) { a.schedule_svg = true; });
  }
  for (const bool locking : {true, false})  // the lock that was just written is checked
    question([&] {
      Asked asked = on;
      asked.lock = folder + "/own.plan";
      (locking ? asked.locking : asked.checking) = true;
      lock(answers(found, asked), asked);
    });
  question([&] {
    Asked asked = on;
    asked.mesh = "";
    asked.advise = 4;
    asked.machine = "h100";
    advise_file(found, asked);
  });
}

void object_input(const Whole& whole, Random& random, const std::string& folder, bool asking) {
  std::string bytes;
  for (int parts = 1 + random.below(2); parts > 0; --parts) {
    Words words = random.of(whole.programs);
    if (bytes.empty() || random.one_in(2)) changed::change(words, whole.programs, random);
    bytes += changed::bytes_of(words);
  }
  if (random.one_in(4)) {
    Words words = random.of(whole.meshes);
    if (random.one_in(2)) changed::change(words, whole.meshes, random);
    bytes += changed::bytes_of(words);
  }
  object::Found found;
  question([&] { found = object::find(bytes); });
  if (found.programs.empty() || !read_and_asked(asking)) return;
  tell_apart(found);
  Asked asked;
  asked.machine = random.one_in(3) ? "" : "h100";
  if (random.one_in(8)) asked.stage = random.below(4);
  for (const Axis& a : found.programs[0]->axes)
    if (random.one_in(2))
      asked.mesh += (asked.mesh.empty() ? "" : ",") + std::string(a.text()) + "=" +
                    std::to_string(random.of(std::vector<int>{1, 2, 2, 2, 4, 4, 3, 8, 1024}));
  ask(found, asked, folder);
}

void text_input(const Whole& whole, int kind, Random& random, const std::string& folder, bool asking) {
  Asked asked;
  asked.program = "Accumulate";
  const std::string file = folder + "/text";
  if (kind == 0) {  // a lock
    const std::string lines = changed::text(whole.lock, random);
    if (!question([&] { read_locks(lines, file); }) || !read_and_asked(asking)) return;
    write_file(file, lines);
    asked.lock = file;
    asked.checking = true;
    if (random.one_in(3)) asked.mesh = "stage=2,data=2";
    question([&] { lock(answers(whole.found, asked), asked); });
    asked.checking = false;
    asked.locking = true;
    asked.mesh = "stage=4";
    question([&] { lock(answers(whole.found, asked), asked); });
  } else if (kind == 1) {  // the record of one rank
    const auto which = static_cast<std::size_t>(random.below(4));
    for (std::size_t rank = 0; rank < whole.records.size(); ++rank)
      write_file(file + "." + std::to_string(rank),
                 rank == which ? changed::text(whole.records[rank], random) : whole.records[rank]);
    if (!question([&] { read_record(file, static_cast<int>(which)); }) || !read_and_asked(asking)) return;
    asked.run = file;
    asked.machine = random.one_in(2) ? "" : "h100";
    for (int how = 0; how < 3; ++how) {
      asked.schedule = how == 1;
      asked.schedule_svg = how == 2;
      std::ostringstream out;
      question([&] { lay_over(answers(whole.found, asked), asked, out); });
    }
  } else {  // a machine
    write_file(file, changed::text(whole.machine, random));
    if (!question([&] { machine_named_or_file(file); }) || !read_and_asked(asking)) return;
    asked.machine = file;
    asked.mesh = "stage=2,tensor=2";
    ask(whole.found, asked, folder);
    asked.advise = 8;
    asked.mesh = "";
    question([&] { advise_file(whole.found, asked); });
  }
}

void input(const Whole& whole, std::uint64_t seed, long number, const std::string& folder, bool asking) {
  Random random(seed, number);
  const int kind = random.below(8);
  try {
    kind < 5 ? object_input(whole, random, folder, asking) : text_input(whole, kind - 5, random, folder, asking);
  } catch (const std::exception& error) {
    ++counts->faults;
    std::fprintf(stderr, "input %ld of seed %llu: %s: %s\n", number, static_cast<unsigned long long>(seed),
                 typeid(error).name(), error.what());
  }
  ++counts->inputs;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool limited = false;  // a sanitizer maps all memory that there could be
#elif defined(__has_feature)
constexpr bool limited = !__has_feature(address_sanitizer);
#else
constexpr bool limited = true;
#endif

/// A process of its own for some inputs, as one may end it. Returns the next input.
long in_child(const Whole& whole, std::uint64_t seed, long first, long last, const std::string& folder, long asked) {
  const pid_t child = fork();
  if (child == 0) {
    if (limited) {
      const rlimit most{std::uint64_t{4} << 30, std::uint64_t{4} << 30};  // what asks for more has a wrong number
      setrlimit(RLIMIT_AS, &most);
    }
    std::ostringstream nowhere;
    std::cout.rdbuf(nowhere.rdbuf());  // what a check prints
    for (long i = first; i < last; ++i) {
      counts->at = i;
      alarm(120);  // longer is for ever
      input(whole, seed, i, folder, i % asked == 0);
      nowhere.str("");
    }
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return last;
  ++counts->faults;
  const std::string how = WIFSIGNALED(status) ? std::string("ended by signal ") + strsignal(WTERMSIG(status))
                                              : "exit code " + std::to_string(WEXITSTATUS(status));
  std::fprintf(stderr, "input %ld of seed %llu: %s\n", counts->at, static_cast<unsigned long long>(seed), how.c_str());
  return counts->at + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 10'000,
             first = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 0,
             asked = argc > 4 ? std::max(1L, std::strtol(argv[4], nullptr, 10)) : 1;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  counts =
      static_cast<Counts*>(mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const Whole whole = make_whole();
  const Scratch folder;
  for (long i = first; i < first + count;)
    i = in_child(whole, seed, i, std::min(first + count, i + 100), folder.path().string(), asked);
  std::printf("%ld inputs, %ld of them read, %ld asked everything, %ld answers, %ld sentences, %ld faults\n",
              counts->inputs, counts->accepted, counts->asked, counts->answers, counts->sentences, counts->faults);
  const bool worth =
      count < 1'000 || counts->accepted > count / 50;  // or the changes would only have been seen by the first check
  return counts->faults == 0 && worth ? 0 : 1;
}
