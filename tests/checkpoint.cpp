// A training that is kept on disk goes on from there: with the same bits on the mesh that wrote it, correctly on every
// other; what is damaged is found, and what cannot be written costs nothing.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <doctest/doctest.h>

#include "kept.hpp"

using namespace kept;

namespace {

/// Ways to train one model: what holds the same tensors can go on from any of the others.
struct Way {
  std::string name;
  std::function<std::vector<double>(const std::string&, int, int)> train;
};
template <class Program>
void add(std::vector<Way>& all, const std::string& name, const Mesh& mesh) {
  all.push_back({name + " on " + text(mesh), [mesh](const std::string& folder, int steps, int save_behind) {
                   return train<Program>(folder, mesh, steps, save_behind);
                 }});
}
std::vector<Way> ways() {
  std::vector<Way> all;
  for (const Mesh& mesh :
       {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 8}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}})
    add<Step>(all, "alike", mesh);
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{data = 4}, Mesh{data = 2, tensor = 2}}) {
    add<AllStored<Step, Stored<data, Zero::states>>>(all, "stage 1", mesh);
    add<AllStored<Step, Stored<data>>>(all, "stage 3", mesh);
  }
  add<InOrder>(all, "in an order", Mesh{data = 2, tensor = 2});
  add<AllStored<InOrder, Stored<data>>>(all, "in an order, stage 3", Mesh{tensor = 5, data = 2});
  add<AllStored<Step, Stored<data>, Stored<host>>>(all, "on hosts", Mesh{data = 2});
  add<Staged>(all, "stages", Mesh{stage = 2});
  add<Staged>(all, "stages", Mesh{stage = 4, data = 2});
  add<AllStored<Staged, Stored<data>>>(all, "stages, stored", Mesh{stage = 2, data = 2, tensor = 2});
  return all;
}

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("what one mesh saves another goes on from: with the same bits where it is the same") {
  constexpr int saved = 3, steps = 6;
  const std::vector<Way> all = ways();
  std::vector<double> one;
  for (const Way& from : all) {
    const Folder written;
    const std::vector<double> losses = from.train(written.path, steps, saved);
    if (one.empty()) one = losses;
    INFO("saved " << from.name);
    CHECK(near(one, losses));
    for (const Way& to : all) {
      INFO("gone on " << to.name);
      const std::vector<double> rest = to.train(written.path, steps, -1);
      CHECK(near(behind(one, saved), rest));
      if (from.name == to.name) CHECK(rest == behind(losses, saved));
    }
  }
}

TEST_CASE("layers in chunks, which are not neighbours on their stage") {
  using Half = Tensor<double, Shape<rows / 2 / data, width>>;
  using Chunks =
      Pipelined<schedules::interleaved<2>, Accumulate<2, Training<ModelOf<depth / stage>, AdamW, Half, Half>>>;
  using Plain = Accumulate<2, Training<ModelOf<depth>, AdamW, Half, Half>>;
  const Folder chunks, plain;
  const auto losses = train<Chunks>(chunks.path, Mesh{stage = 2}, 6, 3);
  CHECK(train<Chunks>(chunks.path, Mesh{stage = 2}, 6, -1) == behind(losses, 3));
  CHECK(near(train<Plain>(chunks.path, Mesh{data = 2}, 6, -1), behind(losses, 3)));
  train<Plain>(plain.path, Mesh{data = 1}, 3, 3);
  CHECK(near(train<Chunks>(plain.path, Mesh{stage = 2}, 6, -1), behind(losses, 3)));
}

TEST_CASE("every optimizer's state is kept") {
  const auto check = [&]<class Optimizer>(const Optimizer*) {
    const Folder folder;
    using Program = AllStored<By<Optimizer>, Stored<data, Zero::states>>;
    const auto losses = train<Program, Optimizer>(folder.path, Mesh{data = 2, tensor = 2}, 6, 3);
    CHECK(train<Program, Optimizer>(folder.path, Mesh{data = 2, tensor = 2}, 6, -1) == behind(losses, 3));
    CHECK(near(train<By<Optimizer>, Optimizer>(folder.path, Mesh{data = 1}, 6, -1), behind(losses, 3)));
  };
  check(static_cast<Sgd*>(nullptr));
  check(static_cast<Momentum*>(nullptr));
  check(static_cast<Lion*>(nullptr));
  check(static_cast<Adafactor*>(nullptr));
  check(static_cast<Muon*>(nullptr));
}

