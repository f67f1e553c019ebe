"""Tokenizers of the package tokenizers, and what they make of many texts.

Usage: tokenizer_reference.py FOLDER

Trains small byte-level BPE tokenizers on text made here and writes, for each, a folder with
tokenizer.json and cases.json: [{"text", "ids", "decoded"}]. That of the kind of LLaMA-3 has 10,000 texts, each with
"framed" too: the ids with those that the template puts around a text.
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
LLAMA3_SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|eot_id|>"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
WORDS = ("the cat sat on a mat and didn't see that we'll go to town they're here I've 123 4567 caf\u00e9 na\u00efve "
         "\u4f60\u597d \u4e16\u754c \u8bed\u8a00 \u6a21\u578b \u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 "
         "\U0001f600 \U0001f469\u200d\U0001f680 x=y+1; {foo(bar)} ... --- http://a.b/c").split(" ")

PIECES = WORDS + [
    " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2003", "\u180e", "\u0085", "\u200b",
    "'s", "'S", "'LL", "'\u017f", "\u2019s", "0", "42", "\u0663\u0664", "\u00bd", "\u2167", "e\u0301", "\u1100\u1161\u11a8",
    "\u212b", "\u0958", "\u0344", "a\u0323\u0307", "\ufb01", "\u0130", "\U0001d400", "\U0001f1e9\U0001f1ea", "\ufffd",
    "\x00", "\x7f", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_", "<|endoftext|", "<tool>", "<to", "e\u0301x",
    "\u00e9x", "_a", "A", "Z", "!?", "((", "\U0010ffff"]


def corpus():
    draw = random.Random(1)
    return [" ".join(draw.choice(WORDS) for _ in range(12)) + "\n" for _ in range(400)]


def texts():
    draw = random.Random(2)
    fixed = ["", " ", "a", "Hello world", "don't DON'T we'LL I'D", "1234567890", "line\r\nline\r\n\r\nend  ",
             "  leading and   runs \t\t of\n\n\n  space   ", "\u4f60\u597d\uff0c\u4e16\u754c\uff01" * 3, "caf\u00e9 cafe\u0301",
             "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "x<|endoftext|>y<|endoftext|>", "a" * 4096,
             "ab " * 1500, "\u0301\u0301", "\U0001f469\u200d\U0001f680\U0001f600", "<tool> <tool>x", "  <mask>  y", "e\u0301x e\u0301x"]
    fixed += PIECES
    made = ["".join(draw.choice(PIECES) for _ in range(draw.randrange(1, 25))) for _ in range(600)]
    points = [p for p in list(range(0x250)) + list(range(0x300, 0x370)) + list(range(0x4e00, 0x4e40))
              + list(range(0x2000, 0x2070)) + list(range(0x1f600, 0x1f610))]
    wild = ["".join(chr(draw.choice(points)) for _ in range(draw.randrange(1, 40))) for _ in range(600)]
    return fixed + made + wild


def many_texts(count):
    """Other ones, no two of them equal."""
    draw = random.Random(4)
    pieces = PIECES + LLAMA3_SPECIAL + ["<|begin_of_text", "1234", "00", "\u0661\u0662\u0663\u0664", "pick up the", " red block",
                                        ", then", "qz", " qzv"]
    made = dict.fromkeys(texts())
    while len(made) < count:
        made["".join(draw.choice(pieces) for _ in range(draw.randrange(1, 20)))] = None
    return list(made)


def train(tokenizer):
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=SPECIAL[:1], show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2(prefix_space=False):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    return train(tokenizer)


def qwen2(prefix_space=False):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=False)])
    return train(tokenizer)


def llama3():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    # Words that no merge leads to are found whole.
    file = json.loads(tokenizer.to_str())
    vocabulary = file["model"]["vocab"]
    for word in ("qz", "\u0120qzv", "1234", "\u0120red"):
        vocabulary.setdefault(word, len(vocabulary))
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in LLAMA3_SPECIAL])
    begin = LLAMA3_SPECIAL[0]
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{begin} $A", pair=f"{begin} $A {begin}:1 $B:1",
                                      special_tokens=[(begin, tokenizer.token_to_id(begin))])])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def framed(tokenizer, begin, end):
    """Tokens before and after every text."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} {begin} $A {end}", special_tokens=[(name, tokenizer.token_to_id(name)) for name in (begin, end)])
    return tokenizer


