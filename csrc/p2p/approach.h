// A connection that is being made: two streams, and what is said first on them (greeting.h).
//
// Either side dials the stream that it sends on, the caller first. Nothing here blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/p2p/greeting.h"
#include "csrc/p2p/path.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {

/// What this process brings.
struct OwnSide {
    runtime::Runtime& runtime;
    const ConnectionInfo& info;
    transport::TransportFlags allowed;
};

class Approach {
   public:
    /// kUnavailable, with the reasons, where no transport leads to `peer`. Unless `wanted` is ok,
    /// it is for memory that this process does not copy by itself, and why. `ended` is that of the
    /// hello.
    static Result<std::unique_ptr<Approach>> call(const OwnSide& own, const ConnectionInfo& peer,
                                                  const Status& wanted,
                                                  std::vector<std::uint64_t> ended);
    /// `in` is the stream that the hello came on.
    static Result<std::unique_ptr<Approach>> answer(const OwnSide& own, const Hello& hello,
                                                    std::unique_ptr<transport::RecvLink> in);

    /// Beside the connection, if any, on which both copy by themselves.
    [[nodiscard]] bool is_aside() const { return is_aside_; }
    /// Names the connection for both; that of the hello.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    void welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in);
    /// True once both streams are there, and all is said.
    Result<bool> advance();
    /// kTimeout, and what the peer has not done.
    [[nodiscard]] Status late() const;
    /// Tells the peer.
    void give_up(const Status& reason);

    // Once it is whole:

    [[nodiscard]] const Path& path() const { return path_; }
    [[nodiscard]] transport::RmaStreams take_streams() { return std::move(streams_); }

   private:
    Approach(std::unique_ptr<transport::Dial> dial, std::uint64_t number, Path path)
        : dial_(std::move(dial)), number_(number), path_(std::move(path)) {}
    static Result<std::unique_ptr<Approach>> dial(const ConnectionInfo& peer,
                                                  transport::Transport& transport,
                                                  std::uint64_t number, Path path);
    /// What a caller needs to begin again by another transport.
    struct Attempt {
        OwnSide own;
        ConnectionInfo peer;
        Status wanted;
        std::vector<std::uint64_t> ended;
        transport::TransportFlags failed{};  // by which the peer was not reached
        Status failure{};                    // of the first of them
    };
    static Result<std::unique_ptr<Approach>> begin(Attempt attempt, std::uint64_t number);
    /// False when there is no other transport.
    bool try_next_transport(const Status& failure);
    Result<bool> say_greeting();

    std::unique_ptr<transport::Dial> dial_;  // until it has given the stream
    transport::RmaStreams streams_;
    const std::uint64_t number_;
    Path path_;
    bool is_aside_ = false;
    std::optional<Attempt> attempt_;  // of the caller
    std::string greeting_;            // to be said
    std::size_t said_ = 0;            // bytes of it
};

}  // namespace pccl::p2p
