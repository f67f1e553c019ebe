// The images of CIFAR-10, in both layouts that they come in.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/dataset.h"

namespace lockstep::images {

// By label, as batches.meta.txt lists them.
constexpr std::array<std::string_view, 10> kCifar10Names = {
    "airplane", "automobile", "bird",  "cat",  "deer",
    "dog",      "frog",       "horse", "ship", "truck"};
constexpr int64_t kCifar10Classes = kCifar10Names.size();
constexpr int64_t kCifar10Side = 32;  // Pixels.

// The binary layout (data_batch_1.bin, test_batch.bin) or that of Python
// (data_batch_1, test_batch). One of the parts may be empty.
struct Cifar10Files {
  std::vector<std::filesystem::path> train = {};
  std::vector<std::filesystem::path> test = {};
};

// Looks into the folder and its sub-folders cifar-10-batches-py and
// cifar-10-batches-bin. No value when no batch to train on is there.
std::optional<Cifar10Files> find_cifar10(const std::filesystem::path& folder);

// All images in memory; samples are {uint8 [3, 32, 32], int64 label}. Nothing
// in a pickle is executed. Throws IoError, and FormatError with the path for a
// file that holds something else.
std::shared_ptr<const Dataset> read_cifar10(
    const std::vector<std::filesystem::path>& files);

}  // namespace lockstep::images
