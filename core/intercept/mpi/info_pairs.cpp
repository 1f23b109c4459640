#include "core/intercept/mpi/info_pairs.hpp"

#include <climits>
#include <string>
#include <vector>

namespace forebay {
namespace {

bool is_harmless(const HintPairs::value_type& pair) {
  Hints hints;
  if (!apply_hints(hints, {pair}, "").empty()) return false;
  for (const auto& size : {hints.buffer_size, hints.stripe_size, hints.independent_read_buffer,
                           hints.independent_write_buffer}) {
    if (size.value_or(0) > INT_MAX) return false;
  }
  return true;
}

}  // namespace

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

HarmlessInfo::HarmlessInfo(const HintPairs& pairs) {
  PMPI_Info_create(&info_);
  for (const auto& pair : pairs) {
    if (is_harmless(pair)) PMPI_Info_set(info_, pair.first.c_str(), pair.second.c_str());
  }
}

HarmlessInfo::~HarmlessInfo() { PMPI_Info_free(&info_); }

}  // namespace forebay
