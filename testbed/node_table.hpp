#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "testbed/file_descriptor.hpp"

namespace forebay::testbed {

using NodeId = std::uint64_t;

/// A file, directory or link of the backing directory that the kernel knows by number. The O_PATH
/// descriptor keeps the backing inode alive, so that its (device, inode) pair cannot come to mean
/// another file while the node exists, whatever is renamed or unlinked meanwhile.
struct Node {
  NodeId id = 0;
  FileDescriptor fd;  ///< O_PATH

  /// A path that leads to the node itself, for calls that take no O_PATH descriptor.
  std::string proc_path() const { return "/proc/self/fd/" + std::to_string(fd.get()); }
};

/// The nodes the kernel knows. Thread-safe. Node ids are never used again.
class NodeTable {
 public:
  /// `root` gets the id `root_id`; new nodes get ids from `first_id` on.
  NodeTable(FileDescriptor root, NodeId root_id, NodeId first_id);

  /// The node, or null if the kernel was never told of it or has forgotten it.
  std::shared_ptr<Node> find(NodeId id) const;

  /// The node of an open backing file, known or new, with one more look-up counted. `status` is
  /// fd's own.
  std::shared_ptr<Node> enter(FileDescriptor fd, const struct stat& status);

  /// The kernel drops `lookups` of its look-ups; without any left the node is forgotten.
  void forget(NodeId id, std::uint64_t lookups);

  std::size_t size() const;

 private:
  using Key = std::pair<dev_t, ino_t>;
  struct Entry {
    std::shared_ptr<Node> node;
    Key key;
    std::uint64_t lookups = 0;
  };

  mutable std::mutex mutex_;
  NodeId root_id_;
  NodeId next_id_;
  std::unordered_map<NodeId, Entry> entries_;
  std::map<Key, NodeId> ids_;
};

}  // namespace forebay::testbed
