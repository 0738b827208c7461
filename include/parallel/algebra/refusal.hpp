// Why a program is refused. Each reason owns one literal sentence, which the compiler prints and which start-up checks
// repeat.
#pragma once
#include <parallel/algebra/figure.hpp>
#include <parallel/meta/letters.hpp>

namespace parallel {

// One list, so that a static_assert and a run-time message cannot differ: identifier, sentence, names of its figures.
// clang-format off
#define PARALLEL_REFUSALS(reason) \
  reason(inner_dimensions, "parallel::matmul: the inner dimensions differ; transpose or reshape one operand, or mend its Shape; products of matrices in batches are batched_matmul(x, y), and a cell of Scan takes the state first, then its slice of the sequence", left_extent, right_extent) \
  reason(shapes_differ, "parallel: the shapes do not broadcast; equal extents, or 1, or a missing leading dimension are needed; a vector for an earlier dimension is reshaped, a convolution's bias by reshape<8, 1, 1>(bias); a product of matrices is matmul(x, w)", left_extent, right_extent) \
  reason(all_pairs, "parallel: two tensors have the same extents but for dimensions of 1, so that all pairs of their elements would meet, of [16, 1] and [16] in [16, 16]; reshape one to the other's Shape, reshape<16>(x), or for all pairs give both all dimensions, reshape<1, 16>(y)", extent) \
  reason(wrong_rank, "parallel: an operand is missing, or has the wrong number of dimensions; mend its Shape, reshape it, or bring it to its place: rms_norm(x, gain), matmul(x, w), masked_attention(q, k, v, seen) with seen[batch, keys]", dimensions, needed) \
  reason(no_such_dimension, "parallel: the dimension does not exist in this tensor; dimensions count from 0", dimension, dimensions) \
  reason(transposed_order, "parallel::transpose: it is given an order of more or fewer dimensions than the tensor has; name each once, transpose<0, 2, 1>(x) of three, transpose(x) is of matrices", dimensions, needed) \
  reason(class_targets, "parallel::cross_entropy: the target, which stands behind the logits, has a class for each row, so one dimension less than the logits; give it the numbers of the classes, a column of them as reshape<16>(target), or probabilities to soft_cross_entropy(logits, probabilities)", dimensions, needed) \
  reason(nothing_staged, "parallel::Pipelined: no layers of the model lie over stages, so nothing is pipelined; write Layers<12 / stage, Block>, or leave the schedule out", stages) \
  reason(panels, "parallel::matmul_in_panels: the panels do not divide what is added up, the last dimension of x and the first of w; choose a number from 1 on that does", slices) \
  reason(elements_differ, "parallel::reshape: the number of elements changes; mend the new Shape, in which no extent is worked out, as -1 elsewhere", before, after) \
  reason(slice_range, "parallel::slice: the range lies outside the dimension; mend begin and end", begin, end, extent) \
  reason(top_k, "parallel::top_k: it takes fewer than one, or more than the dimension has; write top_k<dimension, k>(x) with a k from 1 to its extent", taken, extent) \
  reason(channels_differ, "parallel::convolution: the channels of x are not those that the weight takes; x is [batch, channels, height, width], the weight [channels out, channels, height, width], transposed [channels, channels out, height, width]", channels, taken) \
  reason(window, "parallel: a window does not fit; it is at most the extent and twice the padding, moves by at least 1, and a pool's padding is at most half of it; mend window, stride or padding, whole numbers as in convolution<1, 1>(x, weight)", extent, window, stride, padding) \
  reason(einsum_text, "parallel::einsum: the text is not letters for each operand's dimensions, a comma between operands, an arrow and letters for the result's; write it like bik,kj->bij, with as many operands as are given", position, operands) \
  reason(einsum_twice, "parallel::einsum: a letter stands twice in one operand, or in the result; give each of its dimensions a letter of its own, a diagonal is not taken", position) \
  reason(einsum_extents, "parallel::einsum: one letter stands for two extents; give each extent a letter, or mend a Shape", left_extent, right_extent) \
  reason(einsum_result, "parallel::einsum: the result has a letter that no operand has; take it out, or give it to an operand", dimension, dimensions) \
  reason(heads_differ, "parallel::attention: the query heads are no multiple of the key and value heads; mend the Shapes", query_heads, key_heads) \
  reason(keys_elsewhere, "parallel::attention: the key and value heads are split by an axis that does not split the query heads before all others, so a rank's keys are not those of its queries; split key heads by the outer axes of the query heads, in their order, or gather keys and values with to<On<axis, Broadcast>>(k)", query_axes, key_axes) \
  reason(element_types, "parallel: the element types differ; cast one operand to what the other has, as cast<float>(x), or cast<bfloat16>(x) where parameters are so, and whole numbers before their mean, mean(cast<float>(x))", left_bytes, right_bytes) \
  reason(whole_sum, "parallel: whole numbers are added up, or their mean is taken, for which no device has a kernel; cast them before, mean(cast<float>(x))", bytes) \
  reason(whole_numbers, "parallel: an index, a target or a mask must hold whole numbers; give it the element type int, and its place: embedding(tokens, table), gather<0>(x, places), where(mask, x, y), cross_entropy(logits, target)", bytes) \
  reason(reshaped_axes, "parallel::reshape: it takes extents alone, since how the result lies follows from its operand; leave the axes out, reshape<8, 64>(x), and move what it gives by to<On<axis, Split<0>>>(y)", dimensions) \
  reason(order_kept, "parallel::transpose: this order leaves each dimension where it is; name for each dimension of the result that of x which it is: transpose(x) of a matrix, transpose<0, 2, 1>(x) to swap the last two of three", dimensions) \
  reason(no_permutation, "parallel::transpose: the order names a dimension twice; name every dimension once", dimension, dimensions) \
  reason(disagree, "parallel: two activations lie differently on an axis; bring either to where the other lies: to<On<axis, Split<d>>>(x) moves or slices it, to<On<axis, Invariant>>(x) gathers it", operand, first, second) \
  reason(split_otherwise, "parallel: an activation is split otherwise than the operation can take it; mend the Shape of a parameter that it meets, as a bias split over another axis, or before the operation gather the activation with to<On<axis, Invariant>>(x) or move it with to<On<axis, Split<d>>>(x); of what a reshape takes apart the first dimension stays split, and a product in batches is batched_matmul(x, y)", operand, lies) \
  reason(nested_otherwise, "parallel: an axis that is not the innermost of its dimension would have to move, or operands nest their axes differently; move the inner axis first with to<...>(x)", operand, dimensions) \
  reason(never_invariant, "parallel::to: a Broadcast value is used differently by each rank and cannot become Invariant; take it Broadcast only where each rank uses it otherwise, and leave what is alike on all Invariant from the start", bytes) \
  reason(odd_size, "parallel::rotary: the last dimension is odd, so its elements have no pairs; make the heads' size even", extent) \
  reason(attention_sequence, "parallel::attention: queries, keys and values, [batch, sequence, heads, size], are all split along the sequence; in another order transpose<0, 2, 1, 3>(q), else say how it finds the keys of other ranks: attention<causal, Context::ring>(q, k, v), ::gathered, or ::ulysses, by all-to-all to the heads", length) \
  reason(two_rings, "parallel::attention: two axes split the sequence of queries, keys and values, but a ring leads over one; bring all three to the heads on the inner axis, by all-to-all with to<On<axis, Split<2>>>(q), and the result back with to<On<axis, Split<1>>>, or write Context::gathered", length, axes) \
  reason(not_scalar, "parallel::Training: the program returns no scalar loss; return mean(...) or sum(...), name behind the optimizer the type of each input that its operator() takes, of the target too, or use Evaluation", dimensions) \
  reason(loss_alone, "parallel::Training: the program returns several tensors; return the loss alone, and give the others by an Evaluation of the same model", tensors) \
  reason(loss_broadcast, "parallel::Training: the loss is Broadcast on an axis, so its gradient would count once per rank; keep it Invariant or Partial", axes) \
  reason(only_sources, "parallel: an operation on constants or random numbers only; combine them with a parameter or an input, or write the constant's value", operands) \
  reason(not_a_module, "parallel: a model, or a member of one, is neither a Parameter nor a plain struct of such; make configuration a template argument, an array or container Layers or members with names, a reference or const member a plain one, weights that are tied one member that is used twice; behind another error mend that one first", member) \
  reason(has_base, "parallel: a model, or a member of one, has a base class, whose members a program cannot name; make the base a member with a name, or describe the struct to Boost.Hana and include parallel/model/hana.hpp", member) \
  reason(has_constructor, "parallel: a model, or a member of one, has a constructor or private members, as containers and smart pointers have; write a plain struct with initializers in braces, Layers<n, Block> for a container, or describe it to Boost.Hana and include parallel/model/hana.hpp, which its own tuples need, too", member) \
  reason(has_virtual, "parallel: a model, or a member of one, has virtual functions, but what a program calls is known while it is compiled; leave virtual out, and make what varies a template argument", member) \
  reason(carried_differs, "parallel: a block of Layers, or a cell of Scan, returns another shape than it takes; a layer, or a step, must keep the shape of what it hands on", extent_taken, extent_returned) \
  reason(carried_type, "parallel: a block of Layers, or a cell of Scan, returns another element type than it takes; cast what it returns, as cast<float>(x)", left_bytes, right_bytes) \
  reason(held_elsewhere, "parallel: a value that only some ranks hold (At) meets an operation; bring it to all of them first with to<On<axis, Broadcast>>(x), or let a parameter lie so at rest, Stored<axis, At<0>>", operand) \
  reason(given_pending, "parallel: a parameter or an input cannot be a pending sum (Partial): no rank could fill in its term; leave it Invariant or split it", dimensions) \
  reason(outside_layers, "parallel::Layers: a parameter of a block is used outside its Layers, where it has no one layer; use it within the block", layers) \
  reason(remembered, "parallel::remember: a training has no memory of earlier steps; call remember in an Evaluation only", layers) \
  reason(accumulation, "parallel::Accumulate: only a training has gradients to accumulate, over at least one micro-batch; wrap a Training, with a count from 1", micro_batches) \
  reason(too_many_inputs, "parallel: a program takes at most eight inputs; put several into one tensor", inputs) \
  reason(layers_split, "parallel::Layers: layers are shared out over one axis, the stages of a pipeline; write Layers<n / stage, Block>", layers) \
  reason(staged_twice, "parallel::Layers: layers over stages are applied more than once in a program; apply one Layers<n / stage, Block> once, and leave the axis out of the others", times) \
  reason(stages_named, "parallel: beside Layers<n / stage, Block> an annotation names the axis of the stages; leave it out: where the rest of a program lives follows from the layers; or, where that axis splits data, write Layers<n, Block>, whose parameters Stored<axis> shares out", dimensions) \
  reason(held_nowhere, "parallel: a value is At a rank that the mesh has not on the axis; count its ranks from 0, as At<0>, say At<-1> for the last, or give the axis more ranks", extent) \
  reason(no_such_stage, "parallel: a plan is asked of a stage that the mesh does not have; count stages from 0", coordinate, extent) \
  reason(asynchronous, "parallel::Pipelined: in a schedule that updates without waiting (PipeDream) stages have different versions of the weights, but a parameter is used on several; give each stage one of its own, or choose a synchronous schedule", dimensions) \
  reason(layers_words, "parallel: what stands behind the block of Layers, or the cell of Scan, is no word of it, or said twice; write Recompute<>, KeepOnHost, or at Layers On<axis, placement> for what crosses from stage to stage; Stored stands at a Parameter, or in AllStored<Step, Stored<axis>>", layers) \
  reason(nested_layers, "parallel: a loop within a loop, Layers or Scan within the block or cell of another; write one whose block has the inner blocks as plain members, or loops beside each other", layers) \
  reason(steps_differ, "parallel::Scan: the sequence has another length than the Scan has steps; write Scan<n, Cell> for a sequence x[n, ...], whose first dimension is the time, transpose brings it there", length, steps) \
  reason(steps_split, "parallel::Scan: the steps, or the first dimension of the sequence, are split over an axis, but a step needs the one before; split another dimension, or gather the time before with to<On<axis, Invariant>>(x)", steps) \
  reason(not_divisible, "parallel: the mesh does not divide a dimension; choose an extent of the axis that divides it", extent, slices, valid_below, valid_above) \
  reason(stage_share, "parallel::Layers: what a stage has of the layers does not go into the chunks of its schedule, as interleaved<chunks> has them, or into the groups of its Recompute<layers>; choose a number of layers that stages times chunks times group divide, or a smaller group, Recompute<>", layers, stages, chunks, group) \
  reason(axis_unused, "parallel: an axis of the mesh is named by no annotation of the program; annotate a dimension with it, drop it from the mesh, or name a program that has it behind, derive<Predict, Step>(mesh)", extent) \
  reason(order_within, "parallel: an axis that splits a dimension in an order is not the first that splits it; write it first, 64 / zigzag(sequence) / tensor, and one order for a dimension", extent) \
  reason(order_unknown, "parallel: an operation goes along a dimension that stands in an order, as 64 / zigzag(sequence) does, where it needs the elements as they are counted; gather it before and bring it to order, in_order(to<On<sequence, Invariant>>(x)), or leave the order out of its Shape", dimension, dimensions) \
  reason(orders_differ, "parallel: a dimension would change its order, zigzag, cyclic or as its elements are counted, while it is split; split it in one order everywhere, or gather it before, to<On<sequence, Invariant>>(x)", dimension, dimensions) \
  reason(axis_twice, "parallel: an axis is used twice in one tensor or mesh; name it once", times) \
  reason(same_name, "parallel: two axes have one name, and are two to the program; use one of them everywhere, parallel::axes for the names that it has, or rename yours", times) \
  reason(bad_extent, "parallel: an axis must have at least one rank; mend the mesh", extent) \
  reason(inputs_differ, "parallel: the model cannot be called with the program's inputs; name a Tensor for each parameter of its operator(), which must be const and take Distributed auto, and in which stands what stands in forward elsewhere", inputs) \
  reason(not_constant, "parallel: the compiler cannot run the model or its optimizer, which call what is not constexpr; write constexpr before operator() and update, and before everything of yours that they call, and leave out what only a run can do, as printf; static_assert(run_as_constant<Model, Tensor...>()) names it; behind another error mend that one first", inputs) \
  reason(too_large, "parallel: the program is larger than the compiler computes within its limits; add -fconstexpr-ops-limit=4000000000 for g++, -fconstexpr-steps=100000000 for clang, or put what repeats into Layers or Scan, which a plan has once", operations) \
  reason(no_tensor, "parallel: an operator() returns no tensor; return what the operations give: of a block of Layers one tensor, of an Evaluation also several, in a std::tuple, a std::pair or a struct of them, of a cell of Scan the state, or std::pair(state, output)", inputs) \
  reason(concrete, "parallel: an operator() takes a Tensor, or a value is declared as one, but each value has a type of its own; write Distributed auto for a parameter, const auto h = matmul(x, up) for a value", dimensions) \
  reason(no_initializer, "parallel: a number, a text or a function is no beginning of a Parameter, nor are two; write normal(deviation), xavier, zeros or ones; numbers of your own are set in a run, parameters.set(plan, rank, path, numbers), and what is not trained is Frozen, Grouped<Step, Frozen<member>>", bytes) \
  reason(rebound, "parallel: an assignment cannot change what a name stands for, whose type says how it lies; give the result a name of its own, auto y = block(x), or repeat with Layers<n, Block>", dimensions) \
  reason(no_condition, "parallel: a traced value has no numbers to decide by; select elements with where(x > y, x, y), or a variant by a template argument", dimensions) \
  reason(no_number, "parallel: a tensor is symbolic and has no numbers of its own to print or read; of a plan read its outputs, of an eager session eager.text(x), eager.whole(x) and eager.gradient(loss, w), or look into a run: docs/looking.md; another element type is cast<float>(x)", dimensions) \
  reason(no_subscript, "parallel: a tensor has no subscript, since what it gives is another type; write take<0, 3>(x) for x[3], slice<0, 2, 5>(x) for a range, gather<0>(x, index) for positions in a tensor of int, where(mask, x, y) for a mask", dimensions) \
  reason(no_method, "parallel: operations are functions, not members of a tensor; write square(x) for x.square(), sum<0>(x) for x.sum(0), transpose(x) for x.t(); its extents are those of the Shapes", arguments) \
  reason(no_dimension, "parallel: the operation goes along one dimension, which is not said; write it as the template argument, softmax<1>(x) or sum<0>(x), counted from 0", dimensions) \
  reason(no_iteration, "parallel: layers, or steps of a Scan, are not taken one by one, since a program has the block once for all of them; call them all, y = blocks(x), or name those that differ as members of their own", layers) \
  reason(other_arguments, "parallel: an operation is called with other arguments; extents, strides, windows, letters and numbers of classes stand in <>, tensors and other numbers in (), in the order of docs/operations.md", dimensions) \
  reason(larger_of_two, "parallel: max and min are the largest and the smallest along dimensions; write max<1>(x) for those, maximum(x, y) and minimum(x, 0.0) for the larger and the smaller of two, element by element", dimensions) \
  reason(no_placement, "parallel::to: an axis and how the tensor is to lie on it stand together, in an On; write to<On<axis, Invariant>>(x), with Split<d> or Broadcast, or the whole Shape, to<Shape<8 / data, 16>>(x); another element type is cast<float>(x)", dimensions) \
  reason(extents_stay, "parallel::to: it moves a tensor, whose extents stay; write those that it has and the axes that are to split them, to<Shape<8 / data, 16>>(x), or reshape<4, 32>(x) before", left_extent, right_extent) \
  reason(called_otherwise, "parallel: a block of Layers, or a cell of Scan, cannot be called with what it is given; its operator() must be const and take Distributed auto for each tensor, a cell's the state, its slice of the sequence and what else is given", tensors) \
  reason(scan_arguments, "parallel::Scan: it is a member, Scan<n, Cell> scan, that is called with a first state, then a sequence, both tensors; write scan(constant<float, Shape<8 / data, 16>>(0), x), where x[n, ...] has the time first; two states, as an LSTM has, are one, Shape<8 / data, 2, 16>", arguments) \
  reason(classes, "parallel::cross_entropy: the number of classes is below 1, or above the last extent of the logits; write cross_entropy<classes, ignored>(logits, target), with 0 for all of them, as in cross_entropy<0, -100>", classes, extent) \
  reason(normalized_twice, "parallel: what takes logits is given their softmax, or their sigmoid, which it takes itself; give it the scores as they are, cross_entropy(x, target) and log_softmax<1>(x) without softmax, binary_cross_entropy(x, target) without sigmoid", line) \
  reason(swapped_norm, "parallel: the gain of a norm begins with zeros and its shift with ones, or its mean with ones and its variance with zeros, as if they were swapped; write layer_norm(x, gain, shift) and batch_norm(x, gain, shift, mean, variance), of gain{ones} and shift{zeros}", line) \
  reason(epsilon, "parallel: the epsilon of a norm, the number behind gain and shift, is below 0, or 0.1 or more; leave it out, layer_norm(x, gain, shift), for 1e-5: the length is the gain's, and there is no momentum", line) \
  reason(along_width, "parallel: a vector of a convolution's channels meets its last dimension, which is as long; give it the dimensions behind the channels, convolution<1, 1>(x, w) + reshape<8, 1, 1>(bias), or if the width is meant all of them, reshape<1, 1, 1, 8>(bias)", line) \
  reason(scan_result, "parallel::Scan: it gives two tensors, the last state and what every step gave, one behind the other; write auto [last, each] = scan(initial, x), or scan(initial, x).last", dimensions) \
  reason(out_of_range, "parallel: a number is out of range; the bound of huber_loss is above 0, the deviation of normal, scaled_normal and random 0 or more and finite, and the layers behind it are at least 1", line) \
  reason(swapped_target, "parallel: the logits of a loss are an input and its targets what a product makes, as if they were swapped; write binary_cross_entropy(logits, targets), soft_cross_entropy(logits, probabilities), of targets from 0 to 1", line) \
  reason(loss_shapes, "parallel: a loss of elements is taken of two tensors with other shapes, so elements would be repeated; reshape or sum one to the other's Shape, only a scalar meets all elements", left_extent, right_extent) \
  reason(probability, "parallel: a probability is out of range; that of dropout is at least 0 and below 1, the smoothing of cross_entropy from 0 to 1", line) \
  reason(constant_loss, "parallel::Training: the loss is constant almost everywhere, so that no parameter has a gradient: it is made of comparisons, argmax, top_k or whole numbers alone; train on one that changes with the parameters, mean(cross_entropy(logits, target)), and count what is right in an Evaluation", dimensions) \
  reason(no_gradient, "parallel::Training: an operation without a gradient, or whose gradient gives none, stands between a parameter, or a wanted input, and the loss; write its .gradient with g.give(operand, ...), or .gradient = operation::no_gradient where it is constant almost everywhere", line) \
  reason(gradient_shape, "parallel: the gradient of an operation gives an operand what has another shape; give what has the operand's extents, g.type(0) says them", line) \
  reason(gradient_operand, "parallel: the gradient of an operation is given to an operand that it does not have; count its operands from 0, g.give(0, ...) is of the first", line) \
  reason(operation_table, "parallel: an operation has no .shape or no .signatures, or a row of another number of operands or results than it is applied to; write them as docs/adding-an-operation.md shows", operands, results) \
  reason(no_lowering, "parallel: a row of an operation's table communicates, but the operation has no .lower that says what ranks exchange; write .lower as docs/adding-an-operation.md shows, or leave row.communicates out and have the dimension whole", dimensions) \
  reason(no_here, "parallel::Apply: the place in the source is not the first argument; give the verb a last parameter, Here here = {}, and write Apply<operation>{}(here, x)", arguments) \
  reason(no_operation, "parallel: there is no operation of this name, or a function of yours with it does not take these operands; compose it of those in docs/operations.md, or write it after docs/adding-an-operation.md; what is permute elsewhere is transpose here, view, flatten, squeeze and unsqueeze are reshape, cat and concat concatenate, split, select and narrow slice, amax max, mm, bmm and dot matmul, mse_loss mean_squared_error, nll_loss of log_softmax cross_entropy of the logits, clip clamp, ^ pow; masks are put together by logical_and, logical_or and logical_not; nothing keeps a gradient back, as detach and stop_gradient do: an input has none unless it is Wanted, and Frozen members of a Grouped are not trained", dimensions) \
  reason(no_shape, "parallel: a Tensor or Parameter is its element type, its Shape and annotations On or Stored, in this order; write Parameter<float, Shape<768, 3072 / tensor>>", annotations) \
  reason(collective_called, "parallel: a model calls no collective, since placements say what ranks exchange; leave it out, as a product that adds up what it splits is reduced where it must be, or write to<On<tensor, Invariant>>(x)", dimensions) \
  reason(no_question, "parallel: a plan is not asked like this; name nothing, an axis, a collective or both, as in calls(all_gather(data)), and ask a phase for rows, as in forward.is(...)", arguments) \
  reason(no_member, "parallel: a Parameter is used that is no member of the model, but static, global or local; make it a member", dimensions) \
  reason(not_a_program, "parallel: an argument of a program is out of place; write Training<Model, Optimizer, Tensor...> or Evaluation<Model, Tensor...>, and about one AllStored<Step, Stored<axis>>, SumsIn<Step, Reduced<T>>, Within<Step, PeakMemory<bytes>>, Accumulate<n, Step>, LossScaled<Step> or Grouped<Step, Group...>", argument) \
  reason(input_unread, "parallel::Training: an input is read by nothing that the loss is made of; use it in the model's function, or leave its Tensor out of the Training and its parameter out of operator()", dimensions) \
  reason(no_update, "parallel::Training: the optimizer has no update that can be called with an Update alone; write static constexpr void update(Update& u) in it, or take one that there is, as AdamW; a loss is no argument, but what the model returns", argument) \
  reason(too_many_members, "parallel: a struct of a model has more than sixteen members; group some of them in a struct of their own", members) \
  reason(no_name, "parallel: a key of a hana::map of modules is no hana::string, is empty, or has a dot or a star, which part a parameter's path; give it a name, hana::string_c<'u', 'p'>", member) \
  reason(stored_broadcast, "parallel: a parameter that is Stored Broadcast would hand its optimizer a pending sum (Partial); leave it Invariant at rest, or Split, and write On<axis, Broadcast> for how it enters", dimensions) \
  reason(stored_words, "parallel: the words of Stored do not fit together; write an axis, then at most one placement (in AllStored At alone), one Zero (stages 1, 2 and 3 are Zero::states, Zero::gradients and Zero::parameters), and at Zero::parameters one Gathered, the last two alike on all axes of a parameter", dimensions) \
  reason(recompute_words, "parallel: the words of Recompute do not fit together; write at most one number of layers, 1 to 10, that divides the Layers where it stands there, one Repeat, and eight different operations, which the block applies; Repeat::everything only of whole Layers", layers) \
  reason(stored_input, "parallel: an input is given anew for each step, so how it lies at rest means nothing; leave Stored off a Tensor, or write a Parameter", annotations) \
  reason(host_is_memory, "parallel: host is no axis of ranks, but the memory beside the device of each; leave it out of meshes, and of annotations but Stored<host>", ranks) \
  reason(unscaled, "parallel: gradients are computed in float16, in which small ones are zero; write LossScaled<Program>, or use bfloat16", bytes) \
  reason(loss_scaling, "parallel::LossScaled: only a training is scaled whose updates wait for the norm of all gradients, by which all ranks see an overflow; wrap a Training, with a synchronous schedule, or use bfloat16", micro_batches) \
  reason(grouped_words, "parallel::Grouped: a word is not Frozen<member, ...> or Group<name, member, ...> with texts, names no member of the model, gives a group the name of a member that is not in it, or leaves none to train; a group has its own name first, and its numbers are set in a run by theirs, as last.learning_rate; write names as paths have them, one behind the other, as in blocks.*.mlp; a name that means none, and the nearest that there is, stand in the note: said<...>, nearest<...>", member) \
  reason(sums_words, "parallel::SumsIn: the words do not fit together; write each of Activations<T>, Reduced<T> and Accumulated<T> once, of an Evaluation Activations alone, with float, bfloat16 or float16", inputs) \
  reason(pending_gradient, "parallel: an optimizer was given a gradient that is a pending sum (Partial); give it Update::completed(gradient)", dimensions) \
  reason(not_element_by_element, "parallel::Update: an operation without a table goes element by element, but an operand has another shape, or its first ones lie differently; give the operation a table (signatures)", dimensions) \
  reason(moves_what_it_updates, "parallel::Update: an operation takes the place of its first operands but would have them lie otherwise, or give them another type; give it a row for how the parameter lies, and of_flat for Stored ones", dimensions) \
  reason(replaced, "parallel::Update: an operation takes the place of what it does not update, or a value is read whose place was taken; give replace an operation with .updates = true and the parameter and states, each declared and named once, and read on what it returned", dimensions) \
  reason(updates_nothing, "parallel::Update: an optimizer's update gives the parameter no new value, so nothing would be trained; write u.replace(operation, {u.parameter()}, {u.gradient(), u.factor()}), what update returns is not read", dimensions) \
  reason(staleness, "parallel::Stale: it is said of an optimizer once, by 0 to 9 steps, and a schedule that updates without waiting (PipeDream) has a staleness of its own; write Training<Model, Stale<1, AdamW>, Tensor...>, and choose a synchronous schedule", dimensions) \
  reason(states_in_bf16, "parallel::StatesIn: it is of an optimizer, whose states are rounded to bfloat16 where the parameter is float; write Training<Model, StatesIn<bfloat16, AdamW>, Tensor...> with float parameters, or leave StatesIn off", dimensions) \
  reason(no_element_type, "parallel: the element type is none of float, double, bfloat16, float16 and int; use one of them", bytes) \
  reason(whole_parameter, "parallel: a Parameter of whole numbers has no gradient to be trained by; give it the element type float, double, bfloat16 or float16, or make it an input", bytes) \
  reason(bad_dimension, "parallel: a dimension, or a number of layers, must be at least 1; mend the Shape, or the Layers", extent) \
  reason(strict, "parallel::Strict: an operation needs a move that is not written; write it before the operation with to<On<axis, placement>>(x), the placement that it is moved_to", from, to, bytes, line) \
  reason(over_memory, "parallel::Within: a rank needs more memory than the budget; tools/plan FILE --why-memory --memory BYTES lists what would make it fit, the cheapest first; or use Accumulate or a larger mesh, or raise PeakMemory<bytes>", bytes, budget) \
  reason(over_bytes, "parallel::Within: a rank sends more on an axis than the budget; place the tensors that move otherwise, Accumulate, or raise Sent<axis, bytes>", bytes, budget)
// clang-format on

enum class Reason : std::uint8_t {
  none,
#define PARALLEL_ENUMERATE(id, sentence, ...) id,
  PARALLEL_REFUSALS(PARALLEL_ENUMERATE)
#undef PARALLEL_ENUMERATE
};

constexpr Reason last_of(Reason) { return Reason::over_bytes; }

/// A reason with its figures and the axis that it is about; where there is no reason the program is accepted.
struct Refusal {
  Reason reason = Reason::none;
  std::int64_t figures[4]{};
  const Axis* axis = nullptr;
  constexpr explicit operator bool() const { return reason != Reason::none; }
};

namespace internals {
// with their lengths, which compilers would count
constexpr std::string_view sentence_of(Reason r) {
  constexpr std::string_view sentences[] = {"",
#define PARALLEL_SENTENCE(id, sentence, ...) {sentence, sizeof sentence - 1},
                                            PARALLEL_REFUSALS(PARALLEL_SENTENCE)
#undef PARALLEL_SENTENCE
  };
  return sentences[static_cast<int>(r)];
}
}  // namespace internals

constexpr std::string_view name_of(Reason r) {
  constexpr std::string_view names[] = {"",
#define PARALLEL_NAME(id, sentence, ...) {#id, sizeof #id - 1},
                                        PARALLEL_REFUSALS(PARALLEL_NAME)
#undef PARALLEL_NAME
  };
  return names[static_cast<int>(r)];
}

namespace internals {
/// The names of a reason's figures, in order.
constexpr std::string_view figures_of(Reason r) {
  constexpr std::string_view names[] = {"",
#define PARALLEL_FIGURES(id, sentence, ...) {#__VA_ARGS__, sizeof #__VA_ARGS__ - 1},
                                        PARALLEL_REFUSALS(PARALLEL_FIGURES)
#undef PARALLEL_FIGURES
  };
  return names[static_cast<int>(r)];
}
}  // namespace internals

/// One type per reason: asking for it is the error, its arguments are the figures by name.
namespace refused {
#define PARALLEL_REFUSED(id, sentence, ...)           \
  template <class... Figures>                         \
  struct id {                                         \
    static_assert(sizeof...(Figures) > 99, sentence); \
    using type = void;                                \
  };
PARALLEL_REFUSALS(PARALLEL_REFUSED)
#undef PARALLEL_REFUSED
}  // namespace refused

namespace figure {
#define PARALLEL_NAMED(id, sentence, ...)            \
  template <const Axis* on, std::int64_t... numbers> \
  using of_##id = typename Named<refused::id, on, Names<__VA_ARGS__>, numbers...>::type;
PARALLEL_REFUSALS(PARALLEL_NAMED)
#undef PARALLEL_NAMED
}  // namespace figure

/// Asking for `type` of an accepted program is void; of a refused one it is one error whose first line is the reason's
/// sentence.
template <Reason reason, const Axis* axis, std::int64_t... numbers>
struct Refused {
  using type = void;
};
#define PARALLEL_REFUSE(id, sentence, ...)                                     \
  template <const Axis* axis, std::int64_t... numbers>                         \
  struct Refused<Reason::id, axis, numbers...> {                               \
    using type = typename figure::of_##id<axis, numbers..., 0, 0, 0, 0>::type; \
  };
PARALLEL_REFUSALS(PARALLEL_REFUSE)
#undef PARALLEL_REFUSE
#undef PARALLEL_REFUSALS

namespace internals {
/// `Refused`'s question, asked of a constant `T::value.refusal`.
template <class T>
using checked =
    typename Refused<T::value.refusal.reason, T::value.refusal.axis, T::value.refusal.figures[0],
                     T::value.refusal.figures[1], T::value.refusal.figures[2], T::value.refusal.figures[3]>::type;
}  // namespace internals

}  // namespace parallel
