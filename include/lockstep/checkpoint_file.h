// Checkpoint files.
#pragma once

#include <filesystem>

#include "lockstep/checkpoint_tree.h"

namespace lockstep {

// Writes a file for torch.load(weights_only=True), atomically: at any moment,
// also when the process is killed, the path holds the old file or the new one.
// Blocks until the new one is on the disk. Throws IoError, and ConfigError or
// FormatError for a tree that such a file cannot hold.
void save_checkpoint(const std::filesystem::path& path, const Tree& tree);

// Reads a file of torch.save (zip or old format) or a .safetensors file, told
// apart by content. Checksums and structure are checked before anything is
// returned; nothing in the file is executed. Objects of unknown classes become
// Opaque. All tensors are on the CPU. Throws IoError and FormatError.
Tree load_checkpoint(const std::filesystem::path& path);

// Writes a dict of tensors, such as module_state() gives, as .safetensors,
// atomically. Throws IoError, and ConfigError for any other tree.
void save_safetensors(const std::filesystem::path& path, const Tree& tensors);

}  // namespace lockstep
