#include "core/engine/redundancy/remade_store.hpp"

#include <string_view>
#include <utility>

namespace forebay {
namespace {

constexpr std::string_view prefix = "remade-";

std::string place_of(const std::string& name) { return std::string(prefix) + name; }

}  // namespace

Result<std::unique_ptr<RemadeStore>> RemadeStore::make(LogStore& log) {
  std::unique_ptr<RemadeStore> store(new RemadeStore(log));
  if (auto removed = store->destroy(); !removed) return tl::unexpected(removed.error());
  return store;
}

Result<LogFile> RemadeStore::create(const std::string& name, Bytes size) {
  return log_.create(place_of(name), size);
}

Result<std::unique_ptr<StorageFile>> RemadeStore::open(const std::string& name) {
  return log_.open(place_of(name));
}

Result<std::vector<std::string>> RemadeStore::list() {
  const auto all = log_.list();
  if (!all) return all;
  std::vector<std::string> names;
  for (const std::string& name : *all) {
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

Status RemadeStore::rename(const std::string& from, const std::string& to) {
  return log_.rename(place_of(from), place_of(to));
}

Status RemadeStore::move_to(LogStore& other, const std::string& name, const std::string& as) {
  return log_.move_to(other, place_of(name), as);
}

Status RemadeStore::remove(const std::string& name) { return log_.remove(place_of(name)); }

Status RemadeStore::destroy() {
  const auto names = list();
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (auto removed = remove(name); !removed) return removed;
  }
  return {};
}

}  // namespace forebay
