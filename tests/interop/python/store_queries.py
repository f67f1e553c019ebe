"""Every query of the job's store through torch's client; prints the answers."""
import datetime
import os
import threading
import time

import torch.distributed as dist


def connect(**options):
    return dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False,
        timeout=datetime.timedelta(seconds=30), **options)


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__


assert os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "True"
a, b = connect(), connect()
# torchrun keeps keys of its own in the same store.
before = a.num_keys()
a.set("k", "v")
print("get", b.get("k"))
print("add", a.add("n", 3), b.add("n", -5), a.get("n"))
for key, expected, desired in (("c", "", "x"), ("c", "y", "z"), ("c", "x", "z"), ("none", "old", "new")):
    print("compare_set", key, b.compare_set(key, expected, desired))
print("check", a.check(["k", "n"]), a.check(["k", "absent"]))
print("num_keys", b.num_keys() - before)
print("list_keys", sorted(key for key in b.list_keys() if len(key) == 1))
print("delete", a.delete_key("k"), b.delete_key("k"))
# Requests without a reply are followed by one that has one, before another client asks.
a.append("ap", "1")
a.num_keys()
b.append("ap", "2")
print("append", b.get("ap"))
a.multi_set(["m1", "m2"], ["1", "2"])
print("multi", b.multi_get(["m2", "m1"]))
a.queue_push("q", "e1")
a.queue_push("q", "e2")
a.num_keys()
print("queue", b.queue_len("q"), b.queue_pop("q"), b.queue_pop("q", False), b.queue_len("q"))
print("empty queue", outcome(lambda: b.queue_pop("q", False)))


def later():
    time.sleep(0.3)
    a.queue_push("q", "late")
    a.set("w1", "")
    a.set("w2", "")


thread = threading.Thread(target=later)
thread.start()
print("blocking pop", b.queue_pop("q"))
b.wait(["w1", "w2"])
thread.join()
print("timeout", outcome(lambda: b.wait(["never"], datetime.timedelta(milliseconds=200))))
print("after a timeout", b.get("ap"))
large = "x" * (8 << 20)
a.set("large", large)
print("large", b.get("large") == large.encode())
print("clone", a.clone().get("ap"))
prefixed = dist.PrefixStore("prefix", a)
prefixed.set("k", "in prefix")
print("prefix", b.get("prefix/k"), prefixed.get("k"))
# A program that would host the store itself becomes a client.
host = dist.TCPStore(
    os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=True, multi_tenant=True,
    timeout=datetime.timedelta(seconds=30), wait_for_workers=False)
print("host", host.get("ap"))
print("all queries done")
