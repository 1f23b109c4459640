#pragma once

// The one place that chooses libfuse's API version (3.12 and later: fuse_loop_cfg_create).
#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>
