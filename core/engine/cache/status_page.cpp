#include "core/engine/cache/status_page.hpp"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/engine/cache/sealed_block.hpp"

namespace forebay {
namespace {

constexpr const char* name = "status";
constexpr Bytes page_bytes = 512;
constexpr BlockKind status_block{"FBWBSTA\n", 1, "write-behind log status"};
constexpr std::chrono::milliseconds period{200};

}  // namespace

StatusPage::StatusPage(LogStore& store) {
  if (auto file = store.create(name, page_bytes)) file_ = std::move(file->storage);
}

void StatusPage::publish(CacheProgress progress, bool now) {
  const std::scoped_lock lock(mutex_);
  const auto time = Clock::now();
  if (file_ == nullptr || (!now && (time - published_ < period || progress == last_))) return;
  published_ = time;
  last_ = progress;
  progress.updated_unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count();
  const auto block = seal_block(status_block,
                                {{"absorbed", progress.absorbed},
                                 {"drained", progress.drained},
                                 {"dirty", progress.dirty},
                                 {"draining", progress.draining},
                                 {"updated_unix_ms", progress.updated_unix_ms}},
                                page_bytes);
  if (!block || !file_->write_at(*block, 0)) file_.reset();
}

Result<CacheProgress> StatusPage::read(LogStore& store) {
  const auto file = store.open(name);
  if (!file) return tl::unexpected(file.error());
  std::vector<std::byte> block(static_cast<std::size_t>(page_bytes));
  const auto got = (*file)->read_at(block, 0);
  if (!got) return tl::unexpected(got.error());
  const auto body = open_block(status_block, block);
  if (!body) return tl::unexpected(body.error());
  CacheProgress progress;
  const bool complete = get_field(*body, "absorbed", progress.absorbed) &&
                        get_field(*body, "drained", progress.drained) &&
                        get_field(*body, "dirty", progress.dirty) &&
                        get_field(*body, "draining", progress.draining) &&
                        get_field(*body, "updated_unix_ms", progress.updated_unix_ms);
  if (!complete) {
    return tl::unexpected(Error{ErrorKind::io, 0, "the write-behind log status lacks a field"});
  }
  return progress;
}

}  // namespace forebay
