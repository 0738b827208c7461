// What is compiled ahead. A build that brings the library (parallel/library) defines PARALLEL_LIBRARY: then headers
// only declare what stands there. Without it everything is in the headers, and a program needs nothing else.
#pragma once

#ifdef PARALLEL_LIBRARY
#define PARALLEL_INLINE
#else
#define PARALLEL_INLINE inline
#endif

// What a program and the shared library of kernels have in common: operations, which are known by their addresses, and
// what stands in that library. One for both also where the rest is hidden (-fvisibility=hidden).
#define PARALLEL_SHARED [[gnu::visibility("default")]]

// The linker takes a function of a template that both have from either, so both are of one compiler: closures of the
// standard library's algorithms lie differently in memory otherwise. A program of another does not link.
#ifdef PARALLEL_LIBRARY
namespace parallel::internals {
#ifdef __clang__
extern const char library_is_compiled_by_clang;
#ifndef PARALLEL_AHEAD
[[gnu::used]] inline const char* const compiled_by = &library_is_compiled_by_clang;
#endif
#else
extern const char library_is_compiled_by_gcc;
#ifndef PARALLEL_AHEAD
[[gnu::used]] inline const char* const compiled_by = &library_is_compiled_by_gcc;
#endif
#endif
}  // namespace parallel::internals
#endif

// A constexpr function that constants point to: every unit's compiler runs it, but its code is compiled in the library.
// The units of the library say themselves what they make of it.
#ifndef PARALLEL_AHEAD
#if defined(PARALLEL_LIBRARY) && !defined(__CUDACC__)
#define PARALLEL_AHEAD [[gnu::gnu_inline]] extern inline
#else
#define PARALLEL_AHEAD
#endif
#endif
