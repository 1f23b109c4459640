// Goal: every event that a process adds is in its spill file once, in its thread's order, or is
// counted as lost; whatever happens to the process.
// Method: a process has one trace, so each case runs in a child, whose exit status says whether it
// went well; the files that it leaves are walked by their headers.
#include "core/engine/trace/recorder.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace forebay::trace {
namespace {

constexpr int many = 3 * static_cast<int>(Ring::most_events) + 17;

/// What stands in one spill file.
struct Spilled {
  std::map<std::int64_t, std::vector<TraceEvent>> events;  ///< By thread.
  std::map<std::int64_t, std::uint64_t> lost;              ///< Likewise, as told last.
  std::map<std::uint16_t, int> definitions;                ///< By kind.
  bool is_whole = true;
};

Spilled read_spill(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  Spilled result;
  for (std::size_t at = 0; at < content.size();) {
    SpillHeader header;
    std::memcpy(&header, content.data() + at, sizeof header);
    const std::size_t length =
        sizeof header + header.definition_bytes + header.events * sizeof(TraceEvent);
    std::string piece = content.substr(at, length);
    std::memset(piece.data() + offsetof(SpillHeader, checksum), 0, sizeof header.checksum);
    result.is_whole = result.is_whole && header.version == 1 && piece.size() == length &&
                      XXH3_64bits(piece.data(), piece.size()) == header.checksum;
    if (!result.is_whole) break;
    for (std::size_t d = sizeof header; d < sizeof header + header.definition_bytes;) {
      DefinitionHeader definition;
      std::memcpy(&definition, piece.data() + d, sizeof definition);
      ++result.definitions[definition.kind];
      d += sizeof definition + (definition.length + 7) / 8 * 8;
    }
    auto& events = result.events[header.thread];
    const std::size_t before = events.size();
    events.resize(before + header.events);
    if (header.events > 0) {
      std::memcpy(events.data() + before, piece.data() + sizeof header + header.definition_bytes,
                  header.events * sizeof(TraceEvent));
    }
    result.lost[header.thread] = header.lost;
    at += length;
  }
  return result;
}

TraceEvent event(std::int64_t offset) {
  return {.begin = ticks(),
          .duration = 1,
          .offset = offset,
          .length = 0,
          .result = 0,
          .descriptor = 3,
          .call = 1,
          .within = 0,
          .argument = 0};
}

int kinds(const Spilled& spilled, TraceDefinition kind) {
  const auto found = spilled.definitions.find(static_cast<std::uint16_t>(kind));
  return found == spilled.definitions.end() ? 0 : found->second;
}

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "recorder-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  /// Runs `work` in a child that traces. The spills that it leaves.
  std::vector<Spilled> traced(const std::function<bool()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_well = start(directory_.c_str(), nullptr, nullptr) && work();
      end();
      ::_exit(is_well ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    std::vector<Spilled> result;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      result.push_back(read_spill(entry.path()));
      EXPECT_TRUE(result.back().is_whole);
    }
    return result;
  }

  std::filesystem::path directory_;
};

