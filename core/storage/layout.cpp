#include "core/storage/layout.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/storage/file.hpp"
#include "core/storage/mount_table.hpp"

namespace forebay {
namespace {

constexpr std::size_t attribute_limit = 65536;  ///< XATTR_SIZE_MAX, linux/limits.h.

// Offsets and constants of lustre/include/uapi/linux/lustre/lustre_user.h. The structures are
// packed and grow at their ends; reading fields at offsets needs no Lustre headers to build
// against.
constexpr std::uint32_t lov_magic_v1 = 0x0BD10BD0;
constexpr std::uint32_t lov_magic_v3 = 0x0BD30BD0;
constexpr std::uint32_t lov_magic_specific = 0x0BD50BD0;  ///< v3 with a list of OSTs.
constexpr std::uint32_t lov_magic_composite = 0x0BD60BD0;
constexpr std::size_t plain_pattern_at = 4;
constexpr std::size_t plain_stripe_size_at = 24;
constexpr std::size_t plain_stripe_count_at = 28;
constexpr std::size_t plain_v1_bytes = 32;
constexpr std::size_t plain_v3_bytes = 48;  ///< v1 and the name of the pool.
constexpr std::size_t composite_entry_count_at = 14;
constexpr std::size_t composite_bytes = 32;
constexpr std::size_t entry_bytes = 48;
constexpr std::size_t entry_blob_offset_at = 24;  ///< From the start of the composite.
constexpr std::size_t entry_blob_size_at = 28;
constexpr std::uint32_t pattern_data_on_mdt = 0x100;
constexpr std::uint32_t pattern_foreign = 0x400;
constexpr std::uint16_t all_stripes = 0xffff;

/// The integer at `at`, in host byte order; no value if it does not lie inside.
template <typename Integer>
std::optional<Integer> field(std::span<const std::byte> bytes, std::size_t at) {
  static_assert(std::is_unsigned_v<Integer>);
  if (at > bytes.size() || bytes.size() - at < sizeof(Integer)) return std::nullopt;
  Integer value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::optional<StripeLayout> parse_plain(std::span<const std::byte> blob) {
  const auto magic = field<std::uint32_t>(blob, 0);
  if (!magic) return std::nullopt;
  const bool v1 = *magic == lov_magic_v1;
  if (!v1 && *magic != lov_magic_v3 && *magic != lov_magic_specific) return std::nullopt;
  if (blob.size() < (v1 ? plain_v1_bytes : plain_v3_bytes)) return std::nullopt;

  const auto pattern = field<std::uint32_t>(blob, plain_pattern_at);
  const auto stripe_size = field<std::uint32_t>(blob, plain_stripe_size_at);
  const auto stripe_count = field<std::uint16_t>(blob, plain_stripe_count_at);
  if (!pattern || !stripe_size || !stripe_count) return std::nullopt;
  if ((*pattern & (pattern_data_on_mdt | pattern_foreign)) != 0) return std::nullopt;
  if (*stripe_size == 0 || *stripe_count == 0 || *stripe_count == all_stripes) return std::nullopt;
  return StripeLayout{*stripe_size, *stripe_count, /*lock_conflicts=*/true};
}

std::optional<StripeLayout> parse_composite(std::span<const std::byte> attribute) {
  const auto entries = field<std::uint16_t>(attribute, composite_entry_count_at);
  if (!entries || attribute.size() < composite_bytes) return std::nullopt;
  std::optional<StripeLayout> widest;
  for (std::size_t i = 0; i < *entries; ++i) {
    const std::size_t entry = composite_bytes + i * entry_bytes;
    const auto offset = field<std::uint32_t>(attribute, entry + entry_blob_offset_at);
    const auto size = field<std::uint32_t>(attribute, entry + entry_blob_size_at);
    if (!offset || !size) return std::nullopt;
    if (*offset > attribute.size() || attribute.size() - *offset < *size) return std::nullopt;
    const auto layout = parse_plain(attribute.subspan(*offset, *size));
    if (layout && (!widest || layout->servers > widest->servers)) widest = layout;
  }
  return widest;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The extended attribute `name` of `path`, or of its directory if there is no such file; empty if
/// it has none.
std::vector<std::byte> read_attribute(const std::string& path, const char* name) {
  // Files are opened often, and attributes that describe a layout are mostly short or not there.
  std::vector<std::byte> value(512);
  const auto read_into_value = [&](const std::string& of) {
    ssize_t size = ::getxattr(of.c_str(), name, value.data(), value.size());
    if (size < 0 && errno == ERANGE) {
      value.resize(attribute_limit);
      size = ::getxattr(of.c_str(), name, value.data(), value.size());
    }
    return size;
  };
  ssize_t size = read_into_value(path);
  if (size < 0 && errno == ENOENT) size = read_into_value(directory_of(path));
  value.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return value;
}

struct KnownFileSystem {
  std::uint32_t magic;
  const char* name;
  bool one_writer = false;  ///< Writes through the page cache hold the inode's lock.
};

/// linux/magic.h where it has them; the others are file systems outside of the kernel's tree.
constexpr std::array known_file_systems = {
    KnownFileSystem{EXT4_SUPER_MAGIC, "ext4", true},
    KnownFileSystem{TMPFS_MAGIC, "tmpfs", true},
    KnownFileSystem{RAMFS_MAGIC, "ramfs", true},
    KnownFileSystem{XFS_SUPER_MAGIC, "xfs", true},
    KnownFileSystem{BTRFS_SUPER_MAGIC, "btrfs"},
    KnownFileSystem{NFS_SUPER_MAGIC, "nfs"},
    KnownFileSystem{OVERLAYFS_SUPER_MAGIC, "overlay"},
    KnownFileSystem{CEPH_SUPER_MAGIC, "ceph"},
    KnownFileSystem{SMB2_SUPER_MAGIC, "smb"},
    KnownFileSystem{0x0BD00BD0, "lustre"},
    KnownFileSystem{0x47504653, "gpfs"},
    KnownFileSystem{0x19830326, "beegfs"},
    KnownFileSystem{0x20030528, "orangefs"},
    KnownFileSystem{0x2FC12FC1, "zfs"},
};

/// The magic number of the file system that `path` is on, or will be; none if it has none.
std::optional<std::uint32_t> file_system_magic(const std::string& path) {
  struct statfs status{};
  if (::statfs(path.c_str(), &status) != 0 && ::statfs(directory_of(path).c_str(), &status) != 0) {
    return std::nullopt;
  }
  // f_type is a signed word of the machine's width; the magic numbers have 32 bits.
  return static_cast<std::uint32_t>(status.f_type);
}

const KnownFileSystem* known_file_system(std::optional<std::uint32_t> magic) {
  const auto* const found =
      std::find_if(known_file_systems.begin(), known_file_systems.end(),
                   [magic](const KnownFileSystem& known) { return known.magic == magic; });
  return found == known_file_systems.end() ? nullptr : found;
}

}  // namespace

std::string file_system_name(const std::string& path) {
  const auto magic = file_system_magic(path);
  if (!magic) return "unknown";
  if (*magic == FUSE_SUPER_MAGIC) {
    const std::string type = mounted_type(path);
    return type.starts_with("fuse") ? type : "fuse";
  }
  if (const KnownFileSystem* known = known_file_system(magic)) return known->name;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%x", *magic);
  return text.data();
}

bool coherent_between_hosts(std::string_view file_system) {
  static constexpr std::array caching = {"nfs", "smb", "fuse.glusterfs", "fuse.sshfs"};
  return std::find(caching.begin(), caching.end(), file_system) == caching.end();
}

std::optional<std::uint64_t> file_system_id(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_dev;
}

std::optional<StripeLayout> parse_lustre_layout(std::span<const std::byte> attribute) {
  if (field<std::uint32_t>(attribute, 0) == lov_magic_composite) return parse_composite(attribute);
  return parse_plain(attribute);
}

std::optional<StripeLayout> parse_stripe_attribute(std::string_view attribute) {
  std::optional<std::int64_t> size;
  std::optional<std::int64_t> count;
  std::optional<std::int64_t> lock;
  while (!attribute.empty()) {
    const std::string_view item = attribute.substr(0, attribute.find(','));
    attribute.remove_prefix(std::min(attribute.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = item.substr(0, equals);
    const std::string_view digits = item.substr(equals + 1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
    if (error != std::errc() || end != digits.end()) return std::nullopt;
    if (key == "size") {
      size = value;
    } else if (key == "count") {
      count = value;
    } else if (key == "lock") {
      lock = value;
    } else {
      return std::nullopt;
    }
  }
  if (!size || *size <= 0 || !count || *count <= 0) return std::nullopt;
  if (*count > std::numeric_limits<int>::max() || (lock && *lock != 0 && *lock != 1)) {
    return std::nullopt;
  }
  return StripeLayout{*size, static_cast<int>(*count), lock.value_or(0) == 1};
}

StripeLayout detect_layout(const std::string& path) {
  const auto lustre = read_attribute(path, "lustre.lov");
  if (const auto layout = parse_lustre_layout(lustre)) return *layout;
  const auto testbed = read_attribute(path, "user.forebay.stripe");
  const std::string_view text(reinterpret_cast<const char*>(testbed.data()), testbed.size());
  if (const auto layout = parse_stripe_attribute(text)) return *layout;
  const KnownFileSystem* known = known_file_system(file_system_magic(path));
  return {.one_writer = known != nullptr && known->one_writer};
}

}  // namespace forebay
