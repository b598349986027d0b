// A stream, put together again from its sockets.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "csrc/transport/link.h"
#include "csrc/transport/tcp/delayed_acks.h"
#include "csrc/transport/tcp/stripes.h"

namespace pccl::transport::tcp {

/// Of one channel's receiving end.
class BlockReader {
   public:
    explicit BlockReader(Stripes stripes);

    /// The next bytes of the stream, as far as they are here. A fault is told once what arrived
    /// before it is read: that of the socket which has the next bytes, or where none can have them.
    Result<std::size_t> read(MutableBytes into);
    /// The end of a socket that might have had the next bytes, while others still may: they may be
    /// on their way.
    [[nodiscard]] Status doubt() const;
    /// Whether all has been read, and nothing more can come. System calls.
    [[nodiscard]] bool is_drained() const;
    [[nodiscard]] const Stripes& stripes() const { return stripes_; }

   private:
    /// What is known of a socket's next block.
    struct Front {
        BlockNumber number = 0;
        std::size_t number_bytes = 0;  // of it that were read
        Status end;                    // of the socket, found while it had no further block
    };
    [[nodiscard]] static bool is_known(const Front& front) {
        return front.number_bytes == sizeof front.number;
    }
    /// Makes the socket that has the next block the current one; false while it is not here.
    Result<bool> find_block();
    void look_for_number(std::size_t socket);
    Result<bool> why_none() const;
    /// Reads on in the block, and where that ends it the number of the socket's next one.
    Result<std::size_t> read_current(MutableBytes into);
    void end_block();

    Stripes stripes_;
    DelayedAcks delayed_acks_;
    std::vector<Front> fronts_;  // by socket; none of a stream over one
    std::size_t current_ = 0;
    std::size_t left_ = 0;  // of the block that current_ has
    BlockNumber next_ = 0;
};

}  // namespace pccl::transport::tcp
