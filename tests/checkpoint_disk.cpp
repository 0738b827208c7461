// A disk that is slow holds up no exchange, one that is full or broken costs a checkpoint alone, and of a run that an
// exception ends nothing half written stays. The calls by which files reach the disk are taken here.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <sys/syscall.h>
#include <thread>

#include <doctest/doctest.h>

#include "files.hpp"
#include "kept.hpp"

using namespace kept;

namespace {
/// What becomes of a call that writes to a file: 0, or an error's number.
std::function<int(std::string_view call, const std::string& file)> disk;

int of_disk(std::string_view call, int descriptor) {
  if (!disk) return 0;
  std::error_code ignored;
  return disk(call, std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored));
}
}  // namespace

extern "C" int fsync(int descriptor) {  // no power fails here, so it need not wait
  return (errno = of_disk("fsync", descriptor)) == 0 ? 0 : -1;
}
extern "C" ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t at) {
  if ((errno = of_disk("pwrite", descriptor)) != 0) return -1;
  return ::syscall(SYS_pwrite64, descriptor, bytes, count, at);
}
extern "C" FILE* fopen64(const char* file, const char* mode) {  // by which a std::ifstream is opened
  if ((errno = disk ? disk("open", file) : 0) != 0) return nullptr;
  const int descriptor = ::open(file, *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0666);
  return descriptor < 0 ? nullptr : ::fdopen(descriptor, mode);
}

namespace {
using namespace std::chrono_literals;

/// Each of two ranks writes parts of most tensors.
const Mesh mesh{tensor = 2};

/// Calls f(world, executor) on both ranks of a run.
template <class F>
void ranks(F f, std::chrono::milliseconds deadline = default_deadline) {
  static const OwnedPlan plan = derive<Step>(mesh);
  run_threads(
      2,
      [&](Threads& world) {
        Parameters parameters(plan, world.rank(), 5);
        Executor<Threads, CpuDouble> step(plan, world, parameters);
        step.scalar("learning_rate", 0.02);
        f(world, step);
      },
      deadline);
}
using Executing = Executor<Threads, CpuDouble>;

/// The file of all parts, not those of ranks' sums.
bool of_all(const std::string& file) {
  return file.find("/.unfinished-") != std::string::npos && file.find(".rank-") == std::string::npos;
}
std::vector<std::string> names(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) all.push_back(entry.path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}
constexpr const char *first_name = "step-000000000001.safetensors", *second_name = "step-000000000002.safetensors";
}  // namespace

TEST_CASE(
    "a disk that takes longer than the deadline is waited for, by all ranks: in a save, a resume and at the end") {
  const Folder folder;
  std::atomic<int> calls{0};
  disk = [&](std::string_view call, const std::string& file) {
    if (call == "fsync" && of_all(file) && ++calls % 3 == 0)
      std::this_thread::sleep_for(700ms);  // the first rank's end
    return 0;
  };
  const std::string said = files::said_aside(folder.path + "/said", [&] {
    ranks([&](Threads& world, Executing& step) {
      Checkpoints checkpoints(world, folder.path);
      const auto soon = [&](auto f) {
        world.deadline(300ms);
        f();
        world.barrier();
        world.deadline(default_deadline);
      };
      checkpoints.save(step, 1);
      soon([&] { checkpoints.save(step, 2); });
      soon([&] { CHECK(checkpoints.resume(step).step == 2); });
      checkpoints.save(step, 3);
      world.deadline(300ms);
    });
  });
  disk = nullptr;
  CHECK(calls == 9);
  CHECK(said.empty());
  CHECK(std::filesystem::exists(folder.path + "/step-000000000003.safetensors"));
}

TEST_CASE("while the disk hangs steps go by, and what is written is what there was at the save") {
  constexpr int behind = 20;
  const Folder folder;
  std::atomic<bool> hangs{true};
  std::atomic<int> hanging{0}, stepped{0};
  disk = [&](std::string_view call, const std::string& file) {
    if (call != "pwrite" || !of_all(file)) return 0;
    ++hanging;
    for (int i = 0; i < 2000 && hangs; ++i) std::this_thread::sleep_for(10ms);
    hangs = false;  // not for ever
    return 0;
  };
  ranks([&](Threads& world, Executing& step) {
    Checkpoints checkpoints(world, folder.path);
    step(batch(0, 0.7), batch(0, 0.3));
    std::vector<double> before(width * 7), now = before, resumed = before;  // not split
    step.get("in", before);
    checkpoints.save(step, 1);
    while (hanging < 2) std::this_thread::sleep_for(1ms);  // both ranks write
    for (int i = 1; i <= behind; ++i) {
      step(batch(i, 0.7), batch(i, 0.3));
      world.barrier();
      if (world.rank() == 0 && hangs) ++stepped;
    }
    CHECK(checkpoints.steps().empty());
    step.get("in", now);
    CHECK(now != before);
    world.barrier();
    hangs = false;
    CHECK(checkpoints.wait());
    checkpoints.resume(step);
    step.get("in", resumed);
    CHECK(resumed == before);
  });
  disk = nullptr;
  CHECK(stepped.load() == behind);
}

