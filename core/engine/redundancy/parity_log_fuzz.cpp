// Feeds arbitrary bytes to everything that reads a parity log: as the header of a stripe, as what
// follows a sound superblock, and as damage to a sound parity log of which a lost log is rebuilt.
// Whatever comes out is what was written, or is said to be missing.

#include <cassert>
#include <cstdint>
#include <map>

#include "core/engine/redundancy/protection_rig.hpp"

namespace {

using namespace forebay;
using Content = std::vector<std::byte>;
using Files = std::map<std::string, Content>;

struct Sound {
  ProtectionRig rig{3, 1};
  Files parity;

  Sound() {
    for (int step = 0; step < 3; ++step) {
      for (std::size_t member = 0; member < 3; ++member) {
        rig.append(member, step * 1000, Content(300 + 50 * member, std::byte(step * 16 + 1)));
      }
      rig.commit();
      if (!rig.protect()) std::abort();
    }
    for (auto& [name, content] : rig.parities[0].log->files()) {
      if (is_segment_name(name)) parity[name] = content;
    }
  }
};

void check(const Sound& sound, const Files& files) {
  MemoryLog log(files);
  const auto store = log.open();
  auto contents = read_parity_log(*store, ReadDepth::payloads);
  if (!contents) return;
  std::uint64_t before = 0;
  for (const StoredStripe& stored : contents->stripes) {
    assert(stored.stripe.generation > before);
    before = stored.stripe.generation;
  }
  Wreck wreck(sound.rig, {1}, {0});
  wreck.parity.push_back(std::move(*contents));
  const auto report = wreck.rebuild_lost();
  if (!report) return;
  const auto rebuilt = read_log(*wreck.lost.at("log-1"), ReadDepth::payloads);
  if (!rebuilt) return;
  Content buffer;
  for (const LogEntry& entry : rebuilt->complete) {
    if (entry.record.kind != RecordKind::data) continue;
    const auto bytes = verified_bytes(entry.place, entry.record.length, buffer);
    assert(bytes);
    const auto& written = sound.rig.members[1]->written;
    const auto known =
        std::ranges::find(written, entry.record.sequence, &ProtectionRig::Written::sequence);
    assert(known != written.end());
    assert(std::equal(bytes->begin(), bytes->end(), known->bytes.begin(), known->bytes.end()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sound sound;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto stripe = parse_stripe(bytes)) {
    const auto again = parse_stripe(encode_stripe(*stripe));
    if (!again || !again->same_stripe(*stripe)) std::abort();
  }
  if (size == 0) return 0;

  Files files = sound.parity;
  Content& segment = files.begin()->second;
  if (data[0] % 2 == 0) {
    segment.resize(static_cast<std::size_t>(superblock_bytes));
    segment.insert(segment.end(), bytes.begin() + 1, bytes.end());
  } else {
    // Three bytes a change: where, and what is turned over there. A change of nothing cuts.
    for (std::size_t at = 1; at + 3 <= size; at += 3) {
      const auto where = static_cast<std::size_t>(data[at] | data[at + 1] << 8);
      if (segment.empty()) break;
      if (data[at + 2] == 0) {
        segment.resize(where % segment.size());
      } else {
        segment[where % segment.size()] ^= static_cast<std::byte>(data[at + 2]);
      }
    }
  }
  check(sound, files);
  return 0;
}
