// The instructions of MSCCL++'s plans, and what each does to the chunks that it names.
#pragma once

#include <cstdint>
#include <string_view>

namespace pccl::capsule::mscclpp {

enum class Kind : std::uint8_t {
    kNothing,  // nop, flush: lanes have an order anyway
    kBarrier,  // of thread blocks of one GPU
    kAcquire,
    kRelease,
    kSignal,
    kWait,
    kMove,    // each of src to the same of dst, whosever they are
    kReduce,  // all of src to the first of dst, and from there to the others
};

/// Which chunks of an operation are packets: data and a flag, for which a reader waits.
enum class Packets : std::uint8_t { kNone, kAll, kAllButFirst };

struct Instruction {
    std::string_view name;
    Kind kind{};
    Packets read = Packets::kNone;     // of src
    Packets written = Packets::kNone;  // of dst
    bool signals = false;              // after what it moves
    bool forwards = false;             // one of src to each of dst
};

/// Finds an instruction; null for one that capsules have not.
[[nodiscard]] const Instruction* instruction_called(std::string_view name);

/// Returns whether an instruction stores to, or reduces over, the memory of several GPUs in a
/// switch.
[[nodiscard]] bool needs_switch(std::string_view name);

}  // namespace pccl::capsule::mscclpp
