// A plan as text: every collective, totals per phase and axis, memory by kind.
#pragma once
#include <string>

#include <parallel/meta/library.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/question/table.hpp>

namespace parallel::printing {
/// 1536 -> "1.5 KiB"
PARALLEL_INLINE std::string bytes(double n);
}  // namespace parallel::printing

namespace parallel::internals {

PARALLEL_INLINE std::string file_name(const char* path);
PARALLEL_INLINE void pad(std::string& line, std::size_t column);

/// So many layers, of all that are shared out over stages.
struct LayerRange {
  int first = 0, count = 0;
};
PARALLEL_INLINE LayerRange layers_on(const Plan& plan, int stage, int chunk);
/// The layers of a chunk of a plan's own stage, "6-8"; of all its chunks, "3-5,15-17".
PARALLEL_INLINE std::string staged_layers(const Plan& plan, int chunk);
PARALLEL_INLINE std::string staged_layers(const Plan& plan);
/// "blocks.*.mlp.down" of twelve layers -> "blocks.0-11.mlp.down"; of layers that are shared out, those that are here
PARALLEL_INLINE std::string member_path(const Plan& plan, const Node& node);
/// What an event computes: "matmul", or of a fusion "matmul+add+gelu", and "matmul&sum_to" where one does not read what
/// the others make.
PARALLEL_INLINE std::string operations(const GraphView& graph, const Event& event);

/// Totals per phase and axis, memory by kind, computation per rank. An axis of one rank has none.
PARALLEL_INLINE std::string totals(const Plan& plan);

/// "stage=4, tensor=2: 8 ranks; stage 1 of 4 with layers 2-3, one_forward_one_backward, 8 micro-batches, at most 3 in
/// flight"
PARALLEL_INLINE std::string head_of(const Plan& plan);

/// The text of a plan, one line per collective: phase, calls, kind, axis, tensor, message and sent bytes per call,
/// member, source line.
PARALLEL_INLINE std::string text(const Plan& plan);
template <class Stream>
requires requires(Stream& stream) { stream.rdbuf(); }
Stream& operator<<(Stream& stream, const Plan& plan) {
  stream << text(plan);
  return stream;
}

}  // namespace parallel::internals

namespace parallel {
using internals::head_of;
using internals::text;
using internals::totals;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/question/text.ipp>
#endif
