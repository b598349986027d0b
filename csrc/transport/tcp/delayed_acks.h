// When a socket that only receives acknowledges short messages: late.
//
// A stream goes one way, so that its acknowledgements have no data to travel with. Left alone,
// Linux sends one whenever a reader has emptied the socket, and within that read: 1 to 2 us of a
// message over loopback. It can wait for the next message, or 40 ms, as where what is received is
// answered; and once one has waited so long, the kernel answers at once again, until it is told
// anew. Long messages are acknowledged at once: their sender waits for the room.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {

class DelayedAcks {
   public:
    explicit DelayedAcks(std::size_t sockets) : recent_(sockets) {}

    /// To be called when a read of up to `wanted` bytes from the socket of this index gave some.
    void received(int fd, std::size_t index, std::size_t wanted) {
        Recent& recent = recent_[index];
        if (wanted > kShort) {
            if (recent.are_delayed) sys::acknowledge(fd, sys::Acknowledge::kAtOnce);
            recent = {};
        } else if (++recent.short_reads % kSetEvery == 0) {
            sys::acknowledge(fd, sys::Acknowledge::kDelayed);
            recent.are_delayed = true;
        }
    }

   private:
    /// Between two ranks late ones saved 8 % of messages of 32 KiB, and cost 10 of those of 48.
    static constexpr std::size_t kShort = 32 * kKiB;
    /// Short reads: more than a long message ends with, and a system call is little beside them.
    static constexpr unsigned kSetEvery = 8;

    struct Recent {
        unsigned short_reads = 0;  // since the last long one
        bool are_delayed = false;  // as far as the kernel was told
    };
    std::vector<Recent> recent_;  // by socket
};

}  // namespace pccl::transport::tcp
