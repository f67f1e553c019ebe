// LOCKSTEP_VECTOR_CLONES, in front of a function, has it compiled a second time
// for processors with AVX2; the one that fits is chosen when the library is
// loaded. Both do the same integer arithmetic. Private to data/.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// It cannot watch the code that chooses.
#define LOCKSTEP_VECTOR_CLONES
#endif
#endif

#if !defined(LOCKSTEP_VECTOR_CLONES)
#define LOCKSTEP_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#endif
