// Which incarnation of each session its name stands for, here, and which ones it stood for before.
//
// Incarnations are random, so nothing tells of two incarnations which is the later one, but for who
// came when: the last one that was loaded, or that sent its first hello, is the one meant. One that
// another has displaced may still run (it was slow, or cut off for a while), and must not displace
// its successor by calling again.
//
// Names come and go. Of those that are at rest, as their last connection has ended, the last
// kMostAtRest are kept, and of those that the program has not loaded not even how to reach them: to
// come back, they call again, and bring it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "csrc/p2p/connection_info.h"

namespace pccl::p2p {

/// Not safe from several threads.
class PCCL_API PeerIncarnations {
   public:
    /// Of each name, the last ones.
    static constexpr std::size_t kMostDisplaced = 64;
    /// Names without a connection that had one.
    static constexpr std::size_t kMostAtRest = 512;

    /// What the program says goes, also where that incarnation was displaced.
    void load(const ConnectionInfo& peer);
    /// kAborted, for the calling session, where another incarnation has displaced it.
    Status accept_hello(const ConnectionInfo& peer);
    /// There is a connection to a name that is known.
    void wake(const std::string& name);
    /// The last one to the incarnation that is meant has ended. A name that is forgotten for it, if
    /// any.
    std::optional<std::string> rest(const std::string& name);
    /// Of the incarnation that is meant; null for a name that is not known. Without secret and
    /// address for one that cannot_be_called().
    [[nodiscard]] const ConnectionInfo* find(const std::string& name) const;
    /// Of a name that is known: it was not loaded here, and its last connection has ended.
    [[nodiscard]] bool cannot_be_called(const std::string& name) const;

   private:
    struct Known {
        ConnectionInfo meant;
        bool is_loaded = false;
        bool is_reachable = true;
        std::uint64_t rest = 0;                  // the key in at_rest_; 0: it is not there
        std::vector<std::uint64_t> displaced{};  // incarnations, the latest last

        void replace_by(const ConnectionInfo& peer);
    };
    Known& learn(const ConnectionInfo& peer);
    void wake(Known& known);

    std::map<std::string, Known> known_;
    std::map<std::uint64_t, std::string> at_rest_;  // names, the longest first
    std::uint64_t rests_ = 0;                       // so far
};

}  // namespace pccl::p2p
