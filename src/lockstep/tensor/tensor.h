// The one place that decides which torch header means "a tensor".
#pragma once

#include <ATen/core/Tensor.h>
