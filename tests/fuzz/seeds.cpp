// Writes the inputs that fuzzing starts from: fuzz_seeds FOLDER makes a folder
// for each target.
#include <filesystem>
#include <iostream>
#include <map>

#include "lockstep/base/atomic_file.h"
#include "lockstep/config/render.h"
#include "lockstep/formats/npz.h"
#include "lockstep/formats/pickle_writer.h"
#include "lockstep/formats/safetensors.h"
#include "lockstep/formats/torch_file.h"
#include "lockstep/net/store_engine.h"
#include "lockstep/nodes/messages.h"
#include "support/cifar10_files.h"
#include "support/temp_dir.h"
#include "unit/config/sample_settings.h"
#include "unit/formats/sample_files.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

using namespace std::string_literals;
using testing::float_tensor;
using Seeds = std::vector<std::string>;

std::string npz_bytes() {
  const testing::TempDir folder;
  formats::write_npz(folder.path() / "a",
                     {{"mu", float_tensor({2, 2}, {1, 2, 3, 4})},
                      {"sigma", float_tensor({3}, {1, 2, 3})}});
  return base::read_file(folder.path() / "a");
}

// Members as fuzz_nodes hears them: length in eights, member, type, body.
std::string nodes_bytes() {
  std::string bytes = "\1";
  const auto say = [&](char member, const nodes::Message& message) {
    const nodes::Frame frame = nodes::encode(message);
    std::string body = frame.body;
    body.resize((body.size() + 7) / 8 * 8, ' ');
    bytes += {static_cast<char>(body.size() / 8), member,
              static_cast<char>(frame.type)};
    bytes += body;
  };
  say(1, nodes::Join{.num_nodes = 2, .is_host = true, .host_name = "a"});
  say(2, nodes::Join{.num_nodes = 2, .host_name = "b"});
  say(2, nodes::Alive{.is_stuck = true});
  say(2, nodes::Ending{});
  say(1, nodes::Result{.text = "{}"});
  say(2, nodes::Result{.text = "{}"});
  say(1, nodes::Verdict{.is_restart = true});
  return bytes;
}

// Pieces as fuzz_store cuts them: client, length, bytes.
std::string store_bytes() {
  using Q = net::StoreQuery;
  const std::string hello =
      net::encode_request({.query = Q::kValidate, .number = net::kStoreMagic});
  std::string bytes;
  const auto send = [&](char client, const std::string& request) {
    bytes += {client, static_cast<char>(request.size())};
    bytes += request;
  };
  for (const char client : {'\0', '\1'}) send(client, hello);
  for (const net::StoreRequest& request : std::vector<net::StoreRequest>{
           {.query = Q::kCompareSet,
            .keys = {net::kProofKey},
            .values = {"s", ""}},
           {.query = Q::kWait, .keys = {"/a", "/q"}},
           {.query = Q::kCancelWait},
           {.query = Q::kAdd, .keys = {"/lockstep/n"}, .number = 1},
           {.query = Q::kMultiGet, .keys = {"/a", "/b"}},
           {.query = Q::kListKeys}}) {
    send('\0', net::encode_request(request));
  }
  for (const net::StoreRequest& request : std::vector<net::StoreRequest>{
           {.query = Q::kMultiSet, .keys = {"/a", "/b"}, .values = {"1", "2"}},
           {.query = Q::kQueuePush, .keys = {"/q"}, .values = {"e"}},
           {.query = Q::kQueuePop, .keys = {"/q"}},
           {.query = Q::kAppend, .keys = {"/a"}, .values = {"x"}},
           {.query = Q::kDeleteKey, .keys = {"/a"}}}) {
    send('\1', net::encode_request(request));
  }
  return bytes;
}

std::string safetensors_bytes() {
  const testing::TempDir folder;
  formats::write_safetensors(folder.path() / "a",
                             {{{"mu", float_tensor({2, 2}, {1, 2, 3, 4})},
                               {"x", float_tensor({}, {1})}}});
  return base::read_file(folder.path() / "a");
}

std::string torch_bytes(const formats::Value& value) {
  const testing::TempDir folder;
  formats::write_torch_file(folder.path() / "a", value);
  return base::read_file(folder.path() / "a");
}

// A tensor with its sign in the metadata.
formats::Value lazy_value() {
  const auto complex_record = [] {
    formats::TensorRecord tensor = float_tensor({4}, {1, 2, 3, 4});
    return formats::make_record(formats::DType::kComplex64, {2},
                                tensor.storage);
  };
  formats::Value value;
  value["conj"] = complex_record();
  formats::TensorRecord lazy = complex_record();
  lazy.is_conjugated = true;
  lazy.is_negated = true;
  value["lazy"] = lazy;
  return value;
}

