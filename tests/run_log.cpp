// The log of a run: what a page reads of it is whole lines, whatever ended the run or filled the disk; a run that goes on
// cuts what it does again.
#include <csignal>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/run_log.hpp>
#include <parallel/run/trainer.hpp>

#include "files.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

struct Model {
  Parameter<float, Shape<4>> bias{zeros};
  constexpr auto operator()(Distributed auto x) const { return mean(square(x - bias)); }
};
using Step = Training<Model, AdamW, Tensor<float, Shape<8 / data, 4>>>;

/// Logs of a run of two ranks.
template <class F>
void log(const std::string& folder, const LoggedRun& run, F f) {
  const OwnedPlan plan = derive<Step>(Mesh{data = 2});
  run_threads(2, [&](Threads& world) {
    RunLog log(world, folder, plan, run);
    f(log);
  });
}
void log_losses(const std::string& folder, std::int64_t from, std::int64_t to) {
  log(folder, {.from = from}, [&](RunLog& log) {
    for (std::int64_t i = from; i < to; ++i) log.step(i, {{"loss", 0.5 * static_cast<double>(i)}});
  });
}
std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines;
  std::istringstream in(files::read(file));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a step is a line with its numbers, and the page lies beside the run") {
  const files::Folder folder;
  const std::string run = folder / "runs/a \"name\" & <b>";
  struct Result {
    double loss = 2.5;
    float gradient_norm = 0.5F;
  };
  log(run + "/", {.per_step = 16, .unit = "tokens", .notes = {{"rate", "1e-3"}}}, [](RunLog& log) {
    log.step(0, Result{}, {{"learning_rate", 1e-3}});
    log.step(2, {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"x", -std::numeric_limits<double>::infinity()}});
    log.step(2, {{"validation_loss", 3}});
  });
  const std::vector<std::string> lines = lines_of(run + "/rows-00000.js");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("row({\"step\":0,\"time\":"));
  CHECK(lines[0].ends_with(",\"loss\":2.5,\"gradient_norm\":0.5,\"learning_rate\":0.001});"));
  CHECK(contains(lines[0], ",\"memory\":"));
  CHECK(!contains(lines[0], "seconds"));
  CHECK(contains(lines[1], ",\"seconds\":"));
  CHECK(contains(lines[1], ",\"tokens_per_second\":"));
  CHECK(lines[1].ends_with(",\"loss\":NaN,\"x\":-Infinity});"));
  CHECK(!contains(lines[2], "\"seconds\":"));  // the second call for a step
  CHECK(lines[2].ends_with(",\"validation_loss\":3});"));
  const std::string head = files::read(run + "/head.js");
  CHECK(head.starts_with("head({\"started\":"));
  CHECK(contains(head, R"("mesh":"data=2","ranks":2,"ranks_here":2,"planned":)"));
  CHECK(head.ends_with("\"unit\":\"tokens\",\"per_step\":16,\"notes\":{\"rate\":\"1e-3\"}});\n"));
  CHECK(files::read(folder / "runs/runs.js") == "run(\"a \\\"name\\\" & <b>\");\n");
  CHECK(files::read(folder / "runs/runs.html").starts_with("<!DOCTYPE html>"));
  CHECK(!contains(files::read(folder / "runs/runs.html"), "@s"));  // nothing is left to fill in
}