TEST_F(RecorderTest, EveryEventIsThereOnceInOrder) {
  const auto spills = traced([] {
    for (int i = 0; i < many; ++i) add(event(i));
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  ASSERT_EQ(spills[0].events.size(), 1U);
  const auto& events = spills[0].events.begin()->second;
  ASSERT_EQ(events.size(), static_cast<std::size_t>(many));
  for (int i = 0; i < many; ++i) ASSERT_EQ(events[static_cast<std::size_t>(i)].offset, i);
  EXPECT_EQ(kinds(spills[0], TraceDefinition::process), 1);
  EXPECT_EQ(kinds(spills[0], TraceDefinition::end), 1);
}

TEST_F(RecorderTest, AProcessThatMayMakeNoFileSoLongIsNotEndedByIt) {
  const auto spills = traced([] {
    const rlimit limit{100'000, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    for (int i = 0; i < many; ++i) add(event(i));
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  ASSERT_EQ(spills[0].events.size(), 1U);
  const auto& [thread, events] = *spills[0].events.begin();
  EXPECT_EQ(events.size() + spills[0].lost.at(thread), static_cast<std::size_t>(many));
  EXPECT_EQ(events.size(), 17U);  // The last ones.
  EXPECT_EQ(kinds(spills[0], TraceDefinition::end), 1);
}

TEST_F(RecorderTest, ThreadsThatEndAndBeginAgainLoseNothing) {
  constexpr int threads = 20;
  const auto spills = traced([] {
    for (int round = 0; round < threads / 4; ++round) {
      std::vector<std::thread> running;
      for (int t = 0; t < 4; ++t) {
        running.emplace_back([] {
          for (int i = 0; i < many; ++i) add(event(i));
        });
      }
      for (auto& thread : running) thread.join();
    }
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  std::size_t sum = 0;
  for (const auto& [thread, events] : spills[0].events) sum += events.size();
  EXPECT_EQ(sum, static_cast<std::size_t>(threads) * many);
}

TEST_F(RecorderTest, WhoEndsTheProcessSpillsTheRingsOfOthers) {
  const auto spills = traced([] {
    static std::atomic<bool> is_done{false};
    std::thread([] {
      for (int i = 0; i < 10; ++i) add(event(i));
      is_done = true;
      ::pause();
    }).detach();
    while (!is_done) std::this_thread::yield();
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  std::size_t sum = 0;
  for (const auto& [thread, events] : spills[0].events) sum += events.size();
  EXPECT_EQ(sum, 10U);
}

TEST_F(RecorderTest, AForkedChildSpeaksForItself) {
  const auto spills = traced([] {
    add(event(1));
    // Past the C library, whose handlers are not called then.
    const long child = ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
      add(event(2));
      end();
      ::syscall(SYS_exit_group, 0);
    }
    ::waitpid(static_cast<pid_t>(child), nullptr, 0);
    add(event(3));
    return true;
  });
  ASSERT_EQ(spills.size(), 2U);
  std::vector<std::vector<std::int64_t>> offsets;
  for (const Spilled& spilled : spills) {
    EXPECT_EQ(kinds(spilled, TraceDefinition::process), 1);
    offsets.emplace_back();
    for (const auto& [thread, events] : spilled.events) {
      for (const TraceEvent& one : events) offsets.back().push_back(one.offset);
    }
  }
  std::sort(offsets.begin(), offsets.end());
  EXPECT_EQ(offsets, (std::vector<std::vector<std::int64_t>>{{1, 3}, {2}}));
}

TEST_F(RecorderTest, WhatCannotBeSpilledIsCounted) {
  const auto spills = traced([this] {
    const std::filesystem::path away = directory_.string() + "-away";
    std::filesystem::rename(directory_, away);
    for (std::size_t i = 0; i <= Ring::most_events; ++i) add(event(0));  // One is left.
    std::filesystem::rename(away, directory_);
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  EXPECT_EQ(spills[0].events.begin()->second.size(), 1U);
  EXPECT_EQ(spills[0].lost.begin()->second, Ring::most_events);
}

TEST_F(RecorderTest, ASignalHandlerThatInterruptsItIsCountedAndHarmless) {
  const auto spills = traced([] {
    std::signal(SIGALRM, [](int) { add(event(-7)); });
    add(event(1));  // The ring is there.
    Ring* ring = detail::enter(1);
    ::raise(SIGALRM);  // In the middle of an event.
    detail::leave(*ring);
    ::raise(SIGALRM);
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  EXPECT_EQ(spills[0].events.begin()->second.size(), 2U);
  EXPECT_EQ(spills[0].lost.begin()->second, 1U);
}

TEST_F(RecorderTest, WhatIsAddedTogetherStaysTogetherWhereTheRingEnds) {
  const auto spills = traced([] {
    for (std::size_t i = 0; i + 1 < Ring::most_events; ++i) add(event(0));
    add(event(1), event(2));
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  const auto& events = spills[0].events.begin()->second;
  ASSERT_EQ(events.size(), Ring::most_events + 1);
  EXPECT_EQ(events[Ring::most_events - 1].offset, 1);
  EXPECT_EQ(events[Ring::most_events].offset, 2);
}

TEST_F(RecorderTest, NamesAreDefinedOnceWhileTheyAreRemembered) {
  const auto spills = traced([] {
    const std::uint64_t first = key_of("a name");
    const bool is_same = key_of("a name") == first && key_of("another") != first;
    for (int i = 0; i < many; ++i) key_of("name " + std::to_string(i));
    return is_same;
  });
  ASSERT_EQ(spills.size(), 1U);
  EXPECT_EQ(kinds(spills[0], TraceDefinition::name), 2 + many);
}

TEST_F(RecorderTest, NothingIsTracedInTheMemoryOfAVforkedChild) {
  const auto spills = traced([] {
    add(event(1));
    begin_vfork();
    add(event(2));
    end();  // As the child's _exit.
    end_vfork();
    add(event(3));
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  EXPECT_EQ(spills[0].events.begin()->second.size(), 2U);
  EXPECT_EQ(spills[0].lost.begin()->second, 0U);
  EXPECT_EQ(kinds(spills[0], TraceDefinition::end), 1);
}

TEST_F(RecorderTest, NorOfOneWhoseParentHasMadeNoCallYet) {
  const auto spills = traced([] {
    begin_vfork();
    add(event(1));
    end_vfork();
    add(event(2));
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  EXPECT_EQ(spills[0].events.begin()->second.size(), 1U);
}

TEST_F(RecorderTest, WhatComesAfterTheEndIsSpilledAtOnce) {
  const auto spills = traced([] {
    end();
    add(event(5));
    return true;
  });
  ASSERT_EQ(spills.size(), 1U);
  EXPECT_EQ(spills[0].events.begin()->second.size(), 1U);
}

}  // namespace
}  // namespace forebay::trace
