#pragma once
// What server_advice.cpp needs of IBM Storage Scale's <gpfs_fcntl.h>, for its test on machines
// without it. Names, types and values as there; all else is left out.

enum {
  GPFS_FCNTL_CURRENT_VERSION = 1,
  GPFS_MULTIPLE_ACCESS_RANGE = 1003,
  GPFS_MAX_RANGE_COUNT = 8
};

struct gpfsFcntlHeader_t {
  int totalLength, fcntlVersion, errorOffset, fcntlReserved;
};

struct gpfsRangeArray_t {
  long long blockNumber;
  int start, length, isWrite;
  char padding[4];
};

struct gpfsMultipleAccessRange_t {
  int structLen, structType, accRangeCnt, relRangeCnt;
  gpfsRangeArray_t accRangeArray[GPFS_MAX_RANGE_COUNT], relRangeArray[GPFS_MAX_RANGE_COUNT];
};