TEST_CASE("the newest are kept, whole tensors in a file that Python reads") {
  const Folder folder;
  for (const int step : {1, 2, 3, 4}) train<Step>(folder.path, Mesh{data = 2}, step, step);
  run_threads(1, [&](Threads& world) {
    Checkpoints checkpoints(world, folder.path);
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{3, 4});
    const Safetensors file(checkpoints.file(4));
    CHECK(file.size() == 5 * 3);
    CHECK(file["blocks.*.up.mean"].shape == std::vector<std::int64_t>{depth, width, 10});
    CHECK(file["in"].as<double>().size() == width * 7);
  });
}

TEST_CASE("a file that was given another step's name is not gone on from") {
  const Folder folder;
  train<Step>(folder.path, Mesh{data = 1}, 2, 2);
  const std::string other = folder.path + "/step-000000000007.safetensors";
  std::filesystem::rename(folder.path + "/step-000000000002.safetensors", other);
  try {
    train<Step>(folder.path, Mesh{data = 1}, 9, -1);
    FAIL("it went on");
  } catch (const Failure& failure) {
    CHECK(failure.exit_code == exit_code::bad_data);
    CHECK(failure.what() == other + ": it was saved behind 2 steps, which its name does not say; name it as it was");
  }
}

TEST_CASE("where the newest checkpoint is damaged it is said how to go on, and that goes on") {
  const Folder folder;
  for (const int saved : {2, 4}) train<Step>(folder.path, Mesh{data = 1}, saved, saved);
  const std::string newest = folder.path + "/step-000000000004.safetensors";
  const std::string good = contents(newest);
  const auto goes_on = [&] {
    try {
      train<Step>(folder.path, Mesh{data = 1}, 6, -1);
      return std::string();
    } catch (const Failure& failure) {
      CHECK(failure.exit_code == exit_code::bad_data);
      return std::string(failure.what());
    }
  };
  for (const std::string& damaged :
       {good.substr(0, good.size() - 1), good.substr(0, good.size() / 2), good.substr(0, 3),
        good.substr(0, good.size() - 1) + static_cast<char>(good.back() ^ 1)}) {
    std::ofstream(newest, std::ios::binary | std::ios::trunc) << damaged;
    const std::string said = goes_on();
    CAPTURE(said);
    CHECK(said.starts_with(newest + ": "));
    CHECK(said.ends_with("; to go on from the checkpoint before it, or to begin, move it away"));
  }
  std::filesystem::remove(newest);
  CHECK(goes_on().empty());
}

TEST_CASE("every byte that changes is found, in a tensor by its name, and every cut") {
  const Folder folder;
  train<By<Momentum>, Momentum>(folder.path, Mesh{data = 2, tensor = 2}, 2, 2);
  const std::string file = folder.path + "/step-000000000002.safetensors", good = contents(file);
  const auto refused = [&] {
    try {
      checkpointing::check(Safetensors(file));
    } catch (const Failure& failure) {
      CHECK(failure.exit_code == exit_code::bad_data);
      return std::string(failure.what());
    }
    return std::string();
  };
  std::vector<std::string> sentences(good.size());  // of each byte's change; the header's have several
  {
    const Safetensors is(file);
    const std::byte* first = is[std::size_t{0}].bytes.data();
    std::size_t all = 0;
    for (std::size_t i = 0; i < is.size(); ++i) {
      first = std::min(first, is[i].bytes.data());
      all += is[i].bytes.size();
    }
    for (std::size_t i = 0; i < is.size(); ++i)
      for (std::size_t b = 0; b < is[i].bytes.size(); ++b)
        sentences[good.size() - all + static_cast<std::size_t>(is[i].bytes.data() - first) + b] =
            file + ": the tensor " + std::string(is[i].name) + " is not as it was written";
  }
  CHECK(refused().empty());
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);  // shortened, it would wait for the disk
  const auto put = [&](std::size_t at, char byte) {
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put(byte).flush();
  };
  int missed = 0, unnamed = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    put(at, static_cast<char>(good[at] ^ (1 << at % 8)));
    const std::string said = refused();
    missed += !said.starts_with(file);
    unnamed += !sentences[at].empty() && said != sentences[at];
    put(at, good[at]);
  }
  CHECK(refused().empty());
  for (std::size_t length = good.size(); length-- > 0;) {
    std::filesystem::resize_file(file, length);
    missed += !refused().starts_with(file);
  }
  CHECK(missed == 0);
  CHECK(unnamed == 0);
}

