// Goal: the checksum is CRC-32C as others compute it, in one piece or in several.
// Method: the test vectors of RFC 3720, appendix B.4, and every division of one text.

#include "core/engine/cache/crc32c.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace forebay {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Crc32c, AgreesWithTheVectorsOfRfc3720) {
  EXPECT_EQ(crc32c(bytes("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43U);
  std::vector<std::byte> rising;
  for (int i = 0; i < 32; ++i) rising.push_back(static_cast<std::byte>(i));
  EXPECT_EQ(crc32c(rising), 0x46dd794eU);
}

TEST(Crc32c, OfNothingIsWhatCameBefore) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c({}, 17), 17U);
}

TEST(Crc32c, ContinuesFromAnyPlace) {
  const std::string_view text = "a forebay takes the flow and releases it evenly";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes(text.substr(cut)), crc32c(bytes(text.substr(0, cut)))),
              crc32c(bytes(text)));
  }
}

TEST(Crc32c, DiffersUnderAnotherSalt) { EXPECT_NE(crc32c(bytes("x"), 1), crc32c(bytes("x"), 2)); }

}  // namespace
}  // namespace forebay
