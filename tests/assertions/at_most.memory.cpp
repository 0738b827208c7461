// The parameters, each aligned to 64 bytes.
// failure: Above<measured<128>, limit<64>>
#include "program.hpp"

#ifdef WRONG
static_assert(at_most<trained.memory.of(Use::parameters), 64>);
#else
static_assert(at_most<trained.memory.of(Use::parameters), 128>);
#endif
