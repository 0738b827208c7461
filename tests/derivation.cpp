// The rule of derivation against a second implementation, written in Python from the text of the rule alone
// (reference/derive.py): for every operation, every kind and every placement of every operand on one axis, both must
// refuse or agree on how operands enter and results leave.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/algebra/notation.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::internals;

namespace {
using Sizes = std::vector<std::int64_t>;

/// An operation on operands of these sizes. The reference knows some operations by another name or with fewer
/// attributes.
struct Example {
  const Operation* operation;
  Ints ints;
  std::string reference;
  Sizes reference_ints;
  std::vector<Sizes> shapes;
};

std::vector<Example> examples() {
  namespace op = operation;
  std::vector<Example> all;
  const auto add = [&](const Operation& o, const Ints& ints, const char* name, const Sizes& reference_ints,
                       const std::vector<std::vector<Sizes>>& operands) {
    for (const std::vector<Sizes>& shapes : operands) all.push_back({&o, ints, name, reference_ints, shapes});
  };
  const std::vector<std::vector<Sizes>> pairs = {
      {{4, 6}, {4, 6}}, {{4, 6}, {6}},    {{6}, {4, 6}}, {{2, 4, 6}, {4, 1}}, {{4, 1}, {1, 6}}, {{4, 6}, {}},
      {{}, {3}},        {{1, 6}, {4, 6}}, {{4, 6}, {1}}, {{1}, {1}},          {{2, 4, 6}, {6}}, {{2, 3, 4}, {3, 4}}};
  add(op::add, {}, "add", {}, pairs);
  add(op::subtract, {}, "subtract", {}, pairs);
  add(op::multiply, {}, "multiply", {}, pairs);
  add(op::divide, {}, "divide", {}, pairs);
  add(op::where, {}, "where", {},
      {{{4, 6}, {4, 6}, {4, 6}}, {{6}, {2, 4, 6}, {1}}, {{4, 1}, {6}, {4, 6}}, {{4, 6}, {6}, {6}}});

  add(op::matmul, {1, 0, 0, 0}, "matmul", {1},
      {{{4, 6}, {6, 8}},
       {{2, 4, 6}, {6, 3, 8}},
       {{4, 1}, {1, 8}},
       {{1, 6}, {6, 8}},
       {{4, 6}, {6, 1}},
       {{4, 6}, {6}},
       {{6}, {6, 8}},
       {{2, 4, 16}, {16, 3, 2, 8}}});
  add(op::matmul, {2, 0, 0, 0}, "matmul", {2},
      {{{2, 3, 5}, {3, 5, 7}}, {{2, 4, 3, 5}, {3, 5, 7}}, {{2, 1, 5}, {1, 5, 7}}});
  add(op::matmul, {1, 0, 0, 1}, "batched_matmul", {}, {{{2, 4, 6}, {2, 6, 8}}, {{1, 4, 6}, {1, 6, 8}}});
  add(op::matmul, {1, 0, 0, 2}, "batched_matmul", {}, {{{2, 3, 4, 6}, {2, 3, 6, 8}}});

  const std::vector<std::vector<Sizes>> single = {{{3, 4, 6}}, {{4, 1}}, {{1}}, {{}}};
  const std::pair<const Operation*, const char*> unary[] = {
      {&op::scale, "scale"}, {&op::dropout, "dropout"}, {&op::square, "square"}, {&op::sqrt, "sqrt"},
      {&op::exp, "exp"},     {&op::log, "exp"},         {&op::tanh, "exp"},      {&op::sigmoid, "exp"},
      {&op::relu, "relu"},   {&op::gelu, "gelu"},       {&op::gelu_erf, "gelu"}};
  for (const auto& [o, name] : unary) add(*o, {}, name, {}, single);
  add(op::casting, {static_cast<int>(DType::bf16)}, "cast", {}, single);
  for (const int d : {0, 1, 2}) add(op::softmax, {d}, "softmax", {d}, {{{3, 4, 6}}, {{3, 1, 6}}});
  add(op::softmax, {1}, "softmax", {1}, {{{4, 1}}});

  for (const Sizes& dims : std::vector<Sizes>{{}, {0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}}) {
    Ints ints;
    for (const std::int64_t d : dims) ints.push_back(d);
    const std::vector<std::vector<Sizes>> reduced = {{{3, 4, 6}}, {{3, 1, 6}}, {{1, 4, 6}}};
    add(op::sum, ints, "sum", dims, reduced);
    add(op::sum, ints, "mean", dims, reduced);
    add(op::max, ints, "max", dims, reduced);
  }

  add(op::layer_norm, {}, "layer_norm", {}, {{{3, 4, 6}, {6}, {6}}, {{4, 1}, {1}, {1}}, {{6}, {6}, {6}}});
  add(op::rms_norm, {}, "rms_norm", {}, {{{2, 3, 6}, {6}}, {{4, 1}, {1}}, {{1, 6}, {6}}});
  add(op::embedding, {}, "embedding", {},
      {{{2, 4}, {32, 16}}, {{3}, {1, 16}}, {{3}, {8, 1}}, {{}, {8, 6}}, {{2, 1, 4}, {8, 6}}});
  for (const std::vector<Sizes>& shapes :
       std::vector<std::vector<Sizes>>{{{2, 4, 32}, {2, 4}}, {{4, 1}, {4}}, {{1, 8}, {1}}, {{8}, {}}})
    add(op::cross_entropy, {shapes[0].back(), no_target}, "cross_entropy", {}, {shapes});
  add(op::attention, {1, 0, 0}, "attention", {},
      {{{2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
       {{2, 3, 4, 5}, {2, 3, 2, 5}, {2, 3, 2, 5}},
       {{2, 3, 4, 5}, {2, 7, 1, 5}, {2, 7, 1, 6}},
       {{1, 1, 4, 5}, {1, 7, 4, 5}, {1, 7, 4, 5}}});

  const std::pair<Sizes, Sizes> reshapes[] = {{{2, 4, 6}, {8, 6}},
                                              {{8, 6}, {2, 4, 6}},
                                              {{2, 1, 12}, {2, 3, 4}},
                                              {{6, 4}, {4, 6}},
                                              {{2, 3, 1, 4, 5}, {2, 3, 4, 5}},
                                              {{2, 3, 12}, {2, 9, 4}},
                                              {{12}, {3, 4}},
                                              {{2, 3}, {1, 2, 1, 3}},
                                              {{1}, {}},
                                              {{3, 4}, {12}},
                                              {{5, 6}, {6, 5}},
                                              {{4, 6}, {4, 6}}};
  for (const auto& [from, to] : reshapes) {
    Ints ints;
    for (const std::int64_t n : to) ints.push_back(n);
    add(op::reshape, ints, "reshape", to, {{from}});
  }
  add(op::transpose, {1, 0}, "transpose", {1, 0}, {{{4, 6}}, {{4, 1}}});
  add(op::transpose, {2, 0, 1}, "transpose", {2, 0, 1}, {{{2, 4, 6}}, {{2, 1, 6}}});
  add(op::transpose, {0, 2, 1, 3}, "transpose", {0, 2, 1, 3}, {{{2, 3, 4, 5}}});
  add(op::slice, {1, 0, 3}, "slice", {1, 0, 3}, {{{4, 6}}, {{2, 3, 4}}});
  add(op::slice, {0, 1, 2}, "slice", {0, 1, 2}, {{{4, 6}}, {{2, 1}}});
  add(op::concatenate, {1}, "concatenate", {1}, {{{4, 6}, {4, 2}}, {{3, 5}, {3, 2}, {3, 4}}, {{2, 3, 4}, {2, 1, 4}}});
  add(op::concatenate, {0}, "concatenate", {0}, {{{4, 6}, {2, 6}}, {{4}, {2}}});
  return all;
}

constexpr Kind kinds[] = {Kind::data, Kind::parameter, Kind::activation, Kind::constant};
const char* name_of(Kind kind) {
  constexpr const char* names[] = {"data", "parameter", "activation", "constant"};
  return names[static_cast<int>(kind)];
}
std::string letters(Placement p) {
  return p == Invariant ? "I" : p == Broadcast ? "B" : p == Partial ? "P" : "S" + std::to_string(p.dim);
}
std::string json(const Sizes& sizes) {
  std::string text;
  for (const std::int64_t n : sizes) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return "[" + text + "]";
}
std::string json(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "\"" : ", \"") + w + "\"";
  return "[" + text + "]";
}

/// Calls f for every way in which the operands of an example may lie and depend on inputs and parameters.
template <class F>
void each_case(const Example& example, Arguments& arguments, F f) {
  const std::size_t i = static_cast<std::size_t>(arguments.types.size());
  if (i == example.shapes.size()) {
    f();
    return;
  }
  Layout layout;
  for (const std::int64_t n : example.shapes[i]) layout.dims.push_back(Dim(n));
  const bool counts = (example.operation == &operation::embedding && i == 0) ||
                      (example.operation == &operation::cross_entropy && i == 1) ||
                      (example.operation == &operation::where && i == 0);
  for (int p = -3; p < layout.rank(); ++p)
    for (const Kind kind : kinds) {
      arguments.types.push_back({counts ? DType::i32 : DType::f32, layout.with(&axes::tensor, p == -3   ? Invariant
                                                                                              : p == -2 ? Broadcast
                                                                                              : p == -1 ? Partial
                                                                                                        : split(p))});
      arguments.kinds.push_back(kind);
      each_case(example, arguments, f);
      arguments.types.count -= 1;
      arguments.kinds.count -= 1;
    }
}

std::string question(const Example& example, const Arguments& a) {
  std::string operands;
  for (int i = 0; i < a.types.size(); ++i)
    operands += std::string(i > 0 ? ", " : "") + "{\"shape\": " + json(example.shapes[static_cast<std::size_t>(i)]) +
                ", \"kind\": \"" + name_of(a.kinds[i]) + "\", \"placement\": \"" +
                letters(a.types[i].layout.on(&axes::tensor)) + "\"}";
  return "{\"op\": \"" + example.reference + "\", \"ints\": " + json(example.reference_ints) + ", \"operands\": [" +
         operands + "]}";
}
/// In the words of the reference. Of several results the reference names the first.
std::string answer(const Inference& inferred) {
  if (inferred.refusal) return "{\"refused\": true}";
  std::vector<std::string> to;
  for (const Layout& layout : inferred.to) to.push_back(letters(layout.on(&axes::tensor)));
  return "{\"to\": " + json(to) + ", \"results\": " + json({letters(inferred.results[0].layout.on(&axes::tensor))}) +
         "}";
}

/// Rows that are sound and the library does not have, each with its reason: there it refuses or gathers.
bool left_out(const Example& example, const std::string& derived, const std::string& expected) {
  // Keys and values split along the sequence beside whole queries (flash decoding): it would need a kernel that merges
  // softmaxes across ranks.
  return example.operation == &operation::attention &&
         expected.find(", \"S1\", \"S1\"], \"results\": [\"P\"]") != std::string::npos &&
         derived.find("\"S") == std::string::npos;
}
}  // namespace

TEST_CASE("derivation agrees with the reference on every kind and placement of every operand") {
  const char* command = std::getenv("PARALLEL_DERIVE");
  REQUIRE_MESSAGE(command != nullptr, "PARALLEL_DERIVE is the command that runs tests/reference/derive.py");
  const std::string cases = "derivation-" + std::to_string(::getpid()) + ".jsonl";

  struct Asked {
    int example;
    std::string question, answer;
  };
  std::vector<Asked> asked;
  const std::vector<Example> all = examples();
  for (std::size_t e = 0; e < all.size(); ++e) {
    Arguments arguments;
    arguments.ints = all[e].ints;
    each_case(all[e], arguments, [&] {
      asked.push_back({static_cast<int>(e), question(all[e], arguments), answer(infer(*all[e].operation, arguments))});
    });
  }
  std::FILE* file = std::fopen(cases.c_str(), "w");
  REQUIRE(file != nullptr);
  for (const Asked& a : asked) std::fprintf(file, "%s\n", a.question.c_str());
  std::fclose(file);

  std::FILE* reference = ::popen((std::string(command) + " < " + cases).c_str(), "r");
  REQUIRE(reference != nullptr);
  int answered = 0, different = 0, excepted = 0;
  char line[512];
  for (const Asked& a : asked) {
    if (std::fgets(line, sizeof line, reference) == nullptr) break;
    ++answered;
    std::string expected(line);
    while (!expected.empty() && expected.back() == '\n') expected.pop_back();
    if (expected == a.answer) continue;
    if (left_out(all[static_cast<std::size_t>(a.example)], a.answer, expected)) {
      ++excepted;
      continue;
    }
    if (++different <= 20) MESSAGE(a.question << "\n  derived   " << a.answer << "\n  reference " << expected);
  }
  CHECK(::pclose(reference) == 0);
  std::remove(cases.c_str());
  CHECK(answered == static_cast<int>(asked.size()));
  CHECK(answered > 100000);
  CHECK(different == 0);
  CHECK(excepted > 0);
}
