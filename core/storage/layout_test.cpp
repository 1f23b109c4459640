// Goal: layouts are found where file systems keep them, and damaged ones are refused.
// Method: Lustre's attribute is laid out here byte by byte after lustre_user.h, since no test
// machine has Lustre; the testbed's attribute is set on real files where the file system stores
// user attributes.

#include "core/storage/layout.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/storage/file.hpp"

namespace forebay {
namespace {

/// Appends integers as the machine has them in memory.
class Blob {
 public:
  template <typename Integer>
  Blob& put(Integer value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  Blob& put_zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  Blob& put_blob(const std::vector<std::byte>& other) {
    bytes_.insert(bytes_.end(), other.begin(), other.end());
    return *this;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct Plain {
  std::uint32_t magic = 0x0BD10BD0;
  std::uint32_t pattern = 1;
  std::uint32_t stripe_size = 1 << 20;
  std::uint16_t stripe_count = 4;
};

std::vector<std::byte> plain(const Plain& md) {
  Blob blob;
  blob.put(md.magic).put(md.pattern).put_zeros(16).put(md.stripe_size).put(md.stripe_count);
  blob.put(std::uint16_t{0});
  if (md.magic != 0x0BD10BD0) blob.put_zeros(16);
  const std::size_t objects = md.stripe_count == 0xffff ? 0 : md.stripe_count;
  return blob.put_zeros(24 * objects).bytes();
}

std::vector<std::byte> composite(const std::vector<std::vector<std::byte>>& components) {
  const auto count = static_cast<std::uint16_t>(components.size());
  Blob blob;
  blob.put(std::uint32_t{0x0BD60BD0}).put_zeros(10).put(count).put_zeros(16);
  std::uint32_t offset = 32 + 48 * std::uint32_t{count};
  for (const auto& component : components) {
    const auto size = static_cast<std::uint32_t>(component.size());
    blob.put_zeros(24).put(offset).put(size).put_zeros(16);
    offset += size;
  }
  for (const auto& component : components) blob.put_blob(component);
  return blob.bytes();
}

TEST(LustreLayout, PlainOfVersionOneAndThree) {
  const StripeLayout expected{MiB, 4, true};
  EXPECT_EQ(parse_lustre_layout(plain({})), expected);
  EXPECT_EQ(parse_lustre_layout(plain({.magic = 0x0BD30BD0})), expected);
  EXPECT_EQ(parse_lustre_layout(plain({.magic = 0x0BD50BD0})), expected);
}

TEST(LustreLayout, TheWidestComponentStandsForAProgressiveFile) {
  const auto layout = parse_lustre_layout(composite({
      plain({.pattern = 0x100, .stripe_count = 0}),             // Data on the metadata server.
      plain({.stripe_size = 1 << 20, .stripe_count = 1}),       // Up to 64 MiB, say.
      plain({.stripe_size = 1 << 22, .stripe_count = 16}),      // Up to 64 GiB.
      plain({.stripe_size = 1 << 24, .stripe_count = 0xffff}),  // Behind that: "all".
  }));
  EXPECT_EQ(layout, (StripeLayout{4 * MiB, 16, true}));
}

TEST(LustreLayout, LayoutsThatNameNoServersGiveNone) {
  EXPECT_EQ(parse_lustre_layout(plain({.pattern = 0x100})), std::nullopt);
  EXPECT_EQ(parse_lustre_layout(plain({.pattern = 0x400})), std::nullopt);
  EXPECT_EQ(parse_lustre_layout(plain({.stripe_size = 0})), std::nullopt);
  EXPECT_EQ(parse_lustre_layout(plain({.stripe_count = 0})), std::nullopt);
  EXPECT_EQ(parse_lustre_layout(plain({.stripe_count = 0xffff})), std::nullopt);
  EXPECT_EQ(parse_lustre_layout(plain({.magic = 0x0BD70BD0})), std::nullopt);
}

TEST(LustreLayout, EveryTruncationIsRefusedOrHarmless) {
  for (const auto& whole : {plain({}), plain({.magic = 0x0BD30BD0}), composite({plain({})})}) {
    const auto layout = parse_lustre_layout(whole);
    ASSERT_TRUE(layout);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const auto cut = parse_lustre_layout(std::span(whole).first(length));
      // The list of objects behind the header is not read, so its loss changes nothing.
      EXPECT_TRUE(cut == std::nullopt || cut == layout) << length;
      EXPECT_TRUE(cut == std::nullopt || length >= 32) << length;
    }
  }
}

TEST(LustreLayout, AComponentOutsideOfTheAttributeIsRefused) {
  auto bytes = composite({plain({})});
  const std::uint32_t far = 0xfffffff0;
  std::memcpy(bytes.data() + 32 + 24, &far, sizeof far);
  EXPECT_EQ(parse_lustre_layout(bytes), std::nullopt);
}

TEST(StripeAttribute, IsReadStrictly) {
  EXPECT_EQ(parse_stripe_attribute("size=65536,count=4,lock=1"), (StripeLayout{65536, 4, true}));
  EXPECT_EQ(parse_stripe_attribute("count=4,size=65536"), (StripeLayout{65536, 4, false}));
  for (const char* wrong :
       {"", ",", "size", "size=", "size=65536", "count=4", "size=0,count=4", "size=1,count=0",
        "size=-1,count=4", "size=1,count=4,lock=2", "size=1k,count=4", "size=1,count=4,more=1",
        "size=1,count=99999999999", "size=99999999999999999999,count=1", "size=1, count=4"}) {
    EXPECT_EQ(parse_stripe_attribute(wrong), std::nullopt) << wrong;
  }
}

TEST(DetectLayout, ReadsTheTestbedsAttributeOfFileOrDirectory) {
  std::string directory = testing::TempDir() + "forebay-layout-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string file = directory + "/data";
  const std::string_view wide = "size=4096,count=8,lock=0";
  const bool stored =
      ::setxattr(directory.c_str(), "user.forebay.stripe", wide.data(), wide.size(), 0) == 0;
  const int attribute_errno = errno;
  if (stored) {
    EXPECT_EQ(detect_layout(file), (StripeLayout{4096, 8, false})) << "a file yet to be made";
    EXPECT_EQ(detect_layout(directory), (StripeLayout{4096, 8, false}));
    EXPECT_EQ(::close(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)), 0);
    EXPECT_FALSE(detect_layout(file).striped()) << "a file without attribute is not striped";
    const std::string_view narrow = "size=65536,count=2,lock=1";
    EXPECT_EQ(::setxattr(file.c_str(), "user.forebay.stripe", narrow.data(), narrow.size(), 0), 0);
    Counters counters;
    const auto open = open_posix_file(file, OpenMode::read_write, counters);
    ASSERT_TRUE(open);
    EXPECT_EQ((*open)->layout(), (StripeLayout{65536, 2, true}));
    ::unlink(file.c_str());
  }
  ::rmdir(directory.c_str());
  if (!stored) {
    ASSERT_EQ(attribute_errno, ENOTSUP);
    GTEST_SKIP() << directory << " is on a file system without user attributes";
  }
}

TEST(DetectLayout, AnOrdinaryFileIsNotStriped) {
  EXPECT_FALSE(detect_layout("/proc/self/status").striped());
  EXPECT_FALSE(detect_layout("/no/such/directory/file").striped());
  EXPECT_FALSE(detect_layout("/no/such/directory/file").one_writer);
}

TEST(FileSystemId, IsOneNumberForEachFileSystem) {
  const auto proc = file_system_id("/proc/self/status");
  ASSERT_TRUE(proc);
  EXPECT_EQ(file_system_id("/proc/version"), proc);
  EXPECT_NE(file_system_id(testing::TempDir()), proc);
  EXPECT_EQ(file_system_id("/no/such/directory/file"), std::nullopt);
}

TEST(FileSystemName, KnowsFileSystemsAndFilesYetToBeMade) {
  EXPECT_EQ(file_system_name("/no/such/directory/file"), "unknown");
  EXPECT_EQ(file_system_name("/proc/self/status"), "0x9fa0")
      << "PROC_SUPER_MAGIC: no place for data";
  EXPECT_EQ(file_system_name("/proc/no-such-file"), "0x9fa0");
  const std::string here = file_system_name(testing::TempDir());
  EXPECT_EQ(file_system_name(testing::TempDir() + "yet-to-be-made"), here);
  EXPECT_NE(here, "unknown");
}

TEST(FileSystemName, TellsWhoseClientsSeeEachOthersBytes) {
  for (const char* parallel :
       {"lustre", "gpfs", "beegfs", "fuse", "fuse.forebay-testbed", "ext4", "tmpfs"}) {
    EXPECT_TRUE(coherent_between_hosts(parallel)) << parallel;
  }
  for (const char* caching : {"nfs", "smb", "fuse.glusterfs", "fuse.sshfs"}) {
    EXPECT_FALSE(coherent_between_hosts(caching)) << caching;
  }
}

}  // namespace
}  // namespace forebay
