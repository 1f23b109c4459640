#pragma once
#include <span>
#include <vector>
#include "core/model/strided_tree.hpp"
namespace forebay { struct TiledPart{const TiledTree* tree; Bytes data_start, data_end;}; struct Coverage{bool dense, overlapping, too_many; Bytes covered; std::vector<Extent> extents;}; Coverage coverage(std::span<const TiledPart>, Extent); }
