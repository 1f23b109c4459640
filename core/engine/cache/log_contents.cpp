#include "core/engine/cache/log_contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>

#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/cache/sealed_block.hpp"
#include "core/engine/cache/side_by_side.hpp"

namespace forebay {
namespace {

Bytes payload_bytes(const std::vector<LogEntry>& entries) {
  return std::accumulate(
      entries.begin(), entries.end(), Bytes{0},
      [](Bytes sum, const LogEntry& entry) { return sum + Bytes{entry.record.length}; });
}

/// A segment that cannot be read at all.
struct Unopened {
  std::uint64_t number = 0;
  Error error;
};

/// A record of the log and where it was found.
struct Located {
  FoundRecord found;
  std::shared_ptr<const LogSegment> segment;

  std::uint64_t sequence() const { return found.record.sequence; }
};

/// One log that is read: opened, then each of its segments scanned, then judged.
class Reading {
 public:
  Reading(const LogParts& parts, ReadDepth depth)
      : store_(*parts.store), remade_(parts.remade), depth_(depth) {}

  void open() {
    opened_ = open_segments();
    findings_.resize(opened_ ? segments_.size() : 0);
  }

  std::size_t segments() const { return findings_.size(); }

  /// Segments may be scanned by several threads.
  void scan(std::size_t segment, const ScanProgress& progress) {
    findings_[segment] = scan_segment(*segments_[segment], depth_, progress);
  }

  Result<LogContents> judge() {
    if (!opened_) return tl::unexpected(opened_.error());
    for (std::size_t segment = 0; segment < findings_.size(); ++segment) collect(segment);
    // Sequence numbers say the order, wherever a record lies; a second copy says nothing new.
    std::ranges::stable_sort(records_, {}, [](const Located& located) {
      return std::pair(located.sequence(), !located.found.intact);
    });
    const auto end = std::unique(
        records_.begin(), records_.end(),
        [](const Located& a, const Located& b) { return a.sequence() == b.sequence(); });
    records_.erase(end, records_.end());
    find_marks();
    for (LogStore* const store : {&store_, remade_}) {
      if (store == nullptr) continue;
      const auto marked = FlushMark::read(*store);
      if (!marked) return tl::unexpected(marked.error());
      contents_.flushed = std::max(contents_.flushed, *marked);
    }
    judge_unopened();
    sort_out();
    return std::move(contents_);
  }

 private:
  Status open_segments() {
    if (auto opened = open_segments_of(store_); !opened) return opened;
    if (remade_ != nullptr) {
      if (auto opened = open_segments_of(*remade_); !opened) return opened;
    }
    // In the middle of a log that is damage; at its end a crash of the node did it.
    for (const std::uint64_t number : never_written_) {
      const bool last = std::ranges::all_of(
          segments_, [&](const auto& segment) { return segment->superblock().segment < number; });
      if (!last) unopened_.push_back({number, {ErrorKind::io, 0, "its superblock is all zeros"}});
    }
    open_remade_originals();
    if (segments_.empty()) {
      if (!unopened_.empty()) return tl::unexpected(unopened_.front().error);
      return tl::unexpected(Error{ErrorKind::no_such_file, 0,
                                  "the write-behind log " + store_.path() + " holds nothing"});
    }
    std::ranges::sort(segments_, {}, [](const std::shared_ptr<LogSegment>& segment) {
      return segment->superblock().segment;
    });
    contents_.identity = segments_.front()->superblock().identity;
    leave_out_other_logs();
    // What came before the first segment that is left was flushed, else it would be there.
    const Superblock& first = segments_.front()->superblock();
    const bool all_before = std::ranges::all_of(
        unopened_, [&](const Unopened& unopened) { return unopened.number > first.segment; });
    if (all_before) contents_.flushed = first.first_sequence - 1;
    for (const auto& segment : segments_) {
      contents_.stored_bytes += segment->superblock().segment_bytes;
    }
    return {};
  }

