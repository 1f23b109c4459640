#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "core/model/strided_tree_nodes.hpp"

// docs/formats/view-tree.md

namespace forebay {
namespace {

constexpr std::array<std::byte, 4> magic = {std::byte{'F'}, std::byte{'B'}, std::byte{'V'},
                                            std::byte{'T'}};
constexpr std::uint32_t version = 1;
constexpr std::size_t header_bytes = 16;
constexpr std::uint8_t empty_tree = 0;  ///< In place of the kind of a root: there is no node.

using Wire = std::vector<std::byte>;

void put_fixed(Wire& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t get_fixed(std::span<const std::byte> in, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(in[at + i]) << (8 * i);
  return value;
}

/// Seven bits a byte, lowest first; the high bit says that more follow.
void put_count(Wire& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

/// Small magnitudes of either sign become small counts: 0, -1, 1, -2, ...
void put_signed(Wire& out, std::int64_t value) {
  put_count(out,
            (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void put_steps(Wire& out, const Bytes* offsets, std::int64_t count) {
  for (std::int64_t i = 1; i < count; ++i) put_signed(out, offsets[i] - offsets[i - 1]);
}

/// Recursion is bounded by max_tree_depth.
void put_node(Wire& out, const TreeShape& shape, const TreeNode& node) {
  out.push_back(static_cast<std::byte>(node.kind));
  put_count(out, static_cast<std::uint64_t>(node.count));
  switch (node.kind) {
    case NodeKind::run:
      put_count(out, static_cast<std::uint64_t>(node.block));
      if (node.count > 1) put_signed(out, node.stride);
      break;
    case NodeKind::equal_blocks:
      put_count(out, static_cast<std::uint64_t>(node.block));
      put_steps(out, shape.offsets(node), node.count);
      break;
    case NodeKind::blocks:
      for (std::int64_t i = 0; i < node.count; ++i) {
        put_count(out,
                  static_cast<std::uint64_t>(shape.prefix(node)[i + 1] - shape.prefix(node)[i]));
      }
      put_steps(out, shape.offsets(node), node.count);
      break;
    case NodeKind::strided:
      put_signed(out, node.stride);
      put_node(out, shape, shape.child(node));
      break;
    case NodeKind::indexed:
      put_steps(out, shape.offsets(node), node.count);
      put_node(out, shape, shape.child(node));
      break;
    case NodeKind::sequence:
      put_steps(out, shape.offsets(node), node.count);
      for (std::int64_t i = 0; i < node.count; ++i) put_node(out, shape, shape.child(node, i));
      break;
  }
}

Wire shape_wire(const TreeShape& shape) {
  Wire out;
  if (shape.empty()) {
    out.push_back(std::byte{empty_tree});
  } else {
    put_node(out, shape, shape.root());
  }
  return out;
}

/// Reads a body; the first failure sticks and is told by `problem`.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}

  const std::string& problem() const { return problem_; }

  std::uint64_t count() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == in_.size()) return fail("it is cut short");
      const auto byte = std::to_integer<std::uint64_t>(in_[at_++]);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return fail("a number is too long");
  }

  std::int64_t signed_number() {
    const std::uint64_t value = count();
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }

  /// A number of bytes or copies, from 1 to 2^62.
  std::int64_t positive() {
    const std::uint64_t value = count();
    if (value < 1 || value > std::uint64_t{max_tree_bytes}) {
      fail("a count or length is out of range");
      return 1;
    }
    return static_cast<std::int64_t>(value);
  }

  /// A number of entries of which all but the first take `least` bytes or more. Checked, so that
  /// the wire's length bounds the memory taken.
  std::int64_t entries(std::size_t least) {
    const std::int64_t value = positive();
    if (static_cast<std::uint64_t>(value - 1) > (in_.size() - at_) / least) {
      fail("it is cut short");
      return 1;
    }
    return value;
  }

  std::vector<Bytes> offsets(std::int64_t entries) {
    std::vector<Bytes> values{0};
    values.reserve(static_cast<std::size_t>(entries));
    for (std::int64_t i = 1; i < entries && problem_.empty(); ++i) {
      const Wide next = Wide{values.back()} + signed_number();
      if (next < -max_tree_bytes || next > max_tree_bytes) fail("an offset is out of range");
      values.push_back(static_cast<Bytes>(next));
    }
    values.resize(static_cast<std::size_t>(entries));
    return values;
  }

  /// The tree of one node, its first byte at 0. Recursion is bounded by `depth_left`.
  StridedTree node(int depth_left) {
    if (at_ == in_.size()) return failed_tree("it is cut short");
    if (depth_left == 0) return failed_tree("it is nested too deeply");
    const auto kind = std::to_integer<std::uint8_t>(in_[at_++]);
    if (kind == empty_tree) return {};
    switch (static_cast<NodeKind>(kind)) {
      case NodeKind::run: {
        const std::int64_t blocks = positive();
        const StridedTree block = made(TreeBuilder::contiguous(positive()));
        return made(TreeBuilder::strided(blocks, blocks > 1 ? signed_number() : 0, block));
      }
      case NodeKind::equal_blocks: {
        const std::int64_t blocks = entries(1);
        const std::vector<Bytes> lengths(static_cast<std::size_t>(blocks), positive());
        return made(TreeBuilder::indexed(offsets(blocks), lengths));
      }
      case NodeKind::blocks: {
        const std::int64_t blocks = entries(2);
        std::vector<Bytes> lengths;
        lengths.reserve(static_cast<std::size_t>(blocks));
        for (std::int64_t i = 0; i < blocks; ++i) lengths.push_back(positive());
        return made(TreeBuilder::indexed(offsets(blocks), lengths));
      }
      case NodeKind::strided: {
        const std::int64_t copies = positive();
        const Bytes stride = signed_number();
        return made(TreeBuilder::strided(copies, stride, node(depth_left - 1)));
      }
      case NodeKind::indexed: {
        const std::vector<Bytes> starts = offsets(entries(1));
        return made(TreeBuilder::indexed(starts, node(depth_left - 1)));
      }
      case NodeKind::sequence: {
        std::vector<StridedTree::Placed> children;
        for (const Bytes start : offsets(entries(3))) {
          if (!problem_.empty()) break;
          children.push_back({start, node(depth_left - 1)});
        }
        return made(TreeBuilder::sequence(std::move(children)));
      }
    }
    return failed_tree("a node is of no known kind");
  }

 private:
  std::uint64_t fail(const char* reason) {
    if (problem_.empty()) problem_ = reason;
    return 1;
  }

  StridedTree failed_tree(const char* reason) {
    fail(reason);
    return {};
  }

  StridedTree made(TreeBuilder::Maybe tree) {
    return tree && problem_.empty() ? *std::move(tree)
                                    : failed_tree("it spans more than 2^62 bytes");
  }

  std::span<const std::byte> in_;
  std::size_t at_ = 0;
  std::string problem_;
};

tl::unexpected<Error> malformed(const std::string& reason) {
  return tl::unexpected(
      Error{ErrorKind::invalid_argument, 0, "description of a file view: " + reason});
}

}  // namespace

std::vector<std::byte> StridedTree::serialize() const {
  Wire body;
  put_signed(body, origin_);
  const Wire shape = shape_wire(*shape_);
  body.insert(body.end(), shape.begin(), shape.end());

  Wire out(magic.begin(), magic.end());
  put_fixed(out, version, 4);
  put_fixed(out, XXH3_64bits(body.data(), body.size()), 8);
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

Result<StridedTree> StridedTree::parse(std::span<const std::byte> wire) {
  if (wire.size() < header_bytes) return malformed("it is cut short");
  if (std::memcmp(wire.data(), magic.data(), magic.size()) != 0) {
    return malformed("it does not start with FBVT");
  }
  if (get_fixed(wire, 4, 4) != version) return malformed("its version is not 1");
  const std::span<const std::byte> body = wire.subspan(header_bytes);
  if (get_fixed(wire, 8, 8) != XXH3_64bits(body.data(), body.size())) {
    return malformed("its checksum does not fit");
  }

  Reader reader(body);
  const Bytes origin = reader.signed_number();
  const StridedTree shape = reader.node(max_tree_depth);
  if (!reader.problem().empty()) return malformed(reader.problem());
  const TreeBuilder::Maybe tree = TreeBuilder::shifted(shape, origin);
  if (!tree) return malformed("it lies beyond 2^62 bytes");
  // Whatever is left over, spelt differently or not in canonical form shows here.
  const Wire again = tree->serialize();
  if (again.size() != wire.size() || std::memcmp(again.data(), wire.data(), wire.size()) != 0) {
    return malformed("it is not in canonical form");
  }
  return *tree;
}

std::uint64_t StridedTree::fingerprint() const {
  std::uint64_t hash = shape_->hash.load(std::memory_order_relaxed);
  if (hash == 0) {
    const Wire wire = shape_wire(*shape_);
    hash = XXH3_64bits(wire.data(), wire.size());
    shape_->hash.store(hash, std::memory_order_relaxed);
  }
  return XXH3_64bits_withSeed(&hash, sizeof(hash), static_cast<std::uint64_t>(origin_));
}

}  // namespace forebay