TEST_CASE("a run that goes on cuts what it does again, in however many files it lies") {
  const files::Folder folder;
  const std::string run = folder / "runs/first";
  log_losses(run, 0, 4500);
  CHECK(lines_of(run + "/rows-00000.js").size() == 2001);
  CHECK(lines_of(run + "/rows-00000.js").back() == "more();");
  CHECK(lines_of(run + "/rows-00002.js").size() == 500);

  std::ofstream(run + "/rows-00002.js", std::ios::app) << "row({\"step\":4500,\"ti";  // a power failure
  log_losses(run, 4500, 4501);
  CHECK(lines_of(run + "/rows-00002.js").size() == 501);
  CHECK(lines_of(run + "/rows-00002.js").back().ends_with("\"loss\":2250});"));

  log_losses(run, 2100, 2101);
  CHECK(!std::filesystem::exists(run + "/rows-00002.js"));
  CHECK(lines_of(run + "/rows-00001.js").size() == 101);
  CHECK(lines_of(run + "/rows-00001.js").back().starts_with("row({\"step\":2100,"));

  log_losses(run, 2000, 2001);  // where a file ends
  CHECK(lines_of(run + "/rows-00000.js").size() == 2001);
  CHECK(lines_of(run + "/rows-00001.js").size() == 1);

  log_losses(run, 0, 1);
  CHECK(lines_of(run + "/rows-00000.js").size() == 1);
  CHECK(!std::filesystem::exists(run + "/rows-00001.js"));
}

TEST_CASE("a log that cannot be written is an error before the first step") {
  const files::Folder folder;
  const auto said = [](const std::string& run) {
    try {
      log(run, {}, [](RunLog&) {});
    } catch (const Failure& failure) {
      return std::to_string(failure.exit_code) + ": " + failure.what();
    }
    return std::string("nothing");
  };
  for (const std::string bad : {"first", ".", "runs/..", "./first"})
    CHECK(contains(said(bad), "2: the log '" + bad + "' is no run in a folder of runs; name both, as runs/first"));
  CHECK(
      contains(said("/dev/null/runs/first"), "74: the log '/dev/null/runs/first' cannot be written: Not a directory"));
  const OwnedPlan plan = derive<Step>(Mesh{data = 1});
  run_threads(1, [&](Threads& world) {
    const RunLog first(world, folder / "runs/first", plan);
    CHECK(contains(said(folder / "runs/first"), "another program logs there; give this run a name of its own"));
  });
  CHECK(said(folder / "runs/first") == "nothing");
  log("", {}, [](RunLog& nothing) { nothing.step(0, {{"loss", 1}}); });
}

TEST_CASE("a disk that is full is said once, and the run goes on") {
  const files::Folder folder;
  const std::string run = folder / "runs/first";
  const OwnedPlan plan = derive<Step>(Mesh{data = 1});
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const std::string warning = files::said_aside(folder / "said", [&] {
    run_threads(1, [&](Threads& world) {
      RunLog log(world, run, plan, {.tensorboard = true});
      for (int i = 0; i < 10; ++i) log.step(i, {{"loss", 1}});
      const rlimit small{files::read(run + "/rows-00000.js").size() + 30, limit.rlim_max};
      setrlimit(RLIMIT_FSIZE, &small);
      for (int i = 10; i < 20; ++i) log.step(i, {{"loss", 2}});
      setrlimit(RLIMIT_FSIZE, &limit);
      log.step(20, {{"loss", 3}});
    });
  });
  std::signal(SIGXFSZ, handler);
  const std::vector<std::string> lines = lines_of(run + "/rows-00000.js");
  REQUIRE(lines.size() == 11);
  for (const std::string& line : lines) CHECK((line.starts_with("row({\"step\":") && line.ends_with("});")));
  CHECK(lines.back().starts_with("row({\"step\":20,"));
  CHECK(warning == "warning: the log '" + run +
                       "' cannot be written: File too large; the run goes on, and what cannot be is left out\n");
}

TEST_CASE("ranks that name different folders are all told, and nothing is made") {
  const files::Folder folder;
  const OwnedPlan plan = derive<Step>(Mesh{data = 2});
  const auto first = folder / "runs/first", other = folder / "other/first";
  std::vector<std::string> told(2);
  run_threads(2, [&](Threads& world) {
    const int rank = world.rank();
    try {
      const RunLog log(world, rank == 0 ? first : other, plan);
    } catch (const Failure& failure) {
      told[static_cast<std::size_t>(rank)] = std::to_string(failure.exit_code) + ": " + failure.what();
    }
  });
  for (const std::string& sentence : told) {
    CHECK(contains(sentence, "folder of a log"));
    CHECK(contains(sentence, first));
    CHECK(contains(sentence, other));
  }
  CHECK(folder.count() == 0);
}

TEST_CASE("whatever stands in names and notes, the files are JSON and JavaScript") {
  const files::Folder folder;
  const std::string run = folder / "runs/first";
  const std::string odd("a\nb\r\t\"c\"\\d\0e\x1f\xff\xed\xa0\x80\xe0\x80\x80 caf\xc3\xa9 </script>", 36),
      shown("a\nb\r\t\"c\"\\d\0e\x1f??????? caf\xc3\xa9 </script>", 36);
  log(run, {.per_step = 2, .unit = odd, .notes = {{odd, odd}, {"n", "line\nline"}}}, [&](RunLog& log) {
    log.step(0, {{odd, 1.5}, {"nan\n", 2}});
    log.step(1, {{odd, 2.5}});
  });
  const auto json = [](const std::string& text, std::string_view call) {
    REQUIRE(text.starts_with(std::string(call) + "("));
    REQUIRE(text.ends_with(");"));
    return nlohmann::json::parse(text.substr(call.size() + 1, text.size() - call.size() - 3));
  };
  const std::vector<std::string> lines = lines_of(run + "/rows-00000.js"), head = lines_of(run + "/head.js");
  REQUIRE(lines.size() == 2);
  REQUIRE(head.size() == 1);
  const auto first = json(lines[0], "row"), second = json(lines[1], "row"), notes = json(head[0], "head");
  CHECK(first.at(shown) == 1.5);
  CHECK(first.at("nan\n") == 2);
  CHECK(second.at(shown) == 2.5);
  CHECK(second.contains(shown + "_per_second"));
  CHECK(notes.at("unit") == shown);
  CHECK(notes.at("notes").at(shown) == shown);
  CHECK(notes.at("notes").at("n") == "line\nline");
}

TEST_CASE("what no page could draw is refused") {
  const files::Folder folder;
  const OwnedPlan plan = derive<Step>(Mesh{data = 1});
  const auto said = [&](const LoggedRun& run, auto f) {
    std::string words;
    run_threads(1, [&](Threads& world) {
      try {
        RunLog log(world, folder / "runs/first", plan, run);
        f(log);
      } catch (const Misuse& misuse) {
        CHECK(misuse.exit_code == exit_code::internal);
        words = misuse.what();
      }
    });
    return words;
  };
  const auto steps = [](auto... step) { return [=](RunLog& log) { (log.step(step, {{"loss", 1}}), ...); }; };
  const auto row = [](std::initializer_list<LoggedNumber> numbers) {
    return [all = std::vector(numbers)](RunLog& log) {
      all.size() == 1 ? log.step(0, {all[0]}) : log.step(0, {all[0], all[1]});
    };
  };
  CHECK(said({}, row({{"a", 1}, {"a", 2}})) ==
        "a number is logged as 'a', as another of this call is; give it another name");
  CHECK(said({}, row({{"", 1}})) == "a number without a name is logged; give it one");
  for (const std::string own : {"step", "time", "seconds", "memory", "samples_per_second"})
    CHECK(said({}, row({{own, 1}})) ==
          "a number is logged as '" + own + "', which the log says itself; give it another name");
  CHECK(said({}, steps(-4)) == "step -4 is logged of a run that goes on from step 0; steps do not go back");
  CHECK(said({.from = 5}, steps(4)) == "step 4 is logged of a run that goes on from step 5; steps do not go back");
  CHECK(said({}, steps(3, 2)) == "step 2 is logged behind step 3; steps do not go back");
  CHECK(said({.from = 2}, steps(2, 2, 3, 7)).empty());
  CHECK(said({.from = -3}, steps(0)) == "a log goes on from step -3; steps are counted from 0");
  CHECK(said({.per_step = -1}, steps(0)) ==
        "a step is said to take in -1 samples; give a number above 0, or 0 where it is not known");
  CHECK(!said({.per_step = std::numeric_limits<double>::infinity()}, steps(0)).empty());
}
