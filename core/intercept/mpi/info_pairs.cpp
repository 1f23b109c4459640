#include "core/intercept/mpi/info_pairs.hpp"

#include <string>
#include <vector>

namespace forebay {

HintPairs pairs_of(MPI_Info info) {
  HintPairs pairs;
  if (info == MPI_INFO_NULL) return pairs;
  int keys = 0;
  PMPI_Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = {};
    int length = 0, present = 0;
    PMPI_Info_get_nthkey(info, i, key);
    PMPI_Info_get_valuelen(info, key, &length, &present);
    if (present == 0) continue;
    std::vector<char> value(static_cast<std::size_t>(length) + 1);
    PMPI_Info_get(info, key, length, value.data(), &present);
    pairs.emplace_back(key, value.data());
  }
  return pairs;
}

MPI_Info info_of(const HintPairs& pairs) {
  MPI_Info info = MPI_INFO_NULL;
  PMPI_Info_create(&info);
  for (const auto& [key, value] : pairs) PMPI_Info_set(info, key.c_str(), value.c_str());
  return info;
}

}  // namespace forebay
