// What is compiled ahead. A build that brings the library (parallel/library) defines PARALLEL_LIBRARY: then headers only
// declare what stands there. Without it everything is in the headers, and a program needs nothing else.
#pragma once

#ifdef PARALLEL_LIBRARY
#define PARALLEL_INLINE
#else
#define PARALLEL_INLINE inline
#endif
