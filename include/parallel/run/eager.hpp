// Tensors with numbers: what is applied to them is carried out at once, one operation behind the other, by the rule and
// the kernels of a plan. For looking into a model; a plan is faster.
#pragma once
#include <string>
#include <tuple>
#include <vector>

#include <parallel/run/carrying_out.hpp>

namespace parallel::internals {

/// The element type of a tensor.
template <Distributed X>
using element_t = typename ElementOf<X::type.dtype>::type;

/// A session of eager tensors on one rank. Its ranks apply the same to theirs, together.
///
///
///     Eager eager(Mesh{data = 2}, world);
///     const auto x = eager.tensor<float, Shape<4 / data>>(std::vector<float>{1, 2, 3, 4});
///     std::cout << eager.text(x + x);
template <Communicator World, Device Device>
class Eager {
 public:
  explicit Eager(const Mesh& mesh, World& world, const Device& device = {}) : session_(mesh, world, device) {
    session_.numbers = {{"seed", 0}, {"step", 1}};
  }

  /// This rank's part of a whole tensor, given to all ranks alike: data, as a program's inputs are.
  template <class T, class S, class... Annotation, class A>
  auto tensor(A&& whole) {
    return given<Kind::data, Tensor<T, S, Annotation...>>(numbers_of(whole));
  }
  /// The same of what a gradient can be asked.
  template <class T, class S, class... Annotation, class A>
  auto wanted(A&& whole) {
    return given<Kind::activation, Tensor<T, S, Annotation...>>(numbers_of(whole));
  }
  /// The whole tensor, on every rank: sums that are pending are completed. All ranks together.
  template <Distributed X>
  std::vector<element_t<X>> whole(const X& x) {
    const eagerly::Held all = session_.whole(x.enter(session_.applications));
    const auto* const first = reinterpret_cast<const element_t<X>*>(all.data);
    return {first, first + all.bytes / bytes_of(X::type.dtype)};
  }
  /// What this rank has of it, as long as it is not forgotten.
  template <Distributed X>
  std::span<const element_t<X>> part(const X& x) {
    const eagerly::Held own = session_.operand(x.enter(session_.applications));
    return {reinterpret_cast<const element_t<X>*>(own.data),
            static_cast<std::size_t>(own.bytes / bytes_of(X::type.dtype))};
  }
  /// How it lies, and its numbers. All ranks together.
  template <Distributed X>
  std::string text(const X& x) {
    return session_.text(x.enter(session_.applications));
  }
  /// Frees the memory of all tensors.
  void forget() { session_.forget(); }

 private:
  template <Kind kind, class X>
  auto given(const HandedOver& whole) {
    static_assert(accept_annotations<X>());
    using Given = typename Symbolic<X, kind>::type;
    return Given(&session_.applications, session_.give(&Given::type, kind, whole));
  }

  eagerly::Session<World, Device> session_;
};

}  // namespace parallel::internals

namespace parallel {
using internals::Eager;
}  // namespace parallel
