// Macros that are called as names in the headers are, by one capital letter or by what a model's sizes are called: one
// sentence instead of what a compiler makes of them.
#pragma once

// clang-format off
#if defined(A) || defined(B) || defined(C) || defined(D) || defined(F) || defined(G) || defined(I) || \
    defined(K) || defined(L) || defined(M) || defined(N) || defined(O) || defined(P) || defined(Q) || \
    defined(R) || defined(S) || defined(T) || defined(U) || defined(V) || defined(W) || defined(X) || \
    defined(Y) || defined(Z)
#error "parallel: a macro is called by one capital letter, as template parameters of the headers are; write constexpr int, give it a longer name, or define it behind the includes"
// clang-format on
#undef A
#undef B
#undef C
#undef D
#undef F
#undef G
#undef I
#undef K
#undef L
#undef M
#undef N
#undef O
#undef P
#undef Q
#undef R
#undef S
#undef T
#undef U
#undef V
#undef W
#undef X
#undef Y
#undef Z
#endif

// clang-format off
#if defined(batch) || defined(hidden) || defined(steps) || defined(step) || defined(seed) || defined(rank) || \
    defined(ranks) || defined(size) || defined(sizes) || defined(layers) || defined(layer) || defined(width) || \
    defined(height) || defined(depth) || defined(length) || defined(heads) || defined(head) || \
    defined(vocabulary) || defined(vocab) || defined(epochs) || defined(epoch) || defined(tokens) || \
    defined(classes) || defined(channels) || defined(samples) || defined(rows) || defined(columns) || \
    defined(cols) || defined(dims) || defined(dim) || defined(inputs) || defined(input) || defined(outputs) || \
    defined(output) || defined(rate) || defined(lr) || defined(learning_rate) || defined(momentum) || \
    defined(decay) || defined(weight_decay) || defined(epsilon) || defined(eps) || defined(dropout) || \
    defined(beta1) || defined(beta2) || defined(warmup) || defined(context) || defined(sequence) || \
    defined(embedding) || defined(data) || defined(tensor) || defined(stage) || defined(model) || \
    defined(threads) || defined(workers) || defined(count) || defined(n) || defined(m) || defined(k) || \
    defined(x) || defined(y) || defined(w) || defined(h) || defined(b)
#error "parallel: a macro is called as names in the headers are, one of batch, hidden, steps, step, seed, rank, ranks, size, sizes, layers, layer, width, height, depth, length, heads, head, vocabulary, vocab, epochs, epoch, tokens, classes, channels, samples, rows, columns, cols, dims, dim, inputs, input, outputs, output, rate, lr, learning_rate, momentum, decay, weight_decay, epsilon, eps, dropout, beta1, beta2, warmup, context, sequence, embedding, data, tensor, stage, model, threads, workers, count, n, m, k, x, y, w, h, b; write constexpr int batch = 32, or define it behind the includes"
// clang-format on
#undef batch
#undef hidden
#undef steps
#undef step
#undef seed
#undef rank
#undef ranks
#undef size
#undef sizes
#undef layers
#undef layer
#undef width
#undef height
#undef depth
#undef length
#undef heads
#undef head
#undef vocabulary
#undef vocab
#undef epochs
#undef epoch
#undef tokens
#undef classes
#undef channels
#undef samples
#undef rows
#undef columns
#undef cols
#undef dims
#undef dim
#undef inputs
#undef input
#undef outputs
#undef output
#undef rate
#undef lr
#undef learning_rate
#undef momentum
#undef decay
#undef weight_decay
#undef epsilon
#undef eps
#undef dropout
#undef beta1
#undef beta2
#undef warmup
#undef context
#undef sequence
#undef embedding
#undef data
#undef tensor
#undef stage
#undef model
#undef threads
#undef workers
#undef count
#undef n
#undef m
#undef k
#undef x
#undef y
#undef w
#undef h
#undef b
#endif
