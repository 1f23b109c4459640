#include "core/engine/cache/log_identity.hpp"

#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/engine/cache/sealed_block.hpp"

namespace forebay {

std::string this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

nlohmann::json identity_map(const LogIdentity& identity) {
  nlohmann::json map = {
      {"log", identity.log},
      {"path", byte_string(identity.file.path)},
      {"device", identity.file.device},
      {"inode", identity.file.inode},
      {"stripe_size", identity.layout.stripe_size},
      {"servers", identity.layout.servers},
      {"lock_conflicts", identity.layout.lock_conflicts},
      {"job", byte_string(identity.job)},
      {"host", byte_string(identity.host)},
      {"process", identity.process},
      {"rank", identity.rank},
      {"made_unix_s", identity.made_unix_s},
  };
  if (identity.file.made_unix_ns != 0) map["file_made_unix_ns"] = identity.file.made_unix_ns;
  return map;
}

bool get_identity(const nlohmann::json& map, LogIdentity& identity) {
  const bool complete =
      get_field(map, "log", identity.log) && get_field(map, "path", identity.file.path) &&
      get_field(map, "device", identity.file.device) &&
      get_field(map, "inode", identity.file.inode) &&
      get_field(map, "stripe_size", identity.layout.stripe_size) &&
      get_field(map, "servers", identity.layout.servers) &&
      get_field(map, "lock_conflicts", identity.layout.lock_conflicts) &&
      get_field(map, "job", identity.job) && get_field(map, "host", identity.host) &&
      get_field(map, "process", identity.process) && get_field(map, "rank", identity.rank) &&
      get_field(map, "made_unix_s", identity.made_unix_s);
  get_field(map, "file_made_unix_ns", identity.file.made_unix_ns);  // Older logs have none.
  return complete && identity.layout.stripe_size >= 0 && identity.layout.servers > 0;
}

}  // namespace forebay