// What takes much more memory than bytes: deflated, and many small objects.
std::string deflated_torch_bytes() {
  return testing::raw_zip(
      {{.name = "a/data.pkl",
        .content = "\x80\x02](" + std::string(3000, 'N') + "e.",
        .is_deflated = true},
       {.name = "a/data/0",
        .content = std::string(3000, '\0'),
        .is_deflated = true}});
}

std::string safetensors_of(const std::string& header) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) +
         header;
}

std::string tokenizer_text() {
  return R"({"model": {"type": "BPE", "ignore_merges": false,
    "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
    "merges": ["a b", ["ab", "c"]]},
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s+"},
       "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]},
    "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 5, "content": "</s>", "lstrip": true,
      "normalized": true, "special": true}],
    "post_processor": {"type": "Sequence", "processors": [
      {"type": "ByteLevel"},
      {"type": "RobertaProcessing", "cls": ["a", 0], "sep": ["</s>", 5]},
      {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "</s>"}}, {"Sequence": {"id": "A"}}],
       "special_tokens": {"</s>": {"ids": [5]}}}]}})";
}

// Two residues with an alternate place and a hydrogen.
std::string pdb_text() {
  return "REMARK   2 RESOLUTION.    1.74 ANGSTROMS.\n"
         "ATOM      1  N   SER A   1      11.104   6.134  -6.504  1.00  0.00\n"
         "ATOM      2  CA ASER A   1      11.639   6.071  -5.147  0.60  0.00\n"
         "ATOM      3  CA BSER A   1      11.739   6.171  -5.147  0.40  0.00\n"
         "ATOM      4  C   SER A   1      10.674   5.330  -4.234  1.00  0.00\n"
         "ATOM      5  O   SER A   1       9.469   5.570  -4.292  1.00  0.00\n"
         "ATOM      6  CB  SER A   1      11.877   7.478  -4.613  1.00  0.00\n"
         "ATOM      7  OG  SER A   1      12.400   7.420  -3.300  1.00  0.00\n"
         "ATOM      8  N   GLY A   1A     11.204   4.430  -3.404  1.00  0.00\n"
         "ATOM      9  CA  GLY A   1A     10.399   3.650  -2.474  1.00  0.00\n"
         "ATOM     10  C   GLY A   1A     10.800   3.900  -1.030  1.00  0.00\n"
         "ATOM     11  O   GLY A   1A     11.950   4.200  -0.730  1.00  0.00\n"
         "TER\nENDMDL\nEND\n";
}

// Two chains take turns.
std::string mixed_pdb_text() {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += "ATOM      1  CA  SER ";
    text += i % 2 == 0 ? 'A' : 'B';
    text += "   1      11.104   6.134  -6.504  1.00  0.00\n";
  }
  return text;
}

std::string mmcif_text() {
  return "data_X\n_exptl.method 'X-RAY DIFFRACTION'\n"
         "_refine.pdbx_refine_id 1\n_refine.ls_d_res_high 2.10\nloop_\n"
         "_atom_site.group_PDB\n_atom_site.id\n_atom_site.type_symbol\n"
         "_atom_site.label_atom_id\n_atom_site.label_alt_id\n"
         "_atom_site.label_comp_id\n_atom_site.label_asym_id\n"
         "_atom_site.label_seq_id\n_atom_site.pdbx_PDB_ins_code\n"
         "_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n"
         "_atom_site.occupancy\n_atom_site.auth_seq_id\n"
         "_atom_site.auth_asym_id\n_atom_site.pdbx_PDB_model_num\n"
         "ATOM 1 N N . ALA A 1 ? 1.5 2.5 3.5 1.00 1 A 1\n"
         "ATOM 2 C CA A ALA A 1 ? 2.5 2.5 3.5 0.60 1 A 1\n"
         "ATOM 3 C CA B ALA A 1 ? 2.6 2.5 3.5 0.40 1 A 1\n"
         "ATOM 4 C C . ALA A 1 ? 3.5 3.5 3.5 1.00 1 A 1\n"
         "ATOM 5 O O . ALA A 1 ? 3.5 4.5 3.5 1.00 1 A 1\n#\n";
}

std::string llama_config_text() {
  return R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 3, "head_dim": 8,
        "num_attention_heads": 4, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5, "rope_theta": 5e5, "rope_scaling": {
        "rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
        "high_freq_factor": 4, "original_max_position_embeddings": 64}})";
}

Seeds http_requests() {
  return {
      "GET /api/run?run=a%2Fb&x=1+2 HTTP/1.1\r\nHost: localhost:6070\r\n"
      "Cookie: a=b; lockstep_board=0123456789abcdef\r\n"
      "Authorization: Bearer x\r\nConnection: close\r\n\r\n",
      "HEAD / HTTP/1.0\r\nHost: [::1]\r\nContent-Length: 0\r\n\r\nGET /"};
}

