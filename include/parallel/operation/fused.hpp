// Operations that are two or three in one. A plan makes them of what stands one behind the other (program/fuse.hpp), so
// that what is between need not go through memory; no user calls them. A device that has no kernel for one runs its
// parts.
#pragma once
#include <parallel/operation/dropout.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/unary.hpp>

namespace parallel::operation {

// Operands and attributes are those of the parts one behind the other, without what one part hands to the next. Every
// part has its result.
/// (x, w, bias): a number for every column
inline constexpr Operation matmul_add{.name = "matmul+add", .rate = Rate::products, .joined = {Rate::memory}};
inline constexpr Operation matmul_add_gelu{
    .name = "matmul+add+gelu", .rate = Rate::products, .joined = {Rate::memory, Rate::functions}};  ///< (x, w, bias)
/// (g, w, x): the product is the gradient of gelu(x)
inline constexpr Operation matmul_gelu_derivative{
    .name = "matmul+gelu_gradient", .rate = Rate::products, .joined = {Rate::functions}};
/// (x, w): the product and beside it the sum of the operand that the last attribute names, over what is contracted:
/// gradients of a weight and its bias.
inline constexpr Operation matmul_sum{.name = "matmul&sum_to", .rate = Rate::products, .joined = {Rate::memory}};
inline constexpr Operation add_gelu{.name = "add+gelu", .joined = {Rate::functions}};        ///< (x, bias)
inline constexpr Operation add_dropout{.name = "add+dropout", .joined = {Rate::functions}};  ///< (x, bias, scalars)
inline constexpr Operation dropout_add{
    .name = "dropout+add", .rate = Rate::functions, .joined = {Rate::memory}};  ///< (x, scalars, residual)
inline constexpr Operation add_dropout_add{
    .name = "add+dropout+add", .joined = {Rate::functions, Rate::memory}};  ///< (x, bias, scalars, residual)

/// Two operations that become one, where the second reads the first one's result, or an operand of it.
struct Fusion {
  const Operation* first;
  const Operation* then;
  /// the operand of `then` that is the result of `first`; of a sum either, and then the other is its second
  int takes;
  int beside;  ///< how many other operands it has
  int ints;    ///< and how many attributes
  const Operation* fused;
  bool shares = false;  ///< `then` reads no result of `first` but an operand, which the one attribute more names
};
// clang-format off
inline constexpr Fusion fusions[] = {
    // first          then              takes  beside  ints  become
    {&matmul,         &add,             0,     1,      0,    &matmul_add},
    {&matmul_add,     &gelu,            0,     0,      0,    &matmul_add_gelu},
    {&matmul,         &gelu_derivative, 1,     1,      0,    &matmul_gelu_derivative},
    {&add,            &gelu,            0,     0,      0,    &add_gelu},
    {&add,            &dropout,         0,     1,      3,    &add_dropout},
    {&dropout,        &add,             0,     1,      0,    &dropout_add},
    {&add_dropout,    &add,             0,     1,      0,    &add_dropout_add},
    {&matmul,         &sum_to,          0,     0,      1,    &matmul_sum, true},
};
// clang-format on

/// What an operation is made of, or nullptr.
constexpr const Fusion* fusion_of(const Operation& fused) {
  for (const Fusion& f : fusions)
    if (f.fused == &fused) return &f;
  return nullptr;
}
/// Whether an operation is a part of a fused one, or one of its parts is.
constexpr bool is_part(const Operation& part, const Operation& fused) {
  const Fusion* f = fusion_of(fused);
  return f != nullptr && (f->first == &part || f->then == &part || is_part(part, *f->first));
}

}  // namespace parallel::operation
