// Macros of one letter, as template parameters are called in all headers: one sentence instead of what a compiler makes
// of them.
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
