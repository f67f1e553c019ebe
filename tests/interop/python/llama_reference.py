"""Hugging Face's LlamaModel on small random weights: its files, and what it makes of tokens.

Usage: llama_reference.py CASES_FILE RESULTS_FILE

Cases (a dict by name), each:
  config   arguments of transformers' LlamaConfig: vocab_size, hidden_size, intermediate_size,
           num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim, rms_norm_eps,
           max_position_embeddings, rope_theta, rope_scaling (a dict), ...; what is left out is
           small (see SMALL)
  folder   an existing folder; config.json and the weights are written into it
  files    safetensors, sharded_safetensors, bin or sharded_bin (may be left out: safetensors)
  config_style  published: rope_theta and rope_scaling stand in config.json as in published ones;
           new: rope_parameters, as transformers 5 writes them (may be left out: published)
  has_head 1: the files are those of a causal language model: names with the prefix model., and
           lm_head.weight (may be left out: 1)
  dtype    float32, bfloat16 or float16: of the files (may be left out: float32)
  weights  the state dict of the LlamaModel, without prefix (may be left out: random, of the seed)
  seed     of random weights (may be left out: 0)
  ids      int64 [B,T];  mask  bool or 0/1 [B,T]: 1 where a token is
Results (by the same names): last_hidden_state float32 [B,T,D] (compare it where the mask is 1),
  computed in fp32 from the folder's files; weights (the state dict of the LlamaModel, in fp32);
  num_parameters (of the LlamaModel). Positions count from 0 at the first column, padded or not.
"""
import json
import os
import pathlib
import sys

import torch

os.environ["HF_HUB_OFFLINE"] = "1"
# Names of models stand for nothing here, and warnings would hide an error.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel  # noqa: E402
from transformers.utils import logging  # noqa: E402

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
NUM_SHARDS = 3


def make_model(case):
    torch.manual_seed(case.get("seed", 0))
    model = LlamaForCausalLM(LlamaConfig(**{**SMALL, **case.get("config", {})})).float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Norms begin as ones, which would hide them.
            around = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.copy_(around + 0.1 * torch.randn_like(parameter))
    if "weights" in case:
        model.model.load_state_dict(case["weights"], strict=True)
    return model.to(getattr(torch, case.get("dtype", "float32")))


def write_bin(model, folder, num_shards):
    """As older published checkpoints are: pickles, and their index when there are several."""
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if num_shards == 1:
        torch.save(state, folder / "pytorch_model.bin")
        return
    where = {}
    for i in range(num_shards):
        name = f"pytorch_model-{i + 1:05d}-of-{num_shards:05d}.bin"
        part = {key: state[key] for key in list(state)[i::num_shards]}
        torch.save(part, folder / name)
        where.update(dict.fromkeys(part, name))
    size = sum(tensor.nbytes for tensor in state.values())
    index = {"metadata": {"total_size": size}, "weight_map": where}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2))


def write_config(model, folder, style):
    model.config.save_pretrained(folder)
    if style == "new":
        return
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope.get("rope_type") == "default" else rope
    config.pop("dtype", None)
    config["torch_dtype"] = str(model.dtype).removeprefix("torch.")
    path.write_text(json.dumps(config, indent=2, sort_keys=True))


def write_files(model, case):
    folder = pathlib.Path(case["folder"])
    written = model if case.get("has_head", 1) else model.model
    files = case.get("files", "safetensors")
    if files.endswith("bin"):
        write_bin(written, folder, 1 if files == "bin" else NUM_SHARDS)
    else:
        size = sum(tensor.nbytes for tensor in written.state_dict().values())
        largest = size // NUM_SHARDS if files == "sharded_safetensors" else 2 * size
        written.save_pretrained(folder, max_shard_size=largest)
    write_config(written, folder, case.get("config_style", "published"))
    return folder


@torch.no_grad()
def run(case):
    folder = write_files(make_model(case), case)
    model = LlamaModel.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", local_files_only=True
    ).eval()
    output = model(case["ids"], attention_mask=case["mask"].long(), use_cache=False)
    return {
        "last_hidden_state": output.last_hidden_state,
        "weights": dict(model.state_dict()),
        "num_parameters": sum(p.numel() for p in model.parameters()),
    }


def main():
    logging.disable_progress_bar()
    cases = torch.load(sys.argv[1], weights_only=True)
    torch.save({name: run(case) for name, case in cases.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