TEST_CASE("what no training has saved is refused, also where its sums are right") {
  const Folder folder;
  const std::string file = folder.path + "/step-000000000003.safetensors";
  const auto says = [&](FileDType dtype, std::map<std::string, std::string> numbers) {
    using namespace checkpointing;
    std::map<std::string, std::string> metadata{
        {"parallel.checkpoint", "1"}, {"step", "3"}, {"sum:", "0123456789abcdef"}};
    const std::vector<std::byte> bytes(static_cast<std::size_t>(bits_of(dtype)));  // eight elements
    metadata["sum:w"] = hexadecimal(bits_of(dtype) < 16 ? 0 : sum_of(bits_of(dtype) / 8, bytes.data(), 0, 8));
    for (const auto& [name, digits] : numbers) metadata["number:" + name] = digits;
    const SafetensorsHeader header(file, {{"w", dtype, {8}}}, metadata);
    std::ofstream(file, std::ios::binary)
        << summed(header.bytes()) << std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    try {
      const Safetensors from = opened(file, 3);
      number_in(from, "seed");
      loss_scale_in(from);
    } catch (const Failure& failure) {
      CHECK(failure.exit_code == exit_code::bad_data);
      return std::string(failure.what()).substr(file.size());
    }
    return std::string();
  };
  CHECK(says(FileDType::F64, {{"seed", "0x1p+3"}, {"loss_scale", "4"}, {"loss_scale.steps", "7"}}) == "");
  CHECK(says(FileDType::BF16, {}) == "");
  const std::string mend = "; to go on from the checkpoint before it, or to begin, move it away";
  CHECK(says(FileDType::U8, {}) == ": the tensor w has elements of U8, which no program has" + mend);
  CHECK(says(FileDType::F4, {}) == ": the tensor w has elements of F4, which no program has" + mend);
  for (const char* none : {"", "one", "1 ", "nan", "inf", "-1e999"})
    CHECK(says(FileDType::F64, {{"seed", none}}) ==
          ": its number seed is '" + std::string(none) + "', which it cannot be" + mend);
  for (const char* none : {"3000000000", "-1", "nan"})
    CHECK(says(FileDType::F64, {{"loss_scale.steps", none}}) ==
          ": its number loss_scale.steps is '" + std::string(none) + "', which it cannot be" + mend);
}
TEST_CASE("a number that is out of its range is said of the checkpoint that has it") {
  const Folder folder;
  train<Step>(folder.path, Mesh{data = 1}, 2, 2);
  const std::string file = folder.path + "/step-000000000002.safetensors";
  std::string bytes = contents(file);
  const std::string header = [&] { return std::string(Safetensors(file).header()); }();
  std::string other = header;
  constexpr std::string_view before = "\"number:step\":\"";
  const std::size_t at = other.find(before);
  REQUIRE(at != std::string::npos);
  for (std::size_t i = at + before.size(), digit = 0; other[i] != '"'; ++i, ++digit) other[i] = digit == 0 ? '.' : '5';
  bytes.replace(0, header.size(), checkpointing::summed(other));
  std::ofstream(file, std::ios::binary) << bytes;
  try {
    train<Step>(folder.path, Mesh{data = 1}, 3, -1);
    FAIL("it went on");
  } catch (const Failure& failure) {
    CHECK(failure.exit_code == exit_code::bad_data);
    CHECK(std::string(failure.what()).starts_with(file + ": the number step is 0.5"));
  }
}

