// Proteins as samples and batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/dataset.h"
#include "lockstep/datasets/proteins/cache_file.h"
#include "lockstep/datasets/proteins/generated.h"

namespace lockstep::proteins {

// L residues with M fragments make a sample of five tensors: float32 [L, 4, 3]
// backbone (N, CA, C, O in Angstrom); int64 L; int64 [M] fragment ids; int64
// [M] the bin of chi1 at the first fragment of a residue, -1 where nothing is
// to be scored; int64 [M] the residue that a fragment belongs to.
//
// A batch of B has one dimension more and is padded to its longest: float32
// [B, L, 4, 3] with 0; int64 [B] residues; int64 [B, M] with kPadFragment, -1
// and -1.
class ProteinSet : public Dataset {
 public:
  // Throws FormatError or IoError with the path.
  virtual Protein protein(int64_t index) const = 0;
  virtual std::string name(int64_t index) const = 0;
  // Residues and fragments of each, which is what a batch is padded by.
  std::vector<int64_t> lengths() const override = 0;

  Sample get(int64_t index, uint64_t seed) const final;
  Sample collate(std::vector<Sample> samples) const final;
};

// Sample of a protein outside any set.
Sample protein_sample(const Protein& protein);

struct ProteinEntry {
  std::filesystem::path path = {};           // A .pt file or a structure.
  std::shared_ptr<const Protein> kept = {};  // Null: read at each use.
  int64_t length = 0;                        // 0: not known.
};

// Proteins of .pt files, of structures and in memory.
class ProteinFiles final : public ProteinSet {
 public:
  explicit ProteinFiles(std::vector<ProteinEntry> entries)
      : entries_(std::move(entries)) {}

  int64_t size() const override { return std::ssize(entries_); }
  Protein protein(int64_t index) const override;
  std::string name(int64_t index) const override;
  std::vector<int64_t> lengths() const override;

  const std::filesystem::path& path(int64_t index) const {
    return entries_.at(static_cast<size_t>(index)).path;
  }

 private:
  std::vector<ProteinEntry> entries_;
};

// Chains of generated.h, made when they are asked for.
class GeneratedProteins final : public ProteinSet {
 public:
  GeneratedProteins(const GeneratedChainConfig& config, int64_t size)
      : config_(config), size_(size) {}

  int64_t size() const override { return size_; }
  Protein protein(int64_t index) const override;
  std::string name(int64_t index) const override;
  std::vector<int64_t> lengths() const override;

 private:
  GeneratedChainConfig config_;
  int64_t size_;
};

}  // namespace lockstep::proteins