  /// What was made again is what was protected. Behind it there may be more, which is looked for
  /// in the segment that lost its superblock, by the one that was made again. Of a segment that
  /// cannot be read nobody knows; where it is not the last one, what follows it tells.
  void open_remade_originals() {
    std::vector<std::uint64_t> lost = std::move(never_written_);
    std::erase_if(unopened_, [&](const Unopened& unopened) {
      if (!remade_numbers_.contains(unopened.number)) return false;
      lost.push_back(unopened.number);
      return true;
    });
    const std::vector<std::shared_ptr<LogSegment>> opened = segments_;
    for (const auto& segment : opened) {
      const Superblock& superblock = segment->superblock();
      if (std::ranges::find(lost, superblock.segment) == lost.end()) continue;
      auto file = open_file(store_, segment_name(superblock.segment));
      if (file) {
        segments_.push_back(std::make_shared<LogSegment>(std::move(*file), superblock));
      } else if (is_last(superblock.segment)) {
        contents_.damage.push_back({0, 0, std::nullopt, to_string(file.error())});
      }
    }
  }

  bool is_last(std::uint64_t number) const {
    return std::ranges::none_of(segments_, [number](const std::shared_ptr<LogSegment>& segment) {
      return segment->superblock().segment > number;
    });
  }

  Status open_segments_of(LogStore& store) {
    const auto names = store.list();
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names) {
      if (!is_segment_name(name)) continue;
      auto segment = open_segment(store, name);
      if (!segment) {
        // What a newer version wrote is not for us to judge.
        if (segment.error().kind == ErrorKind::unsupported) return tl::unexpected(segment.error());
        unopened_.push_back({segment_number(name), segment.error()});
        continue;
      }
      if (*segment == nullptr) {
        never_written_.push_back(segment_number(name));
        continue;
      }
      if (&store == remade_) remade_numbers_.insert((*segment)->superblock().segment);
      segments_.push_back(std::move(*segment));
    }
    return {};
  }

  /// Of headers alone there is less to copy than there are pages to map.
  Result<LogFile> open_file(LogStore& store, const std::string& name) const {
    return depth_ == ReadDepth::payloads ? store.open_contents(name)
                                         : store.open(name).map(LogFile::of);
  }

  /// Null: what was written to it never reached the device.
  Result<std::shared_ptr<LogSegment>> open_segment(LogStore& store, const std::string& name) const {
    auto file = open_file(store, name);
    if (!file) return tl::unexpected(file.error());
    std::vector<std::byte> block(static_cast<std::size_t>(superblock_bytes));
    const auto got = file->storage->read_at(block, 0);
    if (!got) return tl::unexpected(got.error());
    block.resize(static_cast<std::size_t>(*got));
    if (all_zeros(block)) return std::shared_ptr<LogSegment>();
    auto superblock = parse_superblock(block);
    if (!superblock) return fail_in(store.path() + "/" + name, superblock.error());
    return std::make_shared<LogSegment>(std::move(*file), std::move(*superblock));
  }

  /// Segments that somebody put there. The log's own are those of the name that its directory has,
  /// or, where it has another name by now, of the first.
  void leave_out_other_logs() {
    const std::string name = std::filesystem::path(store_.path()).filename();
    for (const auto& segment : segments_) {
      if (segment->superblock().identity.log == name) {
        contents_.identity = segment->superblock().identity;
        break;
      }
    }
    std::erase_if(segments_, [&](const auto& segment) {
      const Superblock& superblock = segment->superblock();
      if (superblock.identity.log == contents_.identity.log) return false;
      contents_.damage.push_back(
          {0, 0, std::nullopt,
           fmt::format("segment {} in {} is of the log {}: put it into a directory of that name",
                       superblock.segment, store_.path(), superblock.identity.log)});
      return true;
    });
  }

  void collect(std::size_t segment) {
    const SegmentFindings findings = std::move(findings_[segment]);
    for (const FoundRecord& found : findings.records) {
      records_.push_back({found, segments_[segment]});
    }
    const std::uint64_t number = segments_[segment]->superblock().segment;
    const bool is_made_again = remade_numbers_.contains(number) && !is_last(number);
    if (!findings.readable && !is_made_again) {
      contents_.damage.push_back({0, 0, std::nullopt, to_string(findings.readable.error())});
    }
  }

  void find_marks() {
    for (const Located& located : records_) {
      if (!located.found.intact) continue;
      const LogRecord& record = located.found.record;
      contents_.last_epoch = std::max(contents_.last_epoch, record.epoch);
      if (record.kind == RecordKind::commit) contents_.committed = record.sequence;
      if (record.kind == RecordKind::flushed) {
        contents_.flushed = std::max(contents_.flushed, record.value);
      }
    }
  }

