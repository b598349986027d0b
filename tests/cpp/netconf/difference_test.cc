// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/difference.h"

#include <gmock/gmock.h>

#include "csrc/base/text/text.h"

namespace pccl::netconf {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

sys::XmlElement configured(std::string_view content) {
    return *sys::read_xml(concat("<data xmlns=\"urn:d\">", content, "</data>"));
}

std::string reported(std::string_view before, std::string_view after) {
    return to_string(differences(configured(before), configured(after), "urn:d"));
}

std::string pair(int ingress, int egress) {
    return concat("<pair><ingress>", ingress, "</ingress><egress>", egress, "</egress></pair>");
}

TEST(DifferenceTest, SeesNoneInOrderBlanksAndAttributes) {
    EXPECT_THAT(
        differences(configured("<c>" + pair(1, 2) + pair(3, 4) + "</c>"),
                    configured("<c x='1'>" + pair(3, 4) + "\n  " + pair(1, 2) + "</c>"), "urn:d"),
        IsEmpty());
}

TEST(DifferenceTest, NamesEntriesOfListsAsAWhole) {
    const auto in = [](const std::string& entries) { return "<c>" + entries + "</c>"; };
    EXPECT_EQ(reported("", in(pair(1, 2))), "adds c (pair (ingress 1, egress 2))");
    EXPECT_EQ(reported(in(pair(1, 2)), in(pair(1, 2) + pair(5, 6))),
              "adds pair (ingress 5, egress 6)");
    EXPECT_EQ(reported(in(pair(1, 2)), in(pair(1, 3))),
              "adds pair (ingress 1, egress 3), removes pair (ingress 1, egress 2)");
}

TEST(DifferenceTest, ShowsNoValuesOfOtherModules) {
    const auto found = differences(
        configured("<a><b>1</b></a>"),
        configured("<a><b>1</b></a><user xmlns=\"urn:s\"><name>x</name><key>k</key></user>"),
        "urn:d");
    EXPECT_THAT(found, ElementsAre(Difference{"adds user (name, key)", "urn:s"}));
}

TEST(DifferenceTest, IsShortAndDisturbsNoTerminal) {
    std::string many;
    for (int i = 1; i <= 9; ++i) many += pair(i, i);
    EXPECT_THAT(reported("<c><k><l/></k></c>", "<c><k><l/></k>" + many + "</c>"),
                ::testing::EndsWith(" and 5 more"));
    EXPECT_THAT(reported("",
                         "<n>a\xc2\x9b"
                         "b" +
                             std::string(5000, 'c') + "</n>"),
                SizeIs(::testing::Le(128)));
    EXPECT_THAT(reported("",
                         "<n>a\xc2\x9b"
                         "b</n>"),
                "adds n a?b");
}

}  // namespace
}  // namespace pccl::netconf