TEST_CASE("another program's checkpoint is refused by the name of what differs") {
  const Folder folder;
  train<Step>(folder.path, Mesh{data = 2}, 2, 2);
  const auto said = [](auto f) {
    try {
      f();
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  CHECK(said([&] { train<By<Sgd>, Sgd>(folder.path, Mesh{data = 1}, 4, -1); }).find("it has a tensor") !=
        std::string::npos);
  CHECK(said([&] {
          train<By<Momentum>, Momentum>(folder.path, Mesh{data = 1}, 4, -1);
        }).find("it has no tensor in.momentum; another program, or optimizer, wrote it") != std::string::npos);
}

TEST_CASE("what cannot be written is said, and the training goes on") {
  const Folder folder;
  const auto losses = train<Step>(folder.path, Mesh{data = 1}, 4, -1);
  std::filesystem::create_directory(folder.path + "/.unfinished-2-0");  // stands in the way
  std::ofstream(folder.path + "/.unfinished-2-0/file");
  run_threads(2, [&](Threads& world) {
    const OwnedPlan plan = derive<Step>(Mesh{data = 2});
    under_test::Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, under_test::Device> step(plan, world, parameters);
    Checkpoints checkpoints(world, folder.path);
    step.scalar("learning_rate", 0.02);
    step(batch(0, 0.7), batch(0, 0.3));
    checkpoints.save(step, 2);
    CHECK(!checkpoints.wait());
    if (world.rank() == 1)  // what a rank leaves that was slow
      std::ofstream(folder.path + "/.unfinished-2-0.rank-1") << std::string(16, 'f') << "in\n";
    world.barrier();
    checkpoints.save(step, 2);
    checkpoints.wait();
    CHECK(checkpoints.resume(step).step == 2);
    step(batch(0, 0.7), batch(0, 0.3));
    checkpoints.save(step, 3);
    checkpoints.wait();
    CHECK(checkpoints.resume(step).step == 3);
  });
}

#if !defined(PARALLEL_TEST_CUDA) || defined(PARALLEL_STAND_IN)  // what CUDA has begun does not outlive a fork
/// Runs f() in a process of its own, which is killed before its n-th call of the system, of any of its threads. Whether
/// it was; else it made fewer.
template <class F>
bool killed_before(int n, F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    f();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSTOPPED(status));
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
  ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  for (int calls = 0;;) {
    const pid_t thread = ::waitpid(-1, &status, __WALL);
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread == child) return false;
      continue;
    }
    if (WSTOPSIG(status) == (SIGTRAP | 0x80) && calls++ == n) {
      ::kill(child, SIGKILL);
      while (::waitpid(-1, &status, __WALL) > 0) {
      }
      return true;
    }
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, nullptr);
  }
}

TEST_CASE("killed at whatever call of the system of either rank, it leaves the checkpoint before, or the new one") {
  const Folder folder;
  const OwnedPlan plan = derive<AllStored<Step, Stored<data>>>(Mesh{data = 2});  // so each rank has parts to write
  // saves behind a step, after what is in the folder
  const auto save = [&](int behind) {
    run_threads(2, [&](Threads& world) {
      under_test::Parameters parameters(plan, world.rank(), 5);
      Executor<Threads, under_test::Device> step(plan, world, parameters);
      Checkpoints checkpoints(world, folder.path, {.newest = 1});
      checkpoints.save(step, behind);
      checkpoints.wait();
    });
  };
  save(1);
  int n = 0, before = 0, next = 0, in_parts = 0;
  while (killed_before(n, [&] { save(2); })) {
    in_parts += std::filesystem::exists(folder.path + "/.unfinished-2-0.rank-1");
    run_threads(1, [&](Threads& world) {
      Checkpoints checkpoints(world, folder.path, {.newest = 1});
      const std::vector<std::int64_t> there = checkpoints.steps();
      REQUIRE(!there.empty());
      checkpointing::check(Safetensors(checkpoints.file(there.back())));
      (there.back() == 1 ? before : next) += 1;
    });
    for (const auto& left : std::filesystem::directory_iterator(folder.path)) {
      const std::string name = left.path().filename().string();
      CHECK_MESSAGE(name.starts_with("step-"), name);
    }
    std::filesystem::remove(folder.path + "/step-000000000002.safetensors");
    if (!std::filesystem::exists(folder.path + "/step-000000000001.safetensors")) save(1);
    n += 1;
  }
  CHECK(before > 0);
  CHECK(next > 0);
  CHECK(in_parts > 0);
  MESSAGE("killed at " << n << " calls: " << before << " left the one before, " << next << " the new one, " << in_parts
                       << " the second rank's part");
}
#endif

TEST_CASE("a save of one rank alone, or of an earlier step, is told") {
  const Folder folder;
  const OwnedPlan plan = derive<Step>(Mesh{tensor = 2});
  const auto ranks = [&](auto f) {
    run_threads(
        2,
        [&](Threads& world) {
          under_test::Parameters parameters(plan, world.rank(), 5);
          Trainer<Threads, under_test::Device> step(plan, world, parameters, {}, 1);
          Checkpoints checkpoints(world, folder.path);
          f(world, step, checkpoints);
        },
        std::chrono::seconds(1));
  };
  ranks([](Threads&, auto& step, auto& checkpoints) {
    checkpoints.save(step, 9);
    CHECK_THROWS_WITH_AS(checkpoints.save(step, 5),
                         doctest::Contains("behind 5 steps, but the folder has one behind 9, with which a run"),
                         Misuse);
    CHECK(checkpoints.resume(step).step == 9);
  });
  CHECK_THROWS_WITH(ranks([](Threads& world, auto& step, auto& checkpoints) {
                      if (world.rank() == 0) checkpoints.save(step, 10);
                      step(batch(0, 0.7), batch(0, 0.3));
                    }),
                    doctest::Contains("saving a checkpoint"));
}
