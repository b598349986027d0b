// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/xml/xml_bounds.h"

#include <gmock/gmock.h>

#include "csrc/base/text/text.h"
#include "csrc/sys/xml/xml_reader.h"
#include "tests/cpp/sys/xml_documents.h"

namespace pccl::sys {
namespace {

using ::testing::HasSubstr;

std::string nested(int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "<a>";
    for (int i = 0; i < depth; ++i) text += "</a>";
    return text;
}

TEST(XmlReaderTest, KeepsItsLimits) {
    EXPECT_TRUE(read_xml(nested(64)).is_ok());
    EXPECT_THAT(refusal(nested(65)), HasSubstr("deeper than 64"));
    EXPECT_THAT(refusal("<a><b/><b/></a>", {.elements = 2}), HasSubstr("more than 2 elements"));
    EXPECT_THAT(refusal("<a>12</a>", {.bytes = 8}), HasSubstr("more than 8 bytes"));
}

/// An element with so many attributes, each with a name of its own.
std::string with_attributes(int count, std::string_view prefix = "a") {
    std::string text = "<e";
    for (int i = 0; i < count; ++i) text += concat(" ", prefix, i, "=\"urn:", i, "\"");
    return text + "/>";
}

// Just above each limit: what costs libxml2 far more than its bytes would take is never given to
// it.
TEST(XmlReaderTest, BoundsWhatCostsAParserTime) {
    EXPECT_TRUE(read_xml(with_attributes(256)).is_ok());
    EXPECT_THAT(refusal(with_attributes(257)), HasSubstr("element with more than 256 attributes"));
    EXPECT_TRUE(read_xml(with_attributes(256, "xmlns:a")).is_ok());
    EXPECT_THAT(refusal(with_attributes(257, "xmlns:a")), HasSubstr("more than 256 attributes"));
    EXPECT_THAT(refusal("<a b=\"\"><c d='' e=''/></a>", {.attributes = 2}),
                HasSubstr("more than 2 attributes"));
    const std::string name(256, 'n');
    EXPECT_TRUE(read_xml(concat("<", name, " ", name, "=\"\"/>")).is_ok());
    EXPECT_THAT(refusal(concat("<n", name, "/>")), HasSubstr("name of more than 256 bytes"));
    EXPECT_THAT(refusal(concat("<a n", name, "=\"\"/>")), HasSubstr("name of more than 256 bytes"));
    EXPECT_TRUE(read_xml(concat("<a b=\"", std::string(1000, 'x'), "\"/>")).is_ok());
    for (const std::string_view declaration : {"xmlns", "xmlns:b"})
        EXPECT_THAT(refusal(concat("<a ", declaration, "=\"", name, "x\"/>")),
                    HasSubstr("namespace of more than 256 bytes"));
}

TEST(XmlReaderTest, BoundsDeclarationsInScopeAlone) {
    const XmlReaderLimits limits{.declarations = 2};
    const std::string_view one = "<b xmlns:y=\"urn:y\"/>";
    EXPECT_TRUE(read_xml(concat("<a xmlns:x=\"urn:x\">", one, one, one, "</a>"), limits).is_ok());
    EXPECT_THAT(
        refusal("<a xmlns:x=\"urn:x\"><b xmlns:y=\"urn:y\"><c xmlns=\"urn:z\"/></b></a>", limits),
        HasSubstr("more than 2 declarations of namespaces at once"));
}

TEST(XmlReaderTest, BoundsLookupsOfPrefixes) {
    const std::string prefix(100, 'p');
    const std::string names = concat("<", prefix, ":b ", prefix, ":c=\"\"/>");
    const std::string declared = concat(" xmlns:", prefix, "=\"urn:p\" xmlns=\"urn:q\"");
    // Two declarations, twice 108 bytes, and 8 of the root.
    const XmlReaderLimits limits{.lookups = 2 * (2 * 108 + 8)};
    EXPECT_TRUE(read_xml(concat("<a", declared, ">", names, "</a>"), limits).is_ok());
    EXPECT_THAT(refusal(concat("<a", declared, ">", names, names, "</a>"), limits),
                HasSubstr("more prefixes than can be looked up among 2 declarations"));
}

TEST(XmlReaderTest, BoundsWhatElseIsListedAndSearched) {
    for (const std::string_view other : {"<!---->", "<?p?>", "<![CDATA[]]>"})
        EXPECT_THAT(refusal(concat("<a>", other, other, "</a>"), {.others = 1}),
                    HasSubstr("more than 1 comments and the like"));
    EXPECT_THAT(refusal("<a xml:id=\"b\"><c xml:id=\"d\"/></a>", {.ids = 1}),
                HasSubstr("more than 1 attributes xml:id"));
}

// libxml2 reads all that follows an & again with every block, until there is a ;.
TEST(XmlReaderTest, RefusesReferencesThatAreNoneBeforeTheParserDoes) {
    EXPECT_EQ(read_xml("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;</a>")->text, "<>&\"'AB");
    for (const std::string_view text :
         {"<a>&</a>", "<a>&&&&</a>", "<a>& lt;</a>", "<a>&l", "<a>&nbsp;</a>", "<a>&#65</a>",
          "<a>&#00000000000000000065;</a>", "<a>&lt</a>"})
        EXPECT_THAT(refusal(text), HasSubstr("not well-formed (line 1)")) << text;
    EXPECT_TRUE(read_xml("<a><!-- & --><![CDATA[&]]><?p &?></a>").is_ok());
}

TEST(XmlReaderTest, BoundsMarkupButNotText) {
    const XmlReaderLimits limits{.markup = 40};
    const std::string fits(20, '>');
    const std::string exceeds(50, '>');
    for (const auto& [opening, closing] : {std::pair{"<a><!--", "--></a>"},
                                           {"<a><?p ", "?></a>"},
                                           {"<a b=\"", "\"/>"},
                                           {"<a b='", "'/>"}}) {
        EXPECT_TRUE(read_xml(concat(opening, fits, closing), limits).is_ok()) << opening;
        EXPECT_THAT(refusal(concat(opening, exceeds, closing), limits),
                    HasSubstr("of more than 40 bytes"));
    }
    EXPECT_THAT(refusal(concat("<a", std::string(50, ' '), "/>"), limits), HasSubstr("than 40"));
    EXPECT_THAT(refusal(concat("<a></a", std::string(50, ' '), ">"), limits), HasSubstr("than 40"));
    EXPECT_TRUE(read_xml(concat("<a>", exceeds, "</a>"), limits).is_ok());
    EXPECT_TRUE(read_xml(concat("<a><![CDATA[", exceeds, "]]></a>"), limits).is_ok());
}

TEST(XmlReaderTest, IsNotMisledByWhatLooksLikeMarkup) {
    const auto root = read_xml(
        "<?xml version='1.0'?><!-- <b> --><a b=\"/>'\" c='\">' ><![CDATA[<b></a>]]><?p <c ?>"
        "<d e = '1'\n/>\n</a >");
    ASSERT_TRUE(root.is_ok()) << root.status().message();
    EXPECT_EQ(*root->attribute("b"), "/>'");
    EXPECT_EQ(*root->attribute("c"), "\">");
    EXPECT_EQ(root->text, "<b></a>\n");
    EXPECT_THAT(refusal("<a>\n<b c></b></a>"), HasSubstr("not well-formed (line 2)"));
    for (const std::string_view text :
         {"<a b/>", "<a b=1/>", "<a b=\"1/>", "<a/ >", "<>", "</a>", "<a></a></a>", "<!ELEMENT a>",
          "<!-- ", "<![CDATA[", "<?p", "< a/>", "<a", "<a ", "<a b", "<a b="})
        EXPECT_THAT(refusal(text), HasSubstr("not well-formed")) << text;
}

}  // namespace
}  // namespace pccl::sys
