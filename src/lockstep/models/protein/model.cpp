#include "lockstep/models/protein/model.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/models/protein/torsion.h"
#include "lockstep/models/protein/vocabulary.h"

namespace lockstep::protein {

void check_protein_config(const ProteinConfig& config) {
  if (config.width % config.num_heads != 0) {
    throw ConfigError(fmt::format(
        "--hidden_dim {} is not a multiple of --num_heads {}: heads share it",
        config.width, config.num_heads));
  }
  if (config.width % 2 != 0) {
    throw ConfigError(fmt::format(
        "--hidden_dim {} is odd: sines and cosines of positions take half each",
        config.width));
  }
  if (kNumTorsionBins % config.num_torsion_bins != 0) {
    throw ConfigError(fmt::format(
        "--num_torsion_bins {} does not divide {}, the bins of the data",
        config.num_torsion_bins, kNumTorsionBins));
  }
}

ProteinModel::ProteinModel(const ProteinConfig& config) {
  check_protein_config(config);
  encoder_ = register_module(
      "encoder", std::make_shared<BackboneEncoder>(BackboneEncoderConfig{
                     .width = config.width,
                     .depth = config.encoder_depth,
                     .num_neighbours = config.num_neighbours,
                     .dropout = config.dropout}));
  decoder_ = register_module(
      "decoder", std::make_shared<FragmentDecoder>(FragmentDecoderConfig{
                     .width = config.width,
                     .depth = config.decoder_depth,
                     .num_heads = config.num_heads,
                     .vocabulary = kNumFragments,
                     .num_torsion_bins = config.num_torsion_bins,
                     .dropout = config.dropout}));
}

FragmentLogits ProteinModel::forward(const ProteinInput& input) {
  return decode(input, encode(input));
}

at::ScalarType ProteinModel::dtype() const {
  return parameters().front().scalar_type();
}

at::Tensor ProteinModel::encode(const ProteinInput& input) {
  return encoder_->forward(input.coords, input.lengths);
}

FragmentLogits ProteinModel::decode(const ProteinInput& input,
                                    const at::Tensor& residues) {
  const auto positions = [](const at::Tensor& of) {
    return at::arange(of.size(1), of.options().dtype(at::kLong));
  };
  // A protein without fragments keeps its first position, so that attention has
  // a key; it is not scored.
  const DecoderMasks masks = {
      .is_fragment =
          input.fragments.ne(kPadFragment) | positions(input.fragments).eq(0),
      .is_residue = positions(residues) < input.lengths.unsqueeze(1)};
  return decoder_->forward(input.fragments, residues, masks);
}

}  // namespace lockstep::protein