Seeds metric_lines() {
  return {R"({"step":8,"train/loss":0.5,"b":-1e-3,"c":"nan","d":"-inf"})",
          R"( {"a": [1, null], "step": 3, "\u00e9": true, "x": "text"})"};
}

std::map<std::string, Seeds> make_seeds() {
  const formats::Value value = testing::sample_value();
  formats::Value small;
  small["x"] = float_tensor({2}, {1, 2});
  const std::string zip = testing::raw_zip(
      {{.name = "a", .content = "stored"},
       {.name = "b", .content = std::string(3000, 'x'), .is_deflated = true}});
  return {
      {"fuzz_pickle",
       {formats::write_pickle(value).bytes, formats::write_pickle(small).bytes,
        testing::cifar10_python(0, 1),
        formats::write_pickle(lazy_value()).bytes,
        "\x80\x02](" + std::string(200, 'N') + "e.",
        // Protocol 4: a frame, short texts, remembered ones, a set, bytes.
        "\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94(\x8c\x01"s
        "a\x94\x8f\x94(K\x01K\x02\x90\x8c\x01"s
        "b\x94"
        "C\x02\xff"
        "xh\x01h\x02u."s}},
      {"fuzz_zip", {torch_bytes(value), npz_bytes(), zip}},
      {"fuzz_http_request", http_requests()},
      {"fuzz_metric_line", metric_lines()},
      {"fuzz_torch_file",
       {torch_bytes(value), torch_bytes(small), testing::old_torch_file(value),
        testing::old_torch_file(small), torch_bytes(lazy_value()),
        deflated_torch_bytes()}},
      {"fuzz_safetensors",
       {safetensors_bytes(),
        safetensors_of(
            R"({"__metadata__":{"a":"b","":""},"x":{"dtype":"U8","shape":)"
            R"([0,1,1,1],"data_offsets":[0,0]},"y":{"dtype":"F32","shape":[0],)"
            R"("data_offsets":[0,0]}})")}},
      {"fuzz_npz", {npz_bytes()}},
      {"fuzz_store", {store_bytes()}},
      {"fuzz_nodes",
       {nodes_bytes(), std::string("\0\20lockstep nodes\r\n", 18)}},
      {"fuzz_yaml",
       {config::to_yaml(Sample().options),
        "training:\n  lr: 1e-3\n  use_amp: no\ncfg: [1, 2]\ntags:\n- a\n- 'b'",
        "{data: {batch_size: 8}, \"lr\": 0.5, output_dir: |\n  x\n}\n",
        std::string(2000, 'k') + ": 1\n"}},
      {"fuzz_flags",
       {"--lr\n0.5\n--cfg\n1,2\n-3\n--no_use_amp\n--tags\na\nb",
        "--batch_size=4\n--compile\nnone\n--\nword", "--help"}},
      {"fuzz_tokenizer", {tokenizer_text()}},
      {"fuzz_text_file",
       {R"(["a", {"text": "b"}, {"prompt": "c", "answer": "d"}])",
        R"({"messages": [{"role": "assistant", "content": "e"}]})",
        "\"one\"\n{\"text\": \"two\"}\n"}},
      {"fuzz_weight_index",
       {R"({"metadata": {"total_size": 8}, "weight_map": {"a": "b.bin"}})"}},
      {"fuzz_llama_config", {llama_config_text()}},
      {"fuzz_structure", {pdb_text(), mmcif_text(), mixed_pdb_text()}},
      // "lift it, lift": a literal, then a match of 4 at a distance of 9.
      {"fuzz_lzf", {"\x0d\0\x08lift it, \x40\x08"s}},
      {"fuzz_action_csv",
       {"x,y,z,roll,pitch,yaw,gripper\n1,2,3,4,5,6,-1\n",
        "\"a\",b,c,d,e,f,g,note\r\n+1,1e-3,\"3\",4,5,6,7,\"a, "
        "\"\"b\"\"\"\r\n"}}};
}

}  // namespace
}  // namespace lockstep

int main(int count, char** values) {
  if (count != 2) {
    std::cerr << "usage: fuzz_seeds FOLDER\n";
    return 2;
  }
  for (const auto& [target, seeds] : lockstep::make_seeds()) {
    const auto folder = std::filesystem::path(values[1]) / target;
    std::filesystem::create_directories(folder);
    for (size_t i = 0; i < seeds.size(); ++i) {
      lockstep::base::write_file_atomically(
          folder / ("seed" + std::to_string(i)), seeds[i]);
    }
  }
}
