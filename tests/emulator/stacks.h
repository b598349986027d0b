// SPDX-License-Identifier: Apache-2.0

// Stacks of a block's threads, and how a thread changes from one to another. C's own way,
// swapcontext(), asks the kernel for the signal mask each time, which is half the time of all tests
// that run here; it is left to sanitizers, which know it, and to processors other than x86-64.
#pragma once

#include <cstddef>
#include <memory>

namespace pccl::emulator {

/// Memory for the stacks of one block after the other: pages that have been touched once cost
/// nothing again. To sanitizers a stack that was left is still in use: they get it anew.
class StackMemory {
   public:
    /// What the last call gave is no longer valid.
    std::byte* take(std::size_t bytes) {
#if defined(PCCL_SANITIZED)
        bytes_ = 0;
#endif
        if (bytes > bytes_) {
            memory_.reset();
            memory_.reset(new std::byte[bytes]);
            bytes_ = bytes;
        }
        return memory_.get();
    }

   private:
    std::unique_ptr<std::byte[]> memory_;
    std::size_t bytes_ = 0;
};

}  // namespace pccl::emulator

#if defined(__x86_64__) && !defined(PCCL_SANITIZED)

#include <cstdint>

namespace pccl::emulator {

/// A stack that was left. What its function needs again lies on it.
class Stack {
   public:
    /// Who changes to it comes to `function`, which never returns.
    void begin_with(std::byte* stack, std::size_t bytes, void (*function)()) {
        constexpr std::size_t kAlignment = 16;
        std::byte* const end = stack + bytes;
        auto** top =
            reinterpret_cast<void (**)()>(end - reinterpret_cast<std::uintptr_t>(end) % kAlignment);
        *--top = nullptr;  // where others have the address of their caller
        *--top = function;
        // Written, since a page that is read first is one for all processors to forget at a write.
        for (std::size_t i = 0; i < kSavedRegisters; ++i) *--top = nullptr;
        top_ = top;
    }

    static void change(Stack& from, Stack& to) { change_pointer(&from.top_, to.top_); }

   private:
    static constexpr std::size_t kSavedRegisters = 6;

    /// Keeps the registers that a function must leave as they were.
    [[gnu::naked, gnu::noipa]] static void change_pointer(void** /*from*/, void* /*to*/) {
        asm("push %rbp\n"
            "push %rbx\n"
            "push %r12\n"
            "push %r13\n"
            "push %r14\n"
            "push %r15\n"
            "mov %rsp, (%rdi)\n"
            "mov %rsi, %rsp\n"
            "pop %r15\n"
            "pop %r14\n"
            "pop %r13\n"
            "pop %r12\n"
            "pop %rbx\n"
            "pop %rbp\n"
            "ret");
    }

    void* top_ = nullptr;
};

}  // namespace pccl::emulator

#else

#include <ucontext.h>

namespace pccl::emulator {

class Stack {
   public:
    void begin_with(std::byte* stack, std::size_t bytes, void (*function)()) {
        ::getcontext(&context_);
        context_.uc_stack.ss_sp = stack;
        context_.uc_stack.ss_size = bytes;
        ::makecontext(&context_, function, 0);
    }

    static void change(Stack& from, Stack& to) { ::swapcontext(&from.context_, &to.context_); }

   private:
    ucontext_t context_{};
};

}  // namespace pccl::emulator

#endif
