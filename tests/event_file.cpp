// TensorBoard's event files: the bytes are those that TensorBoard itself writes (tools/fixtures/events.py).
#include <algorithm>
#include <csignal>
#include <limits>
#include <sys/resource.h>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/file/event_file.hpp>

#include "files.hpp"

using namespace parallel;
using namespace parallel::internals;

namespace {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}
std::string scalars(double time, std::int64_t step, std::initializer_list<LoggedNumber> numbers) {
  return events::scalars(time, step, {numbers.begin(), numbers.size()});
}

}  // namespace

TEST_CASE_TEMPLATE("checksums are those of CRC-32C (RFC 3720, B.4), and of CRC-32", Sum, Crc32c, Crc32) {
  const auto sum = [](const std::string& bytes) { return Sum().add(bytes.data(), bytes.size()).value(); };
  constexpr bool castagnoli = std::is_same_v<Sum, Crc32c>;
  CHECK(sum(std::string(32, '\0')) == (castagnoli ? 0x8a9136aa : 0x190a55ad));
  CHECK(sum(std::string(32, '\xff')) == (castagnoli ? 0x62a8ab43 : 0xff6cab0b));
  CHECK(sum("123456789") == (castagnoli ? 0xe3069283 : 0xcbf43926));
}

TEST_CASE("events are TensorBoard's own, byte for byte") {
  const std::string written =
      events::beginning(1700000000.25) + events::session(1700000000.25, 0) +
      scalars(1700000001.5, 0, {{"loss", 2.5}, {"gradient_norm", 0.1}}) +
      scalars(1700000002.5, 1, {{"loss", std::numeric_limits<double>::infinity()}, {"a name of one s own", -0.0}}) +
      scalars(1700000003.5, 2, {{"loss", 1e-30}}) + events::session(1700000004.0, 2) +
      scalars(1700000004.5, 2, {{"loss", 7}}) + scalars(1700000005.5, std::int64_t{1} << 40, {{"loss", 0}});
  CHECK((written == files::read(files::fixture("scalars.tfevents"))));
}

TEST_CASE("a file has a name that TensorBoard knows, and begins with its session") {
  const files::Folder folder;
  const std::string runs = folder / "run";
  EventFile first(runs);
  CHECK(first.add(0, std::vector<LoggedNumber>{{"loss", 1}}));
  EventFile second(runs, 1);
  const std::vector<std::string> names = names_in(runs);
  REQUIRE(names.size() == 2);
  for (const std::string& name : names) CHECK(name.starts_with("events.out.tfevents."));
  const std::string begun = files::read(runs + "/" + names[0]), later = files::read(runs + "/" + names[1]);
  CHECK(begun.size() > later.size());  // the later one stands behind, also within a second
  const std::size_t session = events::beginning(1e9).size(), time = 8;
  CHECK(later.substr(session).size() == events::session(1e9, 1).size());
  CHECK(later.substr(session + 12 + 1 + time, 6) == std::string("\x10\x01\x3a\x02\x08\x01", 6));
}

TEST_CASE("what cannot be written leaves no half of a record") {
  const files::Folder folder;
  const files::Said refused = files::said("/dev/null/run", [] { EventFile file("/dev/null/run"); });
  CHECK(refused.code == exit_code::io);
  EventFile file(folder / "run");
  const std::string path = (folder / "run") + "/" + names_in(folder / "run")[0];
  const std::string before = files::read(path);
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit small{before.size() + 10, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK_FALSE(file.add(0, std::vector<LoggedNumber>{{"loss", 1}}));
  setrlimit(RLIMIT_FSIZE, &limit);
  CHECK((files::read(path) == before));
  CHECK(file.add(0, std::vector<LoggedNumber>{{"loss", 1}}));
  CHECK(files::read(path).size() > before.size());
  std::signal(SIGXFSZ, handler);
}
