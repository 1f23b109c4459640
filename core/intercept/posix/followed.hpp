#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/prefetch/adviser.hpp"
#include "core/engine/prefetch/node_readers.hpp"
#include "core/engine/prefetch/prefetch_figures.hpp"
#include "core/engine/prefetch/served_file.hpp"
#include "core/model/read_intent.hpp"
#include "core/model/read_trace.hpp"
#include "core/storage/file_version.hpp"

namespace forebay::posix {

/// What becomes of the reads of an open file description.
struct Followed {
  std::shared_ptr<ServedFile> file = nullptr;      ///< It is read ahead.
  std::shared_ptr<AdvisedFile> advised = nullptr;  ///< They are told to the kernel ahead of them.
  std::shared_ptr<ReadTrace> trace = nullptr;      ///< They are written down.
  /// Says which other processes read what is read ahead here. Null: that changes nothing.
  std::shared_ptr<NodeReaders> presence = nullptr;
  /// The same where it is read ahead together with them: says to others that they may join.
  std::shared_ptr<NodeReaders> company = nullptr;
  int group = 0;  ///< Of those who read it together.
  /// Where it is read first decides what is fetched of it: it was open before.
  std::shared_ptr<const ReadIntent> declared = nullptr;
  std::string path = {};      ///< Of what is written down, absolute, or declared, or left alone.
  FileVersion version = {};   ///< When it was opened.
  std::int64_t began_ns = 0;  ///< By steady_ns(): when it began to be read ahead.
  /// Where it was read first, of a file that was open before,
  std::optional<Bytes> begins_at = std::nullopt;
  std::shared_ptr<const ReadIntent> whole = nullptr;  ///< and all that is declared of it.
  bool is_taken_up = false;    ///< The program opened the file again to go on with it.
  Bytes credited = 0;          ///< Of its use, what ParkedFiles knows of.
  KernelReads by_kernel = {};  ///< Until it was closed last.
  /// That the next record tells of: 0 where one before has told of them, more where the program has
  /// opened the file again for what it goes on with.
  std::int64_t openings = 1;
  std::string left_alone = {};  ///< Why nothing is fetched of what was declared.
  bool is_told = false;         ///< The program has ended, and a record tells of it.
};

/// The kernel serves its reads.
bool is_advised(const Followed& followed);
/// Nothing was fetched of what was declared, nor are its reads written down.
bool is_left_alone(const Followed& followed);
/// The same, and it was read, or there is a reason.
bool has_to_be_told(const Followed& followed);
/// The reason that is told of it.
std::string why_left_alone(const Followed& followed);

/// When it has ended. What is told to the kernel ends with it.
void write_record(const Followed& followed);

}  // namespace forebay::posix
