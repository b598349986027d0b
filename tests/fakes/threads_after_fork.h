// SPDX-License-Identifier: Apache-2.0

// Lets children of fork() start threads under ThreadSanitizer, which otherwise ends them if their
// parent had threads. A test program includes it in one file or more.
#pragma once

#if defined(__SANITIZE_THREAD__)
// The sanitizer finds exported functions alone.
extern "C" [[gnu::weak, gnu::visibility("default")]] const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif
