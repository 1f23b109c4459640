#include "testbed/node_table.hpp"

#include <cassert>
#include <utility>

namespace forebay::testbed {

NodeTable::NodeTable(FileDescriptor root, NodeId root_id, NodeId first_id)
    : root_id_(root_id), next_id_(first_id) {
  assert(root_id < first_id);
  struct stat status{};
  ::fstat(root.get(), &status);
  const Key key{status.st_dev, status.st_ino};
  auto node = std::make_shared<Node>(Node{root_id, std::move(root)});
  entries_.emplace(root_id, Entry{std::move(node), key, 1});
  ids_.emplace(key, root_id);
}

std::shared_ptr<Node> NodeTable::find(NodeId id) const {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(id);
  return entry == entries_.end() ? nullptr : entry->second.node;
}

std::shared_ptr<Node> NodeTable::enter(FileDescriptor fd, const struct stat& status) {
  const Key key{status.st_dev, status.st_ino};
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = ids_.try_emplace(key, next_id_);
  if (is_new) {
    auto node = std::make_shared<Node>(Node{next_id_, std::move(fd)});
    entries_.emplace(next_id_++, Entry{std::move(node), key, 0});
  }
  Entry& entry = entries_.at(known->second);
  entry.lookups += 1;
  return entry.node;
}

void NodeTable::forget(NodeId id, std::uint64_t lookups) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end() || id == root_id_) return;
  assert(lookups <= entry->second.lookups);
  entry->second.lookups -= lookups;
  if (entry->second.lookups > 0) return;
  ids_.erase(entry->second.key);
  entries_.erase(entry);
}

std::size_t NodeTable::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace forebay::testbed
