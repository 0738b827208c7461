// What a word of groups says that means no member: by its letters, beside those of the nearest name that there is.
#pragma once
#include <utility>

#include <parallel/graph/grouping.hpp>
#include <parallel/model/module.hpp>

namespace parallel::internals::building {

template <template <char...> class As, const MemberName& name, std::size_t... i>
As<name.characters[i]...>* letters(std::index_sequence<i...>);
/// A name as a figure of a refusal.
template <template <char...> class As, const MemberName& name>
using Spelled = std::remove_pointer_t<decltype(letters<As, name>(
    std::make_index_sequence<static_cast<std::size_t>(name.size())>{}))>;

/// Asking for `type` refuses a program for its groups, where the name at a position, from 1, means no member.
template <class Program, int position>
struct Ungrouped {
  static constexpr MemberName said = Program::grouping.said[position - 1].names;
  static constexpr MemberName nearest = [] {
    typename Program::Model model{};
    Trace trace;
    Applications program;
    Vector<char> path;
    declare(model, trace, program, path);
    std::string_view best;
    for (const Member& m : trace.graph.members) best = nearer(trace.graph.text(m.path), said.view(), best);
    return MemberName(abbreviated<64>(best).view());
  }();
  using type = typename refused::grouped_words<figure::member<position>, Spelled<figure::said, said>,
                                               Spelled<figure::nearest, nearest>>::type;
};
/// Or for what else is wrong with them.
template <class Program, int position>
requires(position <= 0) struct Ungrouped<Program, position> : Refused<Reason::grouped_words, nullptr, position> {
};

}  // namespace parallel::internals::building