def roberta(tokenizer):
    pair = [(name, tokenizer.token_to_id(name)) for name in ("<|im_end|>", "<|im_start|>")]
    tokenizer.post_processor = processors.RobertaProcessing(pair[0], pair[1], trim_offsets=False, add_prefix_space=False)
    return tokenizer


def with_added(tokenizer):
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<to", normalized=False),
                          AddedToken("e\u0301x", normalized=True), AddedToken("\u4e16\u754c \u8bed", normalized=True)])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True)])
    return tokenizer


def changed(tokenizer, **model):
    """The same with other settings of its model, by its file."""
    file = json.loads(tokenizer.to_str())
    file["model"].update(model)
    return Tokenizer.from_str(json.dumps(file))


def read_again(folder, tokenizer, spelling):
    folder.mkdir()
    file = json.loads(tokenizer.to_str())
    if spelling == "texts":
        file["model"]["merges"] = [" ".join(pair) for pair in file["model"]["merges"]]
    (folder / "tokenizer.json").write_text(json.dumps(file, ensure_ascii=False), encoding="utf-8")
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def write_framed(folder, tokenizer, many):
    again = read_again(folder, tokenizer, "pairs")
    cases = []
    for text in many:
        ids = again.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": ids, "framed": again.encode(text).ids,
                      "decoded": again.decode(ids, skip_special_tokens=False)})
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")


def write(folder, tokenizer, spelling="pairs"):
    again = read_again(folder, tokenizer, spelling)
    draw, cases = random.Random(3), []
    for text in texts():
        ids = again.encode(text, add_special_tokens=False).ids
        if draw.random() < 0.3:  # Cut inside characters, and ids out of order.
            ids = ids[draw.randrange(len(ids) + 1):] + [draw.randrange(again.get_vocab_size()) for _ in range(3)]
            cases.append({"ids": ids, "decoded": again.decode(ids, skip_special_tokens=False)})
        else:
            cases.append({"text": text, "ids": ids, "decoded": again.decode(ids, skip_special_tokens=False)})
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")


def main():
    folder = pathlib.Path(sys.argv[1])
    words = {" the": 900, " cat": 901, "zq": 902}
    whole = qwen2()
    vocabulary = json.loads(whole.to_str())["model"]["vocab"]
    vocabulary.update({word.replace(" ", "\u0120"): place for word, place in words.items()
                       if word.replace(" ", "\u0120") not in vocabulary})
    few = {token: place for token, place in vocabulary.items() if token not in ("q", "\u0100")}
    write(folder / "gpt2", gpt2())
    write(folder / "gpt2_space", gpt2(prefix_space=True), spelling="texts")
    write_framed(folder / "llama3", llama3(), many_texts(10000))
    write_framed(folder / "gpt2_framed", framed(gpt2(), "<|im_start|>", "<|endoftext|>"), texts())
    write_framed(folder / "roberta", roberta(gpt2()), texts())
    write(folder / "qwen2", qwen2())
    write(folder / "qwen2_space", qwen2(prefix_space=True))
    write(folder / "qwen2_added", with_added(qwen2()), spelling="texts")
    write(folder / "gpt2_added", with_added(gpt2()))
    write(folder / "whole_words", changed(whole, vocab=vocabulary, ignore_merges=True))
    write(folder / "missing_bytes", changed(whole, vocab=few, merges=[
        pair for pair in json.loads(whole.to_str())["model"]["merges"] if not set("".join(pair)) & {"q", "\u0100"}]))


if __name__ == "__main__":
    main()