TEST_CASE("of a run that an exception ends nothing half written stays, and nobody waits for it") {
  const auto ends = [](int thrower, const std::function<void(Threads&, Executing&, Checkpoints<Threads>&)>& others) {
    INFO("rank " << thrower << " throws");
    const Folder folder;
    ranks([&](Threads& world, Executing& step) { Checkpoints(world, folder.path).save(step, 1); });
    std::string thrown;
    const std::string said = files::said_aside(folder.path + "/said", [&] {
      try {
        ranks([&](Threads& world, Executing& step) {
          Checkpoints checkpoints(world, folder.path);
          if (world.rank() == 0)
            checkpoints.save(step, 2);
          else  // says so, and writes nothing
            agree(world, {always(fact("step of the checkpoint", std::int64_t{2}))}, "saving a checkpoint");
          if (world.rank() == thrower) throw Failure("of this test");
          others(world, step, checkpoints);
        });
      } catch (const Failure& failure) {
        thrown = failure.what();
      }
    });
    CHECK(thrown == "of this test");
    CHECK(said.find("the checkpoint " + folder.path + "/" + second_name + " was not written: the run ends\n") !=
          std::string::npos);
    CHECK(said.find("goes on") == std::string::npos);
    CHECK(names(folder.path) == std::vector<std::string>{"said", first_name});
    ranks([&](Threads& world, Executing& step) { CHECK(Checkpoints(world, folder.path).resume(step).step == 1); });
  };
  ends(1, [](auto& world, auto&, auto&) { world.barrier(); });
  ends(1, [](auto&, auto&, auto&) {});  // is at its end
  ends(1, [](auto&, auto& step, auto& checkpoints) { checkpoints.save(step, 3); });
  ends(1, [](auto&, auto&, auto& checkpoints) { checkpoints.wait(); });
  ends(1, [](auto&, auto& step, auto& checkpoints) { checkpoints.resume(step); });
  ends(0, [](auto& world, auto&, auto&) { world.barrier(); });
}

TEST_CASE("a part that is being written when its rank throws is left where it is") {
  const Folder folder;
  std::atomic<bool> slow{false};
  disk = [&](std::string_view, const std::string&) {
    if (slow) std::this_thread::sleep_for(10ms);
    return 0;
  };
  CHECK_THROWS_WITH(ranks([&](Threads& world, Executing& step) {
                      Checkpoints checkpoints(world, folder.path);
                      checkpoints.save(step, 1);
                      CHECK(checkpoints.wait());
                      world.barrier();
                      slow = true;
                      checkpoints.save(step, 2);
                      if (world.rank() == 1) throw Failure("of this test");
                      world.barrier();
                    }),
                    "of this test");
  disk = nullptr;
  CHECK(!std::filesystem::exists(folder.path + "/" + second_name));
  ranks([&](Threads& world, Executing& step) { CHECK(Checkpoints(world, folder.path).resume(step).step == 1); });
  CHECK(names(folder.path) == std::vector<std::string>{first_name});
}

TEST_CASE("a part of another rank that cannot be opened costs the checkpoint, and not the one before") {
  const Folder folder;
  std::atomic<bool> refuses{false};
  disk = [&](std::string_view call, const std::string& file) {
    return refuses && call == "open" && file.ends_with(".rank-1") ? EMFILE : 0;
  };
  const std::string said = files::said_aside(folder.path + "/said", [&] {
    ranks([&](Threads& world, Executing& step) {
      Checkpoints checkpoints(world, folder.path, {.newest = 1});
      checkpoints.save(step, 1);
      CHECK(checkpoints.wait());
      world.barrier();
      refuses = true;
      checkpoints.save(step, 2);
      CHECK(!checkpoints.wait());
      world.barrier();
      refuses = false;
      CHECK(checkpoints.resume(step).step == 1);
    });
  });
  disk = nullptr;
  CHECK(said.find(".rank-1 cannot be read; the training goes on\n") != std::string::npos);
  CHECK(!std::filesystem::exists(folder.path + "/" + second_name));
}

TEST_CASE("whichever write of whichever rank fails: it is said, the training goes on, and the one before stays") {
  const Folder folder;
  std::string before;
  int costs = 0, kept = 0;
  for (int fails = 0;; ++fails) {
    std::atomic<int> calls{0};
    std::atomic<bool> counts{false};
    disk = [&](std::string_view call, const std::string&) {
      return counts && call != "open" && calls++ == fails ? (call == "fsync" ? EIO : ENOSPC) : 0;
    };
    bool there = false;
    const std::string said = files::said_aside(folder.path + "/said", [&] {
      ranks([&](Threads& world, Executing& step) {
        Checkpoints checkpoints(world, folder.path, {.newest = 1});
        checkpoints.save(step, 1);
        CHECK(checkpoints.wait());
        if (world.rank() == 0) before = files::read(checkpoints.file(1));
        world.barrier();
        counts = true;
        checkpoints.save(step, 2);
        step(batch(0, 0.7), batch(0, 0.3));
        const bool is = checkpoints.wait();
        world.barrier();
        counts = false;
        CHECK(is == std::filesystem::exists(checkpoints.file(2)));
        if (world.rank() == 0) there = is;
        if (!is && world.rank() == 0) CHECK(files::read(checkpoints.file(1)) == before);
        if (!is) CHECK(checkpoints.resume(step).step == 1);
        checkpoints.save(step, 3);
        CHECK(checkpoints.wait());
        CHECK(checkpoints.resume(step).step == 3);
      });
    });
    disk = nullptr;
    INFO(fails << ": " << said);
    CHECK(names(folder.path) == std::vector<std::string>{"said", "step-000000000003.safetensors"});
    std::filesystem::remove(folder.path + "/step-000000000003.safetensors");
    CHECK(there == said.empty());
    if (!there) {
      CHECK((said.find("No space left on device; the training goes on\n") != std::string::npos) !=
            (said.find("Input/output error; the training goes on\n") != std::string::npos));
    }
    (there ? kept : costs) += 1;
    if (calls <= fails) break;
  }
  CHECK(costs > 100);
  CHECK(kept > 0);  // where none fails, or only that of a folder, which a rename brings to the disk where that can be
}
