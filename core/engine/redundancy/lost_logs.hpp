#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/cache/log_directory.hpp"
#include "core/engine/cache/recovery.hpp"
#include "core/engine/redundancy/rebuild.hpp"
#include "core/model/error.hpp"

namespace forebay {

/// Logs that were lost with their nodes, made again and ready to be recovered.
struct RebuiltLogs {
  std::vector<LeftLog> logs;
  RebuildReport report;
};

/// Makes the logs `names` again in `directory`, from `parity` and the logs that are `left`. Each
/// gets its name when it is durable and all there, so that an attempt that was interrupted leaves
/// nothing that could be taken for a log; the next one removes what it left. One that is `left`,
/// but damaged, has its name already: it comes as LeftLog::remade, without a store. Errors: io,
/// where something cannot be got back (what that is) and that is not accepted, and those of the
/// directory; then nothing is there.
Result<RebuiltLogs> rebuild_logs(const std::shared_ptr<CacheDirectory>& directory,
                                 std::span<const ParityContents> parity, const StoresByName& left,
                                 std::span<const std::string> names, bool accept_missing,
                                 const RebuildProgress& progress = {});

}  // namespace forebay