  /// A segment without a superblock is of no consequence if what it held is flushed.
  void judge_unopened() {
    for (const Unopened& unopened : unopened_) {
      const bool needless = std::ranges::any_of(segments_, [&](const auto& segment) {
        const Superblock& superblock = segment->superblock();
        return superblock.segment > unopened.number &&
               superblock.first_sequence <= contents_.flushed + 1;
      });
      if (!needless) contents_.damage.push_back({0, 0, std::nullopt, to_string(unopened.error)});
    }
  }

  void sort_out() {
    std::uint64_t expected = contents_.flushed + 1;
    bool gap = false;
    for (const Located& located : records_) {
      const LogRecord& record = located.found.record;
      contents_.last_sequence = record.sequence;
      if (record.sequence <= contents_.flushed) continue;
      const bool whole = record.sequence <= contents_.committed;
      if (expected < record.sequence) {
        missing(expected, record.sequence - 1);
        gap = gap || !whole;
      }
      expected = record.sequence + 1;
      if (!located.found.intact) {
        if (whole) {
          damaged(located);
        } else {
          contents_.torn = true;
          gap = true;
        }
        continue;
      }
      if (record.kind == RecordKind::commit || record.kind == RecordKind::flushed) continue;
      if (gap) {
        contents_.beyond_gap_bytes += record.length;
        continue;
      }
      auto& entries = whole ? contents_.complete : contents_.incomplete;
      entries.push_back({record, place_of(located)});
    }
  }

  /// Records [first, last] are nowhere. Those behind the last commit were not promised.
  void missing(std::uint64_t first, std::uint64_t last) {
    if (first > contents_.committed) return;
    last = std::min(last, contents_.committed);
    contents_.damage.push_back(
        {first, last, std::nullopt,
         fmt::format("records {} to {} of {} are missing or damaged", first, last, store_.path())});
  }

  void damaged(const Located& located) {
    const LogRecord& record = located.found.record;
    contents_.damage.push_back(
        {record.sequence, record.sequence, record.extent(),
         fmt::format("{} bytes at {} of the file are damaged in {}, record {}", record.length,
                     record.value, store_.path(), record.sequence)});
  }

  static LogPlace place_of(const Located& located) {
    const LogRecord& record = located.found.record;
    if (record.kind != RecordKind::data) return {};
    return LogPlace::of(record, located.segment, located.found.position + record_header_bytes);
  }

  LogStore& store_;
  LogStore* const remade_;  ///< Or null.
  const ReadDepth depth_;
  Status opened_;
  std::vector<std::shared_ptr<LogSegment>> segments_;
  std::vector<SegmentFindings> findings_;  ///< By segment.
  std::vector<Unopened> unopened_;
  std::vector<std::uint64_t> never_written_;  ///< Segments whose superblocks are zeros.
  std::set<std::uint64_t> remade_numbers_;    ///< Of segments that were made again.
  std::vector<Located> records_;
  LogContents contents_;
};

}  // namespace

Bytes LogContents::complete_bytes() const { return payload_bytes(complete); }
Bytes LogContents::incomplete_bytes() const { return payload_bytes(incomplete); }

Result<LogContents> read_log(LogStore& store, ReadDepth depth, const ScanProgress& progress,
                             int threads) {
  const LogParts only{&store};
  return std::move(read_logs({&only, 1}, depth, threads, progress).front());
}

std::vector<Result<LogContents>> read_logs(std::span<const LogParts> logs, ReadDepth depth,
                                           int threads, const ScanProgress& progress) {
  std::vector<Reading> readings;
  readings.reserve(logs.size());
  std::vector<std::pair<Reading*, std::size_t>> segments;
  for (const LogParts& parts : logs) {
    Reading& reading = readings.emplace_back(parts, depth);
    reading.open();
    for (std::size_t i = 0; i < reading.segments(); ++i) segments.emplace_back(&reading, i);
  }
  const ScanProgress tell = in_turn(progress);
  side_by_side(segments.size(), threads, [&](std::size_t at) {
    const auto& [reading, segment] = segments[at];
    reading->scan(segment, tell);
  });
  std::vector<Result<LogContents>> contents;
  contents.reserve(readings.size());
  for (Reading& reading : readings) contents.push_back(reading.judge());
  return contents;
}

}  // namespace forebay
