// Feeds arbitrary bytes to everything that reads a write-behind log: as a block, as a record, as
// what follows a sound superblock, and as damage to a sound log. Whatever is read must be within
// what is there, in order, and, in a damaged log, be what was written.

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <random>

#include "core/engine/cache/earlier_marks.hpp"
#include "core/engine/cache/log_contents.hpp"
#include "core/engine/cache/log_writer.hpp"
#include "core/engine/cache/memory_log_store.hpp"

namespace {

using namespace forebay;
using Content = std::vector<std::byte>;

/// What an epoch writes, 9000 bytes: what shrinks, or what does not.
Content written(std::uint64_t epoch) {
  Content bytes(9000, static_cast<std::byte>(epoch));
  if (epoch % 2 == 0) {
    std::mt19937_64 random(epoch);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }
  return bytes;
}

/// Two segments, compressed payloads and others, commits, a flush and a truncation.
std::map<std::string, Content> sound_log() {
  MemoryLog log;
  LogIdentity identity;
  identity.log = "log";
  identity.file.path = "/scratch/a";
  LogWriter writer(log.open(), identity, {32 * KiB, 5000, Toggle::enable},
                   *ResourceHolder::join(std::make_shared<Resource>("cache.local", GiB)),
                   [](const LogRecord&, const LogPlace&) {});
  std::uint64_t cut = 0;
  for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
    const Content bytes = written(epoch);
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    assert(writer.append({&piece, 1}, static_cast<Bytes>(epoch) * 100, epoch).status);
    if (epoch < 5) assert(writer.commit(epoch));
    if (epoch == 2) assert(writer.flushed(epoch, 3));
    if (epoch == 3) cut = writer.commit(epoch).value();
  }
  std::map<std::string, Content> files;
  for (auto& [name, content] : log.files()) {
    if (is_segment_name(name)) files[name] = content;
  }
  replace_mark(files, {.kind = RecordKind::truncate, .epoch = 3, .sequence = cut, .value = 50});
  return files;
}

void check(const std::map<std::string, Content>& files, bool genuine) {
  MemoryLog log(files);
  const auto store = log.open();
  const auto contents = read_log(*store, ReadDepth::payloads);
  if (!contents) return;
  std::uint64_t before = contents->flushed;
  Content buffer;
  for (const auto* entries : {&contents->complete, &contents->incomplete}) {
    for (const LogEntry& entry : *entries) {
      assert(entry.record.sequence > before);
      before = entry.record.sequence;
      if (entry.record.kind != RecordKind::data) continue;
      const auto bytes = verified_bytes(entry.place, entry.record.length, buffer);
      assert(bytes);
      if (!genuine) continue;
      const Content wanted = written(entry.record.epoch);
      const auto at = static_cast<std::ptrdiff_t>(entry.record.value - entry.record.epoch * 100);
      assert(std::equal(bytes->begin(), bytes->end(), wanted.begin() + at));
    }
  }
  for (const LogEntry& entry : contents->complete) {
    assert(entry.record.sequence <= contents->committed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::map<std::string, Content> sound = sound_log();
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  (void)parse_superblock(bytes);
  (void)decode_record(bytes, 0);
  if (size == 0) return 0;

  std::map<std::string, Content> files = sound;
  Content& segment = files.begin()->second;
  if (data[0] % 2 == 0) {
    segment.resize(static_cast<std::size_t>(superblock_bytes));
    segment.insert(segment.end(), bytes.begin() + 1, bytes.end());
    check(files, false);
    return 0;
  }
  // Three bytes a change: where, and what is turned over there. A change of nothing cuts.
  for (std::size_t at = 1; at + 3 <= size; at += 3) {
    const auto where = static_cast<std::size_t>(data[at] | data[at + 1] << 8);
    for (auto& [name, content] : files) {
      if (content.empty()) continue;
      if (data[at + 2] == 0) {
        content.resize(where % content.size());
      } else {
        content[where % content.size()] ^= static_cast<std::byte>(data[at + 2]);
      }
    }
  }
  check(files, true);
  return 0;
}
