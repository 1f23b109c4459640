#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "core/engine/cache/memory_log_store.hpp"
#include "core/engine/cache/replay.hpp"
#include "core/storage/volatile_file.hpp"

namespace forebay {

/// For tests: replays what is left of logs into what is left of the file, and what that holds then.
inline std::vector<std::byte> recovered(const std::vector<std::shared_ptr<MemoryLog>>& logs,
                                        const std::shared_ptr<VolatileInode>& file,
                                        Incomplete incomplete, bool skip_damage = false) {
  std::vector<LogContents> contents;
  for (const auto& log : logs) {
    const auto store = log->open();
    auto read = read_log(*store, ReadDepth::payloads);
    if (read) {
      contents.push_back(std::move(*read));
    } else if (!skip_damage) {  // Else not one superblock may be there.
      EXPECT_EQ(read.error().kind, ErrorKind::no_such_file) << to_string(read.error());
    }
  }
  const auto opened = open_volatile_file(file);
  std::vector<std::vector<std::byte>> after;
  for (int i = 0; i < 2; ++i) {
    const auto report =
        replay(*opened, contents, {.incomplete = incomplete, .skip_damage = skip_damage});
    EXPECT_TRUE(report) << to_string(report.error());
    after.push_back(file->content());
  }
  EXPECT_EQ(after[0], after[1]) << "the second time changes nothing";
  return after[1];
}

}  // namespace forebay
