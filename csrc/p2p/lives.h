// Which life of each session its name stands for, here, and which ones it stood for before.
//
// Incarnations are random, so nothing tells of two lives which is the later one, but for who came
// when: the last one that was loaded, or that greeted for the first time, is the one meant. One
// that another has displaced may still run (it was slow, or cut off for a while), and must not
// displace its successor by calling again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "csrc/p2p/connection_info.h"

namespace pccl::p2p {

/// Not safe from several threads.
class PCCL_API Lives {
   public:
    /// Of each name, the last ones.
    static constexpr std::size_t kMostDisplaced = 64;

    /// What the program says goes, also where that life was displaced.
    void load(const ConnectionInfo& peer);
    /// kAborted, in words for the greeting session, where another life has displaced it.
    Status greet(const ConnectionInfo& peer);
    /// Of the life that is meant; null for a name that is not known.
    [[nodiscard]] const ConnectionInfo* find(const std::string& name) const;

   private:
    struct Known {
        ConnectionInfo meant;
        std::deque<std::uint64_t> displaced{};  // incarnations, the latest last

        void replace_by(const ConnectionInfo& peer);
    };

    std::map<std::string, Known> known_;
};

}  // namespace pccl::p2p
